// The operations log: what a stage acknowledged and its database does not hold yet.
//
// Two plain files, `operations.0` and `operations.1`: one is appended to, the other is empty or being brought into the
// database ("folded"). A record is a checksum, the stage's id, a number and a payload that means nothing here. Numbers
// grow by one from record to record and are never used twice, not even for a record that a crash tore: so a record
// that is out of its turn is a remnant, and reading ends before it.
//
// A record also says up to which number the log was known to be on disk when it was written. So what a power loss took
// is told from damage: what was never synced may be missing, whatever lies behind it; what was synced may not. And
// where the bytes of a record are there but are not those that were written, with records behind them, they were
// changed since.
//
// append() is one write(2), which a dead process cannot take back. A power loss may tear, lose or bring back whatever
// was not synced; what is read afterwards is a first part of what was appended, with all that was before the last
// sync() in it.
//
// Thread-safe; read() and start() come first, then the rest. Only one thread at a time folds.
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
  std::uint64_t synced = 0;  ///< records up to this number were on disk when it was written
  std::string payload;
};

/// What one file of the log holds.
struct LogContent {
  std::vector<LogRecord> records;  ///< numbered without a gap
  std::uint64_t torn = 0;          ///< bytes behind them that make no record, or one that is out of its turn
  /// The record that would be next was there once and was changed since, or was safe: no power loss does that.
  bool is_damaged = false;
  /// It was written in full and was changed since, and none follows it: one operation is missing, and no more.
  bool has_changed_last = false;
};

class OperationsLog {
 public:
  static constexpr std::array<const char*, 2> kFiles = {"/operations.0", "/operations.1"};

  /// The files of `directory`, created where they are missing; records of another `stage_id` count as torn.
  static Result<std::unique_ptr<OperationsLog>> open(const std::string& directory, std::uint64_t stage_id);
  /// Takes the records off bytes of a file, of whatever stage they are where `stage_id` is not engaged.
  static LogContent parse(std::string_view bytes, std::optional<std::uint64_t> stage_id);
  /// All records that are whole, also those behind bytes that make none: to find out what a damaged log was about. In a
  /// time that grows with the size, whatever the bytes are.
  static std::vector<LogRecord> salvage(std::string_view bytes, std::optional<std::uint64_t> stage_id);

  /// The records that follow on number `after`, as far as nothing is missing; what else there is counts as torn, but
  /// for records up to `after`.
  [[nodiscard]] Result<LogContent> read(std::uint64_t after) const;
  /// Empties the log; `next` will be the number of the next record. REQUIRES: what read() gave is safe elsewhere, and
  /// `next` was never a record's number.
  [[nodiscard]] Status start(std::uint64_t next);

  /// On an error nothing was appended.
  [[nodiscard]] Status append(std::string_view payload);
  /// Makes all that was appended safe from a power loss. An error stays the answer from then on.
  [[nodiscard]] Status sync();
  /// The error that sync() answers with from now on, if there is one; waits for no disk.
  [[nodiscard]] Status check_disk() const;
  /// Whether nothing was appended since, so that it would have nothing to do.
  [[nodiscard]] bool is_synced();

  /// Takes the records that are next to be folded, oldest first; empty where there are none. Until end_fold() said
  /// that they are safe elsewhere, the same are given again. `corrupt` where they cannot be read back.
  [[nodiscard]] Result<std::vector<LogRecord>> begin_fold();
  [[nodiscard]] Status end_fold();

  /// Bytes in both files.
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  struct File {
    UniqueFd fd;
    std::uint64_t size = 0;
    std::uint64_t appended = 0, synced = 0;  ///< numbers of records
  };
  OperationsLog(std::string directory, std::uint64_t stage_id)
      : directory_(std::move(directory)), stage_id_(stage_id) {}
  [[nodiscard]] File& folding() PLAYFS_REQUIRES(mutex_) { return files_[1 - active_]; }

  const std::string directory_;
  const std::uint64_t stage_id_;
  std::atomic<std::uint64_t> size_ = 0;
  /// One sync at a time: those who wait find theirs done, and none can miss the error that another was told.
  Mutex syncing_;
  bool names_synced_ PLAYFS_GUARDED_BY(syncing_) = false;
  mutable Mutex mutex_;
  std::array<File, 2> files_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t active_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::uint64_t synced_ PLAYFS_GUARDED_BY(mutex_) = 0;  ///< number of the last record that is safe with all before it
  std::uint64_t next_ PLAYFS_GUARDED_BY(mutex_) = 1;
  std::string record_ PLAYFS_GUARDED_BY(mutex_);  ///< the one being written: its room is used again
  std::optional<Error> sync_error_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::stage
