// An inbox as commands read it: the files of a mount, or, elsewhere, the lists of the service. Either way the marks are
// those of the same agent on this machine. Blocking; for one thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
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

  using Time = std::chrono::steady_clock::time_point;

  virtual ~InboxSource() = default;
  /// The new entries, oldest first; with `all`, preceded by those that were seen. If the service does not answer, those
  /// that are known (is_silent()), after some seconds or at `by`. Errors: timed_out, if nothing is known.
  virtual Result<std::vector<Entry>> entries(bool all, Time by) = 0;
  /// Whether the service did not answer the last entries().
  [[nodiscard]] virtual bool is_silent() const = 0;
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

struct InboxFound {
  std::string agent;
  std::unique_ptr<InboxSource> source;
};
/// The inbox of the enclosing mount, if the mount is of the requested service and this agent (nullopt: who writes
/// here); else that of the service. `wakes`: as for inbox_of_site().
Result<InboxFound> find_inbox(CommandContext& context, const std::optional<std::string>& agent, bool wakes);

/// An entry with the details to print.
struct InboxItem {
  InboxSource::Entry entry;
  Record record;
  std::string title;  ///< of its thread
  bool is_mail = false;
};
Result<InboxItem> read_item(InboxSource& source, const InboxSource::Entry& entry);

/// `agent`'s inbox in the mount at `place`. REQUIRES: the mount is that agent's.
std::unique_ptr<InboxSource> inbox_of_mount(const MountedPlace& place);
/// `wakes`: the caller will wait for entries, so subscribe to the service's events if it has them.
Result<std::unique_ptr<InboxSource>> inbox_of_site(CommandContext& context, const std::string& agent, bool wakes);

}  // namespace playfs::app
