// The writable tree of one project: a base revision below, local changes above, kept across crashes.
//
// It is an overlay: *lower* is the base revision's tree, *upper* the local inodes, directory entries and spool files; a
// *whiteout* hides a lower name; *copy-up* brings a lower file's bytes into a spool file before they change. Inodes,
// entries and metadata are rows of an SQLite database in the stage's directory, loaded as a whole at open; changes go
// to an operations log, which is checkpointed into the database from time to time. Bytes are plain files in `spool/`,
// which also hold a staged file's size and mtime. So a change of names and a write cost one pwrite(2) each. What was
// acknowledged survives kill -9; after sync() it also survives a power loss.
//
// Rows outlive a publication: they then hold what the service does not store (times, owner, permission bits, links,
// inode numbers). What is staged is whatever differs from the base.
//
// Thread-safe. Calls do local I/O only and never wait for the network: a caller that needs lower bytes finds
// them with lower_content() and brings them in with copy_up(). One process at a time: open() takes a lock. Inode
// objects may outlive a commit or a change of base: an old one still reads its old bytes, but changes fail with
// `stale`, since they could never be staged. An inode whose last name is gone is removed with its last InodePtr.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/bytes.h"
#include "model/instructions.h"
#include "model/tree.h"
#include "stage/store/values.h"

