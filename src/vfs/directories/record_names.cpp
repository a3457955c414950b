#include "vfs/directories/record_names.h"

#include <algorithm>
#include <string_view>

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

WallTime record_time(const Record& record) {
  auto time = parse_iso8601(record.updated_at);
  return time ? *time : parse_iso8601(record.created_at).value_or(WallTime{});
}

}  // namespace playfs::vfs
