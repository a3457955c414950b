#include "vfs/published/instructions.h"

#include <algorithm>

#include "vfs/mount.h"
#include "wire/json.h"

namespace playfs::vfs {

PathSet instructions_of_others(Mount& mount, const Manifest& manifest) {
  const auto all = instructions_in(manifest);
  if (all.empty()) return {};
  const auto own = mount.site().own_instructions(mount.options().agent, manifest);
  PathSet others;
  for (const std::string& path : all)
    if (!own.contains(path)) others.insert(others.end(), path);
  return others;
}

PathSet hidden_instructions(Mount& mount, const Manifest& manifest) {
  switch (mount.options().instructions) {
    case Instructions::show: return {};
    case Instructions::hide: {
      const auto all = instructions_in(manifest);
      return {all.begin(), all.end()};
    }
    case Instructions::hide_others: break;
  }
  return instructions_of_others(mount, manifest);
}

std::vector<ContentHash> own_instructions(Mount& mount, const RevisionTreePtr& tree) {
  std::vector<ContentHash> contents;
  if (!tree) return contents;
  const Manifest& manifest = tree->tree.manifest();
  for (const std::string& path : mount.site().own_instructions(mount.options().agent, manifest))
    if (auto content = instructions_identity(*manifest.file_at(path))) contents.push_back(*content);
  return contents;
}

bool is_all_hidden(const Tree::Directory& directory, const std::string& path, const PathSet& hidden) {
  return std::all_of(directory.children.begin(), directory.children.end(), [&](const auto& child) {
    const std::string below = path + '/' + child.first;
    const auto* within = std::get_if<std::unique_ptr<Tree::Directory>>(&child.second);
    return within ? is_all_hidden(**within, below, hidden) : hidden.contains(below);
  });
}

std::vector<RefusedEntry> as_refused(const std::vector<std::string>& hidden) {
  std::vector<RefusedEntry> entries;
  for (const std::string& path : hidden) entries.push_back({path, std::string(kWhyNoInstructions), {}});
  return entries;
}

std::string refused_text(const Manifest& manifest, const std::vector<std::string>& hidden) {
  constexpr std::size_t kMost = 48 << 10;  // of the 64 KiB that an attribute may have
  Json::Array paths;
  std::size_t size = 0;
  auto add = [&](const std::string& path) {
    size += 6 * path.size() + 3;  // escaped
    paths.emplace_back(size > kMost ? std::string() : path);
    return size <= kMost;
  };
  const bool has_room = std::all_of(manifest.refused.begin(), manifest.refused.end(),
                                    [&](const RefusedEntry& each) { return add(each.path); });
  if (has_room) static_cast<void>(std::all_of(hidden.begin(), hidden.end(), add));
  return wire::to_text(Json(std::move(paths)));
}

}  // namespace playfs::vfs
