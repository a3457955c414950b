// The inside of a Stage: what is in memory, and the steps that its operations are made of.
//
// An operation checks, writes down its rows in one batch, and changes memory only when that is committed; so a full
// disk leaves everything as it was. The mutex is released for the bytes: whoever changes a spool file is counted in
// `writers`, of the inode and of the stage, which is what copy-on-write and freeze wait for.
#pragma once

#include <atomic>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/mutex.h"
#include "stage/at_once.h"
#include "stage/housekeeper.h"
#include "stage/inode.h"
#include "stage/rows.h"
#include "stage/spool.h"
#include "stage/stage.h"
#include "stage/verdicts.h"

namespace playfs::stage {

std::string join_path(std::string_view directory, std::string_view name);

/// Same bytes for sure, whatever the mode.
bool same_content(const FileEntry& a, const FileEntry& b);

/// A path whose published meaning is not that of the base.
struct Difference {
  std::string path;
  InodePtr inode;                   ///< nullptr: deleted
  const FileEntry* base = nullptr;  ///< nullptr: added, or deleted of what was taken in
  /// The bytes have to be compared before it is sure: they have the spool file's generation `generation`.
  bool uncertain = false;
  bool may_be_frozen = false;  ///< the same of what is pending under the path
  std::uint64_t generation = 0;
};

struct Survey {
  RevisionTreePtr base;  ///< holds the entries that differences point to
  std::vector<Difference> differences;
  std::vector<std::string> unpublished;  ///< directories with a slash at the end
  std::vector<FileRef> missing_rules;    ///< rule files below whose bytes are not at hand
  std::optional<Error> unread_rules;     ///< why a rule file could not be read: what it ignores is not known
};

struct FileDigest {
  std::uint64_t size = 0;
  ContentHash hash;
};
/// Whether `entry` is known to have bytes of that hash.
bool is_content_of(const ContentHash& hash, const FileEntry& entry);

/// Of a file that nobody changes meanwhile, or whose result is thrown away if somebody did.
Result<FileDigest> digest(Spool& spool, SpoolFile& file);

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

  // open.cpp
  [[nodiscard]] Status load(RevisionTreePtr given) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status create(const RevisionTreePtr& given) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status load_values(const RevisionTreePtr& given) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status load_pending() PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status load_tree() PLAYFS_REQUIRES(mutex);
  /// Removes the spool files that were given up, and moves those that nothing accounts for out of the way.
  [[nodiscard]] Status load_spool() PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status set_aside(const std::vector<std::uint64_t>& numbers) PLAYFS_REQUIRES(mutex);

