// Cancellation of an operation that waits: a FUSE INTERRUPT, a Ctrl-C, an unmount.
//
// A CancelSource belongs to whoever may cancel; CancelTokens are cheap copies handed down to those who wait.
// All of it is thread-safe. Cancelling runs the registered hooks once, on the cancelling thread, without any
// lock held.
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

  /// Keeps a hook registered while it lives. Destroying it does not wait for a hook that is running.
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

  /// Runs `hook` when the token is cancelled; at once if it already is.
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
