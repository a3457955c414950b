#include "app/published_tree.h"

#include <fmt/format.h>

#include "app/lookup.h"
#include "base/await.h"

namespace playfs::app {

namespace {
constexpr std::size_t kLargestShown = 256 << 20;
}  // namespace

Result<Manifest> PublishedTree::list(const std::string& top) const {
  Manifest tree;
  if (!revision_) return tree;
  const auto& files = revision_->tree.manifest().files;
  for (auto file = files.lower_bound(top); file != files.end() && file->first.starts_with(top); ++file) {
    const auto& [path, entry] = *file;
    if (!is_at_or_below(path, top) || hidden_.contains(path)) continue;
    PLAYFS_TRY(FileEntry as_shown, described(path, entry));
    tree.files.emplace(path, std::move(as_shown));
  }
  return tree;
}

const FileEntry* PublishedTree::shown(const std::string& path) const {
  return revision_ && !hidden_.contains(path) ? revision_->tree.file_at(path) : nullptr;
}

Result<std::optional<FileEntry>> PublishedTree::entry_at(const std::string& path) const {
  const FileEntry* entry = shown(path);
  if (!entry) return std::optional<FileEntry>();
  PLAYFS_TRY(FileEntry as_shown, described(path, *entry));
  return std::optional(std::move(as_shown));
}

/// As MountedTree describes the same file, so that the two can be compared.
Result<FileEntry> PublishedTree::described(const std::string& path, const FileEntry& entry) const {
  FileEntry shown;
  shown.mode = entry.mode;
  if (entry.mode == FileMode::symlink) {
    PLAYFS_TRY(auto target, read(path));
    shown.inline_text = target.value_or("");
    return shown;
  }
  shown.size_claim = entry.size_claim;
  if (auto hash = known_hash(entry)) shown.hash_claim = hash->hex();
  shown.chunks.emplace_back(content_key(entry));
  return shown;
}

Result<std::vector<std::string>> PublishedTree::refused() const {
  std::vector<std::string> paths;
  if (revision_)
    for (const RefusedEntry& each : revision_->tree.manifest().refused) paths.push_back(each.path);
  paths.insert(paths.end(), hidden_.begin(), hidden_.end());
  return paths;
}

Result<std::optional<std::string>> PublishedTree::read(const std::string& path) const {
  const FileEntry* entry = shown(path);
  if (!entry) return std::optional<std::string>();
  PLAYFS_TRY(const content::Blob blob, blob_of(stack_, FileRef{revision_, path, entry}));
  if (blob.size() > kLargestShown)
    return fail(ErrorCode::file_too_big, fmt::format("{} is larger than {} bytes", path, kLargestShown));
  PLAYFS_TRY(std::string content, blob.read(0, blob.size()));
  return std::optional(std::move(content));
}

Result<std::unique_ptr<ReadableTree>> published_tree(runtime::ClientStack& stack, const std::string& revision,
                                                     const Hides& hides) {
  RevisionTreePtr tree;
  if (!revision.empty()) {
    PLAYFS_TRY(tree, await<RevisionTreePtr>(
                         [&](auto done) { stack.site().revision(RevisionId(revision), {}, std::move(done)); }));
  }
  PathSet hidden = tree && hides ? hides(tree->tree.manifest()) : PathSet();
  return std::make_unique<PublishedTree>(stack, std::move(tree), std::move(hidden));
}

}  // namespace playfs::app