namespace playfs::stage {

class Inode;  // opaque; identified by address while alive, by Attributes::ino forever
using InodePtr = std::shared_ptr<Inode>;

struct Attributes {
  std::uint64_t ino = 0;  ///< stable across forget and remount
  Kind kind = Kind::file;
  unsigned permissions = 0644;  ///< the low 12 bits
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint32_t links = 1;
  std::uint64_t size = 0;    ///< bytes; 0 while `is_below`: the content module knows
  bool is_below = false;     ///< the bytes are those of lower_content() now
  std::uint64_t blocks = 0;  ///< of 512 bytes
  dev_t device = 0;          ///< for device nodes
  WallTime atime, mtime, ctime;
};

struct AttributeChange {
  std::optional<unsigned> permissions;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<std::uint64_t> size;  ///< other than 0: fails with `busy` while there is lower_content()
  std::optional<WallTime> atime, mtime;
};

/// Owner, group and permissions of a new inode.
struct Creation {
  unsigned permissions = 0644;  ///< after the umask
  uid_t uid = 0;
  gid_t gid = 0;
};

struct DirectoryEntry {
  std::string name;
  InodePtr inode;
  std::uint64_t cookie = 0;  ///< where to continue after this entry; above 2, stable while entries come and go
};

enum class RenameMode { replace, no_replace, exchange };

enum class ChangeKind { added, modified, deleted };
struct Change {
  std::string path;
  ChangeKind kind = ChangeKind::added;
  bool pending = false;  ///< part of the publication in progress
};

/// A staged file whose bytes were lost behind our back: it cannot be read, and keeps a commit from publishing it.
struct LostFile {
  std::string path;
  std::string reason;
};

/// A file or link whose bytes are still those of a revision.
struct LowerFile {
  InodePtr inode;
  FileRef from;
};

/// What a commit publishes, fixed at one moment; later writes go elsewhere (copy on write).
struct Frozen {
  std::string tx;                 ///< the commit's 128-bit id, hex
  RevisionId base;                ///< may be empty: the project's first revision
  std::vector<FrozenFile> files;  ///< added or changed
  std::vector<std::string> deletions;
  std::optional<std::string> state;  ///< staged JSON text of the project's `state`
  /// Revisions merged in beside the base: further parents of the new revision, in order.
  std::vector<RevisionId> merge_parents;
};

/// Stands for the project's `state` among paths of files, none of which begins with a slash. A file may be called
/// "(state)".
inline constexpr const char* kStatePath = "/(state)";

/// What was found at a path. It is unchanged as long as the path yields the same again.
struct Seen {
  InodePtr inode;                ///< nullptr: nothing, or a directory
  std::uint64_t generation = 0;  ///< of its bytes
  FileMode mode = FileMode::regular;
  bool as_frozen = false;  ///< not written since the pending layer was frozen
};

/// A merge's decision about one path.
struct MergedPath {
  enum class Action {
    keep,    ///< the local version stays, even if it shows through; it includes what the new base brings
    remove,  ///< no file
    put,     ///< `content`
  };
  std::string path;
  Action action = Action::keep;
  /// What the merge saw at the path: the decision holds for nothing else. nullopt: for whatever is there now.
  std::optional<Seen> seen;
  InodePtr content;  ///< from Stage::prepare()
};

/// A merge of the staged changes with a new base, applied together with the change of base.
struct Merged {
  /// The base that the merge saw ("" for none): it holds for no other. nullopt: for any.
  std::optional<RevisionId> seen_base = {};
  /// Likewise for merge_parents(), conflicted() and tracked().
  std::optional<std::vector<RevisionId>> seen_parents = {};
  std::optional<std::vector<Conflicted>> seen_conflicted = {};
  std::optional<Tracked> seen_tracked = {};
  /// All staged paths at which the new base brings something, and all paths to rewrite.
  std::vector<MergedPath> paths = {};
  std::optional<std::vector<Conflicted>> conflicted = {};  ///< the list from now on
  /// The new base has other ignore rules: files that are local-only now join that list.
  bool brings_rules = false;
  bool has_state = false;                      ///< the project's state was merged too, and
  std::optional<std::string> state = {};       ///< this is staged from now on (nullopt: nothing)
  std::optional<std::string> seen_state = {};  ///< staged_state() as the merge saw it
  Tracked tracked = {};                        ///< Stage::tracked() from now on
};

/// A name below `directory` whose meaning changed without the kernel's doing: by a change of base or a discard.
struct Invalidation {
  InodePtr directory;
  std::string name;
  InodePtr before;  ///< what the name meant; nullptr if unknown
};

struct Discarded {
  std::vector<Invalidation> changed = {};
  /// What was dropped: paths with staged changes, or in conflict with nothing staged; kStatePath for the state.
  std::set<std::string> paths = {};
};

struct Restored {
  std::vector<Invalidation> changed = {};
  std::set<std::string> paths = {};  ///< what differed from the checkpoint; kStatePath for the state
  std::uint64_t before = 0;          ///< the checkpoint that was made of what was staged before; 0: nothing was
  RevisionId base_then = {}, base_now = {};
};

/// Reports what changed once the tree has changed in memory, even if syncing that fails: memory is the authority.
/// Called without the stage's lock.
using Told = std::function<void(const std::vector<Invalidation>&)>;

/// Work that is deferred until after an operation has been answered.
struct Housekeeping {
  std::size_t log_bytes = 1 << 20;           ///< size of the operations log above which it is checkpointed
  std::size_t removals = 1000;               ///< number of spool files that may wait for removal...
  std::chrono::milliseconds patience{2000};  ///< ...and how long
  /// False: the thread that makes work necessary does it before its operation ends, so that tests can rely on an order.
  bool own_thread = true;
};

struct StageOptions {
  std::string directory;  ///< private to this stage; created if missing
  uid_t uid = 0;          ///< owner shown for unchanged files
  gid_t gid = 0;
  unsigned umask = 022;           ///< applied to 0666/0777 for unchanged files
  std::size_t descriptors = 256;  ///< size of the pool of open spool files
  Housekeeping housekeeping = {};
  /// Identifies the system's current boot, which a power loss ends. nullopt: the kernel's boot id.
  std::optional<std::uint64_t> boot = {};
  /// Returns the first `most` bytes of a published file if they are available without waiting: for lower `.gitignore`
  /// files and the like. Called without the stage's lock.
  std::function<std::optional<std::string>(const FileRef&, std::size_t most)> read_lower = {};
  /// Called when a rule file is read that counts only in part or not at all: see stage/ignore.h. The message names the
  /// file. Called without the stage's lock.
  std::function<void(const Error&)> tell_of_rules = {};
  /// Which of the published files that give instructions to agents lookup() and list() show. Nothing else depends on
  /// it: hidden files are part of the tree, follow the base, and are carried forward by commits.
  Instructions instructions = Instructions::show;
};

class Stage {
 public:
  /// A stage's directory whose base is known, and which nobody else can open until this ends: what Stage::open would do
  /// again.
  class Found {
   public:
    Found(Found&& other) noexcept;
    Found& operator=(Found&& other) noexcept;
    ~Found();
    /// nullopt: there is no stage yet.
    [[nodiscard]] const std::optional<RevisionId>& base() const { return base_; }

