// Blocks until an asynchronous operation answers. Only for threads that may block: a command's or a publication's own,
// never a FUSE or executor thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "base/callback.h"

namespace playfs {

/// Starts an operation with a Callback<T> and returns the result it is called with:
///   auto project = await<model::Project>([&](auto done) { client.get_project(id, {}, std::move(done)); });
/// To cancel, give the operation a CancelToken; it then answers `interrupted`.
template <class T, class Start>
Result<T> await(Start&& start) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable answered;
    std::optional<Result<T>> result;
  };
  auto shared = std::make_shared<Shared>();
  start(Callback<T>([shared](Result<T> result) {
    std::lock_guard lock(shared->mutex);
    shared->result.emplace(std::move(result));
    shared->answered.notify_one();
  }));
  std::unique_lock lock(shared->mutex);
  shared->answered.wait(lock, [&] { return shared->result.has_value(); });
  return std::move(*shared->result);
}

}  // namespace playfs
