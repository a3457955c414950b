#include "whole/memory_store.h"

#include <algorithm>

#include "service/record_id.h"

namespace playfs::sim {

namespace {
constexpr std::int64_t kMicrosecond = 1000;
}

WallTime MemoryStore::next_time() {
  WallTime now{clock_.wall().nanoseconds / kMicrosecond * kMicrosecond};
  if (now <= last_) now = {last_.nanoseconds + kMicrosecond};
  return last_ = now;
}

std::optional<Error> MemoryStore::charge(const std::optional<service::Charge>& charge) {
  if (!charge) return std::nullopt;
  auto& times = charges_[charge->bucket];
  WallTime now = clock_.wall();
  std::chrono::nanoseconds window = charge->window;
  while (!times.empty() && now.nanoseconds - times.front().nanoseconds >= window.count()) times.pop_front();
  if (static_cast<std::int64_t>(times.size()) < charge->allowance) {
    times.push_back(now);
    return std::nullopt;
  }
  std::chrono::nanoseconds left(times.front().nanoseconds + window.count() - now.nanoseconds);
  return Error{ErrorCode::rate_limited, charge->what, {}, std::chrono::ceil<std::chrono::seconds>(left), 429, {}};
}

Result<service::StoredRecord> MemoryStore::insert(const service::NewRecord& record) {
  if (!record.request_key.empty()) {
    if (auto known = requests_.find(record.request_key); known != requests_.end())
      return records_[known->second.collection][known->second.place];
  }
  if (auto refused = charge(record.charge)) return fail(*refused);
  auto& all = records_[record.collection];
  WallTime now = next_time();
  all.push_back(
      {service::make_record_id(now, random_), now, now, service::kInitialStatus, record.owner, record.contents.fields});
  wholes_[record.collection].push_back(record.contents.belongs_to);
  places_[{record.collection, all.back().id}] = all.size() - 1;
  number_change(record.collection, all.back(), record.contents.belongs_to);
  if (!record.request_key.empty()) requests_[record.request_key] = {record.collection, all.size() - 1, now};
  return all.back();
}

Result<std::optional<service::StoredRecord>> MemoryStore::created_by(std::string_view request_key) {
  auto known = requests_.find(std::string(request_key));
  if (known == requests_.end()) return std::optional<service::StoredRecord>();
  return std::optional(records_[known->second.collection][known->second.place]);
}

Result<service::StoredRecord> MemoryStore::get(std::string_view collection, std::string_view id) {
  auto place = places_.find(std::pair(std::string(collection), std::string(id)));
  if (place == places_.end()) return fail(ErrorCode::not_found, "no such record");
  const auto& record = records_.find(collection)->second[place->second];
  if (!is_shown(record)) return fail(ErrorCode::not_found, "no such record yet");
  if (!shown_ || record.updated_at <= *shown_) return record;
  // The newest version at that time.
  const auto& before = replaced_[record.id];
  auto shown =
      std::find_if(before.rbegin(), before.rend(), [&](const auto& each) { return each.updated_at <= *shown_; });
  return shown == before.rend() ? record : *shown;
}

Result<service::Page> MemoryStore::page(std::string_view collection, const std::string* whole, std::size_t limit,
                                        service::Position before) {
  service::Page page;
  auto found = records_.find(collection);
  if (found == records_.end()) return page;
  const auto& all = found->second;
  const auto& wholes = wholes_.find(collection)->second;
  auto end = static_cast<std::size_t>(std::min<service::Position>(before, static_cast<std::int64_t>(all.size())));
  while (end > 0 && !is_shown(all[end - 1])) --end;
  for (; end > 0 && page.records.size() < limit; --end)
    if (!whole || wholes[end - 1] == *whole) page.records.push_back(all[end - 1]);
  if (end > 0) page.next = static_cast<service::Position>(end);
  return page;
}

Result<service::Page> MemoryStore::list(std::string_view collection, std::size_t limit, service::Position before) {
  return page(collection, nullptr, limit, before);
}

Result<service::Page> MemoryStore::list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                                              service::Position before) {
  std::string name(whole);
  return page(collection, &name, limit, before);
}

Result<std::optional<service::StoredRecord>> MemoryStore::replace(std::string_view collection,
                                                                  const service::StoredRecord& read,
                                                                  service::Contents contents,
                                                                  const std::optional<service::Charge>& charged) {
  auto place = places_.find(std::pair(std::string(collection), read.id));
  if (place == places_.end()) return fail(ErrorCode::not_found, "no such record");
  auto& record = records_.find(collection)->second[place->second];
  if (record.updated_at != read.updated_at) return std::optional<service::StoredRecord>();
  if (auto refused = charge(charged)) return fail(*refused);
  replaced_[record.id].push_back(record);
  record.fields = std::move(contents.fields);
  record.updated_at = next_time();
  number_change(collection, record, contents.belongs_to);
  return std::optional(record);
}

Result<service::StoredRecord> MemoryStore::set_status(std::string_view collection, std::string_view id,
                                                      std::string_view status) {
  auto place = places_.find(std::pair(std::string(collection), std::string(id)));
  if (place == places_.end()) return fail(ErrorCode::not_found, "no such record");
  auto& record = records_.find(collection)->second[place->second];
  replaced_[record.id].push_back(record);
  record.status = status;
  record.updated_at = next_time();
  number_change(collection, record, wholes_.find(collection)->second[place->second]);
  return record;
}

void MemoryStore::number_change(std::string_view collection, const service::StoredRecord& record,
                                const std::string& whole) {
  if (collection == service::kUnwatchedCollection) return;
  const service::Position number = changes_.empty() ? 1 : changes_.rbegin()->first + 1;
  if (record.updated_at != record.created_at)
    std::erase_if(changes_, [&](const auto& each) { return each.second.id == record.id; });
  changes_[number] = {number, std::string(collection), record.id, record.updated_at, whole};
}

Result<std::vector<service::Change>> MemoryStore::changes(service::Position after, std::size_t limit) {
  std::vector<service::Change> found;
  for (auto each = changes_.upper_bound(after); each != changes_.end() && found.size() < limit; ++each)
    found.push_back(each->second);
  return found;
}

void MemoryStore::forget_keys(std::chrono::nanoseconds older) {
  WallTime now = clock_.wall();
  std::erase_if(requests_,
                [&](const auto& request) { return now.nanoseconds - request.second.at.nanoseconds > older.count(); });
}

void MemoryStore::go_back_to(Backup backup) {
  records_ = std::move(backup.records);
  wholes_ = std::move(backup.wholes);
  places_ = std::move(backup.places);
  changes_ = std::move(backup.changes);
  requests_.clear();
  replaced_.clear();
}

}  // namespace playfs::sim
