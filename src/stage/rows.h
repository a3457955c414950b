// The stage's database: its schema and one function per statement, no decisions.
//
// For one thread at a time, under the stage's mutex. Every change belongs to a Batch, which is one transaction.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/sqlite.h"
#include "stage/inode.h"

namespace playfs::stage {

struct InodeRow {
  std::uint64_t ino = 0;
  Kind kind = Kind::file;
  Metadata metadata;
  std::uint64_t spool = 0;     ///< number of its spool file; 0: none
  std::string target;          ///< of a symbolic link of its own
  dev_t device = 0;            ///< of a device node
  bool opaque = false;         ///< of a directory
  std::string lower_path;      ///< not empty: its bytes are those of this file...
  std::string lower_revision;  ///< ...of this revision, kept in `rescued`; empty: of the base
};

struct EntryRow {
  std::uint64_t parent = 0;
  std::string name;
  std::uint64_t ino = 0;  ///< 0: a whiteout
};

/// A published file that a row still refers to and that the base no longer holds.
struct RescuedRow {
  std::string revision, project, tx;
  std::string path;
  FileEntry entry;
};

class Rows;

/// One transaction. Rolls back unless committed; what was asked for after_commit() then happens not.
class Batch {
 public:
  Batch(Batch&& other) noexcept : rows_(std::exchange(other.rows_, nullptr)), then_(std::move(other.then_)) {}
  Batch& operator=(Batch&&) = delete;
  ~Batch();
  /// Changes of memory that mirror the database. They must not fail.
  void after_commit(std::function<void()> action) { then_.push_back(std::move(action)); }
  [[nodiscard]] Status commit();

 private:
  friend class Rows;
  explicit Batch(Rows& rows) : rows_(&rows) {}
  Rows* rows_;
  std::vector<std::function<void()>> then_;
};

class Rows {
 public:
  /// Creates the schema where the database is new, and brings an older one up to date. `not_supported` for one that a
  /// newer version wrote.
  static Result<std::unique_ptr<Rows>> open(const std::string& path);

  [[nodiscard]] Result<Batch> begin();
  /// Makes what was committed safe from a power loss. May run beside other calls.
  [[nodiscard]] Status sync();

  /// SQLite's log of what was committed and is not in the database yet.
  [[nodiscard]] const std::string& log_path() const { return log_path_; }
  /// Brings the log into the database and gives its room back.
  [[nodiscard]] Status empty_log() { return database_.execute("PRAGMA wal_checkpoint(TRUNCATE)"); }

  [[nodiscard]] Status put_inode(const InodeRow& row);
  [[nodiscard]] Status drop_inode(std::uint64_t ino);
  [[nodiscard]] Status put_entry(std::uint64_t parent, std::string_view name, std::uint64_t ino);
  [[nodiscard]] Status drop_entry(std::uint64_t parent, std::string_view name);
  [[nodiscard]] Status drop_whiteouts(std::uint64_t parent);
  [[nodiscard]] Status touch(std::uint64_t ino, WallTime mtime, WallTime ctime);
  [[nodiscard]] Status clear_opaque();
  [[nodiscard]] Status put_rescued(const RescuedRow& row);
  /// Drops those that no row refers to.
  [[nodiscard]] Status drop_unused_rescued();
  [[nodiscard]] Status put_value(std::string_view key, std::string_view value);
  [[nodiscard]] Status drop_value(std::string_view key);
  [[nodiscard]] Status put_time(std::string_view path, WallTime time);
  [[nodiscard]] Status drop_time(std::string_view path);
  [[nodiscard]] Status put_pending(const FrozenFile& file);
  [[nodiscard]] Status put_pending_deletion(std::string_view path);
  [[nodiscard]] Status drop_pending();

  [[nodiscard]] Result<std::vector<InodeRow>> inodes();
  [[nodiscard]] Result<std::vector<EntryRow>> entries();
  [[nodiscard]] Result<std::vector<RescuedRow>> rescued();
  [[nodiscard]] Result<std::optional<std::string>> value(std::string_view key);
  [[nodiscard]] Result<std::vector<std::pair<std::string, WallTime>>> times();
  [[nodiscard]] Result<std::vector<FrozenFile>> pending();
  [[nodiscard]] Result<std::vector<std::string>> pending_deletions();
  [[nodiscard]] Status check_integrity() { return database_.check_integrity(); }

 private:
  friend class Batch;
  Rows(Database database, std::string log_path) : database_(std::move(database)), log_path_(std::move(log_path)) {}
  [[nodiscard]] Status create_schema();
  [[nodiscard]] Status upgrade(std::int64_t from);
  [[nodiscard]] Status prepare();

  Database database_;
  const std::string log_path_;
  std::atomic<std::uint64_t> committed_ = 0, synced_ = 0;  ///< transactions
  Statement begin_, commit_, rollback_;
  Statement put_inode_, drop_inode_, put_entry_, drop_entry_, drop_whiteouts_, touch_;
};

}  // namespace playfs::stage
