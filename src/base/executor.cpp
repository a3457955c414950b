#include "base/executor.h"

#include <map>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace playfs {

struct ThreadPool::State {
  using SteadyClock = std::chrono::steady_clock;

  Mutex mutex;
  Condition changed;
  // Ordered by due time; equal times stay FIFO.
  std::multimap<SteadyClock::time_point, Task> queue PLAYFS_GUARDED_BY(mutex);
  bool stopping PLAYFS_GUARDED_BY(mutex) = false;
  std::vector<std::thread> threads;

  void run() {
    mutex.lock();
    while (!stopping) {
      if (queue.empty()) {
        changed.wait(mutex);
        continue;
      }
      auto first = queue.begin();
      auto due = first->first;  // a copy: the entry may be gone when the wait returns
      if (auto now = SteadyClock::now(); due > now) {
        changed.wait_for(mutex, due - now);
        continue;
      }
      Task task = std::move(first->second);
      queue.erase(first);
      mutex.unlock();
      task();
      task = Task();  // releases what the task owns before relocking
      mutex.lock();
    }
    mutex.unlock();
  }
};

ThreadPool::ThreadPool(unsigned threads) : state_(std::make_unique<State>()) {
  for (unsigned i = 0; i < threads; ++i) state_->threads.emplace_back([state = state_.get()] { state->run(); });
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::post(Task task) { post_after(std::chrono::nanoseconds(0), std::move(task)); }

void ThreadPool::post_after(std::chrono::nanoseconds delay, Task task) {
  {
    MutexLock lock(state_->mutex);
    if (state_->stopping) return;
    state_->queue.emplace(State::SteadyClock::now() + delay, std::move(task));
  }
  state_->changed.notify_one();
}

void ThreadPool::stop() {
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  for (auto& thread : state_->threads)
    if (thread.joinable()) thread.join();
  std::multimap<State::SteadyClock::time_point, Task> dropped;
  MutexLock lock(state_->mutex);
  dropped.swap(state_->queue);
}

}  // namespace playfs
