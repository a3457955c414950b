// What a user did with letters in `maildir/`: moved, flagged, removed. Kept on this machine only, per site and agent.
//
// A journal of one line per change, 0600. All mounts of an agent append to it under a file lock, after reading what the
// others appended, so no mount loses another's changes. A change is in the journal before it is answered, and so
// survives the death of the mount; sync() makes it survive a power loss. A journal of mostly outdated lines is
// replaced by one of current lines. A line that is incomplete or unreadable is ignored.
//
// catch_up(), mark() and sync() do local I/O. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::vfs {

struct MaildirMark {
  enum class Place : char { fresh = 'n', current = 'c', hidden = 'x' };
  std::int64_t updated = 0;  ///< of the version that was marked, as in its name
  Place place = Place::fresh;
  std::string info;  ///< ":2,FLAGS" as the reader wrote it, or empty
  bool operator==(const MaildirMark&) const = default;
};

class MaildirMarks {
 public:
  /// Reads nothing yet. Creates `directory` and the journal with the first change.
  MaildirMarks(std::string directory, const std::string& name)
      : directory_(std::move(directory)), path_(directory_ + "/" + name), lock_path_(path_ + ".lock") {}

  /// Letters that other mounts have marked, with their former marks.
  using Changes = std::map<std::string, std::optional<MaildirMark>>;
  /// Reads what other mounts have appended.
  [[nodiscard]] Status catch_up() PLAYFS_EXCLUDES(io_, mutex_);
  /// The changes read since the last call.
  [[nodiscard]] Changes take_changes() PLAYFS_EXCLUDES(mutex_);
  /// Marks a letter if its mark is still `from`; otherwise fails with not_found and changes nothing.
  [[nodiscard]] Status mark(const std::string& letter, const std::optional<MaildirMark>& from, const MaildirMark& to)
      PLAYFS_EXCLUDES(io_, mutex_);
  [[nodiscard]] Status sync() PLAYFS_EXCLUDES(io_, mutex_);

  [[nodiscard]] std::optional<MaildirMark> of(const std::string& letter) const PLAYFS_EXCLUDES(mutex_);
  /// Another number after each change.
  [[nodiscard]] std::uint64_t version() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_read() const PLAYFS_EXCLUDES(mutex_);

 private:
  [[nodiscard]] Status read_on() PLAYFS_REQUIRES(io_) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] Status append(const std::string& line) PLAYFS_REQUIRES(io_);
  /// Replaces the journal; the old one stays if that fails.
  void compact() PLAYFS_REQUIRES(io_) PLAYFS_EXCLUDES(mutex_);

  const std::string directory_, path_, lock_path_;
  Mutex io_;  ///< held over local I/O; taken before mutex_
  UniqueFd journal_ PLAYFS_GUARDED_BY(io_);
  std::uint64_t read_ PLAYFS_GUARDED_BY(io_) = 0;  ///< bytes of whole lines
  std::size_t lines_ PLAYFS_GUARDED_BY(io_) = 0;
  mutable Mutex mutex_;
  std::map<std::string, MaildirMark> marks_ PLAYFS_GUARDED_BY(mutex_);
  Changes changes_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t version_ PLAYFS_GUARDED_BY(mutex_) = 0;
  bool is_read_ PLAYFS_GUARDED_BY(mutex_) = false;
};

}  // namespace playfs::vfs
