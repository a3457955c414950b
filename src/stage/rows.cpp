#include "stage/rows.h"

#include "stage/entry_codec.h"

namespace playfs::stage {

namespace {

constexpr std::int64_t kVersion = 2;

// Names are blobs: a local name may be any bytes. Columns of content: spool, or lower_path, or neither (empty, or
// not a file); a row with both is left to a later version that copies up piece by piece.
constexpr const char* kSchema = R"(
CREATE TABLE value (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE inode (
  ino INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL,
  permissions INTEGER NOT NULL,
  uid INTEGER NOT NULL,
  gid INTEGER NOT NULL,
  atime INTEGER NOT NULL,
  mtime INTEGER NOT NULL,
  ctime INTEGER NOT NULL,
  spool INTEGER,
  target BLOB,
  opaque INTEGER NOT NULL,
  lower_path TEXT,
  lower_revision TEXT,
  device INTEGER);
CREATE TABLE entry (parent INTEGER NOT NULL, name BLOB NOT NULL, ino INTEGER, PRIMARY KEY (parent, name)) WITHOUT ROWID;
CREATE TABLE rescued (
  revision TEXT NOT NULL, path TEXT NOT NULL, project TEXT NOT NULL, tx TEXT NOT NULL, entry BLOB NOT NULL,
  PRIMARY KEY (revision, path)) WITHOUT ROWID;
CREATE TABLE path_time (path TEXT PRIMARY KEY, mtime INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pending_file (
  path TEXT PRIMARY KEY, mode INTEGER NOT NULL, hash TEXT, size INTEGER NOT NULL, entry BLOB, spool INTEGER NOT NULL,
  target BLOB) WITHOUT ROWID;
CREATE TABLE pending_deletion (path TEXT PRIMARY KEY) WITHOUT ROWID;
)";

std::int64_t signed_of(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::uint64_t unsigned_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

void bind_number_or_null(Statement& statement, int index, std::uint64_t value) {
  if (value == 0) statement.bind_null(index);
  else statement.bind(index, signed_of(value));
}

void bind_text_or_null(Statement& statement, int index, std::string_view value) {
  if (value.empty()) statement.bind_null(index);
  else statement.bind(index, value);
}

Error damaged(std::string_view what) {
  return Error{ErrorCode::corrupt, "the stage's database is damaged: " + std::string(what), {}, std::nullopt, 0, {}};
}

}  // namespace

Batch::~Batch() {
  // Nothing can be done about a rollback that fails; the next BEGIN reports it.
  if (rows_) static_cast<void>(rows_->rollback_.run());
}

Status Batch::commit() {
  PLAYFS_CHECK(rows_->commit_.run());
  ++rows_->committed_;
  rows_ = nullptr;
  for (auto& action : then_) action();
  return {};
}

Result<std::unique_ptr<Rows>> Rows::open(const std::string& path) {
  PLAYFS_TRY(Database database, Database::open(path, Database::Durability::normal));
  std::unique_ptr<Rows> rows(new Rows(std::move(database), path + "-wal"));
  PLAYFS_TRY(Statement select, rows->database_.prepare("PRAGMA user_version"));
  PLAYFS_TRY(bool row, select.step());
  std::int64_t version = row ? select.integer(0) : 0;
  select.reset();
  if (version > kVersion)
    return fail(ErrorCode::not_supported, path + " was written by a newer version of playfs",
                "use that version, or publish or discard its changes there first");
  if (version == 0) PLAYFS_CHECK(rows->create_schema());
  else if (version < kVersion) PLAYFS_CHECK(rows->upgrade(version));
  PLAYFS_CHECK(rows->prepare());
  return rows;
}

Status Rows::create_schema() {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  PLAYFS_CHECK(database_.execute(kSchema));
  PLAYFS_CHECK(database_.execute("PRAGMA user_version = " + std::to_string(kVersion)));
  return transaction.commit();
}

Status Rows::upgrade(std::int64_t from) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  if (from < 2) PLAYFS_CHECK(database_.execute("ALTER TABLE inode ADD COLUMN device INTEGER"));
  PLAYFS_CHECK(database_.execute("PRAGMA user_version = " + std::to_string(kVersion)));
  return transaction.commit();
}

Status Rows::prepare() {
  // The stage's own lock keeps others out, so SQLite need not ask the kernel for one at every transaction.
  // A checkpoint syncs: rather a longer log than a pause every few hundred operations.
  PLAYFS_CHECK(database_.execute("PRAGMA locking_mode = EXCLUSIVE; PRAGMA wal_autocheckpoint = 4000"));
  const std::pair<Statement*, const char*> statements[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&rollback_, "ROLLBACK"},
      {&put_inode_, "INSERT OR REPLACE INTO inode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&drop_inode_, "DELETE FROM inode WHERE ino = ?"},
      {&put_entry_, "INSERT OR REPLACE INTO entry VALUES (?, ?, ?)"},
      {&drop_entry_, "DELETE FROM entry WHERE parent = ? AND name = ?"},
      {&drop_whiteouts_, "DELETE FROM entry WHERE parent = ? AND ino IS NULL"},
      {&touch_, "UPDATE inode SET mtime = ?, ctime = ? WHERE ino = ?"},
  };
  for (auto [statement, sql] : statements) {
    PLAYFS_TRY(*statement, database_.prepare(sql));
  }
  return {};
}

Result<Batch> Rows::begin() {
  PLAYFS_CHECK(begin_.run());
  return Batch(*this);
}

Status Rows::sync() {
  std::uint64_t committed = committed_;
  if (synced_ >= committed) return {};
  PLAYFS_CHECK(database_.sync());
  for (std::uint64_t seen = synced_; seen < committed && !synced_.compare_exchange_weak(seen, committed);) {
  }
  return {};
}

Status Rows::put_inode(const InodeRow& row) {
  put_inode_.bind(1, signed_of(row.ino)).bind(2, static_cast<std::int64_t>(row.kind));
  put_inode_.bind(3, std::int64_t{row.metadata.permissions}).bind(4, std::int64_t{row.metadata.uid});
  put_inode_.bind(5, std::int64_t{row.metadata.gid}).bind(6, row.metadata.atime.nanoseconds);
  put_inode_.bind(7, row.metadata.mtime.nanoseconds).bind(8, row.metadata.ctime.nanoseconds);
  bind_number_or_null(put_inode_, 9, row.spool);
  if (row.target.empty()) put_inode_.bind_null(10);
  else put_inode_.bind_blob(10, row.target);
  put_inode_.bind(11, std::int64_t{row.opaque});
  bind_text_or_null(put_inode_, 12, row.lower_path);
  bind_text_or_null(put_inode_, 13, row.lower_revision);
  bind_number_or_null(put_inode_, 14, row.device);
  return put_inode_.run();
}

Status Rows::drop_inode(std::uint64_t ino) { return drop_inode_.bind(1, signed_of(ino)).run(); }

Status Rows::put_entry(std::uint64_t parent, std::string_view name, std::uint64_t ino) {
  put_entry_.bind(1, signed_of(parent)).bind_blob(2, name);
  bind_number_or_null(put_entry_, 3, ino);
  return put_entry_.run();
}

Status Rows::drop_entry(std::uint64_t parent, std::string_view name) {
  return drop_entry_.bind(1, signed_of(parent)).bind_blob(2, name).run();
}

Status Rows::drop_whiteouts(std::uint64_t parent) { return drop_whiteouts_.bind(1, signed_of(parent)).run(); }

Status Rows::touch(std::uint64_t ino, WallTime mtime, WallTime ctime) {
  return touch_.bind(1, mtime.nanoseconds).bind(2, ctime.nanoseconds).bind(3, signed_of(ino)).run();
}

Status Rows::clear_opaque() { return database_.execute("UPDATE inode SET opaque = 0 WHERE opaque <> 0"); }

Status Rows::put_rescued(const RescuedRow& row) {
  PLAYFS_TRY(Statement put, database_.prepare("INSERT OR REPLACE INTO rescued VALUES (?, ?, ?, ?, ?)"));
  put.bind(1, row.revision).bind(2, row.path).bind(3, row.project).bind(4, row.tx);
  return put.bind_blob(5, encode_entry(row.entry)).run();
}

Status Rows::drop_unused_rescued() {
  return database_.execute(
      "DELETE FROM rescued WHERE NOT EXISTS (SELECT 1 FROM inode WHERE lower_revision = rescued.revision AND "
      "lower_path = rescued.path)");
}

Status Rows::put_value(std::string_view key, std::string_view value) {
  PLAYFS_TRY(Statement put, database_.prepare("INSERT OR REPLACE INTO value VALUES (?, ?)"));
  return put.bind(1, key).bind_blob(2, value).run();
}

Status Rows::drop_value(std::string_view key) {
  PLAYFS_TRY(Statement drop, database_.prepare("DELETE FROM value WHERE key = ?"));
  return drop.bind(1, key).run();
}

Status Rows::put_time(std::string_view path, WallTime time) {
  PLAYFS_TRY(Statement put, database_.prepare("INSERT OR REPLACE INTO path_time VALUES (?, ?)"));
  return put.bind(1, path).bind(2, time.nanoseconds).run();
}

Status Rows::drop_time(std::string_view path) {
  PLAYFS_TRY(Statement drop, database_.prepare("DELETE FROM path_time WHERE path = ?"));
  return drop.bind(1, path).run();
}

Status Rows::put_pending(const FrozenFile& file) {
  PLAYFS_TRY(Statement put, database_.prepare("INSERT INTO pending_file VALUES (?, ?, ?, ?, ?, ?, ?)"));
  put.bind(1, file.path).bind(2, static_cast<std::int64_t>(file.mode)).bind(4, signed_of(file.size));
  if (file.published) put.bind_null(3).bind_blob(5, encode_entry(*file.published));
  else put.bind(3, file.hash.hex()).bind_null(5);
  return put.bind(6, signed_of(file.spool)).bind_blob(7, file.target).run();
}

Status Rows::put_pending_deletion(std::string_view path) {
  PLAYFS_TRY(Statement put, database_.prepare("INSERT INTO pending_deletion VALUES (?)"));
  return put.bind(1, path).run();
}

Status Rows::drop_pending() { return database_.execute("DELETE FROM pending_file; DELETE FROM pending_deletion"); }

Result<std::vector<InodeRow>> Rows::inodes() {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT * FROM inode"));
  std::vector<InodeRow> rows;
  for (;;) {
    PLAYFS_TRY(bool more, select.step());
    if (!more) return rows;
    InodeRow row;
    row.ino = unsigned_of(select.integer(0));
    std::int64_t kind = select.integer(1);
    if (kind < 0 || kind > static_cast<std::int64_t>(Kind::block_device))
      return fail(damaged("a file of no known kind"));
    row.kind = static_cast<Kind>(kind);
    row.metadata.permissions = static_cast<unsigned>(select.integer(2));
    row.metadata.uid = static_cast<uid_t>(select.integer(3));
    row.metadata.gid = static_cast<gid_t>(select.integer(4));
    row.metadata.atime.nanoseconds = select.integer(5);
    row.metadata.mtime.nanoseconds = select.integer(6);
    row.metadata.ctime.nanoseconds = select.integer(7);
    row.spool = unsigned_of(select.integer(8));
    row.target = select.text(9);
    row.opaque = select.integer(10) != 0;
    row.lower_path = select.text(11);
    row.lower_revision = select.text(12);
    row.device = unsigned_of(select.integer(13));
    rows.push_back(std::move(row));
  }
}

Result<std::vector<EntryRow>> Rows::entries() {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT parent, name, ino FROM entry"));
  std::vector<EntryRow> rows;
  for (;;) {
    PLAYFS_TRY(bool more, select.step());
    if (!more) return rows;
    rows.push_back({unsigned_of(select.integer(0)), std::string(select.text(1)), unsigned_of(select.integer(2))});
  }
}

Result<std::vector<RescuedRow>> Rows::rescued() {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT revision, path, project, tx, entry FROM rescued"));
  std::vector<RescuedRow> rows;
  for (;;) {
    PLAYFS_TRY(bool more, select.step());
    if (!more) return rows;
    auto entry = decode_entry(select.text(4));
    if (!entry) return fail(damaged("an entry that cannot be read"));
    RescuedRow row;
    row.revision = select.text(0);
    row.path = select.text(1);
    row.project = select.text(2);
    row.tx = select.text(3);
    row.entry = std::move(*entry);
    rows.push_back(std::move(row));
  }
}

Result<std::optional<std::string>> Rows::value(std::string_view key) {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT value FROM value WHERE key = ?"));
  PLAYFS_TRY(bool found, select.bind(1, key).step());
  if (!found) return std::optional<std::string>();
  return std::optional<std::string>(select.text(0));
}

Result<std::vector<std::pair<std::string, WallTime>>> Rows::times() {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT path, mtime FROM path_time"));
  std::vector<std::pair<std::string, WallTime>> rows;
  for (;;) {
    PLAYFS_TRY(bool more, select.step());
    if (!more) return rows;
    rows.emplace_back(select.text(0), WallTime{select.integer(1)});
  }
}

Result<std::vector<FrozenFile>> Rows::pending() {
  PLAYFS_TRY(Statement select,
             database_.prepare("SELECT path, mode, hash, size, entry, spool, target FROM pending_file ORDER BY path"));
  std::vector<FrozenFile> files;
  for (;;) {
    PLAYFS_TRY(bool more, select.step());
    if (!more) return files;
    FrozenFile file;
    file.path = select.text(0);
    std::int64_t mode = select.integer(1);
    if (mode < 0 || mode > static_cast<std::int64_t>(FileMode::symlink))
      return fail(damaged("a file of no known mode"));
    file.mode = static_cast<FileMode>(mode);
    file.size = unsigned_of(select.integer(3));
    if (select.is_null(4)) {
      auto hash = ContentHash::parse(select.text(2));
      if (!hash) return fail(damaged("a pending file without a hash"));
      file.hash = *hash;
    } else {
      file.published = decode_entry(select.text(4));
      if (!file.published) return fail(damaged("an entry that cannot be read"));
    }
    file.spool = unsigned_of(select.integer(5));
    file.target = select.text(6);
    files.push_back(std::move(file));
  }
}

Result<std::vector<std::string>> Rows::pending_deletions() {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT path FROM pending_deletion ORDER BY path"));
  std::vector<std::string> paths;
  for (;;) {
    PLAYFS_TRY(bool more, select.step());
    if (!more) return paths;
    paths.emplace_back(select.text(0));
  }
}

}  // namespace playfs::stage
