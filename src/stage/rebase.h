// Puts another base under the tree: every path that is as it was published follows the new base, all others stay.
//
// A path has three views, each absent or bytes and a mode: F, what was published (the old base with the pending layer
// on top), L, the tree now, and N, the new base. Where L = F the tree becomes N; elsewhere L stays, and the staged
// changes are again the difference between tree and base. A discard is the same with N = the old base, and L = F
// assumed for whatever is dropped.
//
// A merge's decision about a path overrides all that: the tree becomes what was decided, whatever N is.
//
// All decisions are made and all rows written first; memory changes when the batch is committed.
#pragma once

#include "stage/stage_state.h"

namespace playfs::stage {

// Lookups in a revision's tree; nullptr if there is nothing of that kind.
inline const Tree::Child* child_of(const Tree::Directory* directory, std::string_view name) {
  if (!directory) return nullptr;
  auto found = directory->children.find(name);
  return found == directory->children.end() ? nullptr : &found->second;
}

inline const FileEntry* as_file(const Tree::Child* child) {
  const auto* file = child ? std::get_if<const FileEntry*>(child) : nullptr;
  return file ? *file : nullptr;
}

inline const Tree::Directory* as_directory(const Tree::Child* child) {
  const auto* directory = child ? std::get_if<std::unique_ptr<Tree::Directory>>(child) : nullptr;
  return directory ? directory->get() : nullptr;
}

class Rebase {
 public:
  /// Whether the path follows the new base; `file` is what the tree has there, nullptr if nothing.
  using Follows = std::function<bool(const std::string& path, const Inode* file)>;

  /// Paths to put or remove; such a path does not follow.
  using Decisions = std::map<std::string, const MergedPath*, std::less<>>;

  Rebase(Stage::State& state, Batch& batch, RevisionTreePtr next, Follows follows, Decisions decisions = {})
      : state_(state),
        batch_(batch),
        next_(std::move(next)),
        follows_(std::move(follows)),
        decisions_(std::move(decisions)) {}

  /// REQUIRES: the stage's mutex, which thread-safety analysis cannot match with this object's. The object must live
  /// until the batch is committed.
  [[nodiscard]] Status run();

  /// Why open files of the old base, or of what was dropped, cannot be written any more; "": as the new base says.
  std::string replaced_by;
  std::vector<Invalidation> invalidations;
  /// Paths that the new base brings but a local file blocks.
  std::vector<std::string> obstructed;
  /// Those of them at or above a path that was to be put.
  std::set<std::string> misplaced;
  /// Those of them whose obstacle no merge knows about: the new base has a directory with undecided content there, or
  /// the local inode is of a local-only kind.
  std::set<std::string> shut_out;

 private:
  using LowerDirectory = Tree::Directory;
  /// A name in a directory.
  struct Spot {
    InodePtr parent;
    std::string name, path;
    InodePtr child;                        ///< what the tree has there; nullptr: nothing
    const Tree::Child* before = nullptr;   ///< what the old base has there
    const Tree::Child* becomes = nullptr;  ///< what the new base has there
  };
  struct Visited {
    bool has_names = false;   ///< something is left in it
    bool lost_names = false;  ///< something was removed from it
  };
  enum class Share { none, some, all };

  void plan_times() PLAYFS_REQUIRES(state_.mutex);
  void plan_directory_times(const LowerDirectory* before, const LowerDirectory& after, const std::string& path);
  [[nodiscard]] WallTime time_of(std::string_view path) const PLAYFS_REQUIRES(state_.mutex);

  /// `yields`: a file is to replace the directory or one above it, so empty directories go.
  [[nodiscard]] Result<Visited> visit(const InodePtr& directory, const std::string& path, const LowerDirectory* before,
                                      const LowerDirectory* after, bool yields) PLAYFS_REQUIRES(state_.mutex);
  /// Each returns whether anything is left at the path.
  [[nodiscard]] Result<bool> visit_directory(const Spot& at, bool yields) PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Result<bool> visit_file(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  /// A path with a decision.
  [[nodiscard]] Result<bool> visit_decided(const Spot& at, const MergedPath& decided) PLAYFS_REQUIRES(state_.mutex);
  /// A path that must become a directory because something is put below it.
  [[nodiscard]] Result<bool> visit_to_be_directory(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] bool visit_nothing(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  /// Of the new base's directory, what follows; and what is put below.
  void put_directory(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  /// Where decisions below a directory start, if there are any: check with is_below().
  [[nodiscard]] Decisions::const_iterator first_below(const std::string& path) const;
  [[nodiscard]] bool is_below(Decisions::const_iterator at, const std::string& path) const;
  [[nodiscard]] bool has_put_below(const std::string& path) const;
  [[nodiscard]] std::set<std::string, std::less<>> decided_names(const std::string& path) const;
  /// Writes the row of what is put, with owner and permissions of what it replaces; the caller writes the name.
  void put_row(const MergedPath& decided, const InodePtr& replaced) PLAYFS_REQUIRES(state_.mutex);

  void remove(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  void replace(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  /// Another object for the same row: the path keeps its number, owner and permissions.
  void replace_row(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  void appear(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  void hide(const Spot& at) PLAYFS_REQUIRES(state_.mutex);
  [[nodiscard]] Share share_that_follows(const std::string& path, const Tree::Child& child) const;
  /// A directory of which only a part appears, or in which something is put; `lower` may be nullptr.
  [[nodiscard]] InodePtr make_partial(Inode& parent, const std::string& name, const std::string& path,
                                      const Tree::Child* lower) PLAYFS_REQUIRES(state_.mutex);
  /// Makes the file's content lower: `entry` at `path` in the new base.
  void anchor(const InodePtr& file, const std::string& path, const FileEntry& entry) PLAYFS_REQUIRES(state_.mutex);
  /// Keeps the file's bytes, wherever the new base has them, if it does.
  void keep_bytes(const InodePtr& file, const std::string& path) PLAYFS_REQUIRES(state_.mutex);
  void lose_name(const InodePtr& file) PLAYFS_REQUIRES(state_.mutex);
  /// Refuses writes to an inode that the tree no longer shows, once the batch is committed.
  void supersede(const InodePtr& inode) PLAYFS_REQUIRES(state_.mutex);
  /// Sets ctime of files that lost some of their names; comes after all other changes of their rows.
  void touch_what_lost_names() PLAYFS_REQUIRES(state_.mutex);

  Stage::State& state_;
  Batch& batch_;
  RevisionTreePtr next_;
  Follows follows_;
  const Decisions decisions_;
  WallTime now_, brought_;  ///< brought_: time of what the new base brings
  std::map<std::string, WallTime, std::less<>> times_;
  WallTime default_time_;
  std::map<InodePtr, std::size_t> names_lost_;
  /// Files whose content location is decided already: a file with several names is visited several times.
  std::set<const Inode*> anchored_, rescued_;
};

/// What Rebase::obstructed means, to a person.
Error in_the_way(const std::vector<std::string>& obstructed);

/// When the content of a revision was created, for mtimes.
WallTime time_of_revision(const RevisionTree& revision, const Clock& clock);

}  // namespace playfs::stage
