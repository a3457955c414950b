// A server of the Model Context Protocol on two descriptors, for one client.
//
// One thread reads; requests are answered in lanes (lanes.h), of which the features decide. What waits is bounded, so a
// client that asks for too much at once is told so. Blocking; run() is called once.
#pragma once

#include <pthread.h>

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "mcp/client_end.h"
#include "mcp/feature_set.h"
#include "mcp/lanes.h"
#include "mcp/protocol.h"

namespace playfs::mcp {

class Server {
 public:
  /// `features` must outlive it. `nudge`: a signal whose handler does nothing. It interrupts the system calls of an
  /// answer that is no longer wanted. The descriptors stay the caller's.
  Server(Identity identity, Features& features, int in, int out, int nudge);

  /// Until the client closes its side or is gone. What it asked for before is answered still, in a few seconds. False:
  /// something did not come to its end, so the process must end without waiting for this object.
  Result<bool> run();

 private:
  struct Running {
    Running(Request wanted, Call::Report report) : request(std::move(wanted)), call(std::move(report)) {}
    const Request request;
    Call call;
    std::optional<pthread_t> thread;  ///< that answers it
  };

  void take(Received received);
  void begin(Request request) PLAYFS_EXCLUDES(mutex_);
  void cancel(const Json& id) PLAYFS_EXCLUDES(mutex_);
  void answer(Running& running) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string reply_to(Running& running);
  [[nodiscard]] std::string call_tool(const Request& request, Call& call);
  [[nodiscard]] std::string list_resources(const Request& request, Call& call);
  [[nodiscard]] std::string read_resource(const Request& request, Call& call);
  /// Interrupts answers that should no longer wait. Returns whether any answer is being made.
  bool nudge_unwanted() PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool finish();
  [[nodiscard]] bool has_tool(const std::string& name) const;

  Features& features_;
  const int in_, nudge_;
  Protocol protocol_;
  ClientEnd client_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Running>> running_ PLAYFS_GUARDED_BY(mutex_);  ///< by the id as JSON
  Lanes lanes_;  // last: its threads use the others
};

}  // namespace playfs::mcp
