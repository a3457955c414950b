#include "http/pages/reader.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "model/continuation.h"
#include "service/record_text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::http {

namespace {

Result<service::Position> position_of(std::string_view cursor) {
  if (cursor.empty()) return service::kNewest;
  auto position = service::parse_cursor(cursor);
  if (!position) return fail(ErrorCode::invalid_argument, "this link to another page is incomplete");
  return *position;
}

Status too_much() { return fail(ErrorCode::quota_exceeded, "it needs more records than one page may read"); }

}  // namespace

std::string text_field(const JsonObject& fields, std::string_view name) {
  const Json* value = fields.find(name);
  if (value && value->string()) return *value->string();
  if (value && value->number()) return value->number()->text;
  return {};
}

Reader::Part::Part(Reader& reader, std::size_t records, std::size_t bytes)
    : reader_(reader), most_records_(reader.most_records_), most_bytes_(reader.most_bytes_) {
  reader_.most_records_ = std::min(most_records_, reader_.records_ + records);
  reader_.most_bytes_ = std::min(most_bytes_, reader_.bytes_ + bytes);
}

Reader::Part::~Part() {
  reader_.most_records_ = most_records_;
  reader_.most_bytes_ = most_bytes_;
}

Result<Record> Reader::decode(service::StoredRecord stored) {
  bytes_ += stored.fields.size();
  PLAYFS_TRY(Json fields, wire::parse_json(service::shown_fields(stored)));
  JsonObject* object = fields.object();
  if (!object) return fail(ErrorCode::corrupt, "record " + stored.id + " is not a JSON object");
  return Record{std::move(stored.id), format_iso8601(stored.created_at), format_iso8601(stored.updated_at),
                std::move(stored.status), std::move(*object)};
}

Result<Record> Reader::get(std::string_view collection, std::string_view id) {
  if (!may_read(1)) PLAYFS_CHECK(too_much());
  ++records_;
  PLAYFS_TRY(service::StoredRecord stored, store_.get(collection, id));
  return decode(std::move(stored));
}

Result<Project> Reader::project(std::string_view id) {
  PLAYFS_TRY(Record record, get("projects", id));
  return wire::decode_project(std::move(record));
}

Result<Revision> Reader::revision(std::string_view id) {
  PLAYFS_TRY(Record record, get("revisions", id));
  PLAYFS_TRY(Revision revision, wire::decode_revision(std::move(record)));
  // As in every other client, the rest of a large project's manifest appears as a file.
  if (revision.manifest.continuation) show_continuation(revision.manifest);
  return revision;
}

Result<RecordList> Reader::take(Result<service::Page> read) {
  PLAYFS_TRY(service::Page page, std::move(read));
  records_ += page.records.size();
  RecordList list;
  for (auto& stored : page.records) {
    PLAYFS_TRY(Record record, decode(std::move(stored)));
    list.records.push_back(std::move(record));
  }
  if (page.next) list.next = service::print_cursor(*page.next);
  return list;
}

Result<RecordList> Reader::list(std::string_view collection, std::size_t limit, std::string_view cursor) {
  PLAYFS_TRY(service::Position before, position_of(cursor));
  if (!may_read(limit)) PLAYFS_CHECK(too_much());
  return take(store_.list(collection, limit, before));
}

Result<RecordList> Reader::parts(std::string_view collection, std::string_view whole, std::size_t limit,
                                 std::string_view cursor) {
  PLAYFS_TRY(service::Position before, position_of(cursor));
  if (!may_read(limit)) PLAYFS_CHECK(too_much());
  return take(store_.list_parts(collection, whole, limit, before));
}

}  // namespace playfs::http
