// The operations log: acknowledged changes that are not in the database yet.
//
// Two plain files, `operations.0` and `operations.1`: one is appended to, the other is empty or being applied to the
// database (a checkpoint). A record is a checksum, the stage's id, a number and an opaque payload.
// Numbers increase by one per record and are never reused, not even that of a record torn by a crash. So a record out
// of sequence is stale, and reading stops before it.
//
// Each record also says up to which number the log was known to be on disk when it was written. This distinguishes a
// power loss from damage: unsynced records may be missing, whatever follows them; synced ones may not. And a record
// that is there with other bytes than were written, and with records behind it, was altered later.
//
// append() is one write(2), which survives the death of the process. A power loss may tear, lose or bring back unsynced
// data; reading then yields a prefix of what was appended, including everything before the last sync().
//
// Thread-safe; read() and start() come first. Only one thread at a time may checkpoint.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::stage {

struct LogRecord {
  std::uint64_t number = 0;
  std::uint64_t synced = 0;  ///< records up to this number were on disk when this one was written
  std::string payload;
};

/// What one file of the log holds.
struct LogContent {
  std::vector<LogRecord> records;  ///< consecutive numbers
  std::uint64_t torn = 0;          ///< bytes behind them that form no record, or one out of sequence
  /// The next expected record had been synced, or was altered with others behind it: no power loss does that.
  bool is_damaged = false;
  /// The last record was written in full and altered since: one operation is missing, no more.
  bool has_changed_last = false;
};

class OperationsLog {
 public:
  static constexpr std::array<const char*, 2> kFiles = {"/operations.0", "/operations.1"};

  /// Opens the files in `directory`, creating missing ones; records of another `stage_id` count as torn.
  static Result<std::unique_ptr<OperationsLog>> open(const std::string& directory, std::uint64_t stage_id);
  /// Parses the records of one file, those of any stage if `stage_id` is nullopt.
  static LogContent parse(std::string_view bytes, std::optional<std::uint64_t> stage_id);
  /// All intact records, also those behind garbage: for the diagnosis of a damaged log. Linear in the size, whatever
  /// the bytes are.
  static std::vector<LogRecord> salvage(std::string_view bytes, std::optional<std::uint64_t> stage_id);

  /// The consecutive records after number `after`; everything else counts as torn, except records up to `after`.
  [[nodiscard]] Result<LogContent> read(std::uint64_t after) const;
  /// Empties the log; `next` will be the number of the next record. REQUIRES: the result of read() is safe elsewhere,
  /// and `next` was never used.
  [[nodiscard]] Status start(std::uint64_t next);

  /// On error nothing was appended.
  [[nodiscard]] Status append(std::string_view payload);
  /// Makes everything appended safe from a power loss. An error is permanent.
  [[nodiscard]] Status sync();
  /// The permanent error of sync(), if any; does not wait for the disk.
  [[nodiscard]] Status check_disk() const;
  /// Whether nothing was appended since the last sync().
  [[nodiscard]] bool is_synced();

  /// Returns the next records to apply, oldest first; empty if there are none. Until end_checkpoint() confirms that
  /// they are safe elsewhere, it returns the same ones. `corrupt` if they cannot be read back.
  [[nodiscard]] Result<std::vector<LogRecord>> begin_checkpoint();
  [[nodiscard]] Status end_checkpoint();

  /// Bytes in both files.
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  struct File {
    UniqueFd fd;
    std::uint64_t size = 0;
    std::uint64_t appended = 0, synced = 0;  ///< record numbers
  };
  OperationsLog(std::string directory, std::uint64_t stage_id)
      : directory_(std::move(directory)), stage_id_(stage_id) {}
  [[nodiscard]] File& previous() PLAYFS_REQUIRES(mutex_) { return files_[1 - active_]; }

  const std::string directory_;
  const std::uint64_t stage_id_;
  std::atomic<std::uint64_t> size_ = 0;
  /// One sync at a time: waiters find their records synced, and none misses an error.
  Mutex syncing_;
  bool names_synced_ PLAYFS_GUARDED_BY(syncing_) = false;
  mutable Mutex mutex_;
  std::array<File, 2> files_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t active_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::uint64_t synced_ PLAYFS_GUARDED_BY(mutex_) = 0;  ///< last record that is on disk with all before it
  std::uint64_t next_ PLAYFS_GUARDED_BY(mutex_) = 1;
  std::string record_ PLAYFS_GUARDED_BY(mutex_);  ///< the one being written; its buffer is reused
  std::optional<Error> sync_error_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::stage
