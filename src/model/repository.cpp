#include "model/repository.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "model/path.h"

namespace playfs {

namespace {

// The first list matches in any case, the second exactly.
constexpr std::array<std::string_view, 9> kFolders = {".hg",    ".svn",      ".bzr", ".jj",  ".sl",
                                                      ".pijul", ".fslckout", ".fos", ".repo"};
constexpr std::array<std::string_view, 6> kPlainFolders = {"CVS", "_darcs", "_FOSSIL_", "_MTN", "BitKeeper", "{arch}"};

constexpr std::size_t kObjectName = 40;

bool is_folder_of_git(std::string_view folded) {
  return folded == ".git" || folded == "git~1";  // its short name on FAT and NTFS
}

/// Whether the folded name may begin with one of these lower-case characters. Tells most names apart without folding
/// them: only what is not ASCII is dropped at the beginning, or becomes another letter.
bool may_begin_with(std::string_view characters, std::string_view name) {
  if (name.empty()) return false;
  const char first = name.front() >= 'A' && name.front() <= 'Z' ? static_cast<char>(name.front() + 32) : name.front();
  return static_cast<unsigned char>(first) >= 0x80 || characters.find(first) != std::string_view::npos;
}
constexpr std::string_view kBeginningsOfGit = ".g";

}  // namespace

/// NTFS drops trailing dots and spaces, and treats what follows ':'
/// as a stream and what follows '\\' as the next component.
std::string folded_name(std::string_view name) {
  std::string text = to_lower(without_ignorable(name));
  // Other file systems fold these two to ASCII.
  for (const auto& [letter, plain] : {std::pair<std::string_view, char>("\u017f", 's'), {"\u212a", 'k'}})
    for (auto at = text.find(letter); at != std::string::npos; at = text.find(letter))
      text.replace(at, letter.size(), 1, plain);
  text.resize(std::min(text.find_first_of(":\\"), text.size()));
  text.resize(text.find_last_not_of(". ") + 1);  // npos + 1 is 0
  return text;
}

bool is_git_alias(std::string_view name) {
  return may_begin_with(kBeginningsOfGit, name) && is_folder_of_git(folded_name(name));
}

bool is_repository_folder(std::string_view name) {
  if (std::find(kPlainFolders.begin(), kPlainFolders.end(), name) != kPlainFolders.end()) return true;
  if (!may_begin_with(kBeginningsOfGit, name)) return false;  // as all of kFolders
  const std::string text = folded_name(name);
  return is_folder_of_git(text) || std::find(kFolders.begin(), kFolders.end(), text) != kFolders.end();
}

bool is_own_folder(std::string_view name) { return may_begin_with(".", name) && folded_name(name) == ".playfs"; }

bool is_named_as_head(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return may_begin_with("h", name) && folded_name(name) == "head";
}

bool is_content_of_head(FileMode mode, std::string_view beginning) {
  if (mode == FileMode::symlink) return beginning.starts_with("refs/");
  if (beginning.starts_with("ref:")) {
    beginning.remove_prefix(4);
    beginning.remove_prefix(std::min(beginning.find_first_not_of(" \t\n\r"), beginning.size()));
    return beginning.starts_with("refs/");
  }
  // An object name, SHA-1 or longer, whatever follows it.
  return beginning.size() >= kObjectName && from_hex(beginning.substr(0, kObjectName));
}

bool is_content_of_head(const FileEntry& entry) {
  auto content = entry.inline_content();
  return content && is_content_of_head(entry.mode, std::string_view(*content).substr(0, kReadOfHead));
}

}  // namespace playfs
