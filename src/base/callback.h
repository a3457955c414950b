// A move-only callable for results delivered later, possibly on another thread.
//
// std::function requires copyable targets, but a FUSE reply or a promise must not be copied, and C++20 has no
// std::move_only_function. Not thread-safe: hand it over, then call it from one thread.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "base/result.h"

namespace playfs {

template <class Signature>
class UniqueFunction;

template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;

  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, UniqueFunction> && std::is_invocable_r_v<R, std::decay_t<F>&, Args...>)
      UniqueFunction(F&& target)  // NOLINT(google-explicit-constructor): as std::function
      : target_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(target))) {}

  explicit operator bool() const { return target_ != nullptr; }

  /// REQUIRES: not empty.
  R operator()(Args... args) { return target_->call(std::forward<Args>(args)...); }

 private:
  struct Base {
    Base() = default;
    Base(const Base&) = delete;
    Base& operator=(const Base&) = delete;
    virtual ~Base() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Holder final : Base {
    explicit Holder(F f) : target(std::move(f)) {}
    R call(Args... args) override { return target(std::forward<Args>(args)...); }
    F target;
  };
  std::unique_ptr<Base> target_;
};

/// Receives the result of an asynchronous operation. Called exactly once, with none of the caller's locks held, on any
/// thread unless the operation specifies one. It must not block.
template <class T>
using Callback = UniqueFunction<void(Result<T>)>;

using Task = UniqueFunction<void()>;

}  // namespace playfs
