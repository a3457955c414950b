// A callback that several may race to call: the first one does, the others are too late. Thread-safe; copies share.
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
