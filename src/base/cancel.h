// Cancels a waiting operation: on FUSE INTERRUPT, Ctrl-C or unmount.
//
// The party that may cancel owns a CancelSource; waiters hold CancelTokens, which are cheap to copy. Thread-safe.
// cancel() runs the registered hooks once, on the calling thread, with no lock held.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/callback.h"

namespace playfs {

class CancelToken {
 public:
  /// A token that is never cancelled.
  CancelToken() = default;

  [[nodiscard]] bool cancelled() const;

  /// Keeps a hook registered for its lifetime. Its destructor does not wait for a hook that is already running.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    ~Registration();

   private:
    friend class CancelToken;
    std::shared_ptr<struct CancelState> state_;
    std::uint64_t id_ = 0;
  };

  /// Runs `hook` on cancellation, or immediately if already cancelled.
  [[nodiscard]] Registration on_cancel(Task hook) const;

 private:
  friend class CancelSource;
  explicit CancelToken(std::shared_ptr<struct CancelState> state) : state_(std::move(state)) {}
  std::shared_ptr<struct CancelState> state_;
};

class CancelSource {
 public:
  CancelSource();
  void cancel();
  [[nodiscard]] CancelToken token() const { return CancelToken(state_); }

 private:
  std::shared_ptr<struct CancelState> state_;
};

}  // namespace playfs
