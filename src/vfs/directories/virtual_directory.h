// Virtual directories, and the small files in them.
//
// A control file is a snapshot: each lookup renders its text, and a text that differs from the last one gets a new
// node. So stat's size is right before the first read, no page ever goes stale, and an open file keeps its old text.
// Such names have no entry timeout: the kernel looks them up each time. Size and pages belong to the node.
//
// Files that accept requests differ: see request_file.h.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "vfs/children.h"
#include "vfs/control/record_change.h"
#include "vfs/control/request_text.h"
#include "vfs/directories/asked_records.h"
#include "vfs/node.h"
#include "vfs/published/record_fetches.h"
#include "vfs/shown_text.h"

namespace playfs::vfs {

/// Text as of one moment.
class SnapshotFile final : public Node {
 public:
  /// `fixed`: why nobody can change it here; nullptr: playfs generates it.
  SnapshotFile(Mount& mount, NodePtr parent, std::string name, ShownText text, mode_t permissions, WallTime time,
               const char* fixed = nullptr);

  [[nodiscard]] bool shows(const ShownText& text) const { return text == text_; }
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read(const OperationPtr& op, std::uint64_t offset, std::size_t size) override;

 protected:
  [[nodiscard]] Error refusal() const override;

 private:
  const ShownText text_;
  const mode_t permissions_;
  const WallTime time_;
  const char* const fixed_;
};

class SymlinkNode final : public Node {
 public:
  SymlinkNode(Mount& mount, NodePtr parent, std::string name, std::string target, WallTime time);
  [[nodiscard]] const std::string& to() const { return to_; }
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<std::string> read_link(const OperationPtr& op) override;

 private:
  const std::string to_;
  const WallTime time_;
};

/// "." and ".." come before it.
inline constexpr std::uint64_t kFirstPosition = 3;
/// One name of a listing. Positions increase along the listing; an item keeps its position as others come and go.
struct ListedName {
  std::string name;
  mode_t type = 0;
  std::uint64_t position = 0;
};
using ListedNames = std::shared_ptr<const std::vector<ListedName>>;

class VirtualDirectory : public Node {
 public:
  using Node::Node;
  Attempt<AttributesReply> attributes(const OperationPtr& op) override;
  Attempt<LookupResult> lookup(const OperationPtr& op, const std::string& name) final;
  Attempt<void> list(const OperationPtr& op, std::uint64_t offset, bool with_entries, const Emit& emit) final;

 protected:
  /// What a name stands for; a LookupResult without a node if nothing.
  virtual Attempt<LookupResult> child(const OperationPtr& op, const std::string& name) = 0;
  virtual Attempt<ListedNames> names(const OperationPtr& op) = 0;
  /// The file type of a name that `child` has to wait for.
  [[nodiscard]] virtual mode_t type_of(const std::string& name) const;
  /// The collection from which the names are derived: the kernel's listing is invalidated when that changes and when it
  /// gets old. Empty: the names are fixed.
  [[nodiscard]] virtual std::string made_of() const { return {}; }
  /// The owner of those records, if all have the same one.
  [[nodiscard]] virtual std::optional<std::string> made_of_owner() const { return {}; }
  [[nodiscard]] virtual WallTime time() const;
  /// The inode number of a name's node.
  [[nodiscard]] virtual std::uint64_t ino_of(const std::string& name) const;
  /// Whether its files are records that can be changed by writing to them. Then the mode lets the owner write in the
  /// directory, too, so that creating and renaming reach us and fail with a reason.
  [[nodiscard]] virtual bool has_records() const { return false; }
  [[nodiscard]] Error refusal() const override;

  /// The directory of that name that is in use, if any: shown where the service does not say what the name stands for.
  virtual NodePtr directory_in_use(const std::string& name);
  /// A directory takes over the id of the stand-in that the kernel knows.
  NodeId id_for(const std::string& name) final PLAYFS_EXCLUDES(late_mutex_);
  void released(const std::string& name, NodeId id) final PLAYFS_EXCLUDES(late_mutex_);

  static LookupResult nothing(double timeout = 0) { return {nullptr, {}, timeout}; }
  /// `node` with its attributes; `entry_timeout` in seconds.
  Attempt<LookupResult> found(const OperationPtr& op, const NodePtr& node, double entry_timeout);
  Attempt<LookupResult> snapshot(const OperationPtr& op, const std::string& name, ShownText text, WallTime time,
                                 double entry_timeout = 0, const char* fixed = nullptr);
  /// The record for a file that shows it: at most `refresh` old.
  Attempt<RecordPartPtr> shown_record(const OperationPtr& op, const std::string& collection, const std::string& id);
  /// A file that shows a record and accepts changes to it: each lookup stands for one open file.
  Attempt<LookupResult> record_file(const OperationPtr& op, const std::string& name, ShownRecord record, WallTime time);
  /// A request file that shows the last result, or `otherwise` before the first request.
  Attempt<LookupResult> request_file(const OperationPtr& op, const std::string& name, ShownText otherwise,
                                     Request request);
  /// A request file that shows what `text` returns while no request is in progress.
  Attempt<LookupResult> request_file_showing(const OperationPtr& op, const std::string& name,
                                             const std::function<ShownText()>& text, Request request);
  Attempt<LookupResult> symlink(const OperationPtr& op, const std::string& name, std::string target, WallTime time,
                                double entry_timeout);
  /// A permanent directory of class Kind, constructed from (mount, this, name, arguments…).
  template <class Kind, class... Arguments>
  Attempt<LookupResult> directory(const OperationPtr& op, const std::string& name, const Arguments&... arguments) {
    auto made = [&] { return std::make_shared<Kind>(mount(), shared_from_this(), name, arguments...); };
    return found(op,
                 children_.get<Kind>(
                     name, [](const Kind&) { return true; }, made),
                 kEndless);
  }
  /// How long the kernel may cache `name`, which shows the record just fetched. It is invalidated when an event reports
  /// a change.
  [[nodiscard]] double until_told(const std::string& collection, const std::string& id, const std::string& name);
  Children& children() { return children_; }
  /// Builds a fixed listing, numbering its positions.
  static ListedNames fixed_names(std::initializer_list<std::pair<const char*, mode_t>> names);

 private:
  friend class LateNode;

  /// The stand-ins for a name whose real nodes are not here.
  struct Late {
    std::set<NodeId> waiting;
    std::optional<NodeId> directory;  ///< the one whose id the directory takes over
    bool is_taken = false;            ///< it has
  };
  void awaits(const std::string& name, NodeId id, bool is_directory) PLAYFS_EXCLUDES(late_mutex_);
  void awaits_no_more(const std::string& name, NodeId id) PLAYFS_EXCLUDES(late_mutex_);
  [[nodiscard]] bool is_awaited(const std::string& name) const PLAYFS_EXCLUDES(late_mutex_);
  /// Whether the real directory may still take over this id.
  [[nodiscard]] bool is_free(const std::string& name, NodeId id) const PLAYFS_EXCLUDES(late_mutex_);
  Attempt<LookupResult> stand_in(const OperationPtr& op, const std::string& name);

  Children children_;
  AskedRecords asked_;
  Children late_;  ///< stand-ins for directories
  mutable Mutex late_mutex_;
  std::map<std::string, Late> late_names_ PLAYFS_GUARDED_BY(late_mutex_);
  std::atomic<bool> expiry_set_ = false;
};

}  // namespace playfs::vfs
