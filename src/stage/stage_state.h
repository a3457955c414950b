// The implementation of Stage: its state in memory, and the steps that operations consist of.
//
// An operation checks, writes its rows in one batch, and changes memory only when that is committed, so a full disk
// leaves everything as it was. The mutex is released for the bytes: calls that change a spool file are counted by
// the inode and by the gate, for which copy-on-write and freeze wait.
#pragma once

#include <atomic>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/held_lock.h"
#include "base/mutex.h"
#include "stage/at_once.h"
#include "stage/inode.h"
#include "stage/instructions.h"
#include "stage/merge_notes.h"
#include "stage/stage.h"
#include "stage/store/housekeeper.h"
#include "stage/store/numbers.h"
#include "stage/store/reserve.h"
#include "stage/store/row_store.h"
#include "stage/store/snapshots.h"
#include "stage/store/spool.h"
#include "stage/survey.h"
#include "stage/verdicts.h"
#include "stage/write_gate.h"

namespace playfs::stage {

std::string join_path(std::string_view directory, std::string_view name);

struct Stage::State {
  struct Pending {
    std::string tx;
    RevisionId base;
    std::map<std::string, FrozenFile> files;
    std::set<std::string> deletions;
    std::optional<std::string> state;
  };

  State(StageOptions options, const Clock& clock);
  ~State();