   private:
    friend class Stage;
    struct Parts;
    Found();
    std::optional<RevisionId> base_;
    std::unique_ptr<Parts> parts_;  ///< null: nothing is there to be held
  };
  /// Fails with `busy` if another process has the stage open.
  static Result<Found> look(const std::string& directory);
  /// `base` is the tree of recorded_base(), or of head for a new stage (nullptr: a project without a revision); others
  /// are `invalid_argument`. Fails with `busy` if another process has the stage open. `found`: of that directory.
  static Result<std::unique_ptr<Stage>> open(StageOptions options, const Clock& clock, RevisionTreePtr base,
                                             std::optional<Found> found = {});
  /// Ends `stage` and removes its directory with all that is staged; another process may begin a new one there.
  /// REQUIRES: nothing else uses it.
  static Status remove(std::unique_ptr<Stage> stage);
  /// Reads the base of a stage before it is opened; nullopt: there is no stage yet.
  static Result<std::optional<RevisionId>> recorded_base(const std::string& directory);
  ~Stage();
  /// What was wrong when the stage was opened: files that could not be accounted for, and where they are now; staged
  /// files whose bytes are missing. nullopt: all was well.
  [[nodiscard]] const std::optional<Error>& found_lost() const;
  /// Staged files whose bytes are missing or truncated. The first call checks each file that was not checked yet.
  [[nodiscard]] std::vector<LostFile> lost_files() const;
  /// Files and links that are not just a path of the base (moved, ignored, with their own owner or times) but whose
  /// bytes are still those of a revision: of the base, or of an earlier base.
  [[nodiscard]] std::vector<LowerFile> lower_files() const;
  /// Those of lower_files() whose revision and bytes are available nowhere: from now on they, and no others, count as
  /// lost.
  void note_gone(const std::vector<LowerFile>& gone);

  // Names and attributes.
  [[nodiscard]] InodePtr root() const;
  /// Finds nothing that is hidden; make_…(), link() and rename() do not replace it: `not_permitted`.
  [[nodiscard]] Result<InodePtr> lookup(const InodePtr& directory, std::string_view name);
  [[nodiscard]] Result<Attributes> attributes(const InodePtr& inode) const;
  [[nodiscard]] Result<Attributes> set_attributes(const InodePtr& inode, const AttributeChange& change);
  [[nodiscard]] Result<std::vector<DirectoryEntry>> list(const InodePtr& directory, std::uint64_t after_cookie,
                                                         std::size_t most);
  [[nodiscard]] Result<InodePtr> make_file(const InodePtr& directory, std::string_view name, const Creation& creation);
  [[nodiscard]] Result<InodePtr> make_directory(const InodePtr& directory, std::string_view name,
                                                const Creation& creation);
  [[nodiscard]] Result<InodePtr> make_symlink(const InodePtr& directory, std::string_view name, std::string_view target,
                                              const Creation& creation);
  /// A fifo, a socket, or a device node, which the mount makes inert.
  [[nodiscard]] Result<InodePtr> make_special(const InodePtr& directory, std::string_view name, Kind kind,
                                              const Creation& creation, dev_t device = 0);
  [[nodiscard]] Status link(const InodePtr& inode, const InodePtr& directory, std::string_view name);
  [[nodiscard]] Status unlink(const InodePtr& directory, std::string_view name);
  [[nodiscard]] Status remove_directory(const InodePtr& directory, std::string_view name);
  [[nodiscard]] Status rename(const InodePtr& from, std::string_view name, const InodePtr& to,
                              std::string_view new_name, RenameMode mode);
  /// Of a symbolic link that is not lower; `busy` for one that is.
  [[nodiscard]] Result<std::string> symlink_target(const InodePtr& inode) const;
  /// The path of any of its names, relative to the root ("" for the root itself); nullopt if it has none left.
  [[nodiscard]] std::optional<std::string> path_of(const InodePtr& inode) const;
  /// The paths of all its names, unordered.
  [[nodiscard]] std::vector<std::string> paths_of(const InodePtr& inode) const;
  /// What is at such a path, shown or hidden; nullptr if nothing.
  [[nodiscard]] InodePtr find(std::string_view path);
  /// The file with that number, wherever it is now, if it was put by a Merged, moved or written; nullptr if it is gone.
  [[nodiscard]] InodePtr find_recorded(std::uint64_t ino);

  // Files that give instructions to agents (StageOptions::instructions). What is staged at their paths is shown, unless
  // a merge brought it; so is what was published from here while the stage is open.
  /// From now on, published files with this content count as the author's own.
  [[nodiscard]] Status trust_instructions(const std::vector<ContentHash>& contents);
  /// Such contents, and those of all that was published from here.
  [[nodiscard]] std::vector<ContentHash> trusted_instructions() const;
  /// Only what was published since the stage was opened.
  [[nodiscard]] std::vector<ContentHash> published_instructions() const;
  [[nodiscard]] bool hides_instructions() const;
  [[nodiscard]] bool is_hidden(std::string_view path);
  /// Whether a directory holds files, all of them hidden.
  [[nodiscard]] bool has_but_hidden(const InodePtr& directory);
  /// The paths of hidden files, in order.
  [[nodiscard]] std::vector<std::string> hidden() const;

