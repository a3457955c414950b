#include "app/renames.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/content_hash.h"

namespace playfs::app {

namespace {

/// The number of bytes per line or piece, keyed and sorted by hash.
using Fingerprint = std::vector<std::pair<std::size_t, std::uint64_t>>;

Fingerprint fingerprint_of(std::string_view content) {
  constexpr std::size_t kLongestPiece = 64;
  std::unordered_map<std::size_t, std::uint64_t> pieces;
  while (!content.empty()) {
    auto end = content.substr(0, kLongestPiece).find('\n');
    auto piece = content.substr(0, end == std::string_view::npos ? kLongestPiece : end + 1);
    pieces[std::hash<std::string_view>()(piece)] += piece.size();
    content.remove_prefix(piece.size());
  }
  Fingerprint fingerprint(pieces.begin(), pieces.end());
  std::sort(fingerprint.begin(), fingerprint.end());
  return fingerprint;
}

std::uint64_t common(const Fingerprint& a, const Fingerprint& b) {
  std::uint64_t bytes = 0;
  for (auto one = a.begin(), other = b.begin(); one != a.end() && other != b.end();) {
    if (one->first == other->first) bytes += std::min(one++->second, other++->second);
    else if (one->first < other->first) ++one;
    else ++other;
  }
  return bytes;
}

unsigned percent(std::uint64_t part, std::uint64_t whole) { return static_cast<unsigned>(part * 100 / whole); }

/// For contents that differ, the larger of which has `size` bytes.
unsigned similarity(const Fingerprint& a, const Fingerprint& b, std::uint64_t size) {
  return std::min(percent(common(a, b), size), 99U);
}

/// What is needed to match a file with a similar one.
struct Candidate {
  std::string path;
  ContentHash hash;
  std::uint64_t size = 0;
  bool is_link = false;
  Fingerprint fingerprint;
  bool is_taken = false;
};

Result<std::vector<Candidate>> read_all(const std::set<std::string>& paths, const ReadSide& read, bool with_prints) {
  std::vector<Candidate> candidates;
  for (const std::string& path : paths) {
    PLAYFS_TRY(auto side, read(path));
    if (!side || side->content.empty()) continue;
    Candidate candidate{path, ContentHash::of(side->content), side->content.size(), side->mode == "120000", {}, false};
    if (with_prints && !candidate.is_link && candidate.size <= kLargestSimilar)
      candidate.fingerprint = fingerprint_of(side->content);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::string_view name_of(const std::string& path) { return std::string_view(path).substr(path.rfind('/') + 1); }

unsigned similarity(const Candidate& before, const Candidate& after) {
  if (before.is_link != after.is_link) return 0;
  if (before.hash == after.hash) return 100;
  if (before.fingerprint.empty() || after.fingerprint.empty()) return 0;
  auto [less, more] = std::minmax(before.size, after.size);
  if (percent(less, more) < kLeastSimilar) return 0;
  return similarity(before.fingerprint, after.fingerprint, more);
}

}  // namespace

unsigned similarity(std::string_view before, std::string_view after) {
  if (before == after) return 100;
  return similarity(fingerprint_of(before), fingerprint_of(after), std::max(before.size(), after.size()));
}

Result<Renames> find_renames(const std::set<std::string>& gone, const std::set<std::string>& come,
                             const ReadSide& read_before, const ReadSide& read_after) {
  Renames renames;
  if (gone.empty() || come.empty()) return renames;
  bool compares = gone.size() <= kMostPairs / come.size();
  PLAYFS_TRY(auto before, read_all(gone, read_before, compares));
  PLAYFS_TRY(auto after, read_all(come, read_after, compares));
  struct Pair {
    unsigned similarity;
    bool same_name;
    Candidate *from, *to;
  };
  std::vector<Pair> pairs;
  auto consider = [&](Candidate& from, Candidate& to) {
    unsigned alike = similarity(from, to);
    if (alike >= kLeastSimilar) pairs.push_back({alike, name_of(from.path) == name_of(to.path), &from, &to});
  };
  if (compares) {
    for (Candidate& from : before)
      for (Candidate& to : after) consider(from, to);
  } else {
    std::unordered_multimap<ContentHash, Candidate*> by_hash;
    for (Candidate& from : before) by_hash.emplace(from.hash, &from);
    for (Candidate& to : after)
      if (auto same = by_hash.find(to.hash); same != by_hash.end()) {
        consider(*same->second, to);
        by_hash.erase(same);
      }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.similarity, a.same_name) > std::tie(b.similarity, b.same_name);
  });
  for (const Pair& pair : pairs) {
    if (pair.from->is_taken || pair.to->is_taken) continue;
    pair.from->is_taken = pair.to->is_taken = true;
    renames[pair.to->path] = {pair.from->path, pair.similarity};
  }
  return renames;
}

}  // namespace playfs::app
