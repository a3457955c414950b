// What version-control systems take for a repository of their own, and run programs from: a stranger's hook, pager or
// file-system monitor, at the next prompt of a shell that shows a branch. A published tree never is one.
//
// Names are compared as file systems do that fold case, and by the short and long forms that NTFS and HFS+ know. Plain
// functions.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/manifest.h"

namespace playfs {

/// Whether a folder of that name belongs to a version-control system: `.git`, `.hg`, `CVS` and their like.
bool is_repository_folder(std::string_view name);

/// The files without which no folder is a git repository by what lies in it, as a bare one is: `HEAD` beside `objects`
/// and `refs`, or beside `commondir`.
std::vector<std::string> find_repository_heads(const std::map<std::string, FileEntry, std::less<>>& files);

}  // namespace playfs
