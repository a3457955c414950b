// Cancels what a command waits for when it is to stop (Ctrl-C, SIGTERM, SIGHUP), so that it can say how far it came;
// then the command ends by that signal, in the destructor. A second signal ends it at once. For one thread, and one
// object at a time.
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
  /// A handler may call next to nothing, so a thread looks whether it ran. Last: uses the above.
  Repeated looks_{kLookEvery, kLookEvery, [this] {
                    if (signals_.came()) source_.cancel();
                  }};
};

}  // namespace playfs::app
