// A project's writable tree in this mount: its stage, publisher and nodes, and the effects of a commit, a discard, a
// restore, an update or a new head. Each of the work_tree_….cpp has one of these subjects.
//
// Thread-safe. Kept alive by WorkTrees until the mount ends, and by its nodes. The publisher's thread calls into it
// until the destructor returns.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "content/single_flight.h"
#include "publish/publisher.h"
#include "stage/stage.h"
#include "vfs/async.h"
#include "vfs/control/control_text.h"
#include "vfs/node.h"

namespace playfs::vfs {

class WorkNode;

class WorkTree : public std::enable_shared_from_this<WorkTree> {
 public:
  /// Does a little local I/O. `directory` must be the project's own; `found` is of it.
  static Result<std::shared_ptr<WorkTree>> open(Mount& mount, const ProjectId& project, const std::string& directory,
                                                RevisionTreePtr base, std::optional<stage::Stage::Found> found);
  /// Whether an earlier process left an unfinished publication in `directory`.
  static Result<bool> has_unfinished(const std::string& directory);
  ~WorkTree();
  WorkTree(const WorkTree&) = delete;
  WorkTree& operator=(const WorkTree&) = delete;

  [[nodiscard]] const ProjectId& project() const { return project_; }
  [[nodiscard]] stage::Stage& stage() { return *stage_; }
  /// The inode number of the root, from which those of all inodes derive.
  [[nodiscard]] std::uint64_t root_ino() const { return root_ino_; }
  [[nodiscard]] RevisionId base_id() const;

  /// The root's node; `parent` and `name` are used if it has to be created (no parent: the mount's root).
  [[nodiscard]] std::shared_ptr<WorkNode> root(const NodePtr& parent, const std::string& name);
  /// The unique node of an inode; `parent` is the directory it was reached through.
  [[nodiscard]] std::shared_ptr<WorkNode> node(const stage::InodePtr& inode, const NodePtr& parent);

  // Operations on the whole tree. All but status need write permission on its root.
  Async<CommitResult> commit(OperationPtr op, CommitRequest request);
  /// What can refuse a commit before its message is known: missing permission, conflicts.
  [[nodiscard]] Attempt<void> check_may_commit(const OperationPtr& op);
  /// At and below the paths, all of them or, if one cannot be, none. What is staged is kept in a checkpoint first,
  /// unless `kept_in` is one.
  Async<DiscardResult> discard(OperationPtr op, std::vector<std::string> paths, bool dry_run,
                               std::uint64_t kept_in = 0);
  Async<CheckpointResult> checkpoint(OperationPtr op, CheckpointRequest request);
  Async<RestoreResult> restore(OperationPtr op, RestoreRequest request);
  Async<UpdateResult> update(OperationPtr op);
  Async<UpdateResult> merge(OperationPtr op, RevisionId revision);
  Async<Cancelled> cancel(OperationPtr op);
  [[nodiscard]] Attempt<WorkStatus> work_status(const OperationPtr& op);
  [[nodiscard]] Status stage_state(const Caller& caller, std::string text);
  /// Fills in what the work tree knows.
  [[nodiscard]] Attempt<void> describe(const OperationPtr& op, ProjectStatus& status);
  /// "staged", "pending", "ignored" or "published", for the attribute `staged`.
  [[nodiscard]] Attempt<std::string> staged_word(const OperationPtr& op, const std::string& path);
  /// The last publication that ended, if any; `pending` while one is under way.
  [[nodiscard]] std::optional<Result<CommitResult>> last_commit() const;
  /// The text that `commit` keeps showing for a result. Only a dry run has one, with its plan; the publisher remembers
  /// all other results.
  [[nodiscard]] std::string document(const CommitResult& result) const;
  /// Path of that control file, from the mount's root.
  [[nodiscard]] std::string document_path() const;
  /// The kernel knows the root as `node`.
  void set_stand_in(const NodePtr& node) PLAYFS_EXCLUDES(mutex_);

  /// Called with the project's latest revision: follows it if nothing is staged.
  void head_changed(const RevisionTreePtr& head);
  /// Follows the known head if the tree is behind: it may have moved while the tree was not open or could not follow.
  void head_seen();
  /// `head` is what was known when the tree was opened, `is_current` whether that still holds. An old head may be older
  /// than the base, so it is followed only if it descends from the base.
  void opened_under(const RevisionTreePtr& head, bool is_current);

 private:
  friend class WorkNode;
  WorkTree(Mount& mount, ProjectId project, std::string directory, std::unique_ptr<stage::Stage> stage);

