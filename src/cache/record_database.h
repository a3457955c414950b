// The database of a RecordIndex: its schema, its statements, and a connection that mends itself. For the room's own
// use.
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

/// The database with its statements, which are prepared once. One thread at a time.
struct RecordDatabase {
  Database database;
  Statement select_record, upsert_record, delete_record, touch_record;
  Statement select_content, upsert_content;
  Statement select_list, select_listed, top_of_list, insert_listed, clear_list;
  Statement select_whole, upsert_whole, clear_whole;

  static Result<RecordDatabase> open(const std::string& path);
  /// Bytes of the pages that are in use.
  Result<std::uint64_t> used_bytes();

 private:
  Status prepare_all();
};

/// A connection that is opened when it is needed, and anew where the database is damaged or was deleted. Thread-safe.
class RecordChannel {
 public:
  /// How long another process may have the database locked before this goes on without it. Once that was too long it is
  /// only tried, and not waited for, until it can be had again.
  RecordChannel(std::string directory, std::chrono::milliseconds patience);

  /// Runs `work` on the connection, if one can be had, perhaps several times. False where it was not done: then there
  /// is trouble().
  bool attempt(const std::function<Status(RecordDatabase&)>& work) PLAYFS_EXCLUDES(mutex_);

  /// Why the last attempt failed; nothing where it did not.
  [[nodiscard]] std::optional<Error> trouble() const PLAYFS_EXCLUDES(telling_);

 private:
  Status try_once(const std::function<Status(RecordDatabase&)>& work) PLAYFS_EXCLUDES(mutex_);
  Status open_database() PLAYFS_REQUIRES(mutex_);
  bool is_gone() const PLAYFS_REQUIRES(mutex_);
  void note(const Error& error) PLAYFS_EXCLUDES(telling_);

  const std::string directory_;
  const std::string path_;
  const std::chrono::milliseconds patience_;
  std::atomic<bool> is_locked_ = false;  ///< for longer than one waits
  mutable Mutex telling_;                ///< never with the other one, which is held while there is work
  std::optional<Error> trouble_ PLAYFS_GUARDED_BY(telling_);
  Mutex mutex_;
  std::optional<RecordDatabase> connection_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Error> unopened_ PLAYFS_GUARDED_BY(mutex_);                     ///< why it could not be opened
  std::chrono::steady_clock::time_point not_before_ PLAYFS_GUARDED_BY(mutex_);  ///< that is tried again
  struct stat opened_ PLAYFS_GUARDED_BY(mutex_) = {};
};

/// Removes the database in `directory`. Others who have it open keep what they have until they notice that it is gone.
void remove_record_database(const std::string& directory);

}  // namespace playfs::cache
