// The parts of a process that talks to one service: clock and threads, transport, client, cache, contents. Mounts are
// built on it, and commands without a mount read through it.
//
// A stack that lives on takes up the key of a later `playfs login`, and drops it after `playfs logout`.
//
// Thread-safe once open. Objects built on its parts must be destroyed first.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "base/result.h"
#include "cache/object_store.h"
#include "cache/record_index.h"
#include "content/event_log.h"
#include "content/site.h"
#include "net/transport.h"
#include "remote/client.h"
#include "runtime/config.h"
#include "runtime/places.h"
#include "runtime/source.h"

namespace playfs::runtime {

/// How long after `playfs login` a running mount writes with the new key.
inline constexpr std::chrono::seconds kKeyTakenUp{5};

/// Requests to `source`, over the network. REQUIRES: it is a host.
Result<std::unique_ptr<net::Transport>> open_transport(const Source& source, const Settings& settings);

/// Loads the library that requests to `source` need, which the first one would otherwise do: for what runs on.
Status load_library(const Source& source);

/// Below ClientStack::state_directory(): what mounts keep, and commands beside them.
inline constexpr const char* kMountState = "/work";

class ClientStack {
 public:
  /// Opens (and creates) the cache and an embedded playground's store; sends nothing. Clock and random must outlive it.
  static Result<std::unique_ptr<ClientStack>> open(const Source& source, const Settings& settings, const Places& places,
                                                   const Clock& clock, Random& random);
  ~ClientStack();
  ClientStack(const ClientStack&) = delete;
  ClientStack& operator=(const ClientStack&) = delete;

  /// Starts all threads now: for a process that runs on, and might later find none to be had.
  void start_threads();

  [[nodiscard]] const Source& source() const;
  [[nodiscard]] const Clock& clock() const;
  [[nodiscard]] Random& random() const;
  [[nodiscard]] Executor& executor() const;
  [[nodiscard]] remote::Client& client() const;
  [[nodiscard]] content::Site& site() const;
  [[nodiscard]] content::EventLog& events() const;
  /// The private directory with the stages and journals for this service; created on the first call.
  [[nodiscard]] Result<std::string> state_directory() const;

 private:
  struct Parts;
  explicit ClientStack(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace playfs::runtime
