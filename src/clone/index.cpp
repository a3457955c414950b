#include "clone/index.h"

#include <cstring>

#include "base/shell.h"

namespace playfs::clone {

namespace {

constexpr const char* kSchema = R"(
  CREATE TABLE IF NOT EXISTS value (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS row (
    path BLOB PRIMARY KEY, kind INTEGER NOT NULL, inode INTEGER NOT NULL, size INTEGER NOT NULL,
    mtime INTEGER NOT NULL, ctime INTEGER NOT NULL, permissions INTEGER NOT NULL,
    hash TEXT NOT NULL, mode INTEGER NOT NULL, staged BLOB NOT NULL, begun INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS left_out (path BLOB PRIMARY KEY, why TEXT NOT NULL) WITHOUT ROWID;
)";
constexpr std::int64_t kFormat = 1;

template <class Enum>
Result<Enum> checked(std::int64_t value, Enum last) {
  if (value < 0 || value > static_cast<std::int64_t>(last)) return fail(ErrorCode::corrupt, "a value of no meaning");
  return static_cast<Enum>(value);
}

Result<Row> row_in(const Statement& select) {
  Row row;
  PLAYFS_TRY(row.kind, checked(select.integer(1), RowKind::refused));
  row.seen = {static_cast<std::uint64_t>(select.integer(2)), static_cast<std::uint64_t>(select.integer(3)),
              select.integer(4), select.integer(5), static_cast<std::uint32_t>(select.integer(6))};
  if (row.has_content()) {
    auto hash = ContentHash::parse(select.text(7));
    if (!hash) return fail(ErrorCode::corrupt, "a hash that is none");
    row.hash = *hash;
  }
  PLAYFS_TRY(row.mode, checked(select.integer(8), FileMode::symlink));
  row.staged = select.text(9);
  row.is_begun = select.integer(10) != 0;
  return row;
}

Statement& bind_row(Statement& put, const std::string& path, const Row& row) {
  const Signature& seen = row.seen;
  return put.bind_blob(1, path)
      .bind(2, static_cast<std::int64_t>(row.kind))
      .bind(3, static_cast<std::int64_t>(seen.inode))
      .bind(4, static_cast<std::int64_t>(seen.size))
      .bind(5, seen.mtime)
      .bind(6, seen.ctime)
      .bind(7, std::int64_t{seen.mode})
      .bind(8, row.has_content() ? std::string_view(row.hash.hex()) : std::string_view())
      .bind(9, static_cast<std::int64_t>(row.mode))
      .bind_blob(10, row.staged)
      .bind(11, row.is_begun ? 1 : 0);
}

}  // namespace

Result<Index> Index::open(const std::string& path) {
  auto opened = [&]() -> Result<Index> {
    PLAYFS_TRY(Database database, Database::open(path, Database::Durability::normal));
    PLAYFS_CHECK(database.execute(kSchema));
    Index index(std::move(database));
    PLAYFS_CHECK(index.load());
    return index;
  }();
  if (opened) return opened;
  Error error = opened.error().while_doing("the clone's index " + path);
  if (error.code == ErrorCode::corrupt)
    error.hint = "rm " + shell_word(path) + "*; the next command then compares every file, and deletions are undone";
  return fail(std::move(error));
}

Status Index::load() {
  PLAYFS_TRY(Statement values, database_.prepare("SELECT key, value FROM value"));
  for (;;) {
    PLAYFS_TRY(const bool more, values.step());
    if (!more) break;
    if (values.text(0) == "looked") looked_ = values.integer(1);
    if (values.text(0) == "stage") stage_ = values.integer(1);
    if (values.text(0) == "behind") is_behind_ = values.integer(1) != 0;
    if (values.text(0) == "format" && values.integer(1) > kFormat)
      return fail(ErrorCode::not_supported, "written by a newer version of playfs");
  }
  PLAYFS_TRY(Statement left_out, database_.prepare("SELECT path, why FROM left_out"));
  for (;;) {
    PLAYFS_TRY(const bool more, left_out.step());
    if (!more) break;
    left_out_.emplace(left_out.text(0), left_out.text(1));
  }
  PLAYFS_TRY(Statement select,
             database_.prepare("SELECT path, kind, inode, size, mtime, ctime, permissions, hash, mode, staged, "
                               "begun FROM row "
                               "ORDER BY path"));
  for (;;) {
    PLAYFS_TRY(const bool more, select.step());
    if (!more) return {};
    PLAYFS_TRY(Row row, row_in(select));
    rows_.emplace_hint(rows_.end(), std::string(select.text(0)), std::move(row));
  }
}

const Row* Index::find(std::string_view path) const {
  auto found = rows_.find(path);
  return found == rows_.end() ? nullptr : &found->second;
}

void Index::put(const std::string& path, Row row) {
  auto [at, is_new] = rows_.try_emplace(path);
  if (!is_new && at->second == row) return;
  at->second = std::move(row);
  changed_.insert(path);
}

void Index::erase(const std::string& path) {
  if (rows_.erase(path) > 0) changed_.insert(path);
}

void Index::set_looked(std::int64_t time) {
  values_changed_ = values_changed_ || time != looked_;
  looked_ = time;
}

void Index::set_behind(bool behind) {
  values_changed_ = values_changed_ || behind != is_behind_;
  is_behind_ = behind;
}

void Index::note_left_out(const std::string& path, const std::string& why) {
  auto known = left_out_.find(path);
  if (known == left_out_.end() ? why.empty() : known->second == why) return;
  if (why.empty()) left_out_.erase(known);
  else left_out_[path] = why;
  left_out_changed_ = true;
}

bool Index::belongs_to(std::uint64_t stage) {
  const auto id = static_cast<std::int64_t>(stage);
  if (id == stage_) return true;
  for (const auto& [path, row] : rows_) changed_.insert(path);
  rows_.clear();
  left_out_changed_ = left_out_changed_ || !left_out_.empty();
  left_out_.clear();
  stage_ = id;
  looked_ = 0;
  is_behind_ = values_changed_ = true;
  return false;
}

Status Index::put_value(Statement& put, std::string_view key, std::int64_t value) {
  return put.bind(1, key).bind(2, value).run();
}

Status Index::commit_left_out() {
  if (!left_out_changed_) return {};
  PLAYFS_CHECK(database_.execute("DELETE FROM left_out"));
  PLAYFS_TRY(Statement put, database_.prepare("INSERT INTO left_out VALUES (?, ?)"));
  for (const auto& [path, why] : left_out_) PLAYFS_CHECK(put.bind_blob(1, path).bind(2, why).run());
  return {};
}

Status Index::commit() {
  if (changed_.empty() && !values_changed_ && !left_out_changed_) return {};
  PLAYFS_TRY(Transaction transaction, Transaction::begin(database_));
  PLAYFS_TRY(Statement put, database_.prepare("INSERT OR REPLACE INTO row VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  PLAYFS_TRY(Statement drop, database_.prepare("DELETE FROM row WHERE path = ?"));
  for (const std::string& path : changed_) {
    const Row* row = find(path);
    if (row) PLAYFS_CHECK(bind_row(put, path, *row).run());
    else PLAYFS_CHECK(drop.bind_blob(1, path).run());
  }
  PLAYFS_TRY(Statement set, database_.prepare("INSERT OR REPLACE INTO value VALUES (?, ?)"));
  PLAYFS_CHECK(put_value(set, "format", kFormat));
  PLAYFS_CHECK(put_value(set, "looked", looked_));
  PLAYFS_CHECK(put_value(set, "behind", is_behind_ ? 1 : 0));
  PLAYFS_CHECK(put_value(set, "stage", stage_));
  PLAYFS_CHECK(commit_left_out());
  PLAYFS_CHECK(transaction.commit());
  changed_.clear();
  values_changed_ = left_out_changed_ = false;
  return {};
}

}  // namespace playfs::clone
