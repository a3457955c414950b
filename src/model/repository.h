// What makes a directory a repository to a version-control system, which then runs programs that the repository names:
// a stranger's hook, pager or file-system monitor, at the next prompt of a shell that shows a branch.
//
// One is the name of a folder. The other is git's bare repository, which is any directory with `objects`, `refs` and
// `HEAD` in it. Each name alone is harmless, and a merge may bring the three together from three revisions. So only
// HEAD is looked at, whatever stands beside it: git believes none whose content does not say where it leads.
//
// Names are compared as file systems do that fold case, and by the short and long forms that NTFS and HFS+ know. Plain
// functions.
#pragma once

#include <string_view>

#include "model/manifest.h"

namespace playfs {

/// True for the names that git, on some file system, would take for `.git`.
bool is_git_alias(std::string_view name);

/// Whether a folder of that name belongs to a version-control system: `.git`, `.hg`, `CVS` and their like.
bool is_repository_folder(std::string_view name);

/// Whether a file at that path is named as the HEAD of a repository is. What makes it one is its content.
bool is_named_as_head(std::string_view path);

/// As much of HEAD as git reads, in bytes.
inline constexpr std::size_t kReadOfHead = 255;

/// Whether git takes a file so named for the HEAD of a repository, by the first kReadOfHead bytes of its content, or by
/// where it leads, for a link.
bool is_content_of_head(FileMode mode, std::string_view beginning);
/// The same of an entry; false where its content does not stand inline.
bool is_content_of_head(const FileEntry& entry);

/// Why it is not shown, in words for a person.
inline constexpr std::string_view kWhyNoHead = "git would take its directory for a repository, and run what that says";

}  // namespace playfs
