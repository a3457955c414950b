#include "content/context.h"

#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

void Context::saw(const Error* error) {
  outage.saw(error);
  const bool said_something = !error || remote::is_answer(*error) ||
                              !(error->code == ErrorCode::unreachable || error->code == ErrorCode::timed_out ||
                                error->code == ErrorCode::offline || error->code == ErrorCode::interrupted);
  if (said_something) patience.answered();
}

std::optional<Record> Context::read(const cache::StoredRecord& stored, const std::string& id) {
  auto json = wire::parse_json(stored.text);
  if (!json) return std::nullopt;
  auto record = wire::decode_record(*json);
  if (!record || record->id != id) return std::nullopt;
  return std::move(*record);
}

std::optional<Record> Context::stored(const std::string& collection, const std::string& id) const {
  auto found = records.record(site, collection, id);
  return found ? read(*found, id) : std::nullopt;
}

RecordAtOnce Context::stored_at_once(const std::string& collection, const std::string& id) const {
  auto found = records.record(site, collection, id);
  if (!found) return {};
  if (found->text.size() > kParsedAtOnce) return {std::nullopt, true};
  return {read(*found, id)};
}

void Context::store(const std::string& collection, const Record& record, const std::string& etag) const {
  records.store_record(site, collection, record.id, {wire::to_text(wire::encode_record(record)), etag, clock.wall()});
}

}  // namespace playfs::content