  // tree.cpp: names in memory, and the rows behind them
  [[nodiscard]] const Tree::Directory* base_root() const PLAYFS_REQUIRES(mutex) {
    return base ? &base->tree.root() : nullptr;
  }
  [[nodiscard]] WallTime path_time(std::string_view path) const PLAYFS_REQUIRES(mutex);
  /// "" for the root; nullopt where the inode has no name left.
  [[nodiscard]] std::optional<std::string> path(const Inode& inode) const PLAYFS_REQUIRES(mutex);
  [[nodiscard]] bool is_removed(const Inode& inode) const PLAYFS_REQUIRES(mutex) {
    return inode.names.empty() && &inode != root.get();
  }
  void attach(Inode& directory, std::string_view name, const InodePtr& inode) PLAYFS_REQUIRES(mutex);
  /// What the name meant, held so that the caller decides when it goes.
  InodePtr detach(Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  /// A name whose inode was replaced keeps its place in listings. REQUIRES: the cookie is free.
  void keep_place(Inode& directory, std::string_view name, std::uint64_t cookie) PLAYFS_REQUIRES(mutex);
  /// Brings the names that show through among the children, for somebody to see. REQUIRES: there is no batch.
  void load_directory(Inode& directory) PLAYFS_REQUIRES(mutex);
  /// The same for a batch's own purposes.
  void load_names(Inode& directory) PLAYFS_REQUIRES(mutex);
  /// Rows for `unrecorded`.
  void record_numbers() PLAYFS_REQUIRES(mutex);
  InodePtr make_lower(const std::string& path, const Tree::Child& child, RevisionTreePtr revision, std::uint64_t ino)
      PLAYFS_REQUIRES(mutex);
  /// The same, with the number that is the path's own where nobody has it.
  InodePtr make_lower(const std::string& path, const Tree::Child& child, RevisionTreePtr revision)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] InodePtr find(Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  struct Place {
    InodePtr inode;    ///< nullptr: nothing stands there
    InodePtr deepest;  ///< that, or the last thing on the way
  };
  [[nodiscard]] Place find(std::string_view path) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status check_directory(const Inode& directory, std::string_view name) const PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Result<InodePtr> existing(Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  /// Whether the name would show through once nothing above covers it.
  [[nodiscard]] static bool covers_lower(const Inode& directory, std::string_view name);

  [[nodiscard]] InodeRow row_of(const Inode& inode) const PLAYFS_REQUIRES(mutex);
  /// Rows for an inode and all directories above it.
  void secure(Batch& batch, Inode& inode) PLAYFS_REQUIRES(mutex);
  /// Rows for everything below a directory, which may then be moved: nothing shows through it any more.
  void secure_tree(Batch& batch, Inode& directory) PLAYFS_REQUIRES(mutex);
  /// mtime and ctime of a directory that lost or won a name.
  void touch(Batch& batch, Inode& directory, WallTime now) PLAYFS_REQUIRES(mutex);
  void drop_name(Batch& batch, Inode& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  /// One name less, `inode` with it where that was its last.
  void drop_link(Batch& batch, Inode& inode, WallTime now) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] std::uint64_t take_ino(Batch& batch) PLAYFS_REQUIRES(mutex);
  SpoolFilePtr new_spool_file(bool keep) PLAYFS_REQUIRES(mutex);
  /// Its number, for a row. No number is ever used for another file, so that one which was given up once stays so.
  std::uint64_t name_spool_file(Batch& batch, const SpoolFile& file) PLAYFS_REQUIRES(mutex);
  /// An inode that lost its row: its spool file goes with it, unless a pending layer needs it.
  void release(Inode& inode) PLAYFS_REQUIRES(mutex);

  // sizes.cpp: how long spool files have to be
  /// Together with a row that names the file.
  void put_size(Batch& batch, const SpoolFilePtr& file, std::uint64_t size, std::uint64_t synced)
      PLAYFS_REQUIRES(mutex);
  /// It has become at least so long.
  void note_growth(const Inode& inode, std::uint64_t size) PLAYFS_REQUIRES(mutex);
  /// It is about to be cut to `size`. Whether that has to be on disk before the bytes go.
  [[nodiscard]] Result<bool> note_cut(const Inode& inode, std::uint64_t size) PLAYFS_REQUIRES(mutex);
  /// All of it was synced, if nobody has written since.
  void note_synced(Inode& inode) PLAYFS_REQUIRES(mutex);
  /// As long as all files are, for the next start.
  [[nodiscard]] Status note_sizes(const std::vector<InodePtr>& inodes) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status load_sizes() PLAYFS_REQUIRES(mutex);
  SpoolFilePtr file_of_earlier_run(std::uint64_t number) PLAYFS_REQUIRES(mutex);
  /// Tells of those that are known to be lost: `names` are theirs.
  void tell_of_lost(std::vector<std::string> names);
  [[nodiscard]] std::vector<LostFile> lost_files() PLAYFS_EXCLUDES(mutex);

  // replacing.cpp: old bytes go when what replaced them is on disk
  struct Replacement {
    SpoolFilePtr fresh;
    SpoolFilePtr old;           ///< nullptr: they are below
    std::uint64_t changes = 0;  ///< of `fresh`: once so many are synced the old bytes may go
    ReplacementRow row;
  };
  /// What to keep when `moved` takes the place of `target`; nullopt where there is nothing to lose.
  [[nodiscard]] Result<std::optional<Replacement>> replacement(Inode& moved, const Inode& target)
      PLAYFS_REQUIRES(mutex);
  /// Syncs what a replacement can not be noted of.
  [[nodiscard]] Status prepare_replacement(const InodePtr& from, std::string_view name, const InodePtr& to,
                                           std::string_view new_name) PLAYFS_EXCLUDES(mutex);
  /// It is over, for whatever reason: the old bytes are given up.
  void end_replacement(Batch& batch, std::uint64_t spool) PLAYFS_REQUIRES(mutex);
  void end_replacement(Batch& batch, const Inode& by) PLAYFS_REQUIRES(mutex) {
    if (by.spool && replacements.contains(by.spool->number())) end_replacement(batch, by.spool->number());
  }
  /// Makes the new bytes safe, and lets the old ones go.
  [[nodiscard]] Status settle_replacements() PLAYFS_EXCLUDES(mutex);
  /// The same where the tree stands still: those that came since settle_replacements().
  [[nodiscard]] Status settle_replacements(Batch& batch) PLAYFS_REQUIRES(mutex);
  void settle_or_warn() PLAYFS_EXCLUDES(mutex);
  void look_after_replacements() PLAYFS_EXCLUDES(mutex);
  [[nodiscard]] Status load_replacements() PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status record_returned() PLAYFS_REQUIRES(mutex);

  // names.cpp
  /// `target` of a symbolic link, `device` of a device node.
  [[nodiscard]] Result<InodePtr> make(const InodePtr& directory, std::string_view name, Kind kind,
                                      const Creation& creation, std::string_view target, dev_t device)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status link(const InodePtr& inode, const InodePtr& directory, std::string_view name)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status unlink(const InodePtr& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status remove_directory(const InodePtr& directory, std::string_view name) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status rename(const InodePtr& from, std::string_view name, const InodePtr& to,
                              std::string_view new_name, RenameMode mode) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status exchange(const InodePtr& from, std::string_view name, const InodePtr& to,
                                std::string_view new_name) PLAYFS_REQUIRES(mutex);

  [[nodiscard]] Result<Attributes> set_attributes(const InodePtr& inode, const AttributeChange& change)
      PLAYFS_REQUIRES(mutex);

  // room.cpp: a disk that is full
  /// Runs an operation with the mutex, and once more where it failed for want of room and some could be made.
  /// Operations that fail leave everything as it was. `for_removal`: it gives room back in the end, and may use what is
  /// kept for that.
  template <class Operation>
  auto with_room(bool for_removal, const Operation& operation) PLAYFS_EXCLUDES(mutex) {
    using Result = decltype(operation());
    auto attempt = [&]() -> Result {
      MutexLock locked(mutex);
      if (!for_removal && !has_reserve()) return fail(ErrorCode::no_space, "the disk of the staged changes is full");
      Result result = operation();
      if (result && for_removal) keep_reserve_after_removal();
      look_after_log();
      return result;
    };
    Result result = attempt();
    bool is_full = !result && result.error().code == ErrorCode::no_space;
    if (is_full && AtOnce::may_wait() && make_room(for_removal)) result = attempt();
    return result;
  }
  /// Whether enough is kept, which it sees to where there is room.
  [[nodiscard]] bool has_reserve() PLAYFS_REQUIRES(mutex);
  /// Waits for the disk; all else goes on meanwhile.
  [[nodiscard]] bool make_room(bool for_removal) PLAYFS_EXCLUDES(mutex);
  void keep_reserve_after_removal() PLAYFS_REQUIRES(mutex);
  void give_up_reserve() PLAYFS_REQUIRES(mutex);
  static constexpr const char* kReserve = "/reserve";
  [[nodiscard]] std::string reserve_path() const { return options.directory + kReserve; }

  // housekeeping.cpp
  void begin_housekeeping();
  /// Has the log folded where it has grown long.
  void look_after_log() PLAYFS_REQUIRES(mutex);
  void fold_log();
  /// Removes the spool files that were given up, once the disk knows that no row names them; whether there were any.
  bool remove_given_up();
  void end_housekeeping();

  // bytes.cpp
  /// Size and times of an inode with a spool file, as they are now.
  [[nodiscard]] Status measure(Inode& inode) PLAYFS_REQUIRES(mutex);
  /// Waits until the bytes may be changed, gives the inode a spool file of its own where they are frozen (its first
  /// `keep` bytes), and counts the caller as a writer.
  [[nodiscard]] Result<SpoolFilePtr> begin_change(Inode& inode, std::uint64_t keep) PLAYFS_REQUIRES(mutex);
  /// `done`: the bytes did change.
  void end_change(Inode& inode, bool done) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status unfreeze(Inode& inode, std::uint64_t keep) PLAYFS_REQUIRES(mutex);
  /// Runs `change` on the descriptor of an inode's bytes, without the mutex.
  template <class Change>
  [[nodiscard]] Status change_bytes(const InodePtr& inode, std::uint64_t keep, const Change& change)
      PLAYFS_EXCLUDES(mutex);
  [[nodiscard]] Status resize(const InodePtr& inode, std::uint64_t size) PLAYFS_EXCLUDES(mutex);
  /// No bytes at all, without touching those that are below or frozen.
  [[nodiscard]] Status empty_out(Inode& inode) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Attributes attributes(const Inode& inode) const PLAYFS_REQUIRES(mutex);

  // changes.cpp
  /// Releases the mutex while ignore files are read and what takes long is judged: all may be different when it comes
  /// back. The survey is of the tree as it is then, and survey() has nothing left to ask until the mutex is released.
  [[nodiscard]] Survey unhurried_survey() PLAYFS_REQUIRES(mutex);
  /// REQUIRES: unhurried_survey() came first, or this may take its time with the mutex held.
  [[nodiscard]] Survey survey() PLAYFS_REQUIRES(mutex);
  /// What has to be answered before the survey is complete.
  [[nodiscard]] Questions look_over(Survey& survey, Effort effort) PLAYFS_REQUIRES(mutex);
  /// Takes back the differences that turn out to be none, hashing what has to be; the mutex is released meanwhile.
  [[nodiscard]] Status settle_doubts(std::vector<Difference>& differences) PLAYFS_EXCLUDES(mutex);
  [[nodiscard]] Result<std::vector<Change>> changes() PLAYFS_EXCLUDES(mutex);
  /// Whether the pending layer, or the base where that says nothing of it, means the same by the path.
  [[nodiscard]] bool is_as_frozen(const std::string& path, const Inode* inode) const PLAYFS_REQUIRES(mutex);
  /// Whether own bytes are known to be those of `entry`, by their hash or by what was frozen under the path.
  [[nodiscard]] bool has_bytes_of(const Inode& inode, const std::string& path, const FileEntry& entry) const
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] bool equals(const Inode& inode, const FileEntry& entry) const PLAYFS_REQUIRES(mutex);
  void changed() PLAYFS_REQUIRES(mutex) { ++generation; }

  // publication.cpp
  /// One file of a layer that is being frozen.
  struct Candidate {
    FrozenFile file;
    SpoolFilePtr bytes;  ///< to be hashed; nullptr where all is known
  };
  [[nodiscard]] Result<std::optional<Frozen>> freeze(const std::string& tx) PLAYFS_EXCLUDES(mutex);
  Candidate candidate_of(Inode& inode) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Result<std::optional<Frozen>> freeze_candidates(Frozen layer, const Survey& found,
                                                                std::map<std::string, Candidate>& candidates)
      PLAYFS_EXCLUDES(mutex);
  [[nodiscard]] Frozen pending_layer() const PLAYFS_REQUIRES(mutex);
  /// The rows of the pending layer; forget_pending() is the same for memory.
  void drop_pending() PLAYFS_REQUIRES(mutex);
  void forget_pending() PLAYFS_REQUIRES(mutex);
  /// The staged paths at which `next` brings something that what is staged there does not hold.
  [[nodiscard]] std::vector<std::string> contested(const RevisionTreePtr& next, const std::set<std::string>& handled)
      PLAYFS_REQUIRES(mutex);
  /// Whether what was frozen at the path, or what the base has there, is what `next` has.
  [[nodiscard]] bool brings_nothing(const std::string& path, const RevisionTreePtr& next) const PLAYFS_REQUIRES(mutex);
  /// Carries a merge out together with the change of base; `also` adds to the batch.
  [[nodiscard]] Result<std::vector<Invalidation>> stand_on(RevisionTreePtr next, const Merged& merged,
                                                           const std::function<void(Batch&)>& also)
      PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Status secure_kept(const Merged& merged) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] Seen seen_at(std::string_view path) PLAYFS_REQUIRES(mutex);
  [[nodiscard]] bool is_as_seen(const MergedPath& decided) PLAYFS_REQUIRES(mutex);
  /// What of `changes`, all that is staged, is at or below `path`.
  [[nodiscard]] Result<std::vector<Invalidation>> discard(std::string_view path, const std::vector<Change>& changes,
                                                          bool only_try) PLAYFS_REQUIRES(mutex);
  void put_merge_parents(const std::vector<RevisionId>& parents) PLAYFS_REQUIRES(mutex);
  void put_tracked(const Tracked& paths) PLAYFS_REQUIRES(mutex);
  void put_conflicted(const std::vector<Conflicted>& list) PLAYFS_REQUIRES(mutex);
  /// Another list, which no commit has accepted yet.
  void replace_conflicted(Batch& batch, std::vector<Conflicted> list) PLAYFS_REQUIRES(mutex);
  /// What was left in conflict in `gone`, whose last name `by` takes, is from then on in conflict there.
  void hand_on_conflicts(Batch& batch, const Inode& gone, const Inode& by) PLAYFS_REQUIRES(mutex);

  const StageOptions options;
  const Clock& clock;
  UniqueFd lock;
  std::shared_ptr<Spool> spool;
  std::unique_ptr<Rows> rows;
  std::optional<Error> found_lost;  ///< set while it is opened
  const std::uint64_t boot;
  bool is_open = false;  ///< in full: what is in memory may be written down

  Mutex mutex;
  Condition moved_on;  ///< writers ended, a copy was made, a gate opened
  RevisionTreePtr base PLAYFS_GUARDED_BY(mutex);
  WallTime base_time PLAYFS_GUARDED_BY(mutex);
  std::map<std::string, WallTime, std::less<>> path_times PLAYFS_GUARDED_BY(mutex);
  InodePtr root PLAYFS_GUARDED_BY(mutex);
  /// All inodes that have a name, as far as they are loaded.
  std::unordered_map<std::uint64_t, Inode*> by_ino PLAYFS_GUARDED_BY(mutex);
  /// Files whose path's own number was taken when they came. Whoever has it may be gone at the next start, and they
  /// keep the number that they were seen with: so they get a row before anybody sees them.
  std::vector<std::weak_ptr<Inode>> unrecorded PLAYFS_GUARDED_BY(mutex);
  std::uint64_t salt PLAYFS_GUARDED_BY(mutex) = 0;
  std::uint64_t next_ino PLAYFS_GUARDED_BY(mutex) = 1;
  std::uint64_t reserved_inos PLAYFS_GUARDED_BY(mutex) = 1;  ///< numbers below may be given out without a row
  std::uint64_t next_spool PLAYFS_GUARDED_BY(mutex) = 1;
  std::uint64_t reserved_spools PLAYFS_GUARDED_BY(mutex) = 0;  ///< numbers below are known to have been used
  std::optional<std::string> staged_state PLAYFS_GUARDED_BY(mutex);
  std::vector<RevisionId> merge_parents PLAYFS_GUARDED_BY(mutex);
  Tracked tracked PLAYFS_GUARDED_BY(mutex);
  std::vector<Conflicted> conflicted PLAYFS_GUARDED_BY(mutex);
  std::set<std::string> accepted_by PLAYFS_GUARDED_BY(mutex);  ///< commits that take those as they are

  /// Whose bytes are gone though they were published: as somebody who asked the service has noted it.
  std::vector<std::pair<std::weak_ptr<Inode>, FileRef>> noted_gone PLAYFS_GUARDED_BY(mutex);

  /// While it is opened: how long spool files have to be.
  std::unordered_map<std::uint64_t, SpoolFile::Noted> known_sizes PLAYFS_GUARDED_BY(mutex);

  /// By the number of the spool file that replaced another.
  std::map<std::uint64_t, Replacement> replacements PLAYFS_GUARDED_BY(mutex);
  /// While it is opened: inodes that got their old bytes back, and the number of what replaced these.
  std::vector<std::pair<std::uint64_t, InodePtr>> returned PLAYFS_GUARDED_BY(mutex);

  std::optional<Pending> pending PLAYFS_GUARDED_BY(mutex);
  /// Spool files that nobody may change: those of the pending layer, or of the one that is being made.
  std::unordered_map<std::uint64_t, SpoolFilePtr> frozen PLAYFS_GUARDED_BY(mutex);
  bool freezing PLAYFS_GUARDED_BY(mutex) = false;     ///< a freeze is under way
  bool gate_closed PLAYFS_GUARDED_BY(mutex) = false;  ///< nobody may begin to write
  unsigned writers PLAYFS_GUARDED_BY(mutex) = 0;

  /// Size of the log from which it is to be folded: more than usual after a fold that failed.
  std::atomic<std::uint64_t> fold_at = 0;
  std::shared_ptr<Housekeeper> housekeeper;
  Mutex removing;

  std::uint64_t reserve PLAYFS_GUARDED_BY(mutex) = 0;  ///< bytes of the disk that are kept
  SteadyTime reserve_tried PLAYFS_GUARDED_BY(mutex);

  std::uint64_t generation PLAYFS_GUARDED_BY(mutex) = 1;  ///< grows with every change of anything
  std::uint64_t moves PLAYFS_GUARDED_BY(mutex) = 0;       ///< grows with the base, and with every merge
  std::uint64_t changes_generation PLAYFS_GUARDED_BY(mutex) = 0;
  std::vector<Change> known_changes PLAYFS_GUARDED_BY(mutex);
  Verdicts verdicts PLAYFS_GUARDED_BY(mutex);
};

}  // namespace playfs::stage
