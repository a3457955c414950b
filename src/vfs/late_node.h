// Stands in for a name in a virtual directory whose lookup takes too long. The kernel holds the directory's lock during
// a lookup and blocks everyone else there, beyond SIGKILL, so the lookup must not wait longer.
//
// Its attributes have a timeout of 0, so the kernel asks for them, holding no lock, before it enters or shows the node.
// That call waits as long as it takes and ends in `stale`; the kernel then looks the name up again and finds the real
// node. Nobody can hold one of these open. Thread-safe; kept alive by kernel references and running operations.
#pragma once

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
  /// `type`: the file type that the name will have.
  LateNode(Mount& mount, std::shared_ptr<VirtualDirectory> parent, const std::string& name, mode_t type);

  Attempt<NodePtr> target(const OperationPtr& op) override;
  Attempt<Found> lookup(const OperationPtr& op, const std::string& name) override;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read_link(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes_at_once(const OperationPtr& op) override;

  /// The result that was just waited for, for the repeated lookup.
  [[nodiscard]] std::optional<Found> take() PLAYFS_EXCLUDES(mutex_);

 private:
  [[nodiscard]] Stop until_here(const OperationPtr& op) PLAYFS_EXCLUDES(mutex_);

  struct Arrival {
    Found found;
    SteadyTime at;
  };
  const std::shared_ptr<VirtualDirectory> directory_;
  const mode_t type_;
  Mutex mutex_;
  std::optional<Arrival> arrived_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::vfs
