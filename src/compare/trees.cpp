#include "compare/trees.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "compare/similarity.h"

namespace playfs::compare {

namespace {

bool same_content(const FileEntry& a, const FileEntry& b) {
  FileEntry moded = b;
  moded.mode = a.mode;
  return a.same_content_and_mode(moded);
}

std::string_view file_name_of(const std::string& path) { return std::string_view(path).substr(path.rfind('/') + 1); }

/// A file that only one tree has.
struct Lone {
  FileChange* change;
  const FileEntry* entry;
  std::string key;         ///< equal for equal contents; empty if unknown
  std::uint64_t size = 0;  ///< bytes, once it was read
  Fingerprint fingerprint = {};
  bool is_read = false;
  bool is_paired = false;

  [[nodiscard]] std::string_view name() const { return file_name_of(change->path); }
  [[nodiscard]] bool is_link() const { return entry->mode == FileMode::symlink; }
  /// Whether its key is only what its publisher says.
  [[nodiscard]] bool is_claimed() const { return !is_read && !entry->inline_text; }
  [[nodiscard]] bool may_be_similar() const {
    return !is_paired && !is_link() && entry->size_claim.value_or(0) <= kLargestSimilar;
  }
};

class Pairing {
 public:
  Pairing(std::vector<FileChange>& changes, const ReadFile& read) : read_(read) {
    for (FileChange& change : changes) {
      if (change.kind == ChangeKind::removed) gone_.push_back({&change, change.before, key_of(*change.before)});
      if (change.kind == ChangeKind::added) come_.push_back({&change, change.after, key_of(*change.after)});
    }
  }

  Status run() {
    if (gone_.empty() || come_.empty()) return {};
    const Status hashed = look_at_all([](const Lone& file) { return !known_hash(*file.entry); });
    pair_identical([](const Lone& file) { return file.name(); });
    pair_identical([](const Lone&) { return std::string_view(); });
    if (!hashed || gone_.size() > kMostPairs / come_.size()) return hashed;
    auto is_left = [](const Lone& file) { return file.may_be_similar(); };
    if (std::none_of(gone_.begin(), gone_.end(), is_left) || std::none_of(come_.begin(), come_.end(), is_left))
      return {};
    PLAYFS_CHECK(look_at_all(is_left));
    pair_similar();
    return {};
  }

 private:
  /// What is in the same chunks is the same, whatever its publishers claim.
  std::string key_of(const FileEntry& entry) {
    if (entry.chunks.empty()) return known_hash(entry) ? content_key(entry) : "";
    FileEntry chunks;
    chunks.encoding = entry.encoding;
    chunks.chunks = entry.chunks;
    return keys_.emplace(content_key(chunks), content_key(entry)).first->second;
  }

  template <class Predicate>
  Status look_at_all(Predicate is_wanted) {
    for (auto* files : {&gone_, &come_})
      for (Lone& file : *files)
        if (!file.is_read && is_wanted(file)) PLAYFS_CHECK(look_at(file));
    return {};
  }

  Status look_at(Lone& file) {
    PLAYFS_TRY(auto content, read_(*file.change));
    file.is_read = true;
    if (!content) return {};
    if (!known_hash(*file.entry)) file.key = ContentHash::of(*content).hex();
    file.size = content->size();
    if (file.size <= kLargestSimilar) file.fingerprint = fingerprint_of(*content);
    return {};
  }

  void pair(Lone& from, Lone& to, unsigned similarity) {
    from.is_paired = to.is_paired = true;
    FileChange& change = *to.change;
    change.kind = ChangeKind::renamed;
    change.old_path = from.change->path;
    change.before = std::exchange(from.change->before, nullptr);  // reported by `change` now
    change.similarity = similarity;
    const bool certain = (from.entry->inline_text && to.entry->inline_text) ||
                         (from.entry->chunks == to.entry->chunks && from.entry->encoding == to.entry->encoding);
    change.by_claim = similarity == 100 && !certain && (from.is_claimed() || to.is_claimed());
  }

  /// In the order of paths, among those for which `group_of` is equal.
  template <class Group>
  void pair_identical(Group group_of) {
    const std::string empty = ContentHash::of("").hex();
    auto key = [&](const Lone& file) { return std::tuple(file.key, file.is_link(), group_of(file)); };
    std::multimap<decltype(key(gone_.front())), Lone*> by_key;
    for (Lone& from : gone_)
      if (!from.is_paired && !from.key.empty() && from.key != empty) by_key.emplace(key(from), &from);
    for (Lone& to : come_) {
      auto found = to.is_paired ? by_key.end() : by_key.lower_bound(key(to));  // the first of them
      if (found == by_key.end() || found->first != key(to)) continue;
      pair(*found->second, to, 100);
      by_key.erase(found);
    }
  }

  void pair_similar() {
    std::vector<std::tuple<unsigned, bool, Lone*, Lone*>> pairs;
    for (Lone& from : gone_)
      for (Lone& to : come_)
        if (unsigned alike = similarity_of(from, to); alike >= kLeastSimilar)
          pairs.emplace_back(alike, from.name() == to.name(), &from, &to);
    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) > std::tie(std::get<0>(b), std::get<1>(b));
    });
    for (auto& [alike, same_name, from, to] : pairs)
      if (!from->is_paired && !to->is_paired) pair(*from, *to, alike);
  }

  static unsigned similarity_of(const Lone& from, const Lone& to) {
    if (!from.may_be_similar() || !to.may_be_similar()) return 0;
    if (from.fingerprint.empty() || to.fingerprint.empty()) return 0;
    auto [less, more] = std::minmax(from.size, to.size);
    return less * 100 / more < kLeastSimilar ? 0 : similarity(from.fingerprint, to.fingerprint, more);
  }

  const ReadFile& read_;
  std::map<std::string, std::string> keys_;
  std::vector<Lone> gone_, come_;  ///< in the order of paths
};

}  // namespace

std::vector<FileChange> changes_between(const Manifest& before, const Manifest& after) {
  std::vector<FileChange> changes;
  for (const auto& [path, entry] : before.files) {
    const FileEntry* other = after.file_at(path);
    if (!other) changes.push_back({ChangeKind::removed, path, path, &entry, nullptr});
    else if (!entry.same_content_and_mode(*other))
      changes.push_back(
          {same_content(entry, *other) ? ChangeKind::mode_only : ChangeKind::modified, path, path, &entry, other});
  }
  for (const auto& [path, entry] : after.files)
    if (!before.file_at(path)) changes.push_back({ChangeKind::added, path, path, nullptr, &entry});
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return changes;
}

Status pair_renames(std::vector<FileChange>& changes, const ReadFile& read) {
  const Status status = Pairing(changes, read).run();
  std::erase_if(changes, [](const FileChange& change) { return !change.before && !change.after; });
  return status;
}

std::string_view name_of(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::added: return "added";
    case ChangeKind::removed: return "removed";
    case ChangeKind::modified: return "modified";
    case ChangeKind::renamed: return "renamed";
    case ChangeKind::mode_only: return "mode";
  }
  return {};
}

}  // namespace playfs::compare
