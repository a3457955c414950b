// The writable tree of one project: a base revision below, what was changed locally above, kept across crashes.
//
// Overlay in the usual words: *lower* is the base revision's tree, *upper* the local inodes, directory entries and
// spool files; a *whiteout* hides a lower name; *copy-up* brings a lower file's bytes into a spool file before they
// are changed. Inodes, entries and metadata are rows of a SQLite database in the stage's directory, loaded whole at
// open; changes of them go to an operations log, which is folded into the database from time to time. Bytes are plain
// files in `spool/`, where size and mtime of a staged file also live. So a change of names and a write are one
// pwrite(2) each. After kill -9 everything that was acknowledged is there; after sync() also past a power loss.
//
// Rows outlive a publication: they then carry what the service does not keep (times, owner, permission bits, links,
// inode numbers), and what is staged is whatever differs from the base.
//
// Thread-safe. Calls do local I/O only and never wait for the network: a caller that needs bytes which are still
// below gets told by lower_content() and brings them by copy_up(). One process at a time: open() takes a lock.
// Inode objects may outlive a commit or a change of base: an old one then keeps reading its old bytes, and fails with
// `stale` where it would be changed, since nothing that it came to hold could be staged any more. An inode
// whose last name is gone is removed with the last InodePtr.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/bytes.h"
#include "model/tree.h"

