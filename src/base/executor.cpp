#include "base/executor.h"

#include <map>
#include <system_error>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace playfs {

struct ThreadPool::State {
  using SteadyClock = std::chrono::steady_clock;

  explicit State(unsigned threads) : most(threads) {}

  const std::size_t most;
  Mutex mutex;
  Condition changed;
  // Ordered by due time; equal times stay FIFO.
  std::multimap<SteadyClock::time_point, Task> queue PLAYFS_GUARDED_BY(mutex);
  bool stopping PLAYFS_GUARDED_BY(mutex) = false;
  std::size_t idle PLAYFS_GUARDED_BY(mutex) = 0;  ///< threads that wait, for a task or until one is due
  std::vector<std::thread> threads PLAYFS_GUARDED_BY(mutex);

  void start_one() PLAYFS_REQUIRES(mutex) {
    try {
      threads.emplace_back([this] { run(); });
    } catch (const std::system_error&) {
      if (threads.empty()) throw;  // the task would never run
    }
  }
  /// Call after queueing a task, and after taking one. Somebody has to wait for the first task even if it is not due.
  void start_if_missing() PLAYFS_REQUIRES(mutex) {
    if (!queue.empty() && idle == 0 && threads.size() < most) start_one();
  }

  void run() {
    mutex.lock();
    while (!stopping) {
      if (queue.empty()) {
        ++idle;
        changed.wait(mutex);
        --idle;
        continue;
      }
      auto first = queue.begin();
      auto due = first->first;  // a copy: the entry may be gone when the wait returns
      if (auto now = SteadyClock::now(); due > now) {
        ++idle;
        changed.wait_for(mutex, due - now);
        --idle;
        continue;
      }
      Task task = std::move(first->second);
      queue.erase(first);
      start_if_missing();
      mutex.unlock();
      task();
      task = Task();  // releases what the task owns before relocking
      mutex.lock();
    }
    mutex.unlock();
  }
};

ThreadPool::ThreadPool(unsigned threads) : state_(std::make_unique<State>(threads)) {}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::start() {
  MutexLock lock(state_->mutex);
  while (!state_->stopping && state_->threads.size() < state_->most) state_->start_one();
}

void ThreadPool::post(Task task) { post_after(std::chrono::nanoseconds(0), std::move(task)); }

void ThreadPool::post_after(std::chrono::nanoseconds delay, Task task) {
  {
    MutexLock lock(state_->mutex);
    if (state_->stopping) return;
    state_->queue.emplace(State::SteadyClock::now() + delay, std::move(task));
    state_->start_if_missing();
  }
  state_->changed.notify_one();
}

void ThreadPool::stop() {
  std::vector<std::thread> ending;
  {
    MutexLock lock(state_->mutex);
    state_->stopping = true;
    ending.swap(state_->threads);
  }
  state_->changed.notify_all();
  for (auto& thread : ending) thread.join();
  std::multimap<State::SteadyClock::time_point, Task> dropped;
  MutexLock lock(state_->mutex);
  dropped.swap(state_->queue);
}

}  // namespace playfs
