// While it lives, system calls of its thread are interrupted (EINTR) once a time has passed: a call on a mount may take
// as long as the mount waits for its service. Loops that retry after EINTR do not end. For one thread.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace playfs::app {

class InterruptedAfter {
 public:
  explicit InterruptedAfter(std::chrono::nanoseconds most) : thread_(pthread_self()) {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};  // without SA_RESTART: blocking calls return EINTR
    sigaction(kSignal, &nothing, nullptr);
    timer_ = std::thread([this, most] { run(most); });
  }
  ~InterruptedAfter() {
    {
      std::lock_guard lock(mutex_);
      is_done_ = true;
    }
    done_.notify_one();
    timer_.join();
  }
  InterruptedAfter(const InterruptedAfter&) = delete;
  InterruptedAfter& operator=(const InterruptedAfter&) = delete;

  [[nodiscard]] bool is_over() const { return is_over_; }

 private:
  static constexpr int kSignal = SIGUSR1;
  /// A signal may come right before the call that it should interrupt.
  static constexpr std::chrono::milliseconds kAgain{50};

  void run(std::chrono::nanoseconds most) {
    std::unique_lock lock(mutex_);
    auto is_done = [&] { return is_done_; };
    for (auto wait = most; !done_.wait_for(lock, wait, is_done); wait = kAgain) {
      is_over_ = true;
      pthread_kill(thread_, kSignal);
    }
  }

  const pthread_t thread_;
  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::atomic<bool> is_over_ = false;
  std::thread timer_;
};

}  // namespace playfs::app
