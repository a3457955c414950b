// The stage's rows, as operations see them: changes are collected in a Batch, which becomes one record of the
// operations log, in one write(2), when committed. From time to time checkpoint() checkpoints the log into the
// database.
//
// Memory is the authority: rows are read only when a stage is opened. Single-threaded under the stage's mutex, except
// for checkpointing, syncing and the forget functions, which may run beside anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "stage/store/operations_log.h"
#include "stage/store/tables.h"

namespace playfs::stage {

class Rows;

/// One transaction: all of its changes or none. Unless committed it is dropped together with its after_commit()
/// actions. One at a time.
class Batch {
 public:
  Batch(Batch&& other) noexcept
      : rows_(std::exchange(other.rows_, nullptr)),
        then_(std::move(other.then_)),
        secured_(std::move(other.secured_)) {}
  Batch& operator=(Batch&&) = delete;
  ~Batch();
  /// Adds a change of memory that mirrors the rows. It must not fail.
  void after_commit(std::function<void()> action) { then_.push_back(std::move(action)); }
  /// Whether the inode still needs its first row in this batch; true only once. A second first row would undo what the
  /// batch has changed in it meanwhile.
  [[nodiscard]] bool secures(std::uint64_t ino) { return secured_.insert(ino).second; }
  [[nodiscard]] Status commit();
  /// For adding changes.
  [[nodiscard]] Rows& rows() const { return *rows_; }

 private:
  friend class Rows;
  explicit Batch(Rows& rows);
  Rows* rows_;
  std::vector<std::function<void()>> then_;
  std::unordered_set<std::uint64_t> secured_;
};

class Rows {
 public:
  /// What to do with a log that was altered behind our back.
  enum class Damage {
    refuse,       ///< fail with `corrupt`, nothing changed
    keep_prefix,  ///< apply the records before the damage; REQUIRES: the caller keeps a copy of the log
  };
  /// Opens the database and the log of `directory`; what a crash left in the log is checkpointed before it returns.
  /// `corrupt` if the database is missing or empty while something that belongs to it is there.
  static Result<std::unique_ptr<Rows>> open(const std::string& directory, Damage damage = Damage::refuse);
  static constexpr const char* kDatabase = "/stage.db";
  /// `corrupt` if the database is missing or empty beside a log, a spool with files, or a `begun` mark.
  static Status check_database(const std::string& directory);

  /// For loading. REQUIRES: nothing was committed since open().
  [[nodiscard]] Tables& stored() { return tables_; }
  /// Bytes of the log that form no operation, as after a power loss; valid until start().
  [[nodiscard]] std::uint64_t torn() const { return torn_; }
  /// They are an operation that was altered after it was written. Valid until start().
  [[nodiscard]] bool has_changed_last() const { return has_changed_last_; }
  /// Empties the log, all of which is in the database. REQUIRED before the first Batch is committed.
  [[nodiscard]] Status start();

  [[nodiscard]] Batch begin();
  /// Whether there is a Batch. Committing another within it would commit half of it, without its actions.
  [[nodiscard]] bool has_batch() const { return has_batch_; }
  // Each REQUIRES a Batch.
  void put_inode(InodeRow row) { add(PutInode{std::move(row)}); }
  void drop_inode(std::uint64_t ino) { add(DropInode{ino}); }
  void put_entry(std::uint64_t parent, std::string_view name, std::uint64_t ino) {
    add(PutEntry{{parent, std::string(name), ino}});
  }
  void drop_entry(std::uint64_t parent, std::string_view name) { add(DropEntry{parent, std::string(name)}); }
  void drop_whiteouts(std::uint64_t parent) { add(DropWhiteouts{parent}); }
  void touch(std::uint64_t ino, WallTime mtime, WallTime ctime) { add(Touch{ino, mtime, ctime}); }
  void clear_opaque() { add(ClearOpaque{}); }
  void put_rescued(RescuedRow row) { add(PutRescued{std::move(row)}); }
  void drop_unused_rescued() { add(DropUnusedRescued{}); }
  void put_value(std::string_view key, std::string_view value) { add(PutValue{std::string(key), std::string(value)}); }
  void drop_value(std::string_view key) { add(DropValue{std::string(key)}); }
  void put_time(std::string_view path, WallTime time) { add(PutTime{std::string(path), time}); }
  void drop_time(std::string_view path) { add(DropTime{std::string(path)}); }
  void put_pending(FrozenFile file) { add(PutPending{std::move(file)}); }
  void put_pending_deletion(std::string_view path) { add(PutPendingDeletion{std::string(path)}); }
  void drop_pending() { add(DropPending{}); }
  void put_replacement(ReplacementRow row) { add(PutReplacement{std::move(row)}); }
  void drop_replacement(std::uint64_t spool) { add(DropReplacement{spool}); }
  void put_size(SizeRow row) { add(PutSize{row}); }

  /// Makes everything committed safe from a power loss.
  [[nodiscard]] Status sync() { return log_->sync(); }
  /// Fails once a sync() has failed; does not wait for the disk.
  [[nodiscard]] Status check_disk() const { return log_->check_disk(); }
  /// Whether sync() would have nothing to do.
  [[nodiscard]] bool is_synced() { return log_->is_synced(); }

  /// Checkpoints what was committed so far, synced; after a failed checkpoint, only what that one left.
  [[nodiscard]] Status checkpoint();
  /// Checkpoints everything; leaves the log empty unless something is committed meanwhile.
  [[nodiscard]] Status checkpoint_all();
  /// Frees the space of SQLite's own log.
  [[nodiscard]] Status empty_database_log();
  /// These given-up spool files were removed or are referenced again.
  void forget_given_up(const std::vector<std::uint64_t>& numbers);
  /// These spool files no longer exist.
  void forget_sizes(const std::vector<std::uint64_t>& numbers);

  /// Bytes waiting to be checkpointed.
  [[nodiscard]] std::uint64_t log_size() const { return log_->size(); }
  /// Upper bound of the disk space that a checkpoint may need temporarily.
  [[nodiscard]] std::uint64_t checkpoint_space() const;

 private:
  friend class Batch;
  Rows(std::string directory, Tables tables) : directory_(std::move(directory)), tables_(std::move(tables)) {}
  void add(const RowChange& change) { encode(batch_, change); }
  [[nodiscard]] Status replay(const Tables::LogState& state, Damage damage);
  [[nodiscard]] Status apply(const std::vector<LogRecord>& records);
  void measure_database() PLAYFS_REQUIRES(checkpointing_);

  const std::string directory_;
  std::string batch_;  ///< encoded changes of the current Batch
  bool has_batch_ = false;
  std::unique_ptr<OperationsLog> log_;
  std::uint64_t torn_ = 0;
  bool has_changed_last_ = false;
  std::atomic<std::uint64_t> database_size_ = 0, database_log_size_ = 0;  ///< at the last checkpoint
  Mutex checkpointing_;                                                   ///< guards tables_, once the stage is open
  std::uint64_t checkpointed_ PLAYFS_GUARDED_BY(checkpointing_) = 0;
  Mutex removed_mutex_;
  /// For the next checkpoint to forget: given-up spool files, and sizes of those that no longer exist.
  std::vector<std::uint64_t> removed_ PLAYFS_GUARDED_BY(removed_mutex_);
  std::vector<std::uint64_t> sizes_ PLAYFS_GUARDED_BY(removed_mutex_);
  Tables tables_;
};

}  // namespace playfs::stage
