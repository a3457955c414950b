#include "stage/store/repair.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/fd.h"
#include "base/held_lock.h"
#include "base/sqlite_copy.h"
#include "base/text.h"
#include "stage/store/begun.h"
#include "stage/store/lost_found.h"
#include "stage/store/row_store.h"
#include "stage/store/snapshots.h"
#include "stage/store/spool.h"

namespace playfs::stage {

namespace {

bool exists(const std::string& path) {
  struct stat attributes {};
  return lstat(path.c_str(), &attributes) == 0;
}

/// The lock that Stage::open() takes. Without a lock file no process has the stage open; a check does not create one.
Result<HeldLock> lock_stage(const std::string& directory, bool to_change) {
  const std::string path = directory + "/lock";
  UniqueFd fd(open(path.c_str(), (to_change ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd && errno == ENOENT && !to_change) return HeldLock();
  if (!fd) return fail(error_from_errno(errno, "open " + path));
  if (flock(fd.get(), (to_change ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return HeldLock(std::move(fd));
  if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "lock " + path));
  return fail(ErrorCode::busy, read_at(fd.get(), 0, 20).value_or(""));
}

Error corrupt(std::string what) { return Error{ErrorCode::corrupt, std::move(what)}; }

/// What the database and the pending operations say about the spool.
struct Named {
  std::unordered_set<std::uint64_t> spool;
  std::unordered_set<std::uint64_t> given_up;
  std::unordered_map<std::uint64_t, std::uint64_t> sizes;  ///< minimum size of each spool file
  SpoolNames names;
  std::vector<FrozenFile> pending;
  std::string pending_tx;
  LogContent log;
  bool is_begun = false;
};

Status check_names(const std::vector<InodeRow>& inodes, const std::vector<EntryRow>& entries, const std::string& root) {
  std::unordered_map<std::uint64_t, Kind> kinds;
  bool has_root = false;
  for (const InodeRow& row : inodes) {
    kinds.emplace(row.ino, row.kind);
    if (std::to_string(row.ino) == root) has_root = row.kind == Kind::directory;
    if (row.kind == Kind::file && row.lower_path.empty() && row.spool == 0)
      return fail(corrupt("a file without content"));
  }
  if (!has_root) return fail(corrupt("no root directory"));
  for (const EntryRow& row : entries) {
    auto parent = kinds.find(row.parent);
    if (parent == kinds.end() || parent->second != Kind::directory) return fail(corrupt("a name without a directory"));
    if (row.ino != 0 && !kinds.contains(row.ino)) return fail(corrupt("a name without a file"));
  }
  return {};
}

Result<DatabaseCopy> copy_database(const std::string& directory) {
  PLAYFS_TRY(DatabaseCopy copy, DatabaseCopy::make(directory + Rows::kDatabase));
  for (const char* file : {OperationsLog::kFiles[0], OperationsLog::kFiles[1], kBegun}) {
    std::error_code problem;
    if (!exists(directory + file)) continue;
    std::filesystem::copy_file(directory + file, copy.directory() + file, problem);
    if (problem) return fail(error_from_errno(problem.value(), "copy " + directory + file));
  }
  return copy;
}

/// The part of the log that is not in the database.
Result<LogContent> read_log(const std::string& directory) {
  PLAYFS_TRY(Tables stored, Tables::open(directory + Rows::kDatabase, false));
  PLAYFS_TRY(auto state, stored.log_state());
  PLAYFS_TRY(auto log, OperationsLog::open(directory, state.stage_id));
  return log->read(state.checkpointed);
}

/// Reads every row, as opening the stage does, except for the base, which is not available here.
Result<Named> read_database(const std::string& directory) {
  Named named;
  PLAYFS_TRY(named.log, read_log(directory));
  PLAYFS_TRY(auto rows, Rows::open(directory, Rows::Damage::keep_prefix));
  Tables& stored = rows->stored();
  PLAYFS_CHECK(stored.check_integrity());
  PLAYFS_TRY(auto inodes, stored.inodes());
  PLAYFS_TRY(auto entries, stored.entries());
  PLAYFS_TRY([[maybe_unused]] auto rescued, stored.rescued());
  PLAYFS_TRY([[maybe_unused]] auto times, stored.times());
  PLAYFS_TRY([[maybe_unused]] auto deletions, stored.pending_deletions());
  PLAYFS_TRY(named.pending, stored.pending());
  PLAYFS_TRY(auto pending_tx, stored.value("pending_tx"));
  named.pending_tx = pending_tx.value_or("");
  PLAYFS_TRY(auto base, stored.value("base"));
  PLAYFS_TRY(auto root, stored.value("root"));
  PLAYFS_TRY(auto given_up, stored.given_up());
  named.given_up.insert(given_up.begin(), given_up.end());
  // Without a base the stage was never begun; the next mount begins it.
  named.is_begun = base || !inodes.empty();
  if (named.is_begun) PLAYFS_CHECK(check_names(inodes, entries, root.value_or("")));
  PLAYFS_TRY(auto sizes, stored.sizes());
  std::unordered_map<std::uint64_t, std::uint64_t> least;
  for (const SizeRow& row : sizes) least.emplace(row.spool, row.least(boot_of_system()));
  for (const EntryRow& row : entries) named.names.add(row);
  for (const InodeRow& row : inodes) {
    if (row.spool == 0) continue;
    named.spool.insert(row.spool);
    named.names.add_file(row.spool, row.ino);
    if (auto known = least.find(row.spool); known != least.end() && known->second > 0) named.sizes.insert(*known);
  }
  for (const FrozenFile& file : named.pending) {
    if (file.spool != 0) named.spool.insert(file.spool);
  }
  PLAYFS_TRY(auto replacements, stored.replacements());
  for (const ReplacementRow& row : replacements) named.spool.insert(row.old_spool);
  return named;
}

/// Existing spool files. A missing spool counts as empty and is not created.
Result<std::vector<std::uint64_t>> spool_files(const std::string& directory) {
  if (!exists(directory + "/spool")) return std::vector<std::uint64_t>();
  PLAYFS_TRY(auto spool, Spool::open(directory + "/spool", 1));
  return spool->list();
}

void examine_checkpoints(const std::string& directory, StageHealth& health) {
  const Snapshots snapshots(directory);
  for (const Checkpoint& each : snapshots.list()) {
    auto snapshot = snapshots.read(each.id);
    const Status whole = snapshot ? snapshots.check(*snapshot) : fail(snapshot.error());
    if (whole) ++health.checkpoints;
    else health.damaged_checkpoints.push_back(whole.error());
  }
}

/// REQUIRES: the lock is held.
Result<StageHealth> examine_locked(const std::string& directory) {
  StageHealth health;
  examine_checkpoints(directory, health);
  PLAYFS_TRY(auto present, spool_files(directory));
  Named named;
  if (auto there = Rows::check_database(directory); !there) {
    health.database = there.error();
    return health;
  }
  struct stat database {};
  if (lstat((directory + Rows::kDatabase).c_str(), &database) == 0 && database.st_size > 0) {
    PLAYFS_TRY(DatabaseCopy copy, copy_database(directory));
    auto read = read_database(copy.directory());
    if (!read) {
      health.database = read.error();
      if (health.database->code == ErrorCode::no_space) return fail(*health.database);  // the copy's disk is full
      // The copy is readable as a file but not as a stage; SQLite's error code for that varies.
      if (health.database->code != ErrorCode::not_supported) health.database->code = ErrorCode::corrupt;
      return health;
    }
    named = std::move(*read);
    if (!named.is_begun && !present.empty()) {
      health.database = corrupt("it records no base");
      return health;
    }
    health.is_log_damaged = named.log.is_damaged;
    health.pending_tx = named.pending_tx;
    health.operations = named.log.records.size();
    health.torn = named.log.torn;
    health.has_changed_last = named.log.has_changed_last;
  }
  auto attributes_of = [&](std::uint64_t number, struct stat& attributes) {
    return lstat((directory + "/spool/" + std::to_string(number)).c_str(), &attributes) == 0;
  };
  for (std::uint64_t number : present) {
    struct stat attributes {};
    if (!named.spool.contains(number)) {
      if (!named.given_up.contains(number)) health.orphans.push_back(number);
    } else if (attributes_of(number, attributes)) {
      ++health.files;
      if (!S_ISREG(attributes.st_mode) || attributes.st_uid != geteuid() || (attributes.st_mode & 0177) != 0)
        health.bad.push_back(number);
    }
  }
  for (const auto& [number, size] : named.sizes) {
    struct stat attributes {};
    if (!attributes_of(number, attributes) || static_cast<std::uint64_t>(attributes.st_size) < size)
      health.gone.push_back(named.names.path_of(number));
  }
  std::sort(health.gone.begin(), health.gone.end());
  for (const FrozenFile& file : named.pending) {
    struct stat attributes {};
    if (file.spool == 0) continue;
    if (!attributes_of(file.spool, attributes) || static_cast<std::uint64_t>(attributes.st_size) != file.size)
      health.lost.push_back(file.path);
  }
  std::sort(health.orphans.begin(), health.orphans.end());
  return health;
}

/// Calls `visit` for all readable rows, from both ends, since a damaged page ends a scan. Rows may come twice.
template <class Visit>
void each_readable(Database& database, const std::string& select, const std::string& order, const Visit& visit) {
  for (const char* direction : {" ASC", " DESC"}) {
    auto statement = database.prepare(select + " ORDER BY " + order + direction);
    if (!statement) return;
    for (auto more = statement->step(); more && *more; more = statement->step()) visit(*statement);
  }
}

void read_rows(const std::string& path, SpoolNames& found) {
  auto database = Database::open(path, Database::Durability::normal);
  if (!database) return;
  each_readable(*database, "SELECT parent, name, ino FROM entry WHERE ino IS NOT NULL", "parent", [&](Statement& row) {
    found.add(EntryRow{static_cast<std::uint64_t>(row.integer(0)), std::string(row.text(1)),
                       static_cast<std::uint64_t>(row.integer(2))});
  });
  each_readable(*database, "SELECT ino, spool FROM inode WHERE spool IS NOT NULL", "ino", [&](Statement& row) {
    found.add_file(static_cast<std::uint64_t>(row.integer(1)), static_cast<std::uint64_t>(row.integer(0)));
  });
}

Status write_names(const std::string& directory, const std::string& folder) {
  SpoolNames found;
  if (exists(directory + Rows::kDatabase)) {
    PLAYFS_TRY(DatabaseCopy copy, DatabaseCopy::make(directory + Rows::kDatabase));
    read_rows(copy.path(), found);
  }
  found.add_log(directory);
  return write_file_atomically(folder + "/names", found.list());
}

Status set_aside(const std::string& directory, const std::string& folder) {
  PLAYFS_CHECK(write_names(directory, folder));
  // The spool first: a stage without a database sweeps its spool. The database before its log: whatever an interruption
  // leaves still counts as damaged.
  for (const char* name : {"/spool", "/publication", "/journal", "/stage.db", "/stage.db-wal", "/stage.db-shm",
                           OperationsLog::kFiles[0], OperationsLog::kFiles[1], kBegun})
    PLAYFS_CHECK(move_to(directory + name, folder + name));
  return {};
}

/// Copies the log and the list of names, then applies the operations before the damage.
Status mend_log(const std::string& directory, const std::string& folder) {
  PLAYFS_CHECK(write_names(directory, folder));
  PLAYFS_CHECK(copy_log(directory, folder));
  PLAYFS_TRY(auto rows, Rows::open(directory, Rows::Damage::keep_prefix));
  return rows->start();
}

}  // namespace

bool is_stage(const std::string& directory) {
  return exists(directory + Rows::kDatabase) || exists(directory + "/spool") || is_begun(directory);
}

Result<StageHealth> examine(const std::string& directory) {
  auto lock = lock_stage(directory, false);
  if (lock) return examine_locked(directory);
  if (lock.error().code != ErrorCode::busy) return fail(lock.error());
  StageHealth health;
  health.in_use = true;
  health.holder = lock.error().message;
  return health;
}

Result<std::string> repair(const std::string& directory, const std::string& label) {
  auto lock = lock_stage(directory, true);
  if (!lock) return fail(lock.error().while_doing("repair the stage in " + directory));
  PLAYFS_TRY(const StageHealth health, examine_locked(directory));
  std::string folder;
  if (health.database) {
    if (health.database->code != ErrorCode::corrupt) return folder;
    PLAYFS_TRY(folder, new_lost_folder(directory, label));
    PLAYFS_CHECK(set_aside(directory, folder));
  } else if (!health.orphans.empty() || health.torn > 0) {
    PLAYFS_TRY(folder, new_lost_folder(directory, label));
    if (health.torn > 0) PLAYFS_CHECK(mend_log(directory, folder));
    for (std::uint64_t number : health.orphans)
      PLAYFS_CHECK(move_to(directory + "/spool/" + std::to_string(number), folder + "/" + std::to_string(number)));
  }
  for (std::uint64_t number : health.bad) {
    // Through a descriptor that follows no link; anything but this user's plain file is left alone and reported again.
    const std::string path = directory + "/spool/" + std::to_string(number);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat attributes {};
    if (fd && fstat(fd.get(), &attributes) == 0 && S_ISREG(attributes.st_mode) && fchmod(fd.get(), 0600) != 0)
      return fail(error_from_errno(errno, "chmod " + path));
  }
  if (!folder.empty()) {
    PLAYFS_CHECK(sync_directory(folder));
    PLAYFS_CHECK(sync_directory(directory));
  }
  return folder;
}

}  // namespace playfs::stage
