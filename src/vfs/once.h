// A callback that several parties may race to call: only the first call counts. Thread-safe; copies share state.
#pragma once

#include <atomic>
#include <memory>

#include "base/callback.h"

namespace playfs::vfs {

template <class T>
class Once {
 public:
  explicit Once(Callback<T> done) : shared_(std::make_shared<Shared>(std::move(done))) {}

  void operator()(Result<T> result) const {
    if (shared_->called.exchange(true)) return;
    auto done = std::move(shared_->done);
    done(std::move(result));
  }

 private:
  struct Shared {
    explicit Shared(Callback<T> callback) : done(std::move(callback)) {}
    std::atomic<bool> called = false;
    Callback<T> done;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace playfs::vfs
