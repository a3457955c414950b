#include "content/names.h"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace playfs::content {

namespace {

WallTime just_after(WallTime time) { return {time.nanoseconds + (time.nanoseconds < INT64_MAX ? 1 : 0)}; }

}  // namespace

bool goes_before(const Listed& one, const Listed& other) {
  return std::tie(one.named_at, one.created_at, one.id) < std::tie(other.named_at, other.created_at, other.id);
}

const Listed* holder_of(const std::vector<Listed>& list, std::string_view name) {
  return holder_where(list, [&](const Listed& each) { return each.name == name; });
}

void date_names(std::span<Listed> read, std::span<const Listed> known, std::span<const Listed> own,
                const NamedBefore& named_before) {
  std::unordered_map<std::string_view, const Listed*> before;
  for (const Listed& item : read) before.emplace(item.id, nullptr);
  // Whatever the service's clocks say, a name that is new here comes after those that were seen.
  auto last_of = [&](std::span<const Listed> items) {
    WallTime last;
    for (const Listed& item : items) {
      last = std::max(last, item.named_at);
      if (auto found = before.find(item.id); found != before.end()) found->second = &item;
    }
    return last;
  };
  const WallTime last_own = last_of(own), last = last_of(known);
  for (Listed& item : read) {
    const Listed* was = before.at(item.id);
    if (was && was->name == item.name) item.named_at = was->named_at;
    else if (auto time = named_before(item)) item.named_at = *time;
    else if (!was) item.named_at = std::max(item.created_at, just_after(last));
    // Of the same time, a new record has its name before one that was renamed.
    else item.named_at = just_after(std::max({item.named_at, last_own, just_after(last)}));
  }
}

}  // namespace playfs::content
