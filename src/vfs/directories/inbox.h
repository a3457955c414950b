// `inbox/`: records for the mount's agent. `messages.ndjson` grows in place; `new/` and `seen/` have the same records
// as files, and moving a file between the two marks the record.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <string>

#include "vfs/directories/growing_directory.h"

namespace playfs::vfs {

class InboxDirectory final : public GrowingDirectory {
 public:
  InboxDirectory(Mount& mount, NodePtr parent, std::string name);

 protected:
  [[nodiscard]] bool has_records() const override { return true; }
  [[nodiscard]] Error refusal() const override;
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFREG; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  Attempt<LookupResult> growing(const OperationPtr& op, const std::string& name) override;

 private:
  /// Appends what is new. False if the file cannot just grow.
  bool grown(GrowingFile& file);

  std::atomic<bool> told_ = false;  ///< that it is incomplete
};

/// `new/` or `seen/`.
class MarkedDirectory final : public VirtualDirectory {
 public:
  MarkedDirectory(Mount& mount, NodePtr parent, std::string name, bool is_seen);

  /// Marks an entry: only to the other directory, and under its own name.
  Attempt<void> rename(const OperationPtr& op, const std::string& name, const NodePtr& new_parent,
                       const std::string& new_name, unsigned flags) override;

 protected:
  [[nodiscard]] bool has_records() const override { return true; }
  [[nodiscard]] Error refusal() const override;
  [[nodiscard]] mode_t type_of(const std::string&) const override { return S_IFREG; }
  Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) override;
  Attempt<ListedNames> names(const OperationPtr& op) override;
  [[nodiscard]] std::string made_of() const override { return "messages"; }

 private:
  const bool is_seen_;
};

}  // namespace playfs::vfs
