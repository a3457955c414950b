// Three versions of a project, merged: six fields, the manifests of base, ours and theirs, then their states. Changes
// of one side only are taken, and swapping the sides changes nothing that is not in conflict.
#include <set>

#include "fuzz.h"
#include "model/continuation.h"
#include "model/merge.h"
#include "wire/json.h"
#include "wire/records.h"

using namespace playfs;

namespace {

struct Owned {
  Manifest manifest;
  Json state;
};

Result<Merge> merged(const Owned& base, const Owned& ours, const Owned& theirs) {
  auto read = [](MergeSide, const std::string& path, const FileEntry& entry) -> Result<std::string> {
    if (auto content = entry.inline_content()) return *std::move(content);
    return fail(ErrorCode::not_found, path);
  };
  return merge_versions({base.manifest, base.state}, {ours.manifest, ours.state}, {theirs.manifest, theirs.state},
                        read);
}

void check_is(const Result<Merge>& merge, const Owned& expected) {
  FUZZ_CHECK(merge && merge->conflicts.empty());
  FUZZ_CHECK(merge->files.size() == expected.manifest.files.size());
  for (const auto& [path, file] : merge->files) {
    auto entry = expected.manifest.files.find(path);
    FUZZ_CHECK(!file.text && entry != expected.manifest.files.end() && file.entry == entry->second);
  }
  FUZZ_CHECK(merge->refused.size() == expected.manifest.refused.size());
  FUZZ_CHECK(merge->extra == expected.manifest.extra && merge->state == expected.state);
}

/// At, below or above one of the paths.
bool is_touched(const std::set<std::string>& paths, const std::string& path) {
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& each) {
    return each == path || each.starts_with(path + "/") || path.starts_with(each + "/");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  Owned versions[3];
  for (Owned& version : versions) {
    auto json = wire::parse_answer(input.field());
    auto manifest = json ? wire::decode_manifest(*json) : fail(ErrorCode::not_found, "none");
    if (manifest) version.manifest = *std::move(manifest);
    if (version.manifest.continuation) show_continuation(version.manifest);
  }
  for (Owned& version : versions)
    if (auto json = wire::parse_json(input.field())) version.state = *std::move(json);
  const auto& [base, ours, theirs] = versions;

  check_is(merged(base, base, theirs), theirs);
  check_is(merged(base, ours, base), ours);
  auto merge = merged(base, ours, theirs), turned = merged(base, theirs, ours);
  FUZZ_CHECK(merge.has_value() == turned.has_value());
  if (!merge) return 0;
  std::set<std::string> conflicts, turned_conflicts;
  for (const auto& conflict : merge->conflicts) conflicts.insert(conflict.path);
  for (const auto& conflict : turned->conflicts) turned_conflicts.insert(conflict.path);
  FUZZ_CHECK(conflicts == turned_conflicts);
  for (const auto& [path, file] : merge->files) {
    FUZZ_CHECK(ours.manifest.files.contains(path) || theirs.manifest.files.contains(path));
    auto below = merge->files.upper_bound(path + "/");
    FUZZ_CHECK(below == merge->files.end() || !below->first.starts_with(path + "/"));
    if (is_touched(conflicts, path)) continue;
    auto other = turned->files.find(path);
    FUZZ_CHECK(other != turned->files.end() && other->second.entry == file.entry && other->second.text == file.text);
  }
  if (conflicts.empty()) {
    FUZZ_CHECK(merge->files.size() == turned->files.size() && merge->refused.size() == turned->refused.size());
    FUZZ_CHECK(merge->extra == turned->extra && merge->state == turned->state);
  }
  return 0;
}
