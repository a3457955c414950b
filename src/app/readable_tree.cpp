#include "app/readable_tree.h"

#include <algorithm>

#include "model/path.h"

namespace playfs::app {

Result<std::optional<std::string>> ReadableTree::content(const std::string& path, const FileEntry* entry) const {
  if (!entry || entry->inline_text) return entry ? entry->inline_text : std::nullopt;
  return read(path);
}

bool may_be_hidden(const std::vector<std::string>& refused, const std::string& path) {
  return std::any_of(refused.begin(), refused.end(), [&](const std::string& each) {
    return each.empty() || is_at_or_below(path, each) || is_at_or_below(each, path);
  });
}

Result<bool> have_the_same(const std::string& path, const ReadableTree& a, const FileEntry& in_a, const ReadableTree& b,
                           const FileEntry& in_b) {
  if (in_a.mode != in_b.mode) return false;
  if (in_a.same_content(in_b)) return true;
  if (known_hash(in_a) && known_hash(in_b)) return false;
  PLAYFS_TRY(const auto one, a.content(path, &in_a));
  PLAYFS_TRY(const auto other, b.content(path, &in_b));
  return one && other && *one == *other;
}

}  // namespace playfs::app
