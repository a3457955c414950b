// Checkpoints on disk, `checkpoints/ID/` in the stage's directory: what was staged at one moment, for a restore. In the
// code they are snapshots, since a checkpoint of the operations log is something else.
//
// A folder has `list`, and a second hard link to each spool file whose bytes it needs. A spool file with two links is
// never written: it is copied first (Spool::is_shared). A folder is made as `new`, and renamed when it is complete and
// synced, except for bytes that nobody had synced before. One that goes is renamed to `ID~` first. So a crash anywhere
// leaves nothing that counts.
//
// A clone, and thus all of this, may be a stranger's: nothing is read, made or removed through a link in place of
// `checkpoints`.
//
// Stateless but for the path, so thread-safe; of callers that make or remove, the stage lets in one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "model/path.h"
#include "stage/store/row_changes.h"

namespace playfs::stage {

struct Snapshot {
  Checkpoint head;
  std::vector<RevisionId> parents;
  Tracked tracked;
  std::vector<Conflicted> conflicted;
  std::optional<std::string> state;
  /// As in a frozen layer, but with the number of a spool file that the folder has, and without hashes.
  std::map<std::string, FrozenFile, std::less<>> files;
  std::map<std::string, RescuedRow, std::less<>> published;  ///< by path: where FrozenFile::published is from
  PathSet deletions;
  /// What the base had at the paths, as base_content(); a path without one was not there.
  std::map<std::string, std::string, std::less<>> base_contents;
  /// The permission bits of files; no revision has more than the executable one.
  std::map<std::string, unsigned, std::less<>> permissions;
  PathSet concealed;  ///< files that are hidden, since a merge put them: see stage/instructions.h

  [[nodiscard]] bool is_empty() const {
    return files.empty() && deletions.empty() && !state && parents.empty() && conflicted.empty();
  }
};

class Snapshots {
 public:
  static constexpr std::size_t kMost = 100;
  static constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(30 * 24);

  explicit Snapshots(const std::string& directory) : path_(directory + "/checkpoints") {}

  /// Newest first. Damaged ones are listed, too.
  [[nodiscard]] std::vector<Checkpoint> list() const;
  /// `not_found`, or `corrupt`.
  [[nodiscard]] Result<Snapshot> read(std::uint64_t id) const;
  [[nodiscard]] Result<UniqueFd> open(std::uint64_t id) const;
  /// Whether everything that the snapshot lists is in its folder.
  [[nodiscard]] Status check(const Snapshot& snapshot) const;
  /// The bytes of one file, open.
  [[nodiscard]] static Result<UniqueFd> open_bytes(const UniqueFd& folder, const Snapshot& snapshot,
                                                   const FrozenFile& file);

  /// An empty folder for the files of a new snapshot.
  [[nodiscard]] Result<UniqueFd> begin() const;
  /// Completes it under the next id.
  [[nodiscard]] Result<Checkpoint> finish(const UniqueFd& folder, Snapshot snapshot) const;
  /// Gives it up instead.
  void abandon() const noexcept;
  // Those that are dropped no longer count; remove_dropped() removes them.
  /// Drops those that are too many or too old, but neither the newest one nor `used`.
  void drop_old(WallTime now, std::uint64_t used = 0) const;
  [[nodiscard]] Status drop(std::uint64_t id) const;
  /// Of the one with the largest id an empty folder stays, so that no id is used again.
  void remove_dropped() const noexcept;

 private:
  [[nodiscard]] bool is_there() const;
  [[nodiscard]] std::string folder_of(std::uint64_t id) const { return path_ + "/" + std::to_string(id); }
  [[nodiscard]] std::string unfinished() const { return path_ + "/new"; }
  /// Ascending. `dropped`: those that are being removed, too.
  [[nodiscard]] std::vector<std::uint64_t> ids(bool dropped = false) const;
  [[nodiscard]] Checkpoint head_of(std::uint64_t id) const;

  const std::string path_;
};

}  // namespace playfs::stage
