// The database of a RecordIndex: schema, statements, and a self-repairing connection. Internal to this module.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/sqlite.h"

namespace playfs::cache {

/// The database with its prepared statements. One thread at a time.
struct RecordDatabase {
  explicit RecordDatabase(Database opened) : database(std::move(opened)) {}
  Database database;
  Statement select_record, upsert_record, delete_record, touch_record;
  Statement select_content, upsert_content;
  Statement select_list, select_owned, select_listed, select_named, top_of_list, insert_listed, clear_list;
  Statement select_whole, begin_whole, set_whole;
  std::uint64_t list_rows_read = 0;

  static Result<RecordDatabase> open(const std::string& path);
  /// The text of `select_owned`. It names its index, because SQLite would take the primary key, which has the order,
  /// and read the whole list.
  static std::string owned_query();
  /// Bytes of the pages in use.
  Result<std::uint64_t> used_bytes();

 private:
  Status prepare_all();
};

/// A connection opened on demand, and reopened if the database is damaged or deleted. Thread-safe.
class RecordChannel {
 public:
  /// `patience`: how long to wait for another process's lock. After a timeout, attempts do not wait until one succeeds
  /// again.
  RecordChannel(std::string directory, std::chrono::milliseconds patience);

  /// Runs `work` on the connection, possibly several times. If it was not done, trouble() says why, too.
  Status attempt(const std::function<Status(RecordDatabase&)>& work) PLAYFS_EXCLUDES(mutex_);

  /// How many rows of lists were read through it.
  [[nodiscard]] std::uint64_t list_rows_read() const { return list_rows_read_; }
  /// Why the last attempt failed, if it did.
  [[nodiscard]] std::optional<Error> trouble() const PLAYFS_EXCLUDES(telling_);

 private:
  Status try_once(const std::function<Status(RecordDatabase&)>& work) PLAYFS_EXCLUDES(mutex_);
  Status open_database() PLAYFS_REQUIRES(mutex_);
  bool is_gone() const PLAYFS_REQUIRES(mutex_);
  void note(const Error& error) PLAYFS_EXCLUDES(telling_);

  const std::string directory_;
  const std::string path_;
  const std::chrono::milliseconds patience_;
  std::atomic<std::uint64_t> list_rows_read_ = 0;
  std::atomic<bool> is_locked_ = false;  ///< a wait has timed out
  mutable Mutex telling_;                ///< never held with `mutex_`, which is held during work
  std::optional<Error> trouble_ PLAYFS_GUARDED_BY(telling_);
  Mutex mutex_;
  std::optional<RecordDatabase> connection_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Error> unopened_ PLAYFS_GUARDED_BY(mutex_);                     ///< why it could not be opened
  std::chrono::steady_clock::time_point not_before_ PLAYFS_GUARDED_BY(mutex_);  ///< when to retry that
  struct stat opened_ PLAYFS_GUARDED_BY(mutex_) = {};
};

/// Removes the database in `directory`. Processes that have it open keep using it until they notice.
void remove_record_database(const std::string& directory);

}  // namespace playfs::cache
