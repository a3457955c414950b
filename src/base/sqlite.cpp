#include "base/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/private_place.h"

namespace playfs {

namespace {
Error sqlite_error(int result, std::string what) {
  ErrorCode code = ErrorCode::io;
  switch (result & 0xff) {
    case SQLITE_FULL: code = ErrorCode::no_space; break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: code = ErrorCode::busy; break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: code = ErrorCode::corrupt; break;
    case SQLITE_READONLY: code = ErrorCode::read_only; break;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH: code = ErrorCode::permission_denied; break;
    case SQLITE_TOOBIG: code = ErrorCode::file_too_big; break;
    case SQLITE_CONSTRAINT: code = ErrorCode::already_exists; break;
    case SQLITE_MISUSE:
    case SQLITE_RANGE: code = ErrorCode::internal; break;
    default: break;
  }
  return Error{code, std::move(what)};
}

Error sqlite_error(sqlite3* handle, int result, std::string_view doing) {
  return sqlite_error(result, std::string(doing) + ": " + (handle ? sqlite3_errmsg(handle) : sqlite3_errstr(result)));
}
}  // namespace

Statement::Statement(Statement&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), bind_error_(std::exchange(other.bind_error_, 0)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(bind_error_, other.bind_error_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(handle_); }

Statement& Statement::bind(int index, std::int64_t value) {
  if (int result = sqlite3_bind_int64(handle_, index, value); result != SQLITE_OK) bind_error_ = result;
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  int result =
      sqlite3_bind_text64(handle_, index, text.empty() ? "" : text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (result != SQLITE_OK) bind_error_ = result;
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  int result = sqlite3_bind_blob64(handle_, index, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  if (result != SQLITE_OK) bind_error_ = result;
  return *this;
}

Statement& Statement::bind_null(int index) {
  if (int result = sqlite3_bind_null(handle_, index); result != SQLITE_OK) bind_error_ = result;
  return *this;
}

Result<bool> Statement::step() {
  if (int result = std::exchange(bind_error_, 0); result != 0) {
    reset();
    return fail(sqlite_error(sqlite3_db_handle(handle_), result, "bind"));
  }
  int result = sqlite3_step(handle_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) {
    sqlite3_reset(handle_);
    return false;
  }
  Error error = sqlite_error(sqlite3_db_handle(handle_), result, "SQLite");
  sqlite3_reset(handle_);
  return fail(std::move(error));
}

Status Statement::run() {
  for (;;) {
    PLAYFS_TRY(bool row, step());
    if (!row) return {};
  }
}

void Statement::reset() {
  sqlite3_reset(handle_);
  bind_error_ = 0;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(handle_, column); }

std::string_view Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(handle_, column);
  int size = sqlite3_column_bytes(handle_, column);
  return bytes ? std::string_view(static_cast<const char*>(bytes), static_cast<std::size_t>(size)) : std::string_view();
}

bool Statement::is_null(int column) const { return sqlite3_column_type(handle_, column) == SQLITE_NULL; }

namespace {
/// How long to wait for a lock held by another connection.
constexpr std::chrono::milliseconds kBusyLimit{10'000};

/// Creates the file here because SQLite would apply the umask, and its journals inherit the database's mode. An
/// existing file is not opened even to inspect it: POSIX locks belong to process and inode, so closing any descriptor
/// would drop the locks of this process's other connections, and the next process to exit would delete their WAL.
Status create_where_missing(const std::string& path) {
  UniqueFd created(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (created) return {};
  if (errno != EEXIST) return fail(error_from_errno(errno, "open " + path));
  for (const char* part : {"", "-wal", "-shm", "-journal"}) PLAYFS_CHECK(keep_file_private(path + part));
  return {};
}
}  // namespace

Result<Database> Database::open(const std::string& path, Durability durability) {
  PLAYFS_CHECK(create_where_missing(path));
  sqlite3* handle = nullptr;
  int result = sqlite3_open_v2(path.c_str(), &handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database database(handle);
  if (result != SQLITE_OK) return fail(sqlite_error(handle, result, "open " + path));
  // Treat the file's schema as untrusted: it may call no unsafe functions, and SQL cannot corrupt the file.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (durability == Durability::none) {
    auto plain = database.execute("PRAGMA mmap_size=0; PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=OFF");
    if (!plain) return fail(plain.error().while_doing(path));
    return database;
  }
  sqlite3_busy_timeout(handle, static_cast<int>(kBusyLimit.count()));
  // Switching to WAL briefly needs an exclusive lock, and the busy timeout does not apply: of two concurrent openers
  // SQLite refuses one at once to avoid a deadlock. A database already in WAL mode needs no lock.
  const std::string settings = std::string("PRAGMA journal_mode=WAL; PRAGMA foreign_keys=ON; PRAGMA synchronous=") +
                               (durability == Durability::full ? "FULL" : "NORMAL");
  const auto end = std::chrono::steady_clock::now() + kBusyLimit;
  auto configured = database.execute(settings);
  while (!configured && configured.error().code == ErrorCode::busy && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    configured = database.execute(settings);
  }
  if (!configured) return fail(configured.error().while_doing(path));
  return database;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      log_(std::move(other.log_)),
      sync_error_(std::move(other.sync_error_)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(log_, other.log_);
  std::swap(sync_error_, other.sync_error_);
  return *this;
}

Database::~Database() { sqlite3_close_v2(handle_); }

Status Database::execute(const std::string& sql) {
  int result = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return fail(sqlite_error(handle_, result, "SQLite"));
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  int result = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &handle,
                                  nullptr);
  if (result != SQLITE_OK) return fail(sqlite_error(handle_, result, sql));
  return Statement(handle);
}

std::int64_t Database::rows_changed() const { return sqlite3_changes64(handle_); }

Status Database::sync() {
  if (sync_error_) return fail(*sync_error_);
  std::string wal = std::string(sqlite3_db_filename(handle_, "main")) + "-wal";
  if (!log_) {
    log_ = UniqueFd(::open(wal.c_str(), O_RDONLY | O_CLOEXEC));
    if (!log_ && errno == ENOENT) return {};
    if (!log_) return fail(error_from_errno(errno, "open " + wal));
  }
  // If it is empty, SQLite has synced the database itself before it emptied it.
  if (struct stat log{}; fstat(log_.get(), &log) == 0 && log.st_size == 0) return {};
  if (fdatasync(log_.get()) == 0) return {};
  sync_error_ = error_from_errno(errno, "fsync " + wal);
  sqlite3_wal_autocheckpoint(handle_, 0);
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return fail(*sync_error_);
}

Status Database::backup_to(const std::string& path) {
  UniqueFd created(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!created) return fail(error_from_errno(errno, "create " + path));
  sqlite3* copy = nullptr;
  int result = sqlite3_open_v2(path.c_str(), &copy, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database target(copy);
  if (result != SQLITE_OK) return fail(sqlite_error(copy, result, "open " + path));
  sqlite3_backup* backup = sqlite3_backup_init(copy, "main", handle_, "main");
  if (!backup) return fail(sqlite_error(copy, sqlite3_errcode(copy), "backup"));
  // One step, one read transaction: concurrent writers cannot restart it.
  sqlite3_backup_step(backup, -1);
  result = sqlite3_backup_finish(backup);
  if (result != SQLITE_OK) return fail(sqlite_error(copy, result, "backup"));
  return {};
}

Status Database::check_integrity() {
  PLAYFS_TRY(Statement check, prepare("PRAGMA integrity_check(1)"));
  PLAYFS_TRY(bool row, check.step());
  if (row && check.text(0) != "ok") return fail(ErrorCode::corrupt, std::string(check.text(0)));
  return {};
}

Result<Transaction> Transaction::begin(Database& database) {
  PLAYFS_CHECK(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // A failed rollback cannot be handled here; the connection's next BEGIN reports it.
  if (database_) static_cast<void>(database_->execute("ROLLBACK"));
}

Status Transaction::commit() {
  PLAYFS_CHECK(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace playfs
