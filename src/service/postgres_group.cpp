#include "service/postgres_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "service/postgres_record.h"
#include "service/postgres_transaction.h"
#include "service/record_id.h"

namespace playfs::service {

namespace {

constexpr const char* kByKeys =
    "SELECT " PLAYFS_POSTGRES_RECORD ", request_key FROM records WHERE request_key = ANY ($1)";
// In one order, so that no two transactions wait for each other.
constexpr const char* kLockRecords =
    "SELECT " PLAYFS_POSTGRES_RECORD ", collection FROM records WHERE id = ANY ($1) ORDER BY id FOR UPDATE";

// $1 records are added and $2 changes made, by a transaction that began at $3. Times follow positions, whatever the
// clocks of the servers say.
constexpr const char* kAdvance =
    "UPDATE site SET position = " PLAYFS_POSTGRES_UNLESS_CLOSED("position + $1") ", changed = changed + $2,"
    " created_at = CASE WHEN $1 = 0 THEN created_at ELSE GREATEST(created_at + 1, $3) + $1 - 1 END"
    " RETURNING created_at";
constexpr const char* kInsert = R"sql(
INSERT INTO records (position, collection, id, created_at, updated_at, status, owner, request_key, fields, belongs_to,
                     changed)
SELECT site.position - $1 + n, collection, added.id, site.created_at - $1 + n, site.created_at - $1 + n, $3, owner,
       request_key, fields, belongs_to, site.changed - $2 + change
FROM site, unnest($4, $5, $6, $7, $8, $9, $10) WITH ORDINALITY
       AS added (collection, id, owner, request_key, fields, belongs_to, change, n)
)sql";
constexpr const char* kUpdate = R"sql(
UPDATE records SET updated_at = given.updated_at, fields = given.fields, belongs_to = given.belongs_to,
                   changed = site.changed - $1 + given.change
FROM site, unnest($2, $3, $4, $5, $6) AS given (id, updated_at, fields, belongs_to, change)
WHERE records.id = given.id
)sql";

std::optional<std::string_view> unless_empty(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<std::int64_t> unless_zero(std::int64_t number) {
  if (number == 0) return std::nullopt;
  return number;
}

}  // namespace

PostgresGroup::PostgresGroup(std::vector<PostgresWrite*> writes, WallTime now, Random& random)
    : writes_(std::move(writes)), now_(now), random_(random) {}

void PostgresGroup::add_questions(std::vector<PostgresStatement>& statements) {
  ask_for_keys(statements);
  ask_for_records(statements);
  for (const PostgresWrite* write : writes_)
    if (write->charge) charges_.add(*write->charge);
  if (!charges_.empty()) {
    statements.push_back(charges_.statement(now_));
    questions_.push_back(Question::charges);
  }
  if (!has_questions()) refuse_what_is_over_limits();  // an allowance of 0
}

void PostgresGroup::ask_for_keys(std::vector<PostgresStatement>& statements) {
  std::vector<std::optional<std::string_view>> keys;
  for (const PostgresWrite* write : writes_)
    if (write->added && !write->added->request_key.empty()) keys.emplace_back(write->added->request_key);
  if (keys.empty()) return;
  statements.push_back({kByKeys, Parameters().byte_strings(keys)});
  questions_.push_back(Question::keys);
}

void PostgresGroup::ask_for_records(std::vector<PostgresStatement>& statements) {
  std::vector<std::optional<std::string_view>> ids;
  for (const PostgresWrite* write : writes_)
    if (write->replaced) ids.emplace_back(write->replaced->id);
  if (ids.empty()) return;
  statements.push_back({kLockRecords, Parameters().byte_strings(ids)});
  questions_.push_back(Question::records);
}

std::size_t PostgresGroup::count_open() const {
  return static_cast<std::size_t>(
      std::count_if(writes_.begin(), writes_.end(), [](const PostgresWrite* write) { return !write->is_done; }));
}

bool PostgresGroup::decide(const std::vector<PostgresRows>& rows, std::size_t next) {
  const std::size_t before = count_open();
  for (Question question : questions_) {
    const PostgresRows& answer = rows[next++];
    switch (question) {
      case Question::keys: find_keys(answer); break;
      case Question::records: find_records(answer); break;
      case Question::charges: charges_.granted(answer); break;
    }
  }
  if (count_open() != before && !charges_.empty()) return false;
  refuse_what_is_over_limits();
  return is_open();
}

