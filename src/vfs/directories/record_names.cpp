#include "vfs/directories/record_names.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "model/ids.h"
#include "model/path.h"

namespace playfs::vfs {
namespace {

constexpr std::string_view kSuffix = ".json";

}  // namespace

std::optional<std::string> stem_of(const std::string& name) {
  if (why_not_a_component(name) || !name.ends_with(kSuffix) || name.size() == kSuffix.size()) return std::nullopt;
  std::string stem = name.substr(0, name.size() - kSuffix.size());
  return stem.size() > kMaxIdLength ? std::nullopt : std::optional(std::move(stem));
}

bool names_a_file(const std::string& id) { return !why_not_a_component(id) && stem_of(id + std::string(kSuffix)); }

std::string link_name(const std::string& title) {
  std::string name;
  for (std::string_view rest = title; !rest.empty();) {
    const std::string_view next = rest.substr(0, first_code_point(rest).length);
    if (next.empty()) return {};
    name += next == "/" || !is_shown_as_it_is(next) ? "_" : next;
    rest.remove_prefix(next.size());
  }
  return why_not_a_component(name) ? std::string() : name;
}

bool is_shown_as_it_is(std::string_view name) { return escape_for_terminal(name) == name; }

WallTime record_time(const Record& record) {
  auto time = parse_iso8601(record.updated_at);
  return time ? *time : parse_iso8601(record.created_at).value_or(WallTime{});
}

}  // namespace playfs::vfs
