// A name in a made-up directory that was looked up, and whose meaning did not come soon enough to wait for it there:
// the kernel holds the directory's lock during a lookup, and keeps everybody else out of it, beyond SIGKILL.
//
// It stands in until then: its attributes hold for no time, so that the kernel asks again, with nothing locked, before
// it lets anybody in, or shows anything. That waits as long as it takes, and ends in `stale`, at which the kernel looks
// the name up again: now it finds the real thing. Nobody ever holds one of these open.
//
// The kernel looks again only once in each call. Whoever waits here for the second name of a path is given the target
// where it is a link, and `timed_out` otherwise: a directory that stood in for the real one would keep names that
// nobody corrects. Thread-safe; kept by the kernel's references and operations under way.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

class VirtualDirectory;

class LateNode final : public Node {
 public:
  /// `type`: of what the name will stand for.
  LateNode(Mount& mount, std::shared_ptr<VirtualDirectory> parent, const std::string& name, mode_t type);

  Attempt<NodePtr> target(const OperationPtr& op) override;
  Attempt<Found> lookup(const OperationPtr& op, const std::string& name) override;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read_link(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes_at_once(const OperationPtr& op) override;

  /// What this thread has just waited for, and looks for again.
  [[nodiscard]] std::optional<Found> take(pid_t thread) PLAYFS_EXCLUDES(mutex_);
  /// Whether the kernel has a target of it, which it keeps: other lookups need another node.
  [[nodiscard]] bool was_read() const { return was_read_; }

 private:
  /// What the name stands for; `not_found` where it is nothing.
  Attempt<Found> child(const OperationPtr& op);
  [[nodiscard]] Stop until_here(const OperationPtr& op) PLAYFS_EXCLUDES(mutex_);
  /// Has the kernel look again.
  [[nodiscard]] Stop send_back(const OperationPtr& op, Found found) PLAYFS_EXCLUDES(mutex_);

  struct Arrival {
    Found found;
    SteadyTime at;
  };
  const std::shared_ptr<VirtualDirectory> directory_;
  const mode_t type_;
  Mutex mutex_;
  std::map<pid_t, Arrival> arrived_ PLAYFS_GUARDED_BY(mutex_);  ///< by who waited for it
  std::atomic<bool> was_read_ = false;
};

}  // namespace playfs::vfs
