#include "http/fair_pool.h"

#include <optional>
#include <utility>

namespace playfs::http {

FairPool::FairPool(unsigned threads, std::size_t most_waiting) : queue_(most_waiting) {
  for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

FairPool::~FairPool() { join(); }

void FairPool::offer(const std::string& client, Job job) {
  std::optional<Job> refused;
  {
    MutexLock lock(mutex_);
    refused = queue_.add(client, std::move(job));
  }
  changed_.notify_one();
  if (refused) (*refused)(false);
}

void FairPool::go_on(const std::string& client, Job job) {
  {
    MutexLock lock(mutex_);
    queue_.go_on(client, std::move(job));
  }
  changed_.notify_one();
}

void FairPool::work() {
  for (;;) {
    std::optional<Job> job;
    {
      MutexLock lock(mutex_);
      while (!(job = queue_.next())) {
        if (ending_) return;
        changed_.wait(mutex_);
      }
    }
    (*job)(true);
  }
}

void FairPool::join() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace playfs::http
