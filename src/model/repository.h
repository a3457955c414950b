// Detects what makes a directory a repository to a version-control system, which would then run programs that the
// repository names: an untrusted hook, pager or file-system monitor, as soon as a shell prompt shows a branch.
//
// One sign is a directory name. The other is git's bare repository: any directory with `objects`, `refs` and `HEAD`.
// Each name alone is harmless, but a merge may combine them from three revisions. So only HEAD is examined, whatever is
// beside it: git accepts no HEAD whose content does not say where it points.
//
// Names are compared as on case-folding file systems, including the short and long forms of NTFS and what HFS+ and
// case-folding ext4 ignore. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "model/manifest.h"

namespace playfs {

/// The name as case-folding file systems find it.
std::string folded_name(std::string_view name);

/// Whether git, on some file system, would take this name for `.git`.
bool is_git_alias(std::string_view name);

/// Whether a directory of that name belongs to a version-control system: `.git`, `.hg`, `CVS` and the like.
bool is_repository_folder(std::string_view name);

/// Whether a directory of that name is taken for the one where playfs keeps its data on an exported tree.
bool is_own_folder(std::string_view name);

/// Whether the file is named like a repository's HEAD. Its content decides whether it is one.
bool is_named_as_head(std::string_view path);

/// How much of HEAD git reads, in bytes.
inline constexpr std::size_t kReadOfHead = 255;

/// Whether git would take a file with that name for a repository's HEAD, judged by the first kReadOfHead bytes of its
/// content, or by a link's target.
bool is_content_of_head(FileMode mode, std::string_view beginning);
/// The same for an entry; false if its content is not inline.
bool is_content_of_head(const FileEntry& entry);

/// Why it is not shown, human-readable.
inline constexpr std::string_view kWhyNoHead =
    "git would take its directory for a repository, and run programs that it names";

}  // namespace playfs
