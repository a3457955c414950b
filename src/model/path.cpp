#include "model/path.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "model/repository.h"

namespace playfs {

std::optional<std::string> why_not_a_component(std::string_view name) {
  if (name.empty()) return "an empty name";
  if (name == "." || name == "..") return fmt::format("the name \"{}\"", name);
  if (name.find('/') != std::string_view::npos) return "a slash in a name";
  if (name.find('\0') != std::string_view::npos) return "a NUL byte in a name";
  if (name.size() > kMaxComponentLength) return fmt::format("a name longer than {} bytes", kMaxComponentLength);
  if (!is_valid_utf8(name)) return "a name that is not valid UTF-8";
  if (is_repository_folder(name))
    return is_git_alias(name) ? "a name that git takes for its repository"
                              : "a name that a version-control system takes for its repository";
  // Exports keep trusted data there, so nobody may publish it.
  if (is_own_folder(name)) return "the name of the directory where playfs keeps its data on an exported tree";
  return std::nullopt;
}

std::optional<TreePath> TreePath::parse(std::string_view text, std::string* why) {
  auto refuse = [&](std::string reason) -> std::optional<TreePath> {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  if (text.empty()) return refuse("an empty path");
  if (text.front() == '/') return refuse("an absolute path");
  if (text.size() > kMaxPathLength) return refuse(fmt::format("a path longer than {} bytes", kMaxPathLength));
  for (std::size_t begin = 0; begin <= text.size();) {
    std::size_t end = std::min(text.find('/', begin), text.size());
    if (auto reason = why_not_a_component(text.substr(begin, end - begin))) return refuse(*std::move(reason));
    begin = end + 1;
  }
  return TreePath(std::string(text));
}

std::string_view TreePath::name() const {
  std::string_view text = text_;
  return text.substr(text.rfind('/') + 1);  // npos + 1 is 0
}

std::optional<std::string> path_below_root(const std::string& text) {
  if (text == ".") return std::string();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const auto component = std::string_view(text).substr(begin, end - begin);
    if (component.empty() || component == "." || component == ".." || component.size() > kMaxComponentLength)
      return std::nullopt;
    begin = end + 1;
  }
  return text;
}

bool is_at_or_below(std::string_view path, std::string_view top) {
  return top.empty() || path == top || (path.starts_with(top) && path[top.size()] == '/');
}

bool has_at_or_above(const PathSet& paths, const std::string& path) {
  for (auto end = path.size(); end != std::string::npos && end > 0; end = path.rfind('/', end - 1))
    if (paths.contains(path.substr(0, end))) return true;
  return false;
}

bool has_at_or_below(const PathSet& paths, const std::string& top) {
  if (paths.contains(top)) return true;
  auto below = paths.lower_bound(top + '/');
  return below != paths.end() && is_at_or_below(*below, top);
}

}  // namespace playfs
