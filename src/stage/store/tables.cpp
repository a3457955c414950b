#include "stage/store/tables.h"

#include "base/random.h"
#include "stage/store/entry_codec.h"

namespace playfs::stage {

namespace {

constexpr std::int64_t kVersion = 6;

// Names are blobs: a local name may be any bytes. Content is in spool, or lower_path, or neither (empty, or not a
// file); a row with both is reserved for a later version that copies up piece by piece.
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
constexpr const char* kGivenUpSchema = "CREATE TABLE given_up (spool INTEGER PRIMARY KEY)";
constexpr const char* kReplacementSchema =
    "CREATE TABLE replacement (spool INTEGER PRIMARY KEY, size INTEGER NOT NULL, boot INTEGER NOT NULL, "
    "old_spool INTEGER NOT NULL, old_path TEXT NOT NULL)";
constexpr const char* kSizeSchema =
    "CREATE TABLE spool_size (spool INTEGER PRIMARY KEY, size INTEGER NOT NULL, boot INTEGER NOT NULL, "
    "synced INTEGER NOT NULL)";
constexpr const char* kLogSchema = "CREATE TABLE operations_log (stage_id INTEGER NOT NULL, folded INTEGER NOT NULL)";

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

Error bad_database(std::string_view what) {
  return Error{ErrorCode::corrupt, "the stage's database is damaged: " + std::string(what)};
}

Status create_log_table(Database& database) {
  PLAYFS_CHECK(database.execute(kLogSchema));
  PLAYFS_TRY(Statement put, database.prepare("INSERT INTO operations_log VALUES (?, 0)"));
  return put.bind(1, signed_of(SystemRandom().next())).run();
}

/// All rows of a query, each as `read` returns it.
template <class Row>
Result<std::vector<Row>> all_rows(Database& database, const char* sql, const auto& read) {
  PLAYFS_TRY(Statement select, database.prepare(sql));
  std::vector<Row> rows;
  for (;;) {
    PLAYFS_TRY(bool more, select.step());
    if (!more) return rows;
    PLAYFS_TRY(Row row, Result<Row>(read(select)));
    rows.push_back(std::move(row));
  }
}

Status run_for_each(Database& database, const char* sql, const std::vector<std::uint64_t>& numbers) {
  if (numbers.empty()) return {};
  PLAYFS_TRY(Statement statement, database.prepare(sql));
  for (std::uint64_t number : numbers) PLAYFS_CHECK(statement.bind(1, signed_of(number)).run());
  return {};
}

}  // namespace

Result<Tables> Tables::open(const std::string& path, bool may_create) {
  PLAYFS_TRY(Database database, Database::open(path, Database::Durability::normal));
  Tables tables(std::move(database));
  PLAYFS_TRY(Statement select, tables.database_.prepare("PRAGMA user_version"));
  PLAYFS_TRY(bool row, select.step());
  std::int64_t version = row ? select.integer(0) : 0;
  select.reset();
  if (version > kVersion)
    return fail(ErrorCode::not_supported, path + " was written by a newer version of playfs",
                "use that version, or publish or discard its changes there first");
  if (version == 0) {
    PLAYFS_TRY(Statement tables_there, tables.database_.prepare("SELECT 1 FROM sqlite_schema"));
    PLAYFS_TRY(bool any, tables_there.step());
    if (any || !may_create) return fail(bad_database("not a database of staged changes"));
    tables_there.reset();
    PLAYFS_CHECK(tables.create_schema());
  }
  if (version != 0 && version < kVersion) PLAYFS_CHECK(tables.upgrade(version));
  PLAYFS_CHECK(tables.prepare());
  return tables;
}

Status Tables::create_schema() {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  PLAYFS_CHECK(database_.execute(kSchema));
  PLAYFS_CHECK(database_.execute(kGivenUpSchema));
  PLAYFS_CHECK(database_.execute(kReplacementSchema));
  PLAYFS_CHECK(database_.execute(kSizeSchema));
  PLAYFS_CHECK(create_log_table(database_));
  PLAYFS_CHECK(database_.execute("PRAGMA user_version = " + std::to_string(kVersion)));
  PLAYFS_CHECK(transaction.commit());
  return sync();  // before there is a log or a spool: beside an empty database they count as damage
}

Status Tables::upgrade(std::int64_t from) {
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  if (from < 2) PLAYFS_CHECK(database_.execute("ALTER TABLE inode ADD COLUMN device INTEGER"));
  if (from < 3) PLAYFS_CHECK(create_log_table(database_));
  if (from < 4) PLAYFS_CHECK(database_.execute(kGivenUpSchema));
  if (from < 5) PLAYFS_CHECK(database_.execute(kReplacementSchema));
  if (from < 6) PLAYFS_CHECK(database_.execute(kSizeSchema));
  PLAYFS_CHECK(database_.execute("PRAGMA user_version = " + std::to_string(kVersion)));
  PLAYFS_CHECK(transaction.commit());
  return sync();  // or a power loss could lose the id, which log records contain
}

Status Tables::prepare() {
  // The stage's own lock keeps others out, so SQLite need not lock the file for every transaction.
  PLAYFS_CHECK(database_.execute("PRAGMA locking_mode = EXCLUSIVE"));
  const std::pair<Statement*, const char*> statements[] = {
      {&put_checkpointed_, "UPDATE operations_log SET folded = ?"},
      {&give_up_, "INSERT OR IGNORE INTO given_up SELECT spool FROM inode WHERE ino = ? AND spool IS NOT NULL"},
      {&give_up_other_,
       "INSERT OR IGNORE INTO given_up SELECT spool FROM inode WHERE ino = ? AND spool IS NOT NULL AND spool <> ?"},
      {&put_inode_, "INSERT OR REPLACE INTO inode VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"},
      {&drop_inode_, "DELETE FROM inode WHERE ino = ?"},
      {&put_entry_, "INSERT OR REPLACE INTO entry VALUES (?, ?, ?)"},
      {&drop_entry_, "DELETE FROM entry WHERE parent = ? AND name = ?"},
      {&drop_whiteouts_, "DELETE FROM entry WHERE parent = ? AND ino IS NULL"},
      {&touch_, "UPDATE inode SET mtime = ?, ctime = ? WHERE ino = ?"},
      {&put_size_, "INSERT OR REPLACE INTO spool_size VALUES (?, ?, ?, ?)"},
  };
  for (auto [statement, sql] : statements) {
    PLAYFS_TRY(*statement, database_.prepare(sql));
  }
  return sync();  // from here on no disk error is missed
}

Result<Tables::LogState> Tables::log_state() {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT stage_id, folded FROM operations_log"));
  PLAYFS_TRY(bool row, select.step());
  if (!row) return fail(bad_database("no record of its operations log"));
  return LogState{unsigned_of(select.integer(0)), unsigned_of(select.integer(1))};
}

Status Tables::apply(const RowChange& change) {
  return std::visit([this](const auto& each) { return run(each); }, change);
}

Status Tables::run(const PutInode& put) {
  const InodeRow& row = put.row;
  if (row.kind == Kind::file)
    PLAYFS_CHECK(give_up_other_.bind(1, signed_of(row.ino)).bind(2, signed_of(row.spool)).run());
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

Status Tables::run(const DropInode& drop) {
  PLAYFS_CHECK(give_up_.bind(1, signed_of(drop.ino)).run());
  return drop_inode_.bind(1, signed_of(drop.ino)).run();
}

Status Tables::run(const PutEntry& put) {
  put_entry_.bind(1, signed_of(put.row.parent)).bind_blob(2, put.row.name);
  bind_number_or_null(put_entry_, 3, put.row.ino);
  return put_entry_.run();
}

Status Tables::run(const DropEntry& drop) {
  return drop_entry_.bind(1, signed_of(drop.parent)).bind_blob(2, drop.name).run();
}

Status Tables::run(const DropWhiteouts& drop) { return drop_whiteouts_.bind(1, signed_of(drop.parent)).run(); }

Status Tables::run(const Touch& touch) {
  return touch_.bind(1, touch.mtime.nanoseconds).bind(2, touch.ctime.nanoseconds).bind(3, signed_of(touch.ino)).run();
}

Status Tables::run(const ClearOpaque&) { return database_.execute("UPDATE inode SET opaque = 0 WHERE opaque <> 0"); }

Status Tables::run(const PutRescued& put) {
  PLAYFS_TRY(Statement statement, database_.prepare("INSERT OR REPLACE INTO rescued VALUES (?, ?, ?, ?, ?)"));
  statement.bind(1, put.row.revision).bind(2, put.row.path).bind(3, put.row.project).bind(4, put.row.tx);
  return statement.bind_blob(5, encode_entry(put.row.entry)).run();
}

Status Tables::run(const DropUnusedRescued&) {
  return database_.execute(
      "DELETE FROM rescued WHERE NOT EXISTS (SELECT 1 FROM inode WHERE lower_revision = rescued.revision AND "
      "lower_path = rescued.path)");
}

Status Tables::run(const PutValue& put) {
  PLAYFS_TRY(Statement statement, database_.prepare("INSERT OR REPLACE INTO value VALUES (?, ?)"));
  return statement.bind(1, put.key).bind_blob(2, put.value).run();
}

Status Tables::run(const DropValue& drop) {
  PLAYFS_TRY(Statement statement, database_.prepare("DELETE FROM value WHERE key = ?"));
  return statement.bind(1, drop.key).run();
}

Status Tables::run(const PutTime& put) {
  PLAYFS_TRY(Statement statement, database_.prepare("INSERT OR REPLACE INTO path_time VALUES (?, ?)"));
  return statement.bind(1, put.path).bind(2, put.time.nanoseconds).run();
}

Status Tables::run(const DropTime& drop) {
  PLAYFS_TRY(Statement statement, database_.prepare("DELETE FROM path_time WHERE path = ?"));
  return statement.bind(1, drop.path).run();
}

Status Tables::run(const PutPending& put) {
  const FrozenFile& file = put.file;
  PLAYFS_TRY(Statement statement, database_.prepare("INSERT INTO pending_file VALUES (?, ?, ?, ?, ?, ?, ?)"));
  statement.bind(1, file.path).bind(2, static_cast<std::int64_t>(file.mode)).bind(4, signed_of(file.size));
  if (file.published) statement.bind_null(3).bind_blob(5, encode_entry(*file.published));
  else statement.bind(3, file.hash.hex()).bind_null(5);
  return statement.bind(6, signed_of(file.spool)).bind_blob(7, file.target).run();
}

Status Tables::run(const PutPendingDeletion& put) {
  PLAYFS_TRY(Statement statement, database_.prepare("INSERT INTO pending_deletion VALUES (?)"));
  return statement.bind(1, put.path).run();
}

Status Tables::run(const DropPending&) {
  return database_.execute(
      "INSERT OR IGNORE INTO given_up SELECT spool FROM pending_file WHERE spool <> 0; "
      "DELETE FROM pending_file; DELETE FROM pending_deletion");
}

Status Tables::run(const PutReplacement& put) {
  const ReplacementRow& row = put.row;
  PLAYFS_TRY(Statement statement, database_.prepare("INSERT OR REPLACE INTO replacement VALUES (?, ?, ?, ?, ?)"));
  statement.bind(1, signed_of(row.spool)).bind(2, signed_of(row.size)).bind(3, signed_of(row.boot));
  return statement.bind(4, signed_of(row.old_spool)).bind(5, row.old_path).run();
}

Status Tables::run(const DropReplacement& drop) {
  PLAYFS_TRY(Statement give_up, database_.prepare("INSERT OR IGNORE INTO given_up SELECT old_spool FROM replacement "
                                                  "WHERE spool = ? AND old_spool <> 0"));
  PLAYFS_CHECK(give_up.bind(1, signed_of(drop.spool)).run());
  PLAYFS_TRY(Statement statement, database_.prepare("DELETE FROM replacement WHERE spool = ?"));
  return statement.bind(1, signed_of(drop.spool)).run();
}

Status Tables::run(const PutSize& put) {
  put_size_.bind(1, signed_of(put.row.spool)).bind(2, signed_of(put.row.size));
  return put_size_.bind(3, signed_of(put.row.boot)).bind(4, signed_of(put.row.synced)).run();
}

Result<std::vector<SizeRow>> Tables::sizes() {
  return all_rows<SizeRow>(database_, "SELECT spool, size, boot, synced FROM spool_size", [](Statement& row) {
    return SizeRow{unsigned_of(row.integer(0)), unsigned_of(row.integer(1)), unsigned_of(row.integer(2)),
                   unsigned_of(row.integer(3))};
  });
}

Result<std::vector<ReplacementRow>> Tables::replacements() {
  return all_rows<ReplacementRow>(
      database_, "SELECT spool, size, boot, old_spool, old_path FROM replacement", [](Statement& row) {
        return ReplacementRow{unsigned_of(row.integer(0)), unsigned_of(row.integer(1)), unsigned_of(row.integer(2)),
                              unsigned_of(row.integer(3)), std::string(row.text(4))};
      });
}

Result<std::vector<InodeRow>> Tables::inodes() {
  return all_rows<InodeRow>(database_, "SELECT * FROM inode", [](Statement& select) -> Result<InodeRow> {
    InodeRow row;
    row.ino = unsigned_of(select.integer(0));
    std::int64_t kind = select.integer(1);
    if (kind < 0 || kind > static_cast<std::int64_t>(Kind::block_device))
      return fail(bad_database("a file of unknown kind"));
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
    return row;
  });
}

Result<std::vector<EntryRow>> Tables::entries() {
  return all_rows<EntryRow>(database_, "SELECT parent, name, ino FROM entry", [](Statement& row) {
    return EntryRow{unsigned_of(row.integer(0)), std::string(row.text(1)), unsigned_of(row.integer(2))};
  });
}

Result<std::vector<RescuedRow>> Tables::rescued() {
  constexpr const char* sql = "SELECT revision, project, tx, path, entry FROM rescued";
  return all_rows<RescuedRow>(database_, sql, [](Statement& row) -> Result<RescuedRow> {
    auto entry = decode_entry(row.text(4));
    if (!entry) return fail(bad_database("an unreadable entry"));
    return RescuedRow{std::string(row.text(0)), std::string(row.text(1)), std::string(row.text(2)),
                      std::string(row.text(3)), std::move(*entry)};
  });
}

Result<std::optional<std::string>> Tables::value(std::string_view key) {
  PLAYFS_TRY(Statement select, database_.prepare("SELECT value FROM value WHERE key = ?"));
  PLAYFS_TRY(bool found, select.bind(1, key).step());
  if (!found) return std::optional<std::string>();
  return std::optional<std::string>(select.text(0));
}

Result<std::vector<std::pair<std::string, WallTime>>> Tables::times() {
  using Time = std::pair<std::string, WallTime>;
  return all_rows<Time>(database_, "SELECT path, mtime FROM path_time",
                        [](Statement& row) { return Time(row.text(0), WallTime{row.integer(1)}); });
}

Result<std::vector<FrozenFile>> Tables::pending() {
  constexpr const char* sql = "SELECT path, mode, hash, size, entry, spool, target FROM pending_file ORDER BY path";
  return all_rows<FrozenFile>(database_, sql, [](Statement& row) -> Result<FrozenFile> {
    FrozenFile file;
    file.path = row.text(0);
    std::int64_t mode = row.integer(1);
    if (mode < 0 || mode > static_cast<std::int64_t>(FileMode::symlink))
      return fail(bad_database("a file of unknown mode"));
    file.mode = static_cast<FileMode>(mode);
    file.size = unsigned_of(row.integer(3));
    if (row.is_null(4)) {
      auto hash = ContentHash::parse(row.text(2));
      if (!hash) return fail(bad_database("a pending file without a hash"));
      file.hash = *hash;
    } else {
      file.published = decode_entry(row.text(4));
      if (!file.published) return fail(bad_database("an unreadable entry"));
    }
    file.spool = unsigned_of(row.integer(5));
    file.target = row.text(6);
    return file;
  });
}

Result<std::vector<std::string>> Tables::pending_deletions() {
  return all_rows<std::string>(database_, "SELECT path FROM pending_deletion ORDER BY path",
                               [](Statement& row) { return std::string(row.text(0)); });
}

Result<std::vector<std::uint64_t>> Tables::given_up() {
  return all_rows<std::uint64_t>(database_, "SELECT spool FROM given_up",
                                 [](Statement& row) { return unsigned_of(row.integer(0)); });
}

Status Tables::forget_given_up(const std::vector<std::uint64_t>& numbers) {
  return run_for_each(database_, "DELETE FROM given_up WHERE spool = ?", numbers);
}

Status Tables::forget_sizes(const std::vector<std::uint64_t>& numbers) {
  return run_for_each(database_, "DELETE FROM spool_size WHERE spool = ?", numbers);
}

}  // namespace playfs::stage
