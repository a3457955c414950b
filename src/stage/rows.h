// The stage's rows, as the operations see them: changes are gathered in a Batch, which is one record of the operations
// log, and one write(2), when it is committed. From time to time the log is folded into the database.
//
// Memory is the authority: rows are read when a stage is opened, never afterwards. All but fold() and sync(),
// which may run beside anything, is for one thread at a time, under the stage's mutex.
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
#include "stage/operations_log.h"
#include "stage/tables.h"

namespace playfs::stage {

class Rows;

/// One transaction: all of its changes or none. Forgotten unless committed; what was asked for after_commit() then
/// happens not. One at a time.
class Batch {
 public:
  Batch(Batch&& other) noexcept
      : rows_(std::exchange(other.rows_, nullptr)),
        then_(std::move(other.then_)),
        secured_(std::move(other.secured_)) {}
  Batch& operator=(Batch&&) = delete;
  ~Batch();
  /// Changes of memory that mirror the rows. They must not fail.
  void after_commit(std::function<void()> action) { then_.push_back(std::move(action)); }
  /// Whether the inode is still to get its first row in this batch; said once. A second one would undo what the batch
  /// has changed in the row meanwhile.
  [[nodiscard]] bool secures(std::uint64_t ino) { return secured_.insert(ino).second; }
  [[nodiscard]] Status commit();

 private:
  friend class Rows;
  explicit Batch(Rows& rows);
  Rows* rows_;
  std::vector<std::function<void()>> then_;
  std::unordered_set<std::uint64_t> secured_;
};

class Rows {
 public:
  /// What to do with a log that was changed behind our back.
  enum class Damage {
    refuse,       ///< `corrupt`, with nothing changed
    keep_prefix,  ///< the records before it count; REQUIRES: the caller keeps a copy of the log
  };
  /// The database and the log of `directory`; what a crash left in the log is folded before it returns. `corrupt` where
  /// the database is gone or empty and there is what belonged to it.
  static Result<std::unique_ptr<Rows>> open(const std::string& directory, Damage damage = Damage::refuse);
  static constexpr const char* kDatabase = "/stage.db";
  /// `corrupt` where there is a log or a spool with something in it, and no database, or none with anything in it.
  static Status check_database(const std::string& directory);

  /// To load from. REQUIRES: nothing was committed since open().
  [[nodiscard]] Tables& stored() { return tables_; }
  /// Bytes of the log that are no operations, as a power loss leaves them, before start() empties it.
  [[nodiscard]] std::uint64_t torn() const { return torn_; }
  /// They are an operation that was changed since it was written. Until start().
  [[nodiscard]] bool has_changed_last() const { return has_changed_last_; }
  /// Empties the log, all of which is in the database. REQUIRED before the first Batch is committed.
  [[nodiscard]] Status start();

  [[nodiscard]] Batch begin();
  /// Whether there is a Batch. Another one, committed within it, would commit half of it, without what follows.
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

  /// Makes what was committed safe from a power loss.
  [[nodiscard]] Status sync() { return log_->sync(); }
  /// Fails once a sync() has failed; waits for no disk.
  [[nodiscard]] Status check_disk() const { return log_->check_disk(); }
  /// Whether sync() would have nothing to do.
  [[nodiscard]] bool is_synced() { return log_->is_synced(); }

  /// Brings what was committed so far into the database, synced; after a fold that failed, what that left.
  [[nodiscard]] Status fold();
  /// Everything, with nothing left in the log where nothing is committed meanwhile.
  [[nodiscard]] Status fold_all();
  /// Gives the room of SQLite's own log back.
  [[nodiscard]] Status empty_database_log();
  /// These spool files were given up, and are removed or named again.
  void forget_given_up(const std::vector<std::uint64_t>& numbers);
  /// These spool files are no more.
  void forget_sizes(const std::vector<std::uint64_t>& numbers);

  /// Bytes that wait to be folded.
  [[nodiscard]] std::uint64_t log_size() const { return log_->size(); }
  /// Bytes of disk that folding may need for a moment, at most.
  [[nodiscard]] std::uint64_t room_to_fold() const;

 private:
  friend class Batch;
  Rows(std::string directory, Tables tables) : directory_(std::move(directory)), tables_(std::move(tables)) {}
  void add(const RowChange& change) { encode(batch_, change); }
  [[nodiscard]] Status replay(const Tables::LogState& state, Damage damage);
  [[nodiscard]] Status apply(const std::vector<LogRecord>& records);
  void measure_database() PLAYFS_REQUIRES(folding_);

  const std::string directory_;
  std::string batch_;  ///< encoded changes of the Batch there is
  bool has_batch_ = false;
  std::unique_ptr<OperationsLog> log_;
  std::uint64_t torn_ = 0;
  bool has_changed_last_ = false;
  std::atomic<std::uint64_t> database_size_ = 0, database_log_size_ = 0;  ///< at the last fold
  Mutex folding_;                                                         ///< guards tables_, once the stage is open
  std::uint64_t folded_ PLAYFS_GUARDED_BY(folding_) = 0;
  Mutex removed_mutex_;
  /// For the next fold to forget: spool files that were given up, and sizes of those that are no more.
  std::vector<std::uint64_t> removed_ PLAYFS_GUARDED_BY(removed_mutex_);
  std::vector<std::uint64_t> sizes_ PLAYFS_GUARDED_BY(removed_mutex_);
  Tables tables_;
};

}  // namespace playfs::stage
