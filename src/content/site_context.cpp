#include "content/site_context.h"

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

void SiteContext::saw(const Error* error) {
  const bool has_recovered = outage.saw(error);
  const Reached reached = error ? traits_of(error->code).reached : Reached::decision;
  const bool said_something = reached == Reached::decision || reached == Reached::no_use || remote::is_answer(*error);
  if (said_something) patience.answered();
  if (has_recovered && recovered) recovered();
}

std::optional<Record> SiteContext::read(std::string_view json, const std::string& id) {
  // A record that arrived within the limits may be a little longer as stored, with all system fields.
  constexpr wire::JsonLimits ordinary;
  constexpr wire::JsonLimits limits{ordinary.document_size + kMaxRecordSize, ordinary.depth + 1, ordinary.values + 16,
                                    ordinary.string_size};
  auto parsed = wire::parse_json(json, limits);
  if (!parsed) return std::nullopt;
  auto record = wire::decode_record(*parsed);
  if (!record || record->id != id) return std::nullopt;
  return std::move(*record);
}

std::optional<Record> SiteContext::stored(const std::string& collection, const std::string& id) const {
  auto found = records.record(site, collection, id);
  return found ? read(found->text, id) : std::nullopt;
}

bool SiteContext::has_newer(const std::string& collection, const Record& record, SteadyTime asked_at) {
  const auto updated_at = parse_iso8601(record.updated_at);
  return updated_at && has_newer(collection, record.id, *updated_at, asked_at);
}

bool SiteContext::has_newer(const std::string& collection, const std::string& id, WallTime updated_at,
                            SteadyTime since) {
  MutexLock lock(mutex);
  const Received* last = received.find(collection + "/" + id);
  return last && last->at > since && updated_at <= last->updated_at;
}

std::string SiteContext::store(const std::string& collection, const Record& record) {
  if (const auto updated_at = parse_iso8601(record.updated_at)) {
    MutexLock lock(mutex);
    static_cast<void>(received.insert(collection + "/" + record.id, {clock.steady(), *updated_at}));
  }
  std::string json = wire::to_text(wire::encode_record(record));
  records.store_record(site, collection, record.id, {json, {}, clock.wall()});
  return json;
}

}  // namespace playfs::content