  // Bytes.
  /// The published file whose bytes the inode still has; nullopt once they are local.
  [[nodiscard]] std::optional<FileRef> lower_content(const InodePtr& inode) const;
  /// Makes the inode's bytes local: `fill` writes the `size` bytes of `from` into an empty file. Does nothing if they
  /// are local already (another thread was faster), or if `from` is no longer the lower content.
  using Fill = std::function<Status(int fd)>;
  [[nodiscard]] Status copy_up(const InodePtr& inode, const FileRef& from, std::uint64_t size, const Fill& fill);
  /// The same for a symbolic link.
  [[nodiscard]] Status copy_up_link(const InodePtr& inode, const FileRef& from, std::string target);
  /// These four fail with `busy` while there is lower_content(): call copy_up() and try again. Content may become lower
  /// again at any time, when a publication settles.
  [[nodiscard]] Result<std::string> read(const InodePtr& inode, std::uint64_t offset, std::size_t size);
  [[nodiscard]] Result<std::size_t> write(const InodePtr& inode, std::uint64_t offset, std::string_view data);
  /// `mode` as for fallocate(2).
  [[nodiscard]] Status allocate(const InodePtr& inode, int mode, std::uint64_t offset, std::uint64_t length);
  /// SEEK_DATA or SEEK_HOLE; `no_data` if there is none from `offset` on.
  [[nodiscard]] Result<std::uint64_t> seek(const InodePtr& inode, std::uint64_t offset, int whence);
  /// fsync of a file or a directory: on return bytes, names and attributes are safe from a power loss. An error is
  /// permanent for the inode.
  [[nodiscard]] Status sync(const InodePtr& inode);
  /// Fails once the disk failed a sync of the operations log: names and attributes are not said to be safe again before
  /// the stage is reopened. Does not wait for the disk.
  [[nodiscard]] Status check_disk() const;

  // What is staged.
  [[nodiscard]] RevisionTreePtr base() const;
  [[nodiscard]] Result<std::vector<Change>> changes() const;
  [[nodiscard]] bool is_clean() const;  ///< nothing staged, pending or merged in
  /// Names that stay local and are never published (ignore rules, empty directories, fifos, sockets, devices).
  [[nodiscard]] Result<std::vector<std::string>> unpublished() const;
  [[nodiscard]] std::optional<std::string> staged_state() const;
  [[nodiscard]] Status stage_state(std::string text);
  /// Revisions merged in beside the base: further parents of the next commit, which is made even if no file differs.
  [[nodiscard]] std::vector<RevisionId> merge_parents() const;
  /// Paths that are published despite the ignore rules, as those of the base are. One of a revision that was merged in
  /// is a staged deletion if it has no file any more, though the base has nothing there.
  [[nodiscard]] Tracked tracked() const;
  /// Conflicts as recorded; whether they have been resolved since is for the caller to judge. Empty while a layer is
  /// pending: what is in it was resolved. settle() ends the list, thaw() brings it back.
  [[nodiscard]] std::vector<Conflicted> conflicted() const;
  /// Replaces that list; synced. Fails with `busy` if it is not, or no longer, `seen`.
  [[nodiscard]] Status record_conflicted(std::vector<Conflicted> conflicted,
                                         const std::optional<std::vector<Conflicted>>& seen = {});
  /// Notes that the commit `tx` takes everything in the list as it is; synced. Does not apply to any other list.
  [[nodiscard]] Status accept_conflicted(const std::string& tx);
  [[nodiscard]] bool is_accepted_by(const std::string& tx) const;
  /// Drops what is staged at and below these paths ("" is everything, including what was merged in), all of it at the
  /// cost of one. Fails with `busy` if some of it is pending, or if rules would change for local-only files while
  /// something is. Local-only files that are no longer ignored afterwards are in conflict. `only_try`: decides, but
  /// changes nothing.
  [[nodiscard]] Result<Discarded> discard(const PathSet& paths, bool only_try = false);
  [[nodiscard]] Result<Discarded> discard(const std::string& path, bool only_try = false) {
    return discard(PathSet{path}, only_try);
  }