  /// Comparing files with the base may mean reading them, however large. Does that where waiting is allowed; the stage
  /// caches the answer.
  [[nodiscard]] Attempt<void> compare_changes(const OperationPtr& op);
  [[nodiscard]] Status describe(ProjectStatus& status);
  /// The staged changes and the base they apply to, as one consistent pair.
  [[nodiscard]] Result<std::vector<stage::Change>> staged(RevisionTreePtr& base) const;
  [[nodiscard]] Result<DiscardResult> discard_all(const std::vector<std::string>& paths, bool dry_run,
                                                  std::uint64_t kept_in);
  /// Makes a checkpoint unless `kept_in` has all of that; returns the id of the one that has.
  [[nodiscard]] Result<std::uint64_t> keep_before_discard(const stage::Stage::Hold& held,
                                                          const std::vector<std::string>& paths, std::uint64_t kept_in);
  [[nodiscard]] Result<RestoreResult> restore_now(const RestoreRequest& request);
  /// What was staged may be gone without having been published.
  void staged_less();
  /// Fetches the ignore rules that decide what is staged.
  Async<void> know_rules(OperationPtr op);
  /// Judges by the root's mode bits, as the kernel would judge a write there.
  [[nodiscard]] Status check_may_write(const Caller& caller) const;
  [[nodiscard]] Status open_publisher() PLAYFS_EXCLUDES(mutex_, opening_);
  [[nodiscard]] publish::Publisher* publisher() const PLAYFS_EXCLUDES(mutex_);
  /// A tree on a branch stays there until an update, wherever head moves.
  [[nodiscard]] bool is_on_branch() const;
  void follow_head();
  /// Only if the tree is clean and not on a branch.
  void follow(const RevisionTreePtr& head, const RevisionId& from);
  /// Whether head descends from the base, according to the records available here.
  [[nodiscard]] bool is_known_to_hold(const RevisionTreePtr& head, const RevisionTreePtr& base) const;
  /// Asks the service for the base, which head does not seem to contain: the service may have been rolled back. If it
  /// has, the tree's content is kept as staged; otherwise head is followed.
  /// One request at a time, however often head is seen meanwhile.
  void look_for_base(const RevisionTreePtr& head);
  void base_was_asked_for(const RevisionId& base, const RevisionTreePtr& head, const Status& there);
  /// Follows after a delay, unless the tree or head has moved since.
  void follow_still(const RevisionId& base, const RevisionTreePtr& head);
  /// Whether the base can move without a merge.
  [[nodiscard]] Result<bool> is_free_to_follow();
  /// Likewise, to `head`.
  [[nodiscard]] Result<bool> is_free_to_follow(const RevisionTreePtr& head);
  /// Asks the service whether it still has the base, and keeps the tree's content as staged if not.
  Async<void> keep_lost_base(RevisionTreePtr head);
  /// Checks again while it is undecided whether the base is lost or merely not visible: nothing else may ask again.
  void look_again_soon() PLAYFS_EXCLUDES(mutex_);
  void look_again() PLAYFS_EXCLUDES(mutex_);
  /// The same while it is undecided whether the service went back to an older head, or only shows an older record.
  void look_at_head_again_soon() PLAYFS_EXCLUDES(mutex_);
  /// Whether another head was seen in a newer record than this one.
  [[nodiscard]] bool is_older_than_seen(const Project& record) const;
  /// Makes the instructions that were published from here known to all trees.
  void note_instructions();
  /// Tells the stage which of those in a tree, which may become the base, are the author's own.
  void know_instructions(const RevisionTreePtr& coming);
  /// Pins the base's record in the cache: without it nothing that is staged can be shown.
  void keep_base() PLAYFS_EXCLUDES(mutex_);
  /// Asks the service for head, and waits until what it names is shown or known to be unavailable.
  Async<content::Head> ask_for_head();
  /// What this update has requested so far, so that it requests each thing once.
  struct Updating {
    std::set<RevisionId> awaited, bases;
    bool checked_head = false, needs_publisher = false;
  };
  /// One step of an update. nullopt: look again. A wait ends the step, since head and base may move meanwhile.
  Async<std::optional<UpdateResult>> update_step(OperationPtr op, Updating& asked);
  /// Runs a long integration on the publisher's thread.
  Async<publish::Integrated> integrate(RevisionTreePtr revision, bool is_head);
  /// The publisher, opened if it is not yet.
  Async<publish::Publisher*> opened_publisher();
  /// Waits until the kernel knows of the changes so far; fails if it may not.
  Async<void> tell(OperationPtr op, std::string what);
  /// Runs `work`, which may hash and match whatever is staged, and then notes `fact`. Of callers for the same fact, one
  /// runs it for all. A caller that is interrupted is answered at once.
  [[nodiscard]] Fetch compare(const OperationPtr& op, const std::string& fact, UniqueFunction<Status()> work);
  void tell_kernel(const std::vector<stage::Invalidation>& changed);
  /// Requires a clean tree; queues the kernel's invalidations.
  [[nodiscard]] Status move_base(const RevisionTreePtr& base, const RevisionId& from) PLAYFS_EXCLUDES(moving_);
  [[nodiscard]] NodePtr known_node(const stage::InodePtr& inode) const PLAYFS_EXCLUDES(mutex_);
  void drop(const stage::Inode* inode) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  content::SingleFlight<std::string, bool> comparisons_;  ///< by fact
  const ProjectId project_;
  const std::string directory_;
  const std::uint64_t root_ino_;
  Mutex opening_;  ///< serialises opening the publisher; taken before mutex_
  Mutex moving_;   ///< held from a change of base until its invalidations are queued; taken before mutex_
  mutable Mutex mutex_;
  std::unordered_map<const stage::Inode*, std::weak_ptr<WorkNode>> nodes_ PLAYFS_GUARDED_BY(mutex_);
  std::weak_ptr<Node> stand_in_ PLAYFS_GUARDED_BY(mutex_);
  RevisionId kept_ PLAYFS_GUARDED_BY(mutex_);
  struct Question {
    RevisionId base;
    RevisionTreePtr head;  ///< the newest head that the answer applies to
  };
  std::optional<Question> asking_ PLAYFS_GUARDED_BY(mutex_);  ///< the running request for the base
  bool looks_again_ PLAYFS_GUARDED_BY(mutex_) = false;        ///< a check is scheduled
  bool looks_at_head_ PLAYFS_GUARDED_BY(mutex_) = false;      ///< likewise, of head
  const std::unique_ptr<stage::Stage> stage_;
  std::unique_ptr<publish::Publisher> publisher_ PLAYFS_GUARDED_BY(mutex_);  ///< set once; destroyed first
};

}  // namespace playfs::vfs
