// Rundown protection: the end of a part waits for those at work inside it, and turns away whoever comes later.
//
// Everything that runs later or on another thread (a response, a timer, a waiting operation) first takes a ticket, or
// finds the gate closed and does nothing. Thread-safe; outlives the part if a ticket or a callback still refers to it.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/cancel.h"
#include "base/mutex.h"

namespace playfs {

class Gate : public std::enable_shared_from_this<Gate> {
 public:
  class Ticket {
   public:
    explicit Ticket(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket() {
      if (gate_) gate_->leave();
    }

   private:
    std::shared_ptr<Gate> gate_;
  };

  /// nullopt once the gate is closed.
  [[nodiscard]] std::optional<Ticket> enter() PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (closed_) return std::nullopt;
    ++inside_;
    return Ticket(shared_from_this());
  }

  /// Cancelled when the gate closes.
  [[nodiscard]] CancelToken closing() const { return closing_.token(); }

  /// A callable that runs `f` inside the gate, or not at all.
  template <class F>
  static auto guard(std::shared_ptr<Gate> gate, F f) {
    return [gate = std::move(gate), f = std::move(f)](auto&&... args) mutable -> void {
      if (auto ticket = gate->enter()) f(std::forward<decltype(args)>(args)...);
    };
  }

  /// Refuses new tickets, cancels closing(), and waits until all tickets are returned. REQUIRES: the calling thread
  /// holds none.
  void close() PLAYFS_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    closing_.cancel();
    MutexLock lock(mutex_);
    while (inside_ > 0) left_.wait(mutex_);
  }

 private:
  void leave() PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }

  CancelSource closing_;
  Mutex mutex_;
  Condition left_;
  bool closed_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::size_t inside_ PLAYFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace playfs
