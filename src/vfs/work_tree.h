// One project's writable tree in this mount: its stage, its publisher, its nodes, and what follows from a commit, a
// discard, an update or a new head.
//
// Thread-safe. Kept by WorkTrees until the mount ends, and by its nodes. The publisher's thread calls into it until
// the destructor returns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "publish/publisher.h"
#include "stage/stage.h"
#include "vfs/attempt.h"
#include "vfs/control_text.h"
#include "vfs/node.h"

namespace playfs::vfs {

class WorkNode;

class WorkTree : public std::enable_shared_from_this<WorkTree> {
 public:
  /// Takes a moment of local I/O. `directory` is the project's own.
  static Result<std::shared_ptr<WorkTree>> open(Mount& mount, const ProjectId& project, const std::string& directory,
                                                RevisionTreePtr base);
  /// Whether an earlier process left a publication behind in `directory`.
  static Result<bool> has_unfinished(const std::string& directory);
  ~WorkTree();
  WorkTree(const WorkTree&) = delete;
  WorkTree& operator=(const WorkTree&) = delete;

  [[nodiscard]] const ProjectId& project() const { return project_; }
  [[nodiscard]] stage::Stage& stage() { return *stage_; }
  /// The inode number of the tree's root, from which those of its inodes are made.
  [[nodiscard]] std::uint64_t root_ino() const { return root_ino_; }
  [[nodiscard]] RevisionId base_id() const;

  /// The root's node; `parent` and `name` say where it hangs if it has to be made (no parent: at the mount's root).
  [[nodiscard]] std::shared_ptr<WorkNode> root(const NodePtr& parent, const std::string& name);
  /// The one node of an inode; `parent`: through which directory it was reached.
  [[nodiscard]] std::shared_ptr<WorkNode> node(const stage::InodePtr& inode, const NodePtr& parent);

  // Operations on the whole. All but status need permission to write in the tree.
  [[nodiscard]] Attempt<CommitResult> commit(const OperationPtr& op, const CommitRequest& request);
  /// What of a commit can be refused before its message is known: no permission, conflicts.
  [[nodiscard]] Attempt<void> check_may_commit(const OperationPtr& op);
  [[nodiscard]] Attempt<std::uint32_t> discard(const OperationPtr& op, const std::string& path, bool dry_run);
  [[nodiscard]] Attempt<UpdateResult> update(const OperationPtr& op);
  [[nodiscard]] Attempt<UpdateResult> merge(const OperationPtr& op, const RevisionId& revision);
  [[nodiscard]] Attempt<Cancelled> cancel(const OperationPtr& op);
  [[nodiscard]] Attempt<WorkStatus> work_status(const OperationPtr& op);
  [[nodiscard]] Status stage_state(const Caller& caller, std::string text);
  /// Fills in what the work tree knows.
  [[nodiscard]] Attempt<void> describe(const OperationPtr& op, ProjectStatus& status);
  /// "staged", "pending", "ignored" or "published", for the attribute of that name.
  [[nodiscard]] Attempt<std::string> staged_word(const OperationPtr& op, const std::string& path);
  /// The last publication that ended, if any did; `pending` while one is under way.
  [[nodiscard]] std::optional<Result<CommitResult>> last_commit() const;
  /// What `commit` is to say of a result, also later: only a dry run, with its plan. All else the publisher remembers.
  [[nodiscard]] std::string document(const CommitResult& result) const;
  /// Where that is read, from the mount's root.
  [[nodiscard]] std::string document_path() const;
  /// The kernel knows the root as this node.
  void set_stand_in(const NodePtr& node) PLAYFS_EXCLUDES(mutex_);

  /// `head` is the project's latest revision: follows it where nothing is staged.
  void head_changed(const RevisionTreePtr& head);
  /// Looks whether the tree stands where head is known to be, and brings it there: news may have come while it was not
  /// open, or when it could not be followed.
  void head_seen();
  /// `head` is what was known of it when the tree was opened; `is_current`: known to be so now. An old one is followed
  /// only where it goes on from the base, as it may be older than that.
  void opened_under(const RevisionTreePtr& head, bool is_current);

 private:
  friend class WorkNode;
  WorkTree(Mount& mount, ProjectId project, std::string directory, std::unique_ptr<stage::Stage> stage);

