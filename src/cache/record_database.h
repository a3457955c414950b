// The database of a RecordIndex: its schema, its statements, and a connection that mends itself. For the room's own
// use.
#pragma once

#include <sys/stat.h>

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
  Statement select_list, top_of_list, insert_listed, clear_list;

  static Result<RecordDatabase> open(const std::string& path);
  /// Bytes of the pages that are in use.
  Result<std::uint64_t> used_bytes();

 private:
  Status prepare_all();
};

/// A connection that is opened when it is needed, and anew where the database is damaged or was deleted. Thread-safe.
class RecordChannel {
 public:
  explicit RecordChannel(std::string directory);

  /// Runs `work` on the connection, if one can be had. Not done is not done: the reason goes to the log.
  void attempt(const std::function<Status(RecordDatabase&)>& work) PLAYFS_EXCLUDES(mutex_);

 private:
  void open_database() PLAYFS_REQUIRES(mutex_);
  bool is_gone() const PLAYFS_REQUIRES(mutex_);
  void warn(const Error& error) PLAYFS_REQUIRES(mutex_);

  const std::string directory_;
  const std::string path_;
  Mutex mutex_;
  std::optional<RecordDatabase> connection_ PLAYFS_GUARDED_BY(mutex_);
  std::string told_ PLAYFS_GUARDED_BY(mutex_);  ///< the last failure, until something succeeds
  struct stat opened_ PLAYFS_GUARDED_BY(mutex_) = {};
};

/// Removes the database in `directory`. Others who have it open keep what they have until they notice that it is gone.
void remove_record_database(const std::string& directory);

}  // namespace playfs::cache
