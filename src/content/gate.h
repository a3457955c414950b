// Turns away late responses once their target is being destroyed.
//
// A response to a part's request may arrive on any thread, at any time, even during the part's destruction. Each one
// passes the gate before it touches the part. Closing the gate waits for those inside and rejects the rest.
// Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"

namespace playfs::content {

class Gate {
 public:
  /// Being inside. Converts to false if the gate was closed.
  class Pass {
   public:
    explicit Pass(Gate* gate) : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
      if (gate_) gate_->leave();
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    Gate* gate_;
  };

  [[nodiscard]] Pass enter() {
    MutexLock lock(mutex_);
    if (closed_) return Pass(nullptr);
    ++inside_;
    return Pass(this);
  }

  /// Returns once nobody is inside. REQUIRES: the calling thread is not inside.
  void close() {
    MutexLock lock(mutex_);
    closed_ = true;
    while (inside_ > 0) left_.wait(mutex_);
  }

  /// A callable that runs `f` inside the gate, or not at all.
  template <class F>
  static auto guard(std::shared_ptr<Gate> gate, F f) {
    return [gate = std::move(gate), f = std::move(f)](auto&&... args) mutable -> void {
      if (auto pass = gate->enter()) f(std::forward<decltype(args)>(args)...);
    };
  }

 private:
  void leave() {
    MutexLock lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }

  Mutex mutex_;
  Condition left_;
  bool closed_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::size_t inside_ PLAYFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace playfs::content
