#include "content/names.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace playfs::content {

namespace {

WallTime just_after(WallTime time) { return {time.nanoseconds + (time.nanoseconds < INT64_MAX ? 1 : 0)}; }

}  // namespace

std::string name_carried(const std::string& collection, const Record& record, std::size_t most) {
  for (const char* field : {collection == "agents" ? "handle" : "name", "name", "title"}) {
    const Json* value = record.fields.find(field);
    const std::string* text = value ? value->string() : nullptr;
    if (text && !text->empty() && text->size() <= most) return *text;
  }
  return {};
}

bool goes_before(const Listed& one, const Listed& other) {
  return std::tie(one.named_at, one.created_at, one.id) < std::tie(other.named_at, other.created_at, other.id);
}

const Listed* holder_of(const std::vector<Listed>& list, std::string_view name) {
  return holder_where(list, [&](const Listed& each) { return each.name == name; });
}

void date_names(std::span<Listed* const> read, std::span<const Listed> known, std::span<const Listed> own,
                const NamedBefore& named_before) {
  std::unordered_map<std::string_view, const Listed*> before;
  for (const Listed* item : read) before.emplace(item->id, nullptr);
  // Whatever the service's clocks say, a name first seen now is dated after all names seen before.
  auto last_of = [&](std::span<const Listed> items) {
    WallTime last;
    for (const Listed& item : items) {
      last = std::max(last, item.named_at);
      if (auto found = before.find(item.id); found != before.end()) found->second = &item;
    }
    return last;
  };
  const WallTime last_own = last_of(own);
  WallTime last = last_of(known), last_renamed = last_own;

  std::vector<Listed*> unnamed;
  for (Listed* item : read) {
    const Listed* was = before.at(item->id);
    if (was && was->name == item->name) item->named_at = was->named_at;
    else if (auto time = named_before(*item)) item->named_at = *time;
    else unnamed.push_back(item);
  }
  // At equal times, a new record precedes a renamed one.
  auto order = [&](const Listed* item) {
    const bool is_renamed = before.at(item->id);
    return std::tuple(is_renamed ? item->named_at : item->created_at, is_renamed, item->created_at,
                      std::string_view(item->id));
  };
  std::sort(unnamed.begin(), unnamed.end(),
            [&](const Listed* one, const Listed* other) { return order(one) < order(other); });
  for (Listed* item : unnamed) {
    const bool is_renamed = before.at(item->id);
    last = std::max(is_renamed ? item->named_at : item->created_at, just_after(last));
    item->named_at = last;
    if (is_renamed) item->named_at = last_renamed = std::max(last, just_after(last_renamed));
  }
}

}  // namespace playfs::content
