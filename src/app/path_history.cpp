#include "app/path_history.h"

#include "compare/trees.h"

namespace playfs::app {

namespace {
constexpr std::size_t kMostKept = 64;
}  // namespace

Result<PathHistory::VersionPtr> PathHistory::version(const RevisionId& id) {
  for (auto each = recent_.begin(); each != recent_.end(); ++each) {
    if ((*each)->id != id) continue;
    recent_.splice(recent_.begin(), recent_, each);
    return recent_.front();
  }
  PLAYFS_TRY(auto tree, tree_of_(id.text()));
  PLAYFS_TRY(Manifest files, tree->list(path_));
  recent_.push_front(std::make_shared<const Version>(Version{id, std::move(tree), std::move(files)}));
  if (recent_.size() > kMostKept) recent_.pop_back();
  return recent_.front();
}

Result<std::size_t> PathHistory::occurrences(const Version& version, const std::string& path, const FileEntry* entry) {
  if (!entry) return 0;
  auto content = version.tree->content(path, entry);
  if (!content && content.error().code == ErrorCode::file_too_big) {
    left_out_ = true;
    return 0;
  }
  if (!content) return fail(content.error());
  const std::string in = content->value_or("");
  std::size_t count = 0;
  for (std::size_t at = in.find(text_); at != std::string::npos; at = in.find(text_, at + text_.size())) ++count;
  return count;
}

Result<bool> PathHistory::differ(const Version& before, const Version& after) {
  const auto changes = compare::changes_between(before.files, after.files);
  if (text_.empty()) {
    for (const compare::FileChange& change : changes) {
      if (change.kind != compare::ChangeKind::modified) return true;
      // Publishers need not give hashes, so entries may differ though the files do not.
      PLAYFS_TRY(const bool same, have_the_same(change.path, *before.tree, *change.before, *after.tree, *change.after));
      if (!same) return true;
    }
    return false;
  }
  std::size_t had = 0, has = 0;
  for (const compare::FileChange& change : changes) {
    PLAYFS_TRY(const std::size_t old_count, occurrences(before, change.old_path, change.before));
    PLAYFS_TRY(const std::size_t new_count, occurrences(after, change.path, change.after));
    had += old_count;
    has += new_count;
  }
  return had != has;
}

Result<bool> PathHistory::was_changed_in(const RevisionId& revision, const std::vector<RevisionId>& parents) {
  PLAYFS_TRY(const VersionPtr after, version(revision));
  if (parents.empty()) return differ(Version{}, *after);
  for (const RevisionId& parent : parents) {
    PLAYFS_TRY(const VersionPtr before, version(parent));
    PLAYFS_TRY(const bool is_changed, differ(*before, *after));
    if (!is_changed) return false;
  }
  return true;
}

}  // namespace playfs::app
