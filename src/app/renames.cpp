#include "app/renames.h"

#include "compare/trees.h"

namespace playfs::app {

namespace {

/// Calls `take` with the renames among the changes that may be it.
Status find_rename(const ReadableTree& before, const ReadableTree& after,
                   const std::function<bool(const compare::FileChange&)>& may_be_it,
                   const std::function<void(const compare::FileChange&)>& take) {
  PLAYFS_TRY(const Manifest old_files, before.list(""));
  PLAYFS_TRY(const Manifest new_files, after.list(""));
  auto changes = compare::changes_between(old_files, new_files);
  // The files on the side that is known are not read, but for that one.
  std::erase_if(changes, [&](const compare::FileChange& change) { return !may_be_it(change); });
  auto read = [&](const compare::FileChange& change) {
    return change.after ? after.content(change.path, change.after) : before.content(change.path, change.before);
  };
  PLAYFS_TRY([[maybe_unused]] const bool is_complete, compare::pair_renames(changes, read));
  for (const compare::FileChange& change : changes)
    if (change.kind == compare::ChangeKind::renamed) take(change);
  return {};
}

}  // namespace

Result<std::optional<std::string>> old_path_of(const std::string& path, const ReadableTree& before,
                                               const ReadableTree& after) {
  std::optional<std::string> found;
  auto may_be_it = [&](const compare::FileChange& change) {
    return change.kind == compare::ChangeKind::removed ||
           (change.kind == compare::ChangeKind::added && change.path == path);
  };
  PLAYFS_CHECK(find_rename(before, after, may_be_it, [&](const auto& rename) { found = rename.old_path; }));
  return found;
}

Result<std::optional<std::string>> new_path_of(const std::string& path, const ReadableTree& before,
                                               const ReadableTree& after,
                                               const std::function<bool(const std::string&)>& may_be) {
  std::optional<std::string> found;
  auto may_be_it = [&](const compare::FileChange& change) {
    return (change.kind == compare::ChangeKind::added && may_be(change.path)) ||
           (change.kind == compare::ChangeKind::removed && change.path == path);
  };
  PLAYFS_CHECK(find_rename(before, after, may_be_it, [&](const auto& rename) { found = rename.path; }));
  return found;
}

}  // namespace playfs::app
