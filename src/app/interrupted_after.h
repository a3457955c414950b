// While it lives, system calls of its thread are interrupted (EINTR) once a time has passed: a call on a mount may take
// as long as the mount waits for its service. Loops that retry after EINTR do not end. For one thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>

#include "app/repeated.h"

namespace playfs::app {

/// Lets a signal interrupt calls of this thread while it lives, though the parent process may have blocked or ignored
/// it for its children.
class InterruptingSignal {
 public:
  explicit InterruptingSignal(int number) {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};  // without SA_RESTART: blocking calls return EINTR
    sigaction(number, &nothing, nullptr);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, &before_);
  }
  ~InterruptingSignal() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  InterruptingSignal(const InterruptingSignal&) = delete;
  InterruptingSignal& operator=(const InterruptingSignal&) = delete;

 private:
  sigset_t before_{};
};

class InterruptedAfter {
 public:
  explicit InterruptedAfter(std::chrono::nanoseconds most)
      : sent_(most, kAgain, [this, thread = pthread_self()] {
          is_over_ = true;
          pthread_kill(thread, kSignal);
        }) {}

  [[nodiscard]] bool is_over() const { return is_over_; }

 private:
  static constexpr int kSignal = SIGUSR1;
  /// A signal may come right before the call that it should interrupt.
  static constexpr std::chrono::milliseconds kAgain{50};

  const InterruptingSignal signal_{kSignal};
  std::atomic<bool> is_over_ = false;
  Repeated sent_;  // last: uses the above
};

}  // namespace playfs::app