  // Publication.
  /// Fixes what is staged now as the pending layer `tx`, synced; nullopt if nothing is staged. Only one at a time
  /// (`busy`); the same `tx` yields the same layer. Fails with `offline` if StageOptions::read_lower does not know some
  /// lower rule file: see rules_needed(). Fails with `busy` if conflicted() is no longer `seen`.
  [[nodiscard]] Result<std::optional<Frozen>> freeze(const std::string& tx,
                                                     const std::optional<std::vector<Conflicted>>& seen = {});
  /// The lower rule files that must be available for freeze().
  [[nodiscard]] std::vector<FileRef> rules_needed() const;
  /// The pending layer, if any: to be resumed after a restart.
  [[nodiscard]] Result<std::optional<Frozen>> pending() const;
  /// Reads from the pending layer; fewer bytes only at the end.
  [[nodiscard]] Result<std::string> read_frozen(const FrozenFile& file, std::uint64_t offset, std::size_t size) const;
  /// All of it, for files known to be small.
  [[nodiscard]] Result<std::string> read_frozen(const FrozenFile& file) const;
  /// The pending layer was published: `base`, which contains it, becomes the base; what was written since stays staged.
  /// The layer's bytes are dropped here and become lower content: REQUIRES that they can be read from `base`. Repeating
  /// the call once the layer is gone only reports whether that is on disk. `base` may contain more than the layer, if
  /// that was merged with other people's changes: `merged` as for integrate().
  [[nodiscard]] Status settle(const std::string& tx, RevisionTreePtr base, const Merged& merged = {},
                              const Told& told = {});
  /// The pending layer will not be published: it returns to the stage.
  [[nodiscard]] Status thaw(const std::string& tx);
  /// Puts another base under staged changes: applies `merged`, leaves everything else that is staged, and sets
  /// merge_parents() to `parents`. All of that at one moment and in one record, or nothing, also across a crash. Fails
  /// with `busy` if the base or a path is not as the merge saw it, if another staged path is changed by the new base
  /// too (publishing it would undo that), or if something is pending: merge again.
  [[nodiscard]] Status integrate(RevisionTreePtr base, const Merged& merged, const std::vector<RevisionId>& parents,
                                 const Told& told = {});
  /// What is at a path now. Bytes that are read afterwards are those of this moment, or `seen` no longer holds.
  [[nodiscard]] Seen seen_at(std::string_view path);
  /// A file or link with these bytes, synced, for a Merged to put. It has no name and goes with its last InodePtr.
  [[nodiscard]] Result<InodePtr> prepare(const Bytes& content, FileMode mode);
  /// While this lives neither bytes nor names change: whoever would change them waits. For the last step of a merge
  /// that was overtaken again and again, and for dropping what was kept; hold it for local work only.
  class Hold;
  [[nodiscard]] std::unique_ptr<Hold> hold_writers();

  // Checkpoints: what is staged, kept on this machine for a restore. On disk and in the code they are snapshots.
  /// Keeps all that is staged at one moment, at the cost of a hard link for each file; nullopt: nothing is. Ignored
  /// files are not part of it. When it returns it is safe from a power loss, but for bytes that nobody has synced.
  [[nodiscard]] Result<std::optional<Checkpoint>> checkpoint(const std::string& message);
  /// The same within a Hold, for a caller that goes on to drop what is staged.
  [[nodiscard]] Result<std::optional<Checkpoint>> checkpoint(const std::string& message, const Hold& held);
  /// Whether a checkpoint has all that is staged at and below `paths` (none, or "": everything).
  [[nodiscard]] bool has_kept(std::uint64_t id, std::vector<std::string> paths, const Hold& held);
  /// Newest first.
  [[nodiscard]] std::vector<Checkpoint> checkpoints() const;
  /// Frees the space of what it alone has. `not_found`.
  [[nodiscard]] Status drop_checkpoint(std::uint64_t id);
  /// Stages at and below `paths` (none, or "": everything) what the checkpoint has there, and drops what it has not,
  /// after keeping what is staged as another checkpoint; all at one moment and in one record. Published files of today
  /// stay under it: what the checkpoint has is staged on the present base. With everything come the project's state
  /// and, if the base is still the same, the merge of then; conflicts come with their paths. Local-only files are
  /// neither kept nor touched. `busy` while something is pending, or if a local-only file is in the way.
  [[nodiscard]] Result<Restored> restore(std::uint64_t id, const std::vector<std::string>& paths);
  /// Puts another base under a clean work tree. REQUIRES: what is conflicted() was resolved. Fails with `busy` if
  /// something is staged, or if the base is no longer `from`, which `base` was compared with; also if anything is
  /// local-only and `base` brings other ignore rules, by which it might not be.
  [[nodiscard]] Result<std::vector<Invalidation>> move_base(RevisionTreePtr base, const RevisionId& from);

  struct State;  ///< private to this module

 private:
  explicit Stage(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Stage::Hold {
 public:
  explicit Hold(State& state) : state_(state) {}
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  State& state_;
};

}  // namespace playfs::stage
