// A file that others follow while it grows (`tail -f`): one node, whose bytes are only ever added to.
//
// The kernel keeps the pages of it, the last of which is half full. So growth is shown in this order: the bytes are
// there to be read; the kernel drops its last page; only then stat tells the new size. A page that is read in between
// holds the new bytes already. Thread-safe.
#pragma once

#include <atomic>
#include <string>

#include "base/mutex.h"
#include "vfs/node.h"

namespace playfs::vfs {

class GrowingFile final : public Node {
 public:
  GrowingFile(Mount& mount, NodePtr parent, std::string name, std::string text);

  /// Adds what `latest` (the log's bounded memory, oldest line first) has beyond what is here. false: this file has
  /// become too long, or has missed lines; the name should go to a new one.
  [[nodiscard]] bool follow(const std::string& latest) PLAYFS_EXCLUDES(mutex_);

  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;

 private:
  mutable Mutex mutex_;
  std::string text_ PLAYFS_GUARDED_BY(mutex_);
  WallTime changed_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> shown_size_;
};

/// What `latest` has after the lines that `text` ends with; nullopt where the two share no line.
std::optional<std::string> lines_after(const std::string& text, const std::string& latest);

}  // namespace playfs::vfs
