// Holds back the signals that stop a command (Ctrl-C, SIGTERM, SIGHUP) while it lives, so that what was begun can be
// completed; then the command ends by the first that came. A second one ends it at once. Signals that were ignored
// before stay ignored. For one thread, and one object at a time; a signal's disposition belongs to the whole process.
#pragma once

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>

namespace playfs::app {

class DeferredSignals {
 public:
  DeferredSignals() {
    came_ = 0;
    for (std::size_t i = 0; i < kNumbers.size(); ++i) {
      sigaction(kNumbers.at(i), nullptr, &before_.at(i));
      struct sigaction note {};
      note.sa_handler = [](int number) { came_ = number; };
      // The command goes on as if nothing had happened; its next signal is not held back.
      note.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
      if (before_.at(i).sa_handler != SIG_IGN) sigaction(kNumbers.at(i), &note, nullptr);
    }
  }
  ~DeferredSignals() {
    for (std::size_t i = 0; i < kNumbers.size(); ++i) sigaction(kNumbers.at(i), &before_.at(i), nullptr);
    if (came_ != 0) std::raise(came_);
  }
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;

  /// Whether one came, so that nothing further should be begun.
  [[nodiscard]] bool came() const { return came_ != 0; }

 private:
  static constexpr std::array kNumbers{SIGINT, SIGTERM, SIGHUP};
  static inline std::atomic<int> came_ = 0;
  static_assert(std::atomic<int>::is_always_lock_free);
  std::array<struct sigaction, kNumbers.size()> before_{};
};

}  // namespace playfs::app
