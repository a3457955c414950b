// Blocks until an asynchronous operation answers. Only for threads that may block: a command's or a publication's own,
// never a FUSE or executor thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/mutex.h"

namespace playfs {

/// An answer that a thread waits for. The callback may come after the wait has ended.
template <class T>
class Awaited {
 public:
  [[nodiscard]] Callback<T> callback() {
    return [shared = shared_](Result<T> result) {
      MutexLock lock(shared->mutex);
      shared->result.emplace(std::move(result));
      shared->answered.notify_one();
    };
  }
  /// The answer; nullopt if it has not come after `most`.
  std::optional<Result<T>> wait_for(std::chrono::nanoseconds most) {
    const auto end = std::chrono::steady_clock::now() + most;
    MutexLock lock(shared_->mutex);
    while (!shared_->result && std::chrono::steady_clock::now() < end)
      shared_->answered.wait_for(shared_->mutex, end - std::chrono::steady_clock::now());
    return std::move(shared_->result);
  }
  Result<T> wait() {
    MutexLock lock(shared_->mutex);
    while (!shared_->result) shared_->answered.wait(shared_->mutex);
    return std::move(*shared_->result);
  }

 private:
  struct Shared {
    Mutex mutex;
    Condition answered;
    std::optional<Result<T>> result PLAYFS_GUARDED_BY(mutex);
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

/// Starts an operation with a Callback<T> and returns the result it is called with:
///   auto project = await<model::Project>([&](auto done) { client.get_project(id, {}, std::move(done)); });
/// To cancel, give the operation a CancelToken; it then answers `interrupted`.
template <class T, class Start>
Result<T> await(Start&& start) {
  Awaited<T> awaited;
  start(awaited.callback());
  return awaited.wait();
}

/// The same for an operation that may take too long: `left()` says how long to wait from now on, and is called again
/// whenever that has passed. Once it is zero, the operation, which also gets a CancelToken, is cancelled; nullopt.
template <class T, class Start, class Left>
std::optional<Result<T>> await_while(const Left& left, Start&& start) {
  CancelSource cancel;
  Awaited<T> awaited;
  start(cancel.token(), awaited.callback());
  for (;;) {
    const std::chrono::nanoseconds more = left();
    if (auto answer = awaited.wait_for(more)) return answer;
    if (more > std::chrono::nanoseconds(0)) continue;
    cancel.cancel();
    return std::nullopt;
  }
}

}  // namespace playfs
