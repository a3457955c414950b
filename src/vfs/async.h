// Operations that wait, written top-down: a lazy coroutine that yields a Result<T>.
//
// An attempt (attempt.h) reruns from the top after each wait, which suits operations that can mostly be answered at
// once from local data. An operation with several waits in sequence, and effects in between, is an Async instead: it
// resumes where it stopped. Within one,
//
//   PLAYFS_AWAIT(declaration, what)   waits, and returns the error or assigns the value
//   PLAYFS_AWAIT_CHECK(what)          the same where there is no value
//
// accept a Fetch, an attempt (`repeat`), a request with a callback (`answer`) or another Async. g++ 12 destroys the
// temporaries of a statement with co_await twice, so co_await itself accepts named objects only, which these macros
// provide.
//
// The driver sees an Async as an attempt: as_attempt() runs it to its next wait. So its waits are cancelled and timed
// like all others, block no kernel thread, and the coroutine resumes on the mount's executor. It is destroyed there,
// too, once the operation is answered.
//
// Parameters are taken by value: the caller's are gone after the first wait. A lambda that is a coroutine must not
// capture, since the frame does not keep the lambda. Work that may go on after its Fetch has answered, because the
// caller was interrupted, must not refer to the frame.
//
// Not thread-safe: runs on one thread at a time.
#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "vfs/attempt.h"

// PLAYFS_TRY and PLAYFS_CHECK within a coroutine.
#define PLAYFS_CO_TRY(declaration, expression) \
  PLAYFS_CO_TRY_INNER(PLAYFS_CONCAT(playfs_co_, __LINE__), declaration, expression)
#define PLAYFS_CO_TRY_INNER(temporary, declaration, expression)           \
  auto temporary = (expression);                                          \
  if (!temporary) co_return ::playfs::fail(std::move(temporary).error()); \
  declaration = std::move(*temporary)
#define PLAYFS_CO_CHECK(expression)                                                                        \
  do {                                                                                                     \
    if (auto playfs_co = (expression); !playfs_co) co_return ::playfs::fail(std::move(playfs_co).error()); \
  } while (false)
// The same for the outcome of something awaited.
#define PLAYFS_AWAIT(declaration, what) PLAYFS_AWAIT_INNER(PLAYFS_CONCAT(playfs_await_, __LINE__), declaration, what)
#define PLAYFS_AWAIT_INNER(awaited, declaration, what) \
  auto awaited = (what);                               \
  PLAYFS_CO_TRY(declaration, co_await awaited)
#define PLAYFS_AWAIT_CHECK(what)            \
  do {                                      \
    auto playfs_await = (what);             \
    PLAYFS_CO_CHECK(co_await playfs_await); \
  } while (false)

namespace playfs::vfs {

template <class T>
class [[nodiscard]] Async;

namespace async {

/// What the coroutines of one operation share: the wait that they are in.
struct Wait {
  std::coroutine_handle<> innermost;  ///< the one that waits
  Fetch fetch;
  Status outcome;
};

struct PromiseBase {
  Wait* wait = nullptr;
  std::coroutine_handle<> caller;
  std::exception_ptr failure;  ///< passed on to the driver, which answers

  static std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept {
    struct ToCaller {
      std::coroutine_handle<> caller;
      static bool await_ready() noexcept { return false; }
      static void await_resume() noexcept {}
      std::coroutine_handle<> await_suspend(std::coroutine_handle<>) noexcept {
        return caller ? caller : std::noop_coroutine();
      }
    };
    return ToCaller{caller};
  }
  void unhandled_exception() noexcept { failure = std::current_exception(); }

  auto await_transform(Fetch& fetch) noexcept {
    struct ForFetch {
      Wait* wait;
      Fetch* fetch;
      static bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<> self) noexcept {
        wait->innermost = self;
        wait->fetch = std::move(*fetch);
      }
      Status await_resume() { return std::move(wait->outcome); }
    };
    return ForFetch{wait, &fetch};
  }
  template <class T>
  auto await_transform(Async<T>& called) noexcept {
    struct ForAsync {
      typename Async<T>::promise_type* called;
      static bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) noexcept {
        called->caller = self;
        return std::coroutine_handle<typename Async<T>::promise_type>::from_promise(*called);
      }
      Result<T> await_resume() { return called->outcome(); }
    };
    called.promise().wait = wait;
    return ForAsync{&called.promise()};
  }
  template <class T>
  void await_transform(T&& temporary) = delete;  // see above
};

}  // namespace async