namespace playfs::stage {

class Inode;  // opaque; identified by address while alive, by Attributes::ino for ever
using InodePtr = std::shared_ptr<Inode>;

enum class Kind { file, directory, symlink, fifo, socket, character_device, block_device };

struct Attributes {
  std::uint64_t ino = 0;  ///< stable across forget and remount
  Kind kind = Kind::file;
  unsigned permissions = 0644;  ///< the low 12 bits
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint32_t links = 1;
  std::uint64_t size = 0;    ///< bytes; 0 while `is_below`: the content room knows
  bool is_below = false;     ///< the bytes are those of lower_content() at this moment
  std::uint64_t blocks = 0;  ///< of 512 bytes
  dev_t device = 0;          ///< of a device node
  WallTime atime, mtime, ctime;
};

struct AttributeChange {
  std::optional<unsigned> permissions;
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<std::uint64_t> size;  ///< other than 0 it fails with `busy` while there is lower_content()
  std::optional<WallTime> atime, mtime;
};

/// Who makes a new inode, and how.
struct Creation {
  unsigned permissions = 0644;  ///< after the umask
  uid_t uid = 0;
  gid_t gid = 0;
};

struct DirectoryEntry {
  std::string name;
  InodePtr inode;
  std::uint64_t cookie = 0;  ///< where to go on after this entry; above 2, stable while entries come and go
};

enum class RenameMode { replace, no_replace, exchange };

enum class ChangeKind { added, modified, deleted };
struct Change {
  std::string path;
  ChangeKind kind = ChangeKind::added;
  bool pending = false;  ///< part of a publication that has begun
};

/// One file of a frozen layer.
struct FrozenFile {
  std::string path;
  FileMode mode = FileMode::regular;
  ContentHash hash;  ///< of the bytes; unset where `published` is engaged
  std::uint64_t size = 0;
  std::optional<FileEntry> published;  ///< bytes that never left the base (moved or chmod-ed): the entry to carry over
  std::uint64_t spool = 0;             ///< otherwise: which frozen spool file, if there are bytes
  std::string target;                  ///< of a symbolic link, where `published` is not engaged
};

/// A staged file whose bytes went behind our back: it cannot be read, and keeps a commit from publishing it.
struct LostFile {
  std::string path;
  std::string reason;
};

/// A file or link whose bytes are still those of a revision.
struct LowerFile {
  InodePtr inode;
  FileRef from;
};

/// What a commit publishes, fixed at one moment: later writes go elsewhere (copy on write).
struct Frozen {
  std::string tx;                 ///< the commit's 128-bit id, hex
  RevisionId base;                ///< may be empty: the project's first revision
  std::vector<FrozenFile> files;  ///< added or changed
  std::vector<std::string> deletions;
  std::optional<std::string> state;  ///< staged JSON text of the project's `state`
  /// What was taken in beside the base: further parents of the revision, in order.
  std::vector<RevisionId> merge_parents;
};

/// Stands for the project's `state` where paths are named.
inline constexpr const char* kStatePath = "(state)";

/// A path that an update or a merge left in conflict: to be resolved before the next commit.
struct Conflicted {
  std::string path;
  std::string reason;               ///< in words for a person
  bool has_markers = false;         ///< the file was left with conflict markers
  std::optional<ContentHash> left;  ///< of the bytes that were left there; nullopt: there was no file
  /// A file on one side and a directory on the other: where theirs stands. Resolved once nothing is there any more.
  std::string beside = {};
  /// Of the file that was left, or of the one that was renamed over it since: by that it is found where it was moved.
  /// 0: not known.
  std::uint64_t ino = 0;
  /// What stands there was never to be published. Resolved once that is gone from there too, or the next commit is told
  /// to take it.
  bool is_kept_here = false;
  bool operator==(const Conflicted&) const = default;
};

/// What was found at a path. Nobody has changed it since as long as the path gives the same again.
struct Seen {
  InodePtr inode;                ///< nullptr: nothing, or a directory
  std::uint64_t generation = 0;  ///< of its bytes
  FileMode mode = FileMode::regular;
  bool as_frozen = false;  ///< nobody has written since the pending layer was frozen
};

/// What a merge decided about one path.
struct MergedPath {
  enum class Action {
    keep,    ///< what is here stays, also where it shows through, and holds what the new base brings
    remove,  ///< no file
    put,     ///< `content`
  };
  std::string path;
  Action action = Action::keep;
  /// What the merge was given of the path: the decision holds for nothing else. nullopt: whatever is there now.
  std::optional<Seen> seen;
  InodePtr content;  ///< of Stage::prepare()
};

/// Why a path is published whatever the ignore rules say, though the base has it not.
enum class TrackedAs {
  taken_in,  ///< a revision that was taken in has it: a commit without it deletes what its parent has
  staged,    ///< it was staged before a rule would have had it ignored
};
using Tracked = std::map<std::string, TrackedAs, std::less<>>;

/// A merge of what is staged with what a new base brings, to be carried out together with the change of base.
struct Merged {
  /// The base as the merge was given it ("" for none): it holds for no other. nullopt: whatever it is.
  std::optional<RevisionId> seen_base = {};
  /// Likewise merge_parents().
  std::optional<std::vector<RevisionId>> seen_parents = {};
  /// All staged paths at which the new base brings something, and all that are to be rewritten.
  std::vector<MergedPath> paths = {};
  std::optional<std::vector<Conflicted>> conflicted = {};  ///< the list from now on
  bool has_state = false;                                  ///< the project's state was merged too, and
  std::optional<std::string> state = {};                   ///< this is staged from now on (nullopt: nothing)
  std::optional<std::string> seen_state = {};              ///< staged_state() as the merge was given it
  Tracked tracked = {};                                    ///< Stage::tracked() from now on
};

/// A name below `directory` whose meaning changed without the kernel's doing: after a change of base or a discard.
struct Invalidation {
  InodePtr directory;
  std::string name;
  InodePtr before;  ///< what the name meant; nullptr where nothing was known of it
};

/// Told what changed once the tree is another, whatever comes of bringing that to the disk: the tree is what its memory
/// is. Called without the stage's lock.
using Told = std::function<void(const std::vector<Invalidation>&)>;

/// What is not done before an operation answers.
struct Housekeeping {
  std::size_t log_bytes = 1 << 20;           ///< of the operations log: past this it is folded into the database
  std::size_t removals = 1000;               ///< spool files that wait at most to be removed...
  std::chrono::milliseconds patience{2000};  ///< ...and how long
  /// False: whoever makes it necessary does it before the operation ends, so that a test can count on an order.
  bool own_thread = true;
};

struct StageOptions {
  std::string directory;  ///< private to this stage; created where missing
  uid_t uid = 0;          ///< owner shown for what nobody changed
  gid_t gid = 0;
  unsigned umask = 022;           ///< taken from 0666/0777 for what nobody changed
  std::size_t descriptors = 256;  ///< spool files that are kept open beyond those in use
  Housekeeping housekeeping = {};
  /// Stands for the time since the system was started, which ends with a power loss. nullopt: as the kernel has it.
  std::optional<std::uint64_t> boot = {};
  /// The first `most` bytes of a published file if they are at hand, without waiting: for `.gitignore` and its like
  /// below. Called without the stage's lock.
  std::function<std::optional<std::string>(const FileRef&, std::size_t most)> read_lower = {};
  /// Told when a rule file is read of which something does not count, or nothing: see stage/ignore.h. The message names
  /// the file. Called without the stage's lock.
  std::function<void(const Error&)> tell_of_rules = {};
};

class Stage {
 public:
  /// `base` gives the tree of a revision id that the stage stands on; the stage's own record of its base decides
  /// which. A new stage stands on `head` (nullptr: a project without a revision). Fails with `busy` where another
  /// process has the stage open.
  static Result<std::unique_ptr<Stage>> open(StageOptions options, const Clock& clock, RevisionTreePtr base);
  /// Ends `stage` and removes its directory with all that is staged; another process may begin a new one there.
  /// REQUIRES: nobody else uses it.
  static Status remove(std::unique_ptr<Stage> stage);
  /// The base that is recorded in a stage directory, before it is opened; nullopt: there is no stage yet.
  static Result<std::optional<RevisionId>> recorded_base(const std::string& directory);
  ~Stage();
  /// What was found when it was opened and could not be accounted for: nothing of it is lost, and the message says
  /// where it is. nullopt: all was well.
  [[nodiscard]] const std::optional<Error>& found_lost() const;
  /// The staged files whose bytes are gone or cut off. The first call looks at each that nobody has looked at yet.
  [[nodiscard]] std::vector<LostFile> lost_files() const;
  /// Files and links that are more to the tree than a path of its base (moved, ignored, with owners or times of their
  /// own) and whose bytes are still those of a revision: of the base, or of one that the tree stood on before.
  [[nodiscard]] std::vector<LowerFile> lower_files() const;
  /// Those among them whose revision and bytes are to be had nowhere: they count as lost from now on, and no others do.
  void note_gone(const std::vector<LowerFile>& gone);