  /// Whether files differ from the base may take reading them, however large they are: that is done where waiting is
  /// allowed, and remembered.
  [[nodiscard]] Attempt<void> weigh(const OperationPtr& op);
  [[nodiscard]] Status describe(ProjectStatus& status);
  /// What is staged, and the base that it is staged on: of one moment.
  [[nodiscard]] Result<std::vector<stage::Change>> staged(RevisionTreePtr& base) const;
  [[nodiscard]] Result<std::uint32_t> discard_now(const std::string& path, bool dry_run);
  /// By the bits of the root's mode, as the kernel would judge a write there.
  [[nodiscard]] Status check_may_write(const Caller& caller) const;
  /// Fails where the kernel does not know yet of what the operation did.
  [[nodiscard]] static Status check_told(const OperationPtr& op, const std::string& what);
  [[nodiscard]] Status open_publisher() PLAYFS_EXCLUDES(mutex_, opening_);
  [[nodiscard]] publish::Publisher* publisher() const PLAYFS_EXCLUDES(mutex_);
  /// Then it stays there until an update, whatever happens to head.
  [[nodiscard]] bool is_on_branch() const;
  void follow_head();
  /// Under a clean tree that stands on no branch.
  void follow(const RevisionTreePtr& head, const RevisionId& from);
  /// Whether head is made on the base, as far as the records that are here tell.
  [[nodiscard]] bool is_known_to_hold(const RevisionTreePtr& head, const RevisionTreePtr& base) const;
  /// Asks the service for the base, which head does not seem to hold: it may have gone back to an older state. Then
  /// what the tree has is kept as staged; otherwise head is followed.
  /// One question at a time, however often head is seen meanwhile.
  void look_for_base(const RevisionTreePtr& head);
  void base_was_asked_for(const RevisionId& base, const RevisionTreePtr& head, const Status& there);
  /// After a wait: unless the tree or head stands elsewhere by now.
  void follow_still(const RevisionId& base, const RevisionTreePtr& head);
  /// Whether another head may come under the tree without a merge.
  [[nodiscard]] Result<bool> is_free_to_follow();
  /// Likewise, to `head`.
  [[nodiscard]] Result<bool> is_free_to_follow(const RevisionTreePtr& head);
  [[nodiscard]] Fetch keep_lost_base(const OperationPtr& op, const RevisionTreePtr& head, const RevisionId& base);
  /// The fact that it has looked whether the service still has `base`.
  [[nodiscard]] static std::string looked_for(const RevisionId& base);
  /// For as long as it is not decided whether the base is lost, or only not shown: nobody else may ask again.
  void look_again_soon() PLAYFS_EXCLUDES(mutex_);
  void look_again() PLAYFS_EXCLUDES(mutex_);
  /// Without its base nothing that is staged can be shown: its record is not for the cache to drop.
  void keep_base() PLAYFS_EXCLUDES(mutex_);
  /// Hands what takes a while to the publisher's thread; its outcome becomes the operation's.
  [[nodiscard]] Attempt<UpdateResult> integrate(const OperationPtr& op, const RevisionTreePtr& revision, bool is_head);
  void tell_kernel(const std::vector<stage::Invalidation>& changed);
  /// Under a clean tree, and the kernel is going to be told.
  [[nodiscard]] Status move_base(const RevisionTreePtr& base, const RevisionId& from) PLAYFS_EXCLUDES(moving_);
  [[nodiscard]] NodePtr known_node(const stage::InodePtr& inode) const PLAYFS_EXCLUDES(mutex_);
  void drop(const stage::Inode* inode) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  const ProjectId project_;
  const std::string directory_;
  const std::uint64_t root_ino_;
  Mutex opening_;  ///< of the publisher; taken before mutex_
  Mutex moving_;   ///< from a change of base until the kernel is going to be told; taken before mutex_
  mutable Mutex mutex_;
  std::unordered_map<const stage::Inode*, std::weak_ptr<WorkNode>> nodes_ PLAYFS_GUARDED_BY(mutex_);
  std::weak_ptr<Node> stand_in_ PLAYFS_GUARDED_BY(mutex_);
  RevisionId kept_ PLAYFS_GUARDED_BY(mutex_);
  struct Question {
    RevisionId base;
    RevisionTreePtr head;  ///< the newest for which the answer counts
  };
  std::optional<Question> asking_ PLAYFS_GUARDED_BY(mutex_);  ///< for the base, until there is an answer
  bool looks_again_ PLAYFS_GUARDED_BY(mutex_) = false;        ///< soon
  const std::unique_ptr<stage::Stage> stage_;
  std::unique_ptr<publish::Publisher> publisher_ PLAYFS_GUARDED_BY(mutex_);  ///< set once; the first to end
};

}  // namespace playfs::vfs
