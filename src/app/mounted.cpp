#include "app/mounted.h"

#include <sys/xattr.h>

#include <algorithm>
#include <array>

#include "app/json_fields.h"
#include "base/fd.h"
#include "runtime/probe.h"
#include "runtime/source.h"

namespace playfs::app {

namespace {

/// `path` relative to `directory`. REQUIRES: is_within.
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

/// The path in the work tree; nullopt elsewhere, and in playfs's own folder below the root of a clone or of a mount of
/// one project.
std::optional<std::string> path_in(const MountedPlace& place) {
  if (!runtime::is_within(place.path, place.work)) return std::nullopt;
  if (runtime::is_within(place.path, join(place.work, kMarkFolder))) return std::nullopt;
  return below(place.path, place.work);
}

void find_project(MountedPlace& place, const runtime::MountEntry& mount) {
  std::string inside = below(place.path, place.mount_point);
  if (mount.root != "/") inside = join(below(mount.root, "/"), inside);
  constexpr std::string_view projects = "projects/";
  if (mount.root == "/" && inside.starts_with(projects)) {
    auto slash = std::min(inside.find('/', projects.size()), inside.size());
    const std::string id = inside.substr(projects.size(), slash - projects.size());
    if (id == "by-name" || id == "new") return;  // in a mount that answers, names lead to ids
    place.project = id;
    place.project_directory = join(place.mount_point, inside.substr(0, slash));
    place.work = place.project_directory + "/work";
  } else if (auto project = project_attribute(place.mount_point); !project.empty()) {
    place.project = project;
    place.project_directory = join(place.mount_point, ".playfs/project");
    place.work = place.mount_point;
  }
  if (!place.work.empty()) place.in_work = path_in(place);
}

Result<std::optional<MountedPlace>> find_in_clone(const std::string& path,
                                                  const std::vector<runtime::MountEntry>& mounted) {
  auto looked = runtime::look_at(path, mounted);
  if (looked.state == runtime::Probe::State::silent) return runtime::silence_of(path);
  if (runtime::leads_up(looked.real)) return std::optional<MountedPlace>();
  PLAYFS_TRY(auto found, find_clone(looked.real));
  if (!found) return std::optional<MountedPlace>();
  MountedPlace place;
  place.path = std::move(looked.real);
  place.mount_point = place.work = found->root;
  place.source = found->origin.site;
  place.project = found->origin.project.text();
  place.in_work = path_in(place);
  place.clone = std::move(found->origin);
  return std::optional(std::move(place));
}

bool may_be_ours(const runtime::MountEntry& mount) { return mount.type == kMountType || mount.type == "fuse"; }

}  // namespace

std::string source_of(const runtime::MountEntry& mount) {
  const bool is_ours = mount.type == kMountType;
  if (!may_be_ours(mount)) return {};
  if (is_ours && (runtime::is_source(mount.source) || mount.root != "/")) return mount.source;
  auto status = read_json_object(mount.mount_point + "/.playfs/status.json");
  std::string told = status ? text_of(*status, "mount_source") : "";
  return told.empty() && is_ours ? mount.source : told;
}

Result<std::vector<runtime::MountEntry>> read_mount_table() {
  PLAYFS_TRY(std::string text, read_file("/proc/self/mountinfo", 64 << 20));
  return runtime::parse_mount_table(text);
}

namespace {
Result<std::optional<MountedPlace>> find_mount_in(const std::vector<runtime::MountEntry>& table,
                                                  const std::string& path) {
  if (std::none_of(table.begin(), table.end(), may_be_ours)) return std::optional<MountedPlace>();
  auto looked = runtime::look_at(path);
  if (looked.state == runtime::Probe::State::silent) return runtime::silence_of(path);
  if (runtime::leads_up(looked.real))
    return fail(ErrorCode::not_found, path + " does not exist: it has a '..' that does not follow a directory");
  MountedPlace place;
  place.path = std::move(looked.real);
  const runtime::MountEntry* mount = runtime::mount_holding(table, place.path);
  if (mount == nullptr || !may_be_ours(*mount)) return std::optional<MountedPlace>();
  place.source = looked.state == runtime::Probe::State::answers ? source_of(*mount) : mount->source;
  if (place.source.empty()) return std::optional<MountedPlace>();
  place.mount_point = mount->mount_point;
  find_project(place, *mount);
  return std::optional<MountedPlace>(std::move(place));
}
}  // namespace

Result<std::optional<MountedPlace>> find_mount(const std::string& path) {
  PLAYFS_TRY(const auto table, read_mount_table());
  return find_mount_in(table, path);
}

Result<MountedPlace> find_project_at(const std::string& path) {
  PLAYFS_TRY(const auto table, read_mount_table());
  PLAYFS_TRY(auto place, find_mount_in(table, path));
  if (!place) {
    PLAYFS_TRY(place, find_in_clone(path, table));
  }
  if (!place)
    return fail(ErrorCode::not_found, path + " is neither in a playfs mount nor in a clone",
                "playfs mount DIR, then cd DIR/projects/by-name/NAME/work; or playfs clone PROJECT DIR");
  if (place->project.empty())
    return fail(ErrorCode::not_found, path + " is in a mount, but not in a project",
                "cd " + place->mount_point + "/projects/by-name/NAME/work");
  return std::move(*place);
}

}  // namespace playfs::app