  // Names and attributes.
  [[nodiscard]] InodePtr root() const;
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
  /// Of a symbolic link that is not below; `busy` for one that is.
  [[nodiscard]] Result<std::string> symlink_target(const InodePtr& inode) const;
  /// Relative to the root, "" for the root itself; of any of its names; nullopt where it has none left.
  [[nodiscard]] std::optional<std::string> path_of(const InodePtr& inode) const;
  /// Of all its names, in no order.
  [[nodiscard]] std::vector<std::string> paths_of(const InodePtr& inode) const;
  /// What stands at a path of that form; nullptr for nothing.
  [[nodiscard]] InodePtr find(std::string_view path);
  /// The file of that number, wherever it is by now, if it was put by a Merged, moved or written; nullptr where it is
  /// gone.
  [[nodiscard]] InodePtr find_recorded(std::uint64_t ino);

  // Bytes.
  /// The published file whose bytes this inode still has; nullopt once they are its own.
  [[nodiscard]] std::optional<FileRef> lower_content(const InodePtr& inode) const;
  /// Gives the inode bytes of its own: those of `from`, `size` of them, which `fill` puts into an empty file. Does
  /// nothing where it has them already (another thread was faster), or `from` is no longer what lies below.
  using Fill = std::function<Status(int fd)>;
  [[nodiscard]] Status copy_up(const InodePtr& inode, const FileRef& from, std::uint64_t size, const Fill& fill);
  /// The same of a symbolic link.
  [[nodiscard]] Status copy_up_link(const InodePtr& inode, const FileRef& from, std::string target);
  /// These four fail with `busy` while there is lower_content(): bring it by copy_up() and try again. It may come
  /// back under a caller's hands, when a publication has settled.
  [[nodiscard]] Result<std::string> read(const InodePtr& inode, std::uint64_t offset, std::size_t size);
  [[nodiscard]] Result<std::size_t> write(const InodePtr& inode, std::uint64_t offset, std::string_view data);
  /// `mode` as fallocate(2).
  [[nodiscard]] Status allocate(const InodePtr& inode, int mode, std::uint64_t offset, std::uint64_t length);
  /// SEEK_DATA or SEEK_HOLE; `no_data` where there is none from there on.
  [[nodiscard]] Result<std::uint64_t> seek(const InodePtr& inode, std::uint64_t offset, int whence);
  /// fsync of a file or a directory: bytes, names and attributes are safe from a power loss when it returns. An
  /// error stays the inode's answer to every later sync.
  [[nodiscard]] Status sync(const InodePtr& inode);
  /// Fails once the disk has failed a sync of names and of what belongs to them: then nothing of that is said to be
  /// safe before the stage is opened again. Waits for no disk.
  [[nodiscard]] Status check_disk() const;

