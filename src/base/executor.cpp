#include "base/executor.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace playfs {

struct ThreadPool::State {
  using SteadyClock = std::chrono::steady_clock;

  std::mutex mutex;
  std::condition_variable changed;
  // Ordered by due time; equal times stay FIFO.
  std::multimap<SteadyClock::time_point, Task> queue;
  bool stopping = false;
  std::vector<std::thread> threads;

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (queue.empty()) {
        changed.wait(lock);
        continue;
      }
      auto first = queue.begin();
      auto due = first->first;  // a copy: the entry may be gone when the wait returns
      if (due > SteadyClock::now()) {
        changed.wait_until(lock, due);
        continue;
      }
      Task task = std::move(first->second);
      queue.erase(first);
      lock.unlock();
      task();
      task = Task();  // releases what the task owns before relocking
      lock.lock();
    }
  }
};

ThreadPool::ThreadPool(unsigned threads) : state_(std::make_unique<State>()) {
  for (unsigned i = 0; i < threads; ++i) state_->threads.emplace_back([state = state_.get()] { state->run(); });
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::post(Task task) { post_after(std::chrono::nanoseconds(0), std::move(task)); }

void ThreadPool::post_after(std::chrono::nanoseconds delay, Task task) {
  {
    std::lock_guard lock(state_->mutex);
    if (state_->stopping) return;
    state_->queue.emplace(State::SteadyClock::now() + delay, std::move(task));
  }
  state_->changed.notify_one();
}

void ThreadPool::stop() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  for (auto& thread : state_->threads)
    if (thread.joinable()) thread.join();
  std::multimap<State::SteadyClock::time_point, Task> dropped;
  std::lock_guard lock(state_->mutex);
  dropped.swap(state_->queue);
}

}  // namespace playfs
