// A revision's files and changes as tables.
#pragma once

#include <string>
#include <vector>

#include "http/pages/diff.h"
#include "http/pages/html.h"
#include "model/records.h"

namespace playfs::http {

/// A path, its folders less prominent than the name.
void show_path(Html& html, std::string_view path);

/// All files of a revision, and the entries that mounts refuse.
void show_files(Html& html, const std::string& project, const Revision& revision);

/// The changed files, each with a link into the page that shows the difference.
void show_changes(Html& html, const std::vector<FileChange>& changes, const Url& difference);

/// The id of a file's section on the page of a difference: numbered, since paths may be anything.
std::string change_anchor(std::size_t index);

Url url_of_file(std::string_view project, std::string_view revision, std::string_view path);
Url url_of_raw(std::string_view project, std::string_view revision, std::string_view path);

}  // namespace playfs::http
