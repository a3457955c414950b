#include "model/path.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.h"

namespace playfs {

namespace {

// Code points that HFS+ leaves out when it compares names, as UTF-8: the list that git keeps in utf8.c.
constexpr std::array<std::string_view, 16> kIgnorable = {"\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202b",
                                                         "\u202c", "\u202d", "\u202e", "\u206a", "\u206b", "\u206c",
                                                         "\u206d", "\u206e", "\u206f", "\ufeff"};

constexpr std::string_view kOwnFolder = ".playfs";

std::string without_ignorable(std::string_view name) {
  auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(name.begin(), name.end(), is_ascii)) return std::string(name);
  std::string out;
  while (!name.empty()) {
    auto found = std::find_if(kIgnorable.begin(), kIgnorable.end(), [&](auto code) { return name.starts_with(code); });
    if (found == kIgnorable.end()) out += name[0];
    name.remove_prefix(found == kIgnorable.end() ? 1 : found->size());
  }
  return out;
}

}  // namespace

bool is_git_alias(std::string_view name) {
  std::string folded = to_lower(without_ignorable(name));
  std::string_view rest = folded;
  if (rest.starts_with(".git")) rest.remove_prefix(4);
  else if (rest.starts_with("git~1")) rest.remove_prefix(5);  // its short name on FAT and NTFS
  else return false;
  // NTFS drops trailing dots and spaces, and takes what follows ':' for a stream and '\' for the next component.
  auto end = rest.find_first_not_of(". ");
  return end == std::string_view::npos || rest[end] == ':' || rest[end] == '\\';
}

std::optional<std::string> why_not_a_component(std::string_view name) {
  if (name.empty()) return "an empty name";
  if (name == "." || name == "..") return fmt::format("the name \"{}\"", name);
  if (name.find('/') != std::string_view::npos) return "a slash in a name";
  if (name.find('\0') != std::string_view::npos) return "a NUL byte in a name";
  if (name.size() > kMaxComponentLength) return fmt::format("a name longer than {} bytes", kMaxComponentLength);
  if (!is_valid_utf8(name)) return "a name that is not valid UTF-8";
  if (is_git_alias(name)) return "a name that git takes for its repository folder";
  // What an export leaves there is believed: a stranger must not be able to publish it.
  if (name == kOwnFolder) return "the name of the folder in which playfs keeps what it knows of an exported tree";
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

std::vector<std::string_view> TreePath::components() const {
  std::vector<std::string_view> parts;
  std::string_view rest = text_;
  for (auto slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
    parts.push_back(rest.substr(0, slash));
    rest.remove_prefix(slash + 1);
  }
  parts.push_back(rest);
  return parts;
}

}  // namespace playfs
