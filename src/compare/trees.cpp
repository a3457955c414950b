#include "compare/trees.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "compare/similarity.h"

namespace playfs::compare {

namespace {

std::string_view file_name_of(const std::string& path) { return std::string_view(path).substr(path.rfind('/') + 1); }

/// Equal only for what is the same, whatever its publishers claim; empty if only a hash could tell.
std::string storage_key(const FileEntry& entry) {
  if (auto content = entry.inline_content()) return ContentHash::of(*content).hex();
  std::string key;
  for (const ChunkId& chunk : entry.chunks) key += chunk.text() + '\n';
  if (!key.empty()) key += entry.encoding == ContentEncoding::base64 ? "base64" : "text";
  return key;
}

std::string hash_key(const FileEntry& entry) {
  auto hash = known_hash(entry);
  return hash ? hash->hex() : "";
}

/// A file that only one tree has.
struct Lone {
  FileChange* change;
  const FileEntry* entry;
  std::string storage = storage_key(*entry);
  std::string hash = hash_key(*entry);  ///< a claim, unless it was read or is inline; empty if unknown
  std::uint64_t size = 0;               ///< bytes, once it was read
  Fingerprint fingerprint = {};         ///< empty until it is needed
  bool is_read = false;
  bool is_paired = false;
  bool is_comparable = !is_link() && !is_empty() && entry->size_claim.value_or(0) <= kLargestSimilar;

  [[nodiscard]] std::string_view name() const { return file_name_of(change->path); }
  [[nodiscard]] bool is_link() const { return entry->mode == FileMode::symlink; }
  [[nodiscard]] bool is_empty() const {
    static const std::string empty = ContentHash::of("").hex();
    return hash == empty;
  }
  /// Whether its hash is only what its publisher says.
  [[nodiscard]] bool is_claimed() const { return !is_read && !entry->inline_text; }
  [[nodiscard]] bool may_be_similar() const { return !is_paired && is_comparable; }
};

class Pairing {
 public:
  Pairing(std::vector<FileChange>& changes, const ReadFile& read) : read_(read) {
    for (FileChange& change : changes) {
      if (change.kind == ChangeKind::removed) gone_.push_back({&change, change.before});
      if (change.kind == ChangeKind::added) come_.push_back({&change, change.after});
    }
  }

  Result<bool> run() {
    pair_identical(&Lone::storage);
    auto is_paired = [](const Lone& file) { return file.is_paired; };
    if (std::all_of(gone_.begin(), gone_.end(), is_paired) || std::all_of(come_.begin(), come_.end(), is_paired))
      return true;
    // Fingerprints can be larger than the contents, so there are none where too many files would need one.
    const bool few = pairs_left() <= kMostPairs;
    const Status hashed = look_at_all([](const Lone& file) { return !file.is_paired && file.hash.empty(); }, few);
    pair_identical(&Lone::hash);
    if (!hashed) return fail(hashed.error());
    const std::size_t pairs = pairs_left();
    if (pairs == 0) return true;
    if (pairs > kMostPairs) return false;
    PLAYFS_CHECK(look_at_all([](const Lone& file) { return file.may_be_similar() && file.fingerprint.empty(); }, true));
    pair_similar();
    return true;
  }

 private:
  [[nodiscard]] std::size_t pairs_left() const {
    std::size_t pairs = 1;
    for (const auto* files : {&gone_, &come_})
      pairs *= static_cast<std::size_t>(
          std::count_if(files->begin(), files->end(), [](const Lone& file) { return file.may_be_similar(); }));
    return pairs;
  }

  template <class Predicate>
  Status look_at_all(Predicate is_wanted, bool with_fingerprint) {
    for (auto* files : {&gone_, &come_})
      for (Lone& file : *files)
        if (is_wanted(file)) PLAYFS_CHECK(look_at(file, with_fingerprint));
    return {};
  }

  Status look_at(Lone& file, bool with_fingerprint) {
    PLAYFS_TRY(auto content, read_(*file.change));
    file.is_read = true;
    if (content && file.hash.empty()) file.hash = ContentHash::of(*content).hex();
    file.size = content ? content->size() : 0;
    file.is_comparable = file.is_comparable && file.size > 0 && file.size <= kLargestSimilar;
    if (file.is_comparable && with_fingerprint) file.fingerprint = fingerprint_of(*content);
    return {};
  }

  void pair(Lone& from, Lone& to, unsigned similarity) {
    from.is_paired = to.is_paired = true;
    FileChange& change = *to.change;
    change.kind = ChangeKind::renamed;
    change.old_path = from.change->path;
    change.before = std::exchange(from.change->before, nullptr);  // reported by `change` now
    change.similarity = similarity;
    const bool certain = !from.storage.empty() && from.storage == to.storage;
    change.by_claim = similarity == 100 && !certain && (from.is_claimed() || to.is_claimed());
  }

  /// Those whose `key` is equal: first those of the same name.
  void pair_identical(std::string Lone::*key) {
    pair_identical(key, [](const Lone& file) { return file.name(); });
    pair_identical(key, [](const Lone&) { return std::string_view(); });
  }

  /// In the order of paths, among those for which `group_of` is equal.
  template <class Group>
  void pair_identical(std::string Lone::*key, Group group_of) {
    auto whole_key = [&](const Lone& file) {
      return std::tuple(std::string_view(file.*key), file.is_link(), group_of(file));
    };
    std::multimap<decltype(whole_key(gone_.front())), Lone*> by_key;
    for (Lone& from : gone_)
      if (!from.is_paired && !(from.*key).empty()) by_key.emplace(whole_key(from), &from);
    for (Lone& to : come_) {
      auto found = to.is_paired ? by_key.end() : by_key.lower_bound(whole_key(to));  // the first of them
      if (found == by_key.end() || found->first != whole_key(to)) continue;
      if (found->second->is_empty() && to.is_empty()) continue;
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
    auto [less, more] = std::minmax(from.size, to.size);
    return less * 100 / more < kLeastSimilar ? 0 : similarity(from.fingerprint, to.fingerprint, more);
  }

  const ReadFile& read_;
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
          {entry.same_content(*other) ? ChangeKind::mode_only : ChangeKind::modified, path, path, &entry, other});
  }
  for (const auto& [path, entry] : after.files)
    if (!before.file_at(path)) changes.push_back({ChangeKind::added, path, path, nullptr, &entry});
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return changes;
}

Result<bool> pair_renames(std::vector<FileChange>& changes, const ReadFile& read) {
  auto found = Pairing(changes, read).run();
  std::erase_if(changes, [](const FileChange& change) { return !change.before && !change.after; });
  return found;
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
