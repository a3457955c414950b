// An inbox as commands read it: the files of a mount, or, elsewhere, the lists of the service. Either way the marks are
// those of the same agent on this machine. Blocking; for one thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "app/command_context.h"
#include "app/mounted.h"
#include "base/result.h"
#include "model/records.h"

namespace playfs::app {

class InboxSource {
 public:
  struct Entry {
    std::string id;
    bool is_seen = false;
  };

  virtual ~InboxSource() = default;
  /// The new entries, oldest first; with `all`, preceded by those that were seen.
  virtual Result<std::vector<Entry>> entries(bool all) = 0;
  virtual Result<Record> record(const Entry& entry) = 0;
  /// Marks it as seen. False if another reader, of the same mount or without a mount, was first.
  virtual Result<bool> claim(const Entry& entry) = 0;
  /// Takes that back.
  virtual Status give_back(const Entry& entry) = 0;
  /// "" if it is not known.
  virtual std::string title_of_thread(const std::string& thread) = 0;
  /// Returns when there may be something new; at the latest after `most`.
  virtual void wait(std::chrono::milliseconds most) = 0;
};

/// `agent`'s inbox in the mount at `place`. REQUIRES: the mount is that agent's.
std::unique_ptr<InboxSource> inbox_of_mount(const MountedPlace& place);
/// `wakes`: the caller will wait for entries, so subscribe to the service's events if it has them.
Result<std::unique_ptr<InboxSource>> inbox_of_site(CommandContext& context, const std::string& agent, bool wakes);

}  // namespace playfs::app
