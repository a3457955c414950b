// The site's events: one connection on which it tells what has changed, so that nobody needs to ask.
//
// Asks the site once where it sends events, connects, and reconnects with the position of the last event, so that
// nothing is missed. A site without events is asked again rarely. One that sends garbage, or more than an honest site
// would, is left alone for a while. Thread-safe; one listener, called on any thread with no lock held, one call at a
// time. Nothing is sent before begin(). The destructor, which must not run in the listener, waits for running calls.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "remote/client.h"
#include "wire/server_events.h"

namespace playfs::remote {

/// Why any record may have changed.
enum class Reset {
  missed,  ///< events were missed
  another  ///< the site does not know the position of the last event: it is another one, or was restored from a copy
};

/// What is told, in order.
struct EventListener {
  std::function<void(std::vector<wire::Change>)> changed;
  std::function<void(Reset)> reset;
  /// Whether changes are reported from now on. After a reconnection, those missed meanwhile follow.
  std::function<void(bool)> up;
  /// Called each time the stream gives up the site's events for a while.
  std::function<void(const Error&)> gave_up;
};

struct EventStreamOptions {
  net::StreamLimits limits;
  std::chrono::milliseconds first_delay{1'000};  ///< before a reconnection, unless the site asks for another
  std::chrono::milliseconds longest_delay{60'000};
  std::chrono::minutes ask_again{60};    ///< a site that has no events, or refuses them
  std::chrono::minutes leave_alone{10};  ///< a site that misbehaves
};

class EventStream {
 public:
  EventStream(Client& client, Executor& executor, const Clock& clock, Random& random, EventListener listener,
              EventStreamOptions options = {});
  ~EventStream();
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  /// Cheap: call it at each use of the site.
  void begin();
  /// The site answers again after an outage: do not wait any longer.
  void recovered();

  struct State {
    bool is_live = false;
    std::string why_not;  ///< in words; empty if live
  };
  [[nodiscard]] State state() const;

 private:
  class Core;
  std::shared_ptr<Core> core_;
};

}  // namespace playfs::remote
