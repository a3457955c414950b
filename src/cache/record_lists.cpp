#include "cache/record_lists.h"

#include <algorithm>

#include "cache/checksum.h"

namespace playfs::cache {

namespace {

std::int64_t listed_checksum(const std::string& site, const std::string& collection, const ListedRecord& record) {
  return checksum_of_row({site, collection, record.id, std::to_string(record.created_at.nanoseconds), record.name,
                          record.project, record.kind, std::to_string(record.updated_at.nanoseconds),
                          std::to_string(record.named_at.nanoseconds)});
}

}  // namespace

Result<StoredList::State> StoredList::state() {
  Statement& select = bound(on_.select_whole);
  PLAYFS_TRY(const bool row, select.step());
  if (!row) return State{};
  const State state{select.integer(0), select.integer(1), select.integer(2) != 0};
  select.reset();
  return state;
}

Result<bool> StoredList::has(const std::string& id) {
  Statement& select = bound(on_.select_listed).bind(3, id);
  PLAYFS_TRY(const bool row, select.step());
  select.reset();
  return row;
}

Result<bool> StoredList::next(Statement& select, Rows& rows) {
  PLAYFS_TRY(const bool row, select.step());
  if (!row) return false;
  ++on_.list_rows_read;
  ListedRecord record{std::string(select.text(0)), WallTime{select.integer(1)}, std::string(select.text(2)),
                      std::string(select.text(3)), std::string(select.text(4)), WallTime{select.integer(5)},
                      WallTime{select.integer(6)}};
  rows.is_damaged = rows.is_damaged || select.integer(7) != listed_checksum(site_, collection_, record);
  rows.records.push_back(std::move(record));
  return true;
}

Result<StoredList::Rows> StoredList::selected(Statement& select, std::size_t most_bytes) {
  Rows rows;
  for (std::size_t bytes = 0; bytes <= most_bytes; bytes += rows.records.back().bytes()) {
    PLAYFS_TRY(const bool row, next(select, rows));
    rows.is_all = !row;
    if (!row) return rows;
  }
  select.reset();
  return rows;
}

Result<StoredList::Rows> StoredList::rows(std::size_t most_bytes) {
  return selected(bound(on_.select_list), most_bytes);
}

Result<StoredList::Rows> StoredList::rows_of(const std::string& owner, std::size_t most_bytes) {
  PLAYFS_TRY(Rows rows, selected(bound(on_.select_owned).bind(3, owner), most_bytes));
  rows.is_all = false;
  // An entry of the index may be damaged, too.
  auto is_others = [&](const ListedRecord& record) { return record.project != owner; };
  rows.is_damaged = rows.is_damaged || std::any_of(rows.records.begin(), rows.records.end(), is_others);
  return rows;
}

Result<StoredList::Rows> StoredList::rows_with(std::span<const std::string> ids) {
  Rows rows;
  for (const std::string& id : ids) {
    Statement& select = bound(on_.select_listed).bind(3, id);
    PLAYFS_TRY(const bool row, next(select, rows));
    if (row) select.reset();
  }
  return rows;
}

Result<std::int64_t> StoredList::begin_anew(bool goes_on) {
  PLAYFS_CHECK(bound(on_.begin_whole).bind(3, static_cast<std::int64_t>(goes_on)).run());
  PLAYFS_CHECK(bound(on_.clear_list).run());
  PLAYFS_TRY(const State begun, state());
  return begun.version;
}

Result<std::int64_t> StoredList::add(std::span<const ListedRecord> newer) {
  PLAYFS_TRY(const bool row, bound(on_.top_of_list).step());
  std::int64_t position = row ? on_.top_of_list.integer(0) : 0;
  on_.top_of_list.reset();
  std::int64_t added = 0;
  for (auto record = newer.rbegin(); record != newer.rend(); ++record) {
    PLAYFS_TRY(const bool is_there, has(record->id));
    if (!is_there) ++added;
    Statement& insert = bound(on_.insert_listed).bind(3, ++position).bind(4, record->id);
    insert.bind(5, record->created_at.nanoseconds).bind(6, record->name).bind(7, record->project);
    PLAYFS_CHECK(insert.bind(8, record->kind)
                     .bind(9, record->updated_at.nanoseconds)
                     .bind(10, record->named_at.nanoseconds)
                     .bind(11, listed_checksum(site_, collection_, *record))
                     .run());
  }
  return added;
}

Status StoredList::set_records(std::int64_t count) { return bound(on_.set_whole).bind(3, count).run(); }

}  // namespace playfs::cache
