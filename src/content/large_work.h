// Runs long work, such as parsing records of megabytes, on the executor, only a few tasks at a time, so that the
// executor's other threads stay free for everything else. Thread-safe; tasks may outlive it.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "base/callback.h"
#include "base/executor.h"
#include "base/mutex.h"

namespace playfs::content {

class LargeWork {
 public:
  explicit LargeWork(Executor& executor) : state_(std::make_shared<State>(executor)) {}

  void post(Task task) {
    {
      MutexLock lock(state_->mutex);
      state_->waiting.push_back(std::move(task));
      if (state_->running == kAtOnce) return;
      ++state_->running;
    }
    run_next(state_);
  }

 private:
  static constexpr std::size_t kAtOnce = 1;

  struct State {
    explicit State(Executor& on) : executor(on) {}
    Executor& executor;
    Mutex mutex;
    std::deque<Task> waiting PLAYFS_GUARDED_BY(mutex);
    std::size_t running PLAYFS_GUARDED_BY(mutex) = 0;
  };

  /// Posts one task at a time, so that other work posted in between gets its turn.
  static void run_next(const std::shared_ptr<State>& state) {
    state->executor.post([state] {
      Task task;
      {
        MutexLock lock(state->mutex);
        task = std::move(state->waiting.front());
        state->waiting.pop_front();
      }
      task();
      task = Task();
      {
        MutexLock lock(state->mutex);
        if (state->waiting.empty()) {
          --state->running;
          return;
        }
      }
      run_next(state);
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace playfs::content