void PostgresGroup::find_keys(const PostgresRows& rows) {
  std::map<std::string_view, int> found;
  for (int row = 0; row < rows.count(); ++row) found.emplace(rows.bytes(row, 7), row);
  for (PostgresWrite* write : writes_) {
    if (write->is_done || !write->added) continue;
    if (auto original = found.find(write->added->request_key); original != found.end())
      write->finish(record_of_row(rows, original->second));
  }
}

void PostgresGroup::find_records(const PostgresRows& rows) {
  std::map<std::string_view, int> found;
  for (int row = 0; row < rows.count(); ++row) found.emplace(rows.bytes(row, 1), row);
  for (PostgresWrite* write : writes_) {
    if (write->is_done || !write->replaced) continue;
    const auto row = found.find(write->replaced->id);
    if (row == found.end() || rows.bytes(row->second, 7) != write->collection) {
      write->finish(fail(ErrorCode::not_found, "there is no such record"));
      continue;
    }
    StoredRecord current = record_of_row(rows, row->second);
    if (current.updated_at != write->replaced->updated_at) write->finish(std::nullopt);
    else current_.emplace(write->replaced->id, std::move(current));
  }
}

void PostgresGroup::refuse_what_is_over_limits() {
  for (PostgresWrite* write : writes_) {
    if (write->is_done || !write->charge) continue;
    if (auto taken = charges_.take(*write->charge, now_); !taken) write->finish(fail(std::move(taken).error()));
  }
}

void PostgresGroup::add_writes(std::vector<PostgresStatement>& statements) {
  std::int64_t changes = 0;
  for (PostgresWrite* write : writes_) {
    if (write->is_done) continue;
    const std::int64_t change = write->collection == kUnwatchedCollection ? 0 : ++changes;
    if (write->added) {
      added_.push_back(
          {write,
           {make_record_id(now_, random_), {}, {}, kInitialStatus, write->added->owner, write->contents.fields},
           change});
      continue;
    }
    StoredRecord record = current_.at(write->replaced->id);
    record.updated_at = from_column(std::max(to_column(now_), to_column(record.updated_at) + 1));
    record.fields = write->contents.fields;
    replaced_.push_back({write, std::move(record), change});
  }
  statements.push_back(
      {kAdvance,
       Parameters().integer(static_cast<std::int64_t>(added_.size())).integer(changes).integer(to_column(now_))});
  if (!added_.empty()) statements.push_back(insert_statement(changes));
  if (!replaced_.empty()) statements.push_back(update_statement(changes));
}

PostgresStatement PostgresGroup::insert_statement(std::int64_t changes) {
  std::vector<std::string_view> collections;
  std::vector<std::optional<std::string_view>> ids, owners, keys, fields, wholes;
  std::vector<std::optional<std::int64_t>> numbers;
  for (const auto& [write, record, change] : added_) {
    collections.push_back(write->collection);
    ids.emplace_back(record.id);
    owners.emplace_back(record.owner);
    keys.push_back(unless_empty(write->added->request_key));
    fields.emplace_back(record.fields);
    wholes.push_back(unless_empty(write->contents.belongs_to));
    numbers.push_back(unless_zero(change));
  }
  Parameters parameters;
  parameters.integer(static_cast<std::int64_t>(added_.size())).integer(changes).text(kInitialStatus);
  parameters.texts(collections).byte_strings(ids).byte_strings(owners).byte_strings(keys).byte_strings(fields);
  return {kInsert, parameters.byte_strings(wholes).integers(numbers)};
}

PostgresStatement PostgresGroup::update_statement(std::int64_t changes) {
  std::vector<std::optional<std::string_view>> ids, fields, wholes;
  std::vector<std::optional<std::int64_t>> times, numbers;
  for (const auto& [write, record, change] : replaced_) {
    ids.emplace_back(record.id);
    times.emplace_back(to_column(record.updated_at));
    fields.emplace_back(record.fields);
    wholes.push_back(unless_empty(write->contents.belongs_to));
    numbers.push_back(unless_zero(change));
  }
  Parameters parameters;
  parameters.integer(changes).byte_strings(ids).integers(times).byte_strings(fields);
  return {kUpdate, parameters.byte_strings(wholes).integers(numbers)};
}

void PostgresGroup::finish(const PostgresRows& rows) {
  std::int64_t time = rows.integer(0, 0) - static_cast<std::int64_t>(added_.size());
  for (auto& [write, record, change] : added_) {
    record.created_at = record.updated_at = from_column(++time);
    write->finish(std::move(record));
  }
  for (auto& [write, record, change] : replaced_) write->finish(std::move(record));
}

}  // namespace playfs::service