  // tree.cpp: names in memory, and the rows behind them
  [[nodiscard]] const Tree::Directory* base_root() const PLAYFS_REQUIRES(mutex) {
    return base ? &base->tree.root() : nullptr;
  }
  [[nodiscard]] WallTime path_time(std::string_view path) const PLAYFS_REQUIRES(mutex);
  /// "" for the root; nullopt if the inode has no name left.
  [[nodiscard]] std::optional<std::string> path(const Inode& inode) const PLAYFS_REQUIRES(mutex);
  [[nodiscard]] bool is_removed(const Inode& inode) const PLAYFS_REQUIRES(mutex) {
    return inode.names.empty() && &inode != root.get();
  }
  void attach(Inode& directory, std::string_view name, const InodePtr& inode) PLAYFS_REQUIRES(mutex);
  /// Returns what the name meant, so that the caller decides when it is destroyed.
  InodePtr detach(Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  /// Keeps a name's place in listings when its inode was replaced. REQUIRES: the cookie is free.
  void keep_place(Inode& directory, std::string_view name, std::uint64_t cookie) PLAYFS_REQUIRES(mutex);
  /// Adds the names that show through to the children, before a caller sees them; records numbers unless in a batch.
  void load_directory(Inode& directory) PLAYFS_REQUIRES(mutex);
  /// The same without recording, for a batch's own purposes.
  void load_names(Inode& directory) PLAYFS_REQUIRES(mutex);
  /// Writes rows for `unrecorded`.
  void record_numbers() PLAYFS_REQUIRES(mutex);
  InodePtr make_lower(const std::string& path, const Tree::Child& child, RevisionTreePtr revision, std::uint64_t ino)
      PLAYFS_REQUIRES(mutex);
  /// The same with the path's own number, unless that is taken.
  InodePtr make_lower(const std::string& path, const Tree::Child& child, RevisionTreePtr revision)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] InodePtr find(Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  struct Place {
    InodePtr inode;    ///< nullptr: nothing is there
    InodePtr deepest;  ///< that, or the last inode on the way
  };
  [[nodiscard]] Place find(std::string_view path) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status check_directory(const Inode& directory, std::string_view name) const PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Result<InodePtr> existing(Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  /// Whether the name would show through if nothing above covered it.
  [[nodiscard]] static bool covers_lower(const Inode& directory, std::string_view name);

  [[nodiscard]] InodeRow row_of(const Inode& inode) const PLAYFS_REQUIRES(mutex);
  /// Writes rows for an inode and all directories above it.
  void secure(Batch& batch, Inode& inode) PLAYFS_REQUIRES(mutex);
  /// Writes rows for everything below a directory, so that it may be moved: nothing shows through it any more.
  void secure_tree(Batch& batch, Inode& directory) PLAYFS_REQUIRES(mutex);
  /// Sets mtime and ctime of a directory that lost or gained a name.
  void touch(Batch& batch, Inode& directory, WallTime now) PLAYFS_REQUIRES(mutex);
  void drop_name(Batch& batch, Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  /// Removes one name, and `inode` with it if that was its last.
  void drop_link(Batch& batch, Inode& inode, WallTime now) PLAYFS_REQUIRES(mutex);
  /// It is created on disk with its first byte.
  [[nodiscard]] SpoolFilePtr new_spool_file() PLAYFS_REQUIRES(mutex);
  /// Returns its number, for a row.
  std::uint64_t name_spool_file(Batch& batch, const SpoolFile& file) PLAYFS_REQUIRES(mutex) {
    numbers.record_spool(batch, file.number());
    return file.number();
  }
  /// For an inode that lost its row: gives up its spool file, unless a pending layer needs it.
  void release(Inode& inode) PLAYFS_REQUIRES(mutex);

  // instructions.cpp: what lookups and listings leave out
  [[nodiscard]] bool is_hidden(const Inode& directory, std::string_view name, const Inode& inode) const
      PLAYFS_REQUIRES(mutex);
  /// Nothing is put in the place of what its user cannot see.
  [[nodiscard]] Status check_not_hidden(Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  /// Adds the directories on the way that a change may have hidden or shown.
  void add_instructing(std::vector<Invalidation>& changed) PLAYFS_REQUIRES(mutex);
  /// Hides what a merge is about to put unseen.
  void conceal_merged(Batch& batch, const Merged& merged) PLAYFS_REQUIRES(mutex);
  /// InstructionFiles::concealed(), without what is gone.
  [[nodiscard]] std::set<std::uint64_t> still_concealed() const PLAYFS_REQUIRES(mutex);
  [[nodiscard]] bool has_but_hidden(Inode& directory) PLAYFS_REQUIRES(mutex);
  /// Why a directory cannot be removed.
  [[nodiscard]] Error not_empty(Inode& directory) PLAYFS_REQUIRES(mutex);
  void unconceal() PLAYFS_REQUIRES(mutex);
  [[nodiscard]] std::vector<std::string> hidden() const PLAYFS_REQUIRES(mutex);

  // sizes.cpp: minimum sizes of spool files
  /// Goes with a row that names the file.
  void put_size(Batch& batch, const SpoolFilePtr& file, std::uint64_t size, std::uint64_t synced)
      PLAYFS_REQUIRES(mutex);
  /// The file has grown to at least `size`.
  void note_growth(const Inode& inode, std::uint64_t size) PLAYFS_REQUIRES(mutex);
  /// The file is about to be truncated to `size`. Returns whether the log must be synced before the bytes go.
  [[nodiscard]] Result<bool> note_cut(const Inode& inode, std::uint64_t size) PLAYFS_REQUIRES(mutex);
  /// All of it was synced, unless it was written since.
  void note_synced(Inode& inode) PLAYFS_REQUIRES(mutex);
  /// Records exact sizes, for the next start.
  [[nodiscard]] Status note_sizes(const std::vector<InodePtr>& inodes) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] std::vector<LostFile> lost_files() PLAYFS_EXCLUDES(mutex);

  // replacing.cpp: old bytes go once what replaced them is on disk
  struct Replacement {
    SpoolFilePtr fresh;
    SpoolFilePtr old;           ///< nullptr: they are lower content
    std::uint64_t changes = 0;  ///< of `fresh`: once so many are synced the old bytes may go
    ReplacementRow row;
  };
  /// What to keep when `moved` takes the place of `target`; nullopt if there is nothing to lose.
  [[nodiscard]] Result<std::optional<Replacement>> replacement(Inode& moved, const Inode& target)
      PLAYFS_REQUIRES(mutex);
  /// Syncs the new bytes where the replacement cannot be noted.
  [[nodiscard]] Status prepare_replacement(const InodePtr& from, std::string_view name, const InodePtr& to,
                                           std::string_view new_name) PLAYFS_EXCLUDES(mutex);
  /// The replacement ends, for whatever reason: the old bytes are given up.
  void end_replacement(Batch& batch, std::uint64_t spool) PLAYFS_REQUIRES(mutex);
  void end_replacement(Batch& batch, const Inode& by) PLAYFS_REQUIRES(mutex) {
    if (by.spool && replacements.contains(by.spool->number())) end_replacement(batch, by.spool->number());
  }
  /// Syncs the new bytes and gives up the old ones.
  [[nodiscard]] Status settle_replacements() PLAYFS_EXCLUDES(mutex);
  /// The same with the mutex held, for those that came since settle_replacements().
  [[nodiscard]] Status settle_replacements(Batch& batch) PLAYFS_REQUIRES(mutex);
  void settle_or_warn() PLAYFS_EXCLUDES(mutex);
  void look_after_replacements() PLAYFS_EXCLUDES(mutex);

  // name_operations.cpp
  /// A new file or link without a name, content or row.
  [[nodiscard]] Result<InodePtr> make_unnamed(FileMode mode) PLAYFS_REQUIRES(mutex);
  /// `target` is for symbolic links, `device` for device nodes.
  [[nodiscard]] Result<InodePtr> make(const InodePtr& directory, std::string_view name, Kind kind,
                                      const Creation& creation, std::string_view target, dev_t device)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status link(const InodePtr& inode, const InodePtr& directory, std::string_view name)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status unlink(const InodePtr& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status remove_directory(const InodePtr& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status remove_name(const InodePtr& directory, std::string_view name, Inode& inode)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status rename(const InodePtr& from, std::string_view name, const InodePtr& to,
                              std::string_view new_name, RenameMode mode) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status exchange(const InodePtr& from, std::string_view name, const InodePtr& to,
                                std::string_view new_name) PLAYFS_REQUIRES(mutex);

  // housekeeping.cpp: work that follows an operation, and room on a full disk
  /// Runs an operation with the mutex, and once more if it failed for lack of space and some could be made. Failed
  /// operations leave everything as it was. `for_removal`: it frees space in the end, and may use the reserve.
  template <class Operation>
  auto with_room(bool for_removal, const Operation& operation) PLAYFS_EXCLUDES(mutex) {
    using Result = decltype(operation());
    auto attempt = [&]() -> Result {
      MutexLock locked(mutex);
      PLAYFS_CHECK(wait_for_gate());
      if (!for_removal && !reserve.keep(*rows))
        return fail(ErrorCode::no_space, "the disk with the staged changes is full");
      Result result = operation();
      if (result && for_removal) reserve.keep_after_removal(*rows, clock);
      look_after_log();
      return result;
    };
    Result result = attempt();
    bool is_full = !result && result.error().code == ErrorCode::no_space;
    if (is_full && AtOnce::may_wait() && make_room(for_removal)) result = attempt();
    return result;
  }
  /// Waits for the disk; everything else goes on meanwhile.
  [[nodiscard]] bool make_room(bool for_removal) PLAYFS_EXCLUDES(mutex);
  /// Until nobody holds writers.
  [[nodiscard]] Status wait_for_gate() PLAYFS_REQUIRES(mutex);
  void begin_housekeeping();
  /// Requests a checkpoint of the log if it has grown long.
  void look_after_log() PLAYFS_REQUIRES(mutex);
  void checkpoint_log();
  /// Removes the spool files that were given up, once the disk knows that no row names them; returns whether there were
  /// any.
  bool remove_given_up();
  void end_housekeeping();

  // file_bytes.cpp
  /// Updates size and times of an inode with a spool file.
  [[nodiscard]] Status measure(Inode& inode) PLAYFS_REQUIRES(mutex);
  /// Waits until the bytes may be changed, gives the inode a spool file of its own with the first `keep` bytes if they
  /// must not change, and counts the caller as a writer.
  [[nodiscard]] Result<SpoolFilePtr> begin_change(Inode& inode, std::uint64_t keep) PLAYFS_REQUIRES(mutex);
  /// `done`: the bytes did change.
  void end_change(Inode& inode, bool done) PLAYFS_REQUIRES(mutex);
  /// Whether a pending layer or a checkpoint has these very bytes.
  [[nodiscard]] bool must_not_change(const SpoolFilePtr& file) const PLAYFS_REQUIRES(mutex) {
    return frozen.contains(file->number()) || spool->is_shared(*file);
  }
  [[nodiscard]] Status unfreeze(Inode& inode, std::uint64_t keep) PLAYFS_REQUIRES(mutex);
  /// Runs `change` on the descriptor of an inode's bytes, without the mutex.
  template <class Change>
  [[nodiscard]] Status change_bytes(const InodePtr& inode, std::uint64_t keep, const Change& change)
      PLAYFS_EXCLUDES(mutex);
  [[nodiscard]] Status resize(const InodePtr& inode, std::uint64_t size) PLAYFS_EXCLUDES(mutex);
  /// Drops all bytes, without touching lower or frozen ones.
  [[nodiscard]] Status empty_out(Inode& inode) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Attributes attributes(const Inode& inode) const PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Result<Attributes> set_attributes(const InodePtr& inode, const AttributeChange& change)
      PLAYFS_REQUIRES(mutex);

  // survey.cpp
  /// Releases the mutex while rule files are read and costly matching is done: anything may have changed on return. The
  /// survey is of the tree as it is then, and survey() has no questions until the mutex is released.
  [[nodiscard]] Survey unhurried_survey() PLAYFS_REQUIRES(mutex);
  /// REQUIRES: unhurried_survey() came first, or this may take long with the mutex held.
  [[nodiscard]] Survey survey() PLAYFS_REQUIRES(mutex);
  /// Returns what must be answered before the survey is complete.
  [[nodiscard]] Questions look_over(Survey& survey, Effort effort) PLAYFS_REQUIRES(mutex);

  // changes.cpp
  /// Drops the differences that turn out to be none, hashing where necessary, without the mutex.
  [[nodiscard]] Status settle_doubts(std::vector<Difference>& differences) PLAYFS_EXCLUDES(mutex);
  [[nodiscard]] Result<std::vector<Change>> changes() PLAYFS_EXCLUDES(mutex);
  /// Whether the path is as in the pending layer, or as in the base if it is not in the layer.
  [[nodiscard]] bool is_as_frozen(const std::string& path, const Inode* inode) const PLAYFS_REQUIRES(mutex);
  /// Whether local bytes are known to be those of `entry`, by their hash or by what was frozen under the path.
  [[nodiscard]] bool has_bytes_of(const Inode& inode, const std::string& path, const FileEntry& entry) const
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] bool equals(const Inode& inode, const FileEntry& entry) const PLAYFS_REQUIRES(mutex);
  void changed() PLAYFS_REQUIRES(mutex) { ++generation; }

  // freezing.cpp
  /// One file of a layer being frozen.
  struct Candidate {
    FrozenFile file;
    SpoolFilePtr bytes;  ///< to be hashed; nullptr if the hash is known
  };
  [[nodiscard]] Result<std::optional<Frozen>> freeze(const std::string& tx,
                                                     const std::optional<std::vector<Conflicted>>& seen)
      PLAYFS_EXCLUDES(mutex);
  Candidate candidate_of(Inode& inode) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Result<std::optional<Frozen>> freeze_candidates(Frozen layer, const Survey& found,
                                                                std::map<std::string, Candidate>& candidates)
      PLAYFS_EXCLUDES(mutex);
  [[nodiscard]] Frozen pending_layer() const PLAYFS_REQUIRES(mutex);
  /// Drops the rows of the pending layer; forget_pending() does the same in memory.
  void drop_pending() PLAYFS_REQUIRES(mutex);
  void forget_pending() PLAYFS_REQUIRES(mutex);

  // taking_snapshots.cpp
  [[nodiscard]] Snapshot describe_staged(const Survey& found, std::map<std::string, SpoolFilePtr>& bytes) const
      PLAYFS_REQUIRES(mutex);
  // REQUIRES: writers are held, for these.
  [[nodiscard]] Result<std::optional<Checkpoint>> take_snapshot(const std::string& message) PLAYFS_EXCLUDES(mutex);
  /// The same, making space on a full disk if possible.
  [[nodiscard]] Result<std::optional<Checkpoint>> keep_staged(const std::string& message) PLAYFS_EXCLUDES(mutex);
  /// Those that newer ones have replaced; `used` stays for now.
  void drop_old_snapshots(std::uint64_t used = 0) PLAYFS_EXCLUDES(mutex);

  // new_base.cpp
  /// The staged paths at which `next` brings something that the staged version lacks.
  [[nodiscard]] std::vector<std::string> contested(const RevisionTreePtr& next, const std::set<std::string>& handled)
      PLAYFS_REQUIRES(mutex);
  /// Whether `next` has at the path just what was frozen there, or what the base has.
  [[nodiscard]] bool brings_nothing(const std::string& path, const RevisionTreePtr& next) const PLAYFS_REQUIRES(mutex);
  /// Applies a merge together with the change of base; `also` adds to the batch.
  [[nodiscard]] Result<std::vector<Invalidation>> stand_on(RevisionTreePtr next, const Merged& merged,
                                                           const std::function<void(Batch&)>& also)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status secure_kept(const Merged& merged) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Seen seen_at(std::string_view path) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] bool is_as_seen(const MergedPath& decided) PLAYFS_REQUIRES(mutex);
  /// Stage::conflicted().
  [[nodiscard]] std::vector<Conflicted> shown_conflicts() const PLAYFS_REQUIRES(mutex);

  // discarding.cpp
  /// What a discard of `paths` leaves: local-only files in conflict have no other copy, so only their own name discards
  /// them.
  [[nodiscard]] PathSet kept_by_discard(const PathSet& paths) PLAYFS_REQUIRES(mutex);
  /// Drops those of `changes`, which is all that is staged, that are at or below one of `paths`. If ignore rules are
  /// among them, all of `unpublished` is in conflict afterwards, until forget_ignored() drops what the other rules
  /// ignore too.
  [[nodiscard]] Result<Discarded> discard(const PathSet& paths, const std::vector<Change>& changes,
                                          const std::vector<std::string>& unpublished, bool only_try)
      PLAYFS_REQUIRES(mutex);
  /// The conflicts that other ignore rules add to `list`: local-only files that they may publish.
  [[nodiscard]] std::vector<Conflicted> kept_here_by_rules(const std::vector<std::string>& unpublished,
                                                           const std::vector<Conflicted>& list, std::string_view reason)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status forget_ignored(const std::set<std::string>& in_conflict_before) PLAYFS_REQUIRES(mutex);

  const StageOptions options;
  const Clock& clock;
  const std::uint64_t boot;
  HeldLock lock;
  std::optional<Error> found_lost;  ///< set during open()
  bool is_open = false;             ///< completely: memory may be written to disk
  std::shared_ptr<Spool> spool;
  std::unique_ptr<Rows> rows;
  const Snapshots snapshots;  ///< making and removing: with writers held

  Mutex mutex;
  Numbers numbers PLAYFS_GUARDED_BY(mutex);
  Reserve reserve PLAYFS_GUARDED_BY(mutex);

  // The tree
  RevisionTreePtr base PLAYFS_GUARDED_BY(mutex);
  WallTime base_time PLAYFS_GUARDED_BY(mutex);
  std::map<std::string, WallTime, std::less<>> path_times PLAYFS_GUARDED_BY(mutex);
  InodePtr root PLAYFS_GUARDED_BY(mutex);
  /// All loaded inodes that have a name.
  std::unordered_map<std::uint64_t, Inode*> by_ino PLAYFS_GUARDED_BY(mutex);
  /// Files whose path's own number was taken when they appeared. The inode that has it may be gone at the next start,
  /// and they keep the number that was shown: so they get a row before anyone sees them.
  std::vector<std::weak_ptr<Inode>> unrecorded PLAYFS_GUARDED_BY(mutex);
  /// Published files whose bytes are gone, as noted by a caller that asked the service.
  std::vector<std::pair<std::weak_ptr<Inode>, FileRef>> noted_gone PLAYFS_GUARDED_BY(mutex);
  /// By the number of the spool file that replaced another.
  std::map<std::uint64_t, Replacement> replacements PLAYFS_GUARDED_BY(mutex);
  WriteGate gate PLAYFS_GUARDED_BY(mutex);

  // What is staged
  std::optional<std::string> staged_state PLAYFS_GUARDED_BY(mutex);
  MergeNotes notes PLAYFS_GUARDED_BY(mutex);
  InstructionFiles instructions PLAYFS_GUARDED_BY(mutex);
  std::optional<Pending> pending PLAYFS_GUARDED_BY(mutex);
  /// Spool files that must not change: those of the pending layer, or of the one being made.
  std::unordered_map<std::uint64_t, SpoolFilePtr> frozen PLAYFS_GUARDED_BY(mutex);
  bool freezing PLAYFS_GUARDED_BY(mutex) = false;         ///< a freeze is in progress
  std::uint64_t generation PLAYFS_GUARDED_BY(mutex) = 1;  ///< grows with every change of anything
  std::uint64_t moves PLAYFS_GUARDED_BY(mutex) = 0;       ///< grows with the base, and with every merge
  std::uint64_t changes_generation PLAYFS_GUARDED_BY(mutex) = 0;
  std::vector<Change> known_changes PLAYFS_GUARDED_BY(mutex);
  Verdicts verdicts PLAYFS_GUARDED_BY(mutex);

  // Housekeeping
  std::shared_ptr<Housekeeper> housekeeper;
  /// Log size that triggers a checkpoint: more than usual after one that failed.
  std::atomic<std::uint64_t> checkpoint_at = 0;
  Mutex removing;
};

}  // namespace playfs::stage
