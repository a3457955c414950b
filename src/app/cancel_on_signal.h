// On Ctrl-C, SIGTERM or SIGHUP, cancels what a command waits for, so that the command can report how far it got. The
// destructor then ends the process by that signal. A second signal ends it at once. For one thread, and one object at a
// time.
#pragma once

#include <chrono>

#include "app/deferred_signals.h"
#include "app/repeated.h"
#include "base/cancel.h"

namespace playfs::app {

class CancelOnSignal {
 public:
  [[nodiscard]] CancelToken token() const { return source_.token(); }

 private:
  static constexpr std::chrono::milliseconds kLookEvery{50};

  DeferredSignals signals_;
  CancelSource source_;
  /// A signal handler may call hardly any function, so a thread polls whether it ran. Last member: uses the above.
  Repeated looks_{kLookEvery, kLookEvery, [this] {
                    if (signals_.came()) source_.cancel();
                  }};
};

}  // namespace playfs::app
