// Finds one file that moved between two trees, as `git diff` would. Blocking.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/readable_tree.h"

namespace playfs::app {

/// Where `before` has the file that `after` has at `path`; nullopt unless it moved. Of too many files, only those that
/// moved unedited are found.
Result<std::optional<std::string>> old_path_of(const std::string& path, const ReadableTree& before,
                                               const ReadableTree& after);
/// The same the other way round; only a path that `may_be` accepts.
Result<std::optional<std::string>> new_path_of(const std::string& path, const ReadableTree& before,
                                               const ReadableTree& after,
                                               const std::function<bool(const std::string&)>& may_be);

}  // namespace playfs::app
