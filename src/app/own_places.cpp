#include "app/own_places.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <deque>
#include <string_view>

namespace playfs::app {

namespace {

constexpr int kMostLinks = 40;  // as in the kernel

std::deque<std::string> components_of(std::string_view path) {
  std::deque<std::string> components;
  while (!path.empty()) {
    auto slash = std::min(path.find('/'), path.size());
    if (slash > 0 && path.substr(0, slash) != ".") components.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return components;
}

/// Calls `visit` with the real path of each name that the kernel looks up on the way to `path`, before accessing it: it
/// may be in a mount that does not answer. Names that do not exist yet are followed as written.
template <class Visit>
Status walk(const std::string& path, Visit visit) {
  std::string at;  // "" is the root
  PLAYFS_CHECK(visit("/"));
  std::deque<std::string> left = components_of(path);
  for (int links = 0; !left.empty();) {
    const std::string name = std::move(left.front());
    left.pop_front();
    if (name == "..") {
      at.resize(at.empty() ? 0 : at.rfind('/'));
      continue;
    }
    const std::string next = at + "/" + name;
    PLAYFS_CHECK(visit(next));
    std::array<char, PATH_MAX> target{};
    const ssize_t size = readlink(next.c_str(), target.data(), target.size());
    if (size < 0) {  // not a link, or not there yet
      at = next;
      continue;
    }
    if (++links > kMostLinks) return fail(ErrorCode::loop, path + ": too many symbolic links");
    if (size > 0 && target[0] == '/') at.clear();
    auto components = components_of(std::string_view(target.data(), static_cast<std::size_t>(size)));
    left.insert(left.begin(), components.begin(), components.end());
  }
  return {};
}

/// Where SQLite puts its temporary files: it uses the first of these that is set.
std::string temporary_directory(const runtime::Io& io) {
  for (const char* variable : {"SQLITE_TMPDIR", "TMPDIR"})
    if (auto value = io.variable(variable)) return io.absolute(*value);
  return "/var/tmp";
}

}  // namespace

std::vector<OwnPlace> own_places(const CommandContext& context, const runtime::Source& source) {
  const runtime::Places& places = context.places;
  std::vector<OwnPlace> own{{"staged changes and log", places.state, "XDG_STATE_HOME"},
                            {"cache", places.cache, "XDG_CACHE_HOME"},
                            {"configuration and keys", places.config, "XDG_CONFIG_HOME"}};
  if (source.kind == runtime::Source::Kind::embedded) {
    const bool by_name = source.directory.starts_with(places.data + "/");
    own.push_back({"store of " + source.text, source.directory, by_name ? "XDG_DATA_HOME" : "local:/DIRECTORY"});
  } else if (auto authority = context.settings.text("cafile", source.text)) {
    own.push_back({"certificate authority", context.io.absolute(*authority), "cafile"});
  }
  own.push_back({"databases' temporary files", temporary_directory(context.io), "TMPDIR"});
  return own;
}

Status check_own_places(const std::vector<OwnPlace>& own, const std::string& mount_point,
                        const std::vector<runtime::MountEntry>& mounts) {
  for (const OwnPlace& place : own) {
    const std::string named = "playfs's own " + place.what + " (" + place.path + ")";
    PLAYFS_CHECK(walk(place.path, [&](const std::string& step) -> Status {
      if (step == mount_point)
        return fail(ErrorCode::invalid_argument,
                    mount_point + " holds " + named + ", which a mount there would hide from playfs",
                    "use a separate directory, such as " + (mount_point == "/" ? "" : mount_point) +
                        "/play, or move them elsewhere with " + place.mover);
      if (const runtime::MountEntry* mount = runtime::mount_holding(mounts, step);
          mount != nullptr && mount->type == kMountType)
        return fail(ErrorCode::invalid_argument,
                    named + " would be inside the mount of " + mount->source + " at " + mount->mount_point +
                        ", and the two mounts could deadlock",
                    "move them out of it with " + place.mover);
      return {};
    }));
  }
  return {};
}

}  // namespace playfs::app
