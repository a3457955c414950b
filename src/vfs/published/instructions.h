// Which files of a published tree are hidden because they give instructions to agents (model/instructions.h).
#pragma once

#include "model/instructions.h"
#include "model/tree.h"

namespace playfs::vfs {

class Mount;

/// The paths of those that the mount hides. Does local I/O.
PathSet hidden_instructions(Mount& mount, const Manifest& manifest);
/// The paths of those that were not published from here by the mount's agent, hidden or not.
PathSet instructions_of_others(Mount& mount, const Manifest& manifest);
/// The contents of the others.
std::vector<ContentHash> own_instructions(Mount& mount, const RevisionTreePtr& tree);

/// Whether nothing is left of a directory without the hidden files. `path` is its own.
bool is_all_hidden(const Tree::Directory& directory, const std::string& path, const PathSet& hidden);

/// As `status` lists them.
std::vector<RefusedEntry> as_refused(const std::vector<std::string>& hidden);
/// The attribute "user.playfs.refused": the paths of entries that are not shown, as a JSON array; its last one is "" if
/// there are more.
std::string refused_text(const Manifest& manifest, const std::vector<std::string>& hidden);

}  // namespace playfs::vfs
