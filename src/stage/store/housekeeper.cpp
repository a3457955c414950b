#include "stage/store/housekeeper.h"

#include <utility>

namespace playfs::stage {

void Housekeeper::want_checkpoint() {
  if (!own_thread_) return do_now(checkpoint_);
  MutexLock lock(mutex_);
  if (std::exchange(wants_checkpoint_, true)) return;
  wake();
}

void Housekeeper::want_removal(bool at_once) {
  if (!own_thread_) return do_now(remove_);
  MutexLock lock(mutex_);
  Time now = std::chrono::steady_clock::now();
  if (wants_removal_ && (!at_once || removal_due_ <= now)) return;
  removal_due_ = at_once ? now : now + patience_;
  wants_removal_ = true;
  wake();
}

void Housekeeper::do_now(const Work& work) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
  }
  work();
}

void Housekeeper::wake() {
  if (stopping_) return;
  if (thread_.joinable()) wished_.notify_one();
  else thread_ = std::thread([this] { run(); });
}

void Housekeeper::run() {
  mutex_.lock();
  while (!stopping_) {
    Time now = std::chrono::steady_clock::now();
    const Work* work = nullptr;
    if (std::exchange(wants_checkpoint_, false)) {
      work = &checkpoint_;
    } else if (wants_removal_ && removal_due_ <= now) {
      wants_removal_ = false;
      work = &remove_;
    }
    if (work) {
      mutex_.unlock();
      (*work)();
      mutex_.lock();
    } else if (wants_removal_) {
      wished_.wait_for(mutex_, removal_due_ - now);
    } else {
      wished_.wait(mutex_);
    }
  }
  mutex_.unlock();
}

void Housekeeper::stop() {
  std::thread ending;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    ending = std::move(thread_);
  }
  wished_.notify_all();
  if (ending.joinable()) ending.join();
}

}  // namespace playfs::stage
