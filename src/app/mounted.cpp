#include "app/mounted.h"

#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "app/probe.h"
#include "base/fd.h"

namespace playfs::app {

namespace {

/// The kernel writes space, tab, newline and backslash as three octal digits.
std::string unescape(std::string_view field) {
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      text += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

bool is_within(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

/// What is left of `path` below `directory`, without a slash in front. REQUIRES: is_within.
std::string below(std::string_view path, std::string_view directory) {
  path.remove_prefix(directory == "/" ? 1 : directory.size());
  if (path.starts_with('/')) path.remove_prefix(1);
  return std::string(path);
}

std::string join(const std::string& directory, const std::string& rest) {
  if (rest.empty()) return directory;
  return directory == "/" ? "/" + rest : directory + "/" + rest;
}

std::string project_attribute(const std::string& path) {
  std::array<char, 1024> value{};
  ssize_t size = getxattr(path.c_str(), "user.playfs.project", value.data(), value.size());
  return size > 0 ? std::string(value.data(), static_cast<std::size_t>(size)) : std::string();
}

void find_project(MountedPlace& place, const MountEntry& mount) {
  std::string inside = below(place.path, place.mount_point);
  if (mount.root != "/") inside = join(below(mount.root, "/"), inside);
  constexpr std::string_view projects = "projects/";
  if (mount.root == "/" && inside.starts_with(projects)) {
    auto slash = std::min(inside.find('/', projects.size()), inside.size());
    place.project = inside.substr(projects.size(), slash - projects.size());
    place.project_directory = join(place.mount_point, inside.substr(0, slash));
    place.work = place.project_directory + "/work";
  } else if (auto project = project_attribute(place.mount_point); !project.empty()) {
    place.project = project;
    place.project_directory = join(place.mount_point, ".playfs/project");
    place.work = place.mount_point;
  }
  if (!place.work.empty() && is_within(place.path, place.work)) place.in_work = below(place.path, place.work);
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> table;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // 36 35 98:0 ROOT MOUNT_POINT options optional… - TYPE SOURCE super_options
    std::istringstream fields(line);
    std::string ignored, device, root, mount_point, options, field, type, source, super_options;
    fields >> ignored >> ignored >> device >> root >> mount_point >> options;
    while (fields >> field && field != "-") continue;
    if (!(fields >> type >> source)) continue;
    fields >> super_options;
    table.push_back(
        {unescape(mount_point), unescape(root), unescape(type), unescape(source), device, options, super_options});
  }
  return table;
}

bool has_option(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    auto comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == item) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

Result<std::vector<MountEntry>> read_mount_table() {
  PLAYFS_TRY(std::string text, read_file("/proc/self/mountinfo", 64 << 20));
  return parse_mount_table(text);
}

const MountEntry* mount_holding(const std::vector<MountEntry>& table, std::string_view path) {
  const MountEntry* best = nullptr;
  for (const MountEntry& entry : table)
    if (is_within(path, entry.mount_point) && (best == nullptr || entry.mount_point.size() >= best->mount_point.size()))
      best = &entry;
  return best;
}

Result<std::optional<MountedPlace>> find_mount(const std::string& path) {
  PLAYFS_TRY(auto table, read_mount_table());
  if (std::none_of(table.begin(), table.end(), [](const auto& entry) { return entry.type == kMountType; }))
    return std::optional<MountedPlace>();
  auto looked = look_at(path);
  if (looked.state == Probe::State::silent) return silence_of(path);
  MountedPlace place;
  place.path = std::move(looked.real);
  const MountEntry* mount = mount_holding(table, place.path);
  if (mount == nullptr || mount->type != kMountType) return std::optional<MountedPlace>();
  place.mount_point = mount->mount_point;
  place.source = mount->source;
  find_project(place, *mount);
  return std::optional<MountedPlace>(std::move(place));
}

Result<MountedPlace> find_project_at(const std::string& path) {
  PLAYFS_TRY(auto place, find_mount(path));
  if (!place)
    return fail(ErrorCode::not_found, path + " is in no mount of playfs",
                "playfs mount DIR, then cd DIR/projects/by-name/NAME/work");
  if (place->project.empty())
    return fail(ErrorCode::not_found, path + " is in a mount, but in no project of it",
                "cd " + place->mount_point + "/projects/by-name/NAME/work");
  return std::move(*place);
}

}  // namespace playfs::app