  // What is staged.
  [[nodiscard]] RevisionTreePtr base() const;
  [[nodiscard]] Result<std::vector<Change>> changes() const;
  [[nodiscard]] bool is_clean() const;  ///< nothing staged, nothing pending, nothing taken in
  /// The names that are kept here and never published (ignore rules, empty directories, fifos, sockets, devices).
  [[nodiscard]] Result<std::vector<std::string>> unpublished() const;
  [[nodiscard]] std::optional<std::string> staged_state() const;
  [[nodiscard]] Status stage_state(std::string text);
  /// What was taken in beside the base: further parents of the next commit, which there will be even if no file
  /// differs.
  [[nodiscard]] std::vector<RevisionId> merge_parents() const;
  /// Paths that are published whatever the ignore rules say, as those of the base are. Where one that was taken in has
  /// no file any more that is a change, a deletion, though the base has nothing there.
  [[nodiscard]] Tracked tracked() const;
  /// What was left in conflict, as it was recorded: whether it has been resolved since is for the caller to judge.
  /// Nothing while a layer is pending: what is in it was resolved. The list ends with settle(), and is there again
  /// after thaw().
  [[nodiscard]] std::vector<Conflicted> conflicted() const;
  /// Replaces that list; synced.
  [[nodiscard]] Status record_conflicted(std::vector<Conflicted> conflicted);
  /// Notes that the commit `tx` takes all that is in the list as it is; synced. Of another list it says nothing.
  [[nodiscard]] Status accept_conflicted(const std::string& tx);
  [[nodiscard]] bool is_accepted_by(const std::string& tx) const;
  /// Drops what is staged at and below `path` ("" is everything, with what was taken in). Fails with `busy` where some
  /// of it is pending. `only_try`: decides and changes nothing.
  [[nodiscard]] Result<std::vector<Invalidation>> discard(std::string_view path, bool only_try = false);

  // Publication.
  /// Fixes what is staged now as the pending layer `tx`, synced; nullopt where nothing is staged. Only one at a time
  /// (`busy`); the same `tx` again gives the same layer. Fails with `offline` where ignore rules are below that
  /// StageOptions::read_lower does not know: see rules_needed().
  [[nodiscard]] Result<std::optional<Frozen>> freeze(const std::string& tx);
  /// The rule files below that have to be at hand for freeze().
  [[nodiscard]] std::vector<FileRef> rules_needed() const;
  /// The pending layer, if there is one: to be resumed after a restart.
  [[nodiscard]] Result<std::optional<Frozen>> pending() const;
  /// Of the pending layer; fewer bytes only at the end.
  [[nodiscard]] Result<std::string> read_frozen(const FrozenFile& file, std::uint64_t offset, std::size_t size) const;
  /// All of it, for files that are known to be small.
  [[nodiscard]] Result<std::string> read_frozen(const FrozenFile& file) const;
  /// The pending layer was published: `base`, which holds it, becomes the base; what was written since stays staged.
  /// The bytes of the layer are dropped here and become lower content: REQUIRES that they can be read from `base`.
  /// Repeating it once the layer is gone does nothing but say whether that is on disk. `base` may be more than the
  /// layer, which was merged with what others did: `merged` as for integrate().
  [[nodiscard]] Status settle(const std::string& tx, RevisionTreePtr base, const Merged& merged = {},
                              const Told& told = {});
  /// The pending layer will not be published: it is simply staged again.
  [[nodiscard]] Status thaw(const std::string& tx);
  /// Another base under staged changes: `merged` is carried out, what else is staged stays as it is, and `parents` are
  /// merge_parents() from then on. All of it at one moment and as one record, or nothing: after a crash either all is
  /// as it was or all is done. Fails with `busy` where the base or a path is not as the merge has seen it, where
  /// another path is staged that the new base changes too (publishing it would undo that), or something is pending:
  /// merge again.
  [[nodiscard]] Status integrate(RevisionTreePtr base, const Merged& merged, const std::vector<RevisionId>& parents,
                                 const Told& told = {});
  /// What is at a path at this moment. Whoever reads the bytes afterwards has them as they are there, or `seen` does
  /// not hold any more.
  [[nodiscard]] Seen seen_at(std::string_view path);
  /// A file or link with these bytes, synced, to be put by a Merged. It has no name and goes with its last InodePtr.
  [[nodiscard]] Result<InodePtr> prepare(const Bytes& content, FileMode mode);
  /// While this lives nobody changes the bytes of any file; who wants to, waits. For the last step of a merge that was
  /// overtaken again and again: to be held for local work only.
  class Hold;
  [[nodiscard]] std::unique_ptr<Hold> hold_writers();
  /// Another base under a clean work tree. REQUIRES that what is conflicted() was resolved. Fails with `busy` where
  /// something is staged, or where the base is not `from` any more, which is what `base` was compared with.
  [[nodiscard]] Result<std::vector<Invalidation>> move_base(RevisionTreePtr base, const RevisionId& from);

  struct State;  ///< only this room knows what is in it

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
