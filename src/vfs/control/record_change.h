// Changing a record by writing JSON to the file that shows it.
//
// The file may show an older version than the service has, so the service is asked first. What differs from its record
// is sent, as a PATCH, and fields that are left out are kept. A document with `updated_at` is an edited copy of what
// the file showed: fields that it did not edit stay as others have left them meanwhile. A copy of another version, or
// of a field that others have changed as well, is refused.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "model/records.h"
#include "vfs/async.h"
#include "vfs/control/request_text.h"
#include "vfs/shown_text.h"

namespace playfs::vfs {

class Mount;

/// A record as a file shows it.
struct ShownRecord {
  std::string collection, id;
  ShownText text;
  std::string called{};  ///< the record's name, if the file's is that instead of its id
};

/// The record as the changes made through one open file have left it. Thread-safe; its lock is a leaf.
class OwnChanges {
 public:
  /// nullopt before the first: the record is as the file shows it.
  [[nodiscard]] std::optional<Record> record() const PLAYFS_EXCLUDES(mutex_);
  void set(Record record) PLAYFS_EXCLUDES(mutex_);
  /// The name that they gave the record; nullopt: none.
  [[nodiscard]] std::optional<std::string> name() const PLAYFS_EXCLUDES(mutex_);
  void set_name(std::string name) PLAYFS_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::optional<Record> record_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<std::string> name_ PLAYFS_GUARDED_BY(mutex_);
};

/// Answers once the service has the change and the next lookup of the file finds it. Without a difference, sends
/// nothing.
Async<RequestAnswer> change_record(Mount& mount, OperationPtr op, ShownRecord shown, std::shared_ptr<OwnChanges> own,
                                   std::string text);

/// The body of a PATCH that makes of `now`, the service's record, what was `written` to a file that showed `before`.
/// Ignores what only the service sets (id, created_at, updated_at, status). Fails with `stale` if `written` is a copy
/// of another version, or changes what others have changed. Refuses a dry run: the file shows the record, so it has no
/// place for a plan. If a message's body changes, its mentions are derived anew.
Result<JsonObject> changed_fields(const std::string& collection, const Record& before, const Record& now,
                                  const std::string& written);

}  // namespace playfs::vfs
