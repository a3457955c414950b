// A revision's files and changes as tables.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/trees.h"
#include "http/pages/html.h"
#include "http/pages/reader.h"
#include "model/records.h"

namespace playfs::http {

/// A path, its folders less prominent than the name.
void show_path(Html& html, std::string_view path);

/// All files of a revision, and the entries that mounts refuse.
void show_files(Html& html, const std::string& project, const Revision& revision);

/// What stands directly in a folder.
struct TreeEntry {
  std::string name;
  const FileEntry* file = nullptr;  ///< nullptr: a folder
  std::size_t files = 0;            ///< of a folder, in it and below
};
/// `folder` is "", or ends with '/'. Folders come first. Empty if there is no such folder.
std::vector<TreeEntry> entries_of(const Manifest& manifest, std::string_view folder);

/// One folder, with a further column between name and size.
void show_folder(Html& html, const Revision& revision, std::string_view folder, std::string_view column,
                 const std::function<void(const TreeEntry&)>& show_cell);

/// The entries that mounts refuse, if there are any.
void show_refused(Html& html, const Manifest& manifest);

/// What a file is, if it is no plain text.
std::string_view kind_of(const FileEntry& entry);

/// The files that differ between two manifests, in the order of paths.
struct Changes {
  std::vector<compare::FileChange> files;
  bool has_all_renames = true;  ///< else only those of unedited files
};
/// Finds the renames that `playfs diff` finds, if they take no more than a part of what one page may read. That part is
/// the same for every page, since pages link to each other's changes by number.
Changes changes_of(Reader& reader, const Manifest& before, const Manifest& after);

/// The changed files, each with a link into the page that shows the difference.
void show_changes(Html& html, const Changes& changes, const Url& difference);

/// The id of a file's section on the page of a difference: numbered, since paths may be anything.
std::string change_anchor(std::size_t index);

/// The page of a file or folder.
Url url_of_file(std::string_view project, std::string_view revision, std::string_view path);
Url url_of_raw(std::string_view project, std::string_view revision, std::string_view path);

}  // namespace playfs::http
