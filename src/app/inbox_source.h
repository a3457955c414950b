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
  /// Those that are new, oldest first; with `all`, before them those that were seen.
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
/// `wakes`: entries are awaited, so let the service tell of changes, if it does.
Result<std::unique_ptr<InboxSource>> inbox_of_site(CommandContext& context, const std::string& agent, bool wakes);

}  // namespace playfs::app