template <class T>
class Async {
 public:
  struct promise_type : async::PromiseBase {
    std::optional<Result<T>> result;

    Async get_return_object() { return Async(std::coroutine_handle<promise_type>::from_promise(*this)); }
    void return_value(Result<T> value) { result.emplace(std::move(value)); }
    /// REQUIRES: it has ended.
    Result<T> outcome() {
      if (failure) std::rethrow_exception(failure);
      return std::move(*result);
    }
  };

  Async(Async&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), wait_(std::move(other.wait_)) {}
  Async& operator=(Async&&) = delete;
  ~Async() {
    if (handle_) handle_.destroy();
  }

  /// Runs to the next wait, or to the end. REQUIRES: the previous wait is over; not called after the end.
  Attempt<T> run() {
    if (!wait_) {
      wait_ = std::make_unique<async::Wait>();
      wait_->innermost = handle_;
      promise().wait = wait_.get();
    }
    wait_->innermost.resume();
    if (handle_.done()) {
      Result<T> outcome = promise().outcome();
      if (!outcome) return tl::unexpected<NoValue>(NoValue(std::move(outcome).error()));
      if constexpr (std::is_void_v<T>) return {};
      else return std::move(*outcome);
    }
    // Reports success to the driver even if the wait failed: the coroutine looks at the outcome itself. The driver
    // keeps the coroutine alive meanwhile.
    return missing(
        [wait = wait_.get(), fetch = std::move(wait_->fetch)](CancelToken cancel, Callback<void> done) mutable {
          fetch(std::move(cancel), [wait, done = std::move(done)](Status status) mutable {
            wait->outcome = std::move(status);
            done({});
          });
        });
  }

 private:
  friend struct async::PromiseBase;
  explicit Async(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  promise_type& promise() const { return handle_.promise(); }

  std::coroutine_handle<promise_type> handle_;
  std::unique_ptr<async::Wait> wait_;  ///< only of the outermost
};

/// Waits for `start`, called with a CancelToken and a Callback<T>. Once it has called back, the frame may be gone: what
/// it uses after that, or passes on by reference, is in its own captures.
template <class T, class Start>
Async<T> answer(Start start) {
  auto result = std::make_shared<std::optional<Result<T>>>();
  Fetch fetch = [start = std::move(start), result](CancelToken cancel, Callback<void> done) mutable {
    start(std::move(cancel), Callback<T>([result, done = std::move(done)](Result<T> came) mutable {
            result->emplace(std::move(came));
            done({});
          }));
  };
  Status came = co_await fetch;  // an error is in the result
  static_cast<void>(came);
  co_return std::move(**result);
}

/// Waits for what an attempt lacks; fails if nothing can be fetched for it.
inline Async<void> wait_for(NoValue lacking) {
  if (!lacking.fetch) co_return fail(std::move(lacking.error));
  Status came = co_await lacking.fetch;
  co_return came;
}

/// Runs `attempt` until nothing is missing.
template <class F, class T = typename std::invoke_result_t<F&>::value_type>
Async<T> repeat(F attempt) {
  for (;;) {
    Attempt<T> outcome = attempt();
    if constexpr (std::is_void_v<T>) {
      if (outcome) co_return Result<T>();
    } else {
      if (outcome) co_return std::move(*outcome);
    }
    auto waiting = wait_for(std::move(outcome).error());
    if (Status came = co_await waiting; !came) co_return fail(std::move(came).error());
  }
}

/// `begin`, called with the operation, makes the coroutine at the first attempt.
template <class F>
auto as_attempt(F begin) {
  using Made = std::invoke_result_t<F&, const OperationPtr&>;
  return [begin = std::move(begin), made = std::optional<Made>()](const OperationPtr& op) mutable {
    if (!made) made.emplace(begin(op));
    return made->run();
  };
}

}  // namespace playfs::vfs
