// Stands in for a name in a virtual directory whose lookup takes too long. The kernel holds the directory's lock during
// a lookup and blocks everyone else there, beyond SIGKILL, so the lookup must not wait longer.
//
// Its attributes have a timeout of 0, so the kernel asks for them, holding no lock, before it enters or shows the node.
// That call, like any other that reaches the node (through a descriptor opened with O_PATH, say), waits as long as it
// takes. No caller has to look the name up again (`stale`): the kernel already has the node that the result belongs to.
// - A directory takes over the stand-in's id and its place in the node table: all directories below one name, and
//   whatever invalidates names in it, have one id. Everyone who waits for a directory shares one stand-in.
// - For a file or a link the stand-in passes everything on. Neither ever changes: a new text or target is a new node.
//   Each lookup gets a stand-in of its own: it stands for one open file, and readlink may wait, since no other process
//   reads the same link.
//
// Thread-safe; kept alive by kernel references and running operations.
#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

class VirtualDirectory;

class LateNode final : public Node {
 public:
  /// `type`: the file type that the name will have.
  LateNode(Mount& mount, std::shared_ptr<VirtualDirectory> parent, const std::string& name, mode_t type);
  ~LateNode() override;

  Attempt<NodePtr> target(const OperationPtr& op) override;
  [[nodiscard]] bool is_stand_in() const override { return true; }
  Attempt<std::shared_ptr<WorkTree>> work_tree(const OperationPtr& op) override;
  Attempt<LookupResult> lookup(const OperationPtr& op, const std::string& name) override;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read_link(const OperationPtr& op) override;
  Attempt<AttributesReply> attributes_at_once(const OperationPtr& op) override;

 private:
  [[nodiscard]] NodePtr known() const PLAYFS_EXCLUDES(mutex_);

  const std::shared_ptr<VirtualDirectory> directory_;
  const mode_t type_;
  mutable Mutex mutex_;
  NodePtr node_ PLAYFS_GUARDED_BY(mutex_);  ///< the file or link, once it is here
};

}  // namespace playfs::vfs
