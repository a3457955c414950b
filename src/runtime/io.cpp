#include "runtime/io.h"

#include <algorithm>

#include "runtime/mount_table.h"
#include "runtime/probe.h"

namespace playfs::runtime {

namespace {

/// REQUIRES: `path` does not end with a slash. "" for the root.
std::string parent_of(const std::string& path) { return path.substr(0, std::min(path.rfind('/'), path.size())); }

/// The directory that ".." leads to, "" for the root: the textual parent, unless a link leads elsewhere.
std::string above(const std::string& directory) {
  std::string up = directory + "/..";
  std::string real = look_at(up).real;
  if (leads_up(real)) return up;
  std::string parent = parent_of(directory);
  if (look_at(parent.empty() ? "/" : parent).real == real) return parent;
  return real == "/" ? "" : real;
}

}  // namespace

std::optional<std::string> Io::variable(std::string_view name) const {
  auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::string Io::absolute(std::string_view path) const {
  // The root is "" here, so that every appended name begins with a slash.
  const std::string working = directory == "/" ? "" : directory;
  std::string at = path.starts_with('/') ? "" : working;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (name.empty() || name == ".") continue;
    if (name != ".." || leads_up(at)) at += "/" + std::string(name);
    else if (is_within(working, at)) at = parent_of(at);  // not a link: the kernel reported this path
    else at = above(at);
  }
  return at.empty() ? "/" : at;
}

}  // namespace playfs::runtime
