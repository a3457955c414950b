// Ignores a signal while it lives, so that Ctrl-C is for the program that has the terminal, and a closed pipe becomes
// an ordinary error. For one thread; a signal's disposition belongs to the whole process.
#pragma once

#include <csignal>

namespace playfs::app {

class IgnoredSignal {
 public:
  explicit IgnoredSignal(int number) : number_(number) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(number_, &ignore, &before_);
  }
  ~IgnoredSignal() { sigaction(number_, &before_, nullptr); }
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;

 private:
  int number_;
  struct sigaction before_ {};
};

}  // namespace playfs::app
