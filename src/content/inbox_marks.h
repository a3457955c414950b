// Which entries of an inbox its reader has marked as seen: one small file on this machine, shared by all mounts and
// commands of one agent at one site.
//
// A mark is for one version of an entry: one that comes again later is new again. The file is a journal, 0600: a line
// for each mark, appended and synced under a lock before mark() returns, so that several processes lose none of their
// marks; now and then it is replaced by a shorter one. A line that a crash has cut off is dropped by the next writer.
//
// Thread-safe. refresh() and mark() do local I/O; is_seen() uses memory only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::content {

/// Folder of the state directory for inboxes. It cannot clash with the work trees beside it, whose names are
/// percent-encoded.
inline constexpr const char* kInboxState = "/=inbox";

/// Locks the files of `directory` against other writers, in this process or another, until it is closed. Creates the
/// lock's file. Errors: busy, if one keeps the lock.
[[nodiscard]] Result<UniqueFd> lock_inboxes(const std::string& directory);

class InboxMarks {
 public:
  /// More than an inbox has entries; beyond that, marks of the oldest entries are dropped.
  static constexpr std::size_t kMost = 20'000;

  /// Creates `directory`, which is private, with the first mark.
  InboxMarks(std::string directory, std::string_view agent);

  /// An agent's file name, without extension: a handle itself may not be a valid one.
  static std::string file_name(std::string_view agent);

  /// Reads what others have marked since.
  [[nodiscard]] Status refresh() PLAYFS_EXCLUDES(mutex_);
  /// Whether the version of `at` is marked, as of the last refresh() or mark().
  [[nodiscard]] bool is_seen(const std::string& id, WallTime at) const PLAYFS_EXCLUDES(mutex_);
  /// Returns false if it is marked so already: of concurrent calls for an entry exactly one returns true. Errors: busy,
  /// if another process keeps the lock.
  [[nodiscard]] Result<bool> mark(const std::string& id, WallTime at, bool is_seen) PLAYFS_EXCLUDES(mutex_);

 private:
  /// How far the file has been read.
  struct Read {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t bytes = 0;  ///< of whole lines
    std::uint64_t lines = 0;
    bool operator==(const Read&) const = default;
  };

  /// Returns false if there is more to read.
  [[nodiscard]] Result<bool> read_more() PLAYFS_EXCLUDES(mutex_);
  /// Locks the file for writing, and reads what others have marked.
  [[nodiscard]] Result<UniqueFd> lock() PLAYFS_EXCLUDES(mutex_);
  /// Appends a line. REQUIRES: lock() is held, and the file was just read.
  [[nodiscard]] Status append(const std::string& line) PLAYFS_EXCLUDES(mutex_);
  /// Replaces the file by one with only what still counts. REQUIRES: as append().
  [[nodiscard]] Status shorten() PLAYFS_EXCLUDES(mutex_);
  void take(std::string_view lines) PLAYFS_REQUIRES(mutex_);

  const std::string directory_, path_;
  mutable Mutex mutex_;
  Read read_ PLAYFS_GUARDED_BY(mutex_);
  std::unordered_map<std::string, std::int64_t> seen_ PLAYFS_GUARDED_BY(mutex_);  ///< id to the version
};

}  // namespace playfs::content
