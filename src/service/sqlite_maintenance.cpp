#include "service/sqlite_maintenance.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/fd.h"
#include "base/sqlite.h"
#include "service/closed_store.h"
#include "service/record_check.h"
#include "service/sqlite_schema.h"

namespace playfs::service {

namespace {

/// Does not create a missing file.
Result<Database> open_existing(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return fail(error_from_errno(errno, path));
  return Database::open(path, Database::Durability::full);
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
  PLAYFS_TRY(const SqliteSite site, require_current_schema(database));
  PLAYFS_CHECK(require_finished(site.closed));
  PLAYFS_TRY(Statement records, database.prepare("SELECT id, collection, created_at, updated_at, fields, belongs_to"
                                                 " FROM records ORDER BY position"));
  std::uint64_t count = 0;
  for (std::int64_t previous = 0;; previous = records.integer(2), ++count) {
    PLAYFS_TRY(bool row, records.step());
    if (!row) return count;
    PLAYFS_CHECK(check_record(
        {records.text(0), records.text(1), records.integer(2), records.integer(3), records.text(4), records.text(5)},
        previous));
  }
}

}  // namespace playfs::service
