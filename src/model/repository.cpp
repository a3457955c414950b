#include "model/repository.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/path.h"

namespace playfs {

namespace {

// Code points that HFS+ leaves out when it compares names, as UTF-8: the list that git keeps in utf8.c.
constexpr std::array<std::string_view, 16> kIgnorable = {"\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202b",
                                                         "\u202c", "\u202d", "\u202e", "\u206a", "\u206b", "\u206c",
                                                         "\u206d", "\u206e", "\u206f", "\ufeff"};

// In any case, and as they are.
constexpr std::array<std::string_view, 7> kFolders = {".hg", ".svn", ".bzr", ".jj", ".sl", ".pijul", ".fslckout"};
constexpr std::array<std::string_view, 3> kPlainFolders = {"CVS", "_darcs", "_FOSSIL_"};

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

/// What file systems that fold names make of it. NTFS drops trailing dots and spaces, and takes what follows ':' for a
/// stream and '\\' for the next component.
std::string folded(std::string_view name) {
  std::string text = to_lower(without_ignorable(name));
  text.resize(std::min(text.find_first_of(":\\"), text.size()));
  text.resize(text.find_last_not_of(". ") + 1);  // npos + 1 is 0
  return text;
}

/// Of `parent` ("" or with a slash behind it) the name of what `path` leads through.
std::string_view name_in(std::string_view parent, std::string_view path) {
  path.remove_prefix(parent.size());
  return path.substr(0, path.find('/'));
}

}  // namespace

bool is_git_alias(std::string_view name) {
  const std::string text = folded(name);
  return text == ".git" || text == "git~1";  // its short name on FAT and NTFS
}

bool is_repository_folder(std::string_view name) {
  const std::string text = folded(name);
  return is_git_alias(name) || std::find(kFolders.begin(), kFolders.end(), text) != kFolders.end() ||
         std::find(kPlainFolders.begin(), kPlainFolders.end(), name) != kPlainFolders.end();
}

std::vector<std::string> find_repository_heads(const std::map<std::string, FileEntry, std::less<>>& files) {
  std::vector<std::string> heads;
  for (const auto& [path, entry] : files) {
    const std::string_view parent = std::string_view(path).substr(0, path.rfind('/') + 1);  // npos + 1 is 0
    if (folded(name_in(parent, path)) != "head") continue;
    bool has_objects = false, has_refs = false, is_linked = false;
    for (auto beside = files.lower_bound(parent); beside != files.end() && beside->first.starts_with(parent);) {
      const std::string_view name = name_in(parent, beside->first);
      const std::string text = folded(name);
      has_objects = has_objects || text == "objects";
      has_refs = has_refs || text == "refs";
      is_linked = is_linked || text == "commondir";
      // Behind all that lies in it.
      beside = files.lower_bound(std::string(parent) + std::string(name) + static_cast<char>('/' + 1));
    }
    if (is_linked || (has_objects && has_refs)) heads.push_back(path);
  }
  return heads;
}

}  // namespace playfs
