#include "service/sqlite_maintenance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/sqlite.h"
#include "model/json.h"
#include "service/collections.h"
#include "service/record_text.h"
#include "service/sqlite_schema.h"
#include "wire/json.h"

namespace playfs::service {

namespace {

/// Does not create a missing file.
Result<Database> open_existing(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return fail(error_from_errno(errno, path));
  return Database::open(path, Database::Durability::full);
}

Status check_record(const Statement& row, std::int64_t previous_time) {
  std::string name = "record " + std::string(row.text(0));
  if (row.integer(2) <= previous_time) return fail(ErrorCode::corrupt, name + " is older than the one before it");
  if (row.integer(3) < row.integer(2)) return fail(ErrorCode::corrupt, name + " was changed before it was created");
  const Collection* collection = find_collection(row.text(1));
  if (!collection) return fail(ErrorCode::corrupt, name + " is in no collection");
  auto fields = wire::parse_json(row.text(4));
  if (!fields || !fields->object()) return fail(ErrorCode::corrupt, name + " is not a JSON object");
  if (row.text(5) != belonging(*collection, *fields->object()))
    return fail(ErrorCode::corrupt, name + " is filed under the wrong project or thread");
  return {};
}

}  // namespace

Status back_up_store(const std::string& path, const std::string& copy) {
  PLAYFS_TRY(Database database, open_existing(path));
  PLAYFS_CHECK(database.backup_to(copy));
  UniqueFd file(::open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || fsync(file.get()) != 0) return fail(error_from_errno(errno, "sync " + copy));
  auto directory = std::filesystem::path(copy).parent_path();
  return sync_directory(directory.empty() ? "." : directory.string());
}

Result<std::uint64_t> check_store(const std::string& path) {
  PLAYFS_TRY(Database database, open_existing(path));
  PLAYFS_CHECK(database.check_integrity());
  PLAYFS_CHECK(require_current_schema(database));
  PLAYFS_TRY(Statement records, database.prepare("SELECT id, collection, created_at, updated_at, fields, belongs_to"
                                                 " FROM records ORDER BY position"));
  std::uint64_t count = 0;
  for (std::int64_t previous = 0;; previous = records.integer(2), ++count) {
    PLAYFS_TRY(bool row, records.step());
    if (!row) return count;
    PLAYFS_CHECK(check_record(records, previous));
  }
}

}  // namespace playfs::service
