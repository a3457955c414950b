// Folders that version-control systems take for their own, and run programs from: a stranger's hook, pager or
// file-system monitor, at the next prompt of a shell that shows a branch.
//
// Names are compared as file systems do that fold case, and by the short and long forms that NTFS and HFS+ know. Plain
// functions.
#pragma once

#include <string_view>

namespace playfs {

/// Whether a folder of that name belongs to a version-control system: `.git`, `.hg`, `CVS` and their like.
bool is_repository_folder(std::string_view name);

}  // namespace playfs
