#include "http/pages/activity.h"

#include <limits>
#include <utility>

namespace playfs::http {

namespace {

constexpr std::size_t kStep = 10;  // few at a time: the bound on bytes is looked at in between
// Unlimited matches: somebody may register a handle again and again to hide who had it first.
constexpr LookLimits kAgentsLookedAt = {std::numeric_limits<std::size_t>::max(), 1000, 384 << 10};

}  // namespace

Result<LookBack> look_back(Reader& reader, std::string_view collection, const std::string& cursor, LookLimits limits,
                           const std::function<bool(const Record&)>& is_wanted) {
  LookBack look;
  look.next = cursor;
  const Reader::Part part(reader, limits.records, limits.bytes);
  while (look.found.size() < limits.enough && reader.may_read(kStep)) {
    PLAYFS_TRY(RecordList list, reader.list(collection, kStep, look.next));
    look.seen += list.records.size();
    look.next = list.next;
    for (Record& record : list.records) {
      look.back_to = record.created_at;
      if (is_wanted(record)) look.found.push_back(std::move(record));
    }
    look.saw_all = look.next.empty();
    if (look.saw_all) break;
  }
  return look;
}

Result<Registration> find_registration(Reader& reader, const std::string& name) {
  Registration registration;
  auto named = reader.get("agents", name);
  if (!named && named.error().code != ErrorCode::not_found) return fail(std::move(named).error());
  registration.handle = named ? text_field(named->fields, "handle") : name;
  PLAYFS_TRY(LookBack look, look_back(reader, "agents", {}, kAgentsLookedAt, [&](const Record& record) {
               return !registration.handle.empty() && text_field(record.fields, "handle") == registration.handle;
             }));
  registration.seen = look.seen;
  registration.saw_all = look.saw_all;
  if (named) registration.record = *std::move(named);
  else if (!look.found.empty()) registration.record = look.found.back();
  for (const Record& record : look.found) {
    if (registration.record->id == record.id) continue;
    registration.others.push_back(record.id);
    if (record.created_at < registration.record->created_at) registration.is_oldest = false;
  }
  return registration;
}

}  // namespace playfs::http
