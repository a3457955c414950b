#include "model/recut.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <limits>
#include <utility>

#include "model/chunking.h"

namespace playfs {

namespace {

/// Chunks with less text are found only where the text begins or ends like the file before: a search would meet them
/// by chance everywhere.
constexpr std::size_t kWindow = 32;
/// Bytes that may be compared in vain for each byte of the text, which repetitive texts would need without end.
constexpr std::size_t kComparedPerByte = 64;
/// How many neighbours are looked at together when pieces are joined. More than enough: a new piece has room for few.
constexpr std::size_t kMostJoined = 24;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max() / 4;

bool begins_character(std::string_view text, std::size_t at) {
  return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
}

std::size_t json_inside(std::string_view text) { return json_size_of_string(text) - 2; }

/// A stretch of the text: a stored chunk, or a gap between those.
struct Stretch {
  std::size_t begin = 0, end = 0;
  std::optional<ChunkId> stored;
};

/// Finds chunks in a text by the hash of their first bytes.
class Search {
 public:
  Search(std::string_view text, std::span<const StoredPiece> near)
      : text_(text), budget_(text.size() * kComparedPerByte) {
    for (const auto& piece : near) {
      if (piece.text.size() < kWindow) continue;
      std::uint64_t hash = hash_at(piece.text, 0);
      by_hash_[hash].push_back(&piece);
      filter_.set(hash % filter_.size());
    }
    for (auto& [hash, pieces] : by_hash_)
      std::stable_sort(pieces.begin(), pieces.end(),
                       [](const auto* a, const auto* b) { return a->text.size() > b->text.size(); });
    for (std::size_t i = 1; i < kWindow; ++i) leaving_ *= kBase;
  }

  /// Appends the chunks that stand in [from, to), one behind the other.
  void run(std::size_t from, std::size_t to, std::vector<Stretch>& found) {
    if (by_hash_.empty() || to - from < kWindow) return;
    std::uint64_t hash = hash_at(text_, from);
    for (std::size_t at = from; budget_ > 0;) {
      if (const StoredPiece* piece = filter_.test(hash % filter_.size()) ? match(hash, at, to) : nullptr) {
        found.push_back({at, at + piece->text.size(), piece->id});
        at += piece->text.size();
        if (to - at < kWindow) return;
        hash = hash_at(text_, at);
        continue;
      }
      if (at + kWindow >= to) return;
      hash = (hash - byte(text_, at) * leaving_) * kBase + byte(text_, at + kWindow);
      ++at;
    }
  }

 private:
  static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;
  static std::uint64_t byte(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]) + 1u; }
  static std::uint64_t hash_at(std::string_view text, std::size_t at) {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < kWindow; ++i) hash = hash * kBase + byte(text, at + i);
    return hash;
  }

  const StoredPiece* match(std::uint64_t hash, std::size_t at, std::size_t to) {
    auto pieces = by_hash_.find(hash);
    if (pieces == by_hash_.end()) return nullptr;
    for (const auto* piece : pieces->second) {
      std::size_t size = piece->text.size();
      if (size > to - at) continue;
      if (text_.compare(at, size, piece->text) == 0) return piece;
      budget_ -= std::min(budget_, size);
    }
    return nullptr;
  }

  const std::string_view text_;
  std::size_t budget_;
  std::uint64_t leaving_ = 1;
  std::unordered_map<std::uint64_t, std::vector<const StoredPiece*>> by_hash_;
  std::bitset<1 << 16> filter_;
};

/// Stored chunks in the text, in order, apart from each other. A cut never falls into a character, since they are
/// whole texts themselves and so is all between them.
std::vector<Stretch> find_stored(std::string_view text, std::span<const StoredPiece> near) {
  std::vector<Stretch> before, after;
  std::size_t begin = 0, end = text.size(), first = 0, last = near.size();
  for (; first < last && text.substr(begin).starts_with(near[first].text); ++first) {
    if (near[first].text.empty()) continue;
    before.push_back({begin, begin + near[first].text.size(), near[first].id});
    begin += near[first].text.size();
  }
  for (; last > first && text.substr(begin, end - begin).ends_with(near[last - 1].text); --last) {
    if (near[last - 1].text.empty()) continue;
    end -= near[last - 1].text.size();
    after.push_back({end, end + near[last - 1].text.size(), near[last - 1].id});
  }
  Search(text, near).run(begin, end, before);
  before.insert(before.end(), after.rbegin(), after.rend());
  return before;
}

/// The known chunks that stand in the text from `at` on, the longest last.
std::vector<Stretch> known_at(std::string_view text, std::size_t at, std::size_t end, const KnownPieces& known) {
  std::vector<Stretch> found;
  ContentHasher beginning;  // longer and longer ones
  std::size_t hashed = 0;
  for (std::size_t size : known.sizes) {
    if (size > end - at) break;
    if (size == 0 || !begins_character(text, at + size)) continue;
    beginning.update(text.substr(at + hashed, size - hashed));
    hashed = size;
    if (auto chunk = known.chunks.find(beginning.so_far()); chunk != known.chunks.end())
      found.push_back({at, at + size, chunk->second});
  }
  return found;
}

/// All of the text as known chunks, which is what an earlier version is; empty where it is none. The longest chunk is
/// not always the right one: others are tried, some of them.
std::vector<Stretch> whole_of_known(std::string_view text, const KnownPieces& known) {
  std::size_t tries = 2 * text.size() / kMaxChunkText + 64;
  std::vector<std::vector<Stretch>> choices = {known_at(text, 0, text.size(), known)};
  std::vector<Stretch> path;
  std::set<std::size_t> hopeless;
  while (!choices.empty() && tries > 0) {
    if (choices.back().empty()) {
      choices.pop_back();
      if (path.empty()) break;
      hopeless.insert(path.back().end);
      path.pop_back();
      continue;
    }
    path.push_back(std::move(choices.back().back()));
    choices.back().pop_back();
    std::size_t at = path.back().end;
    if (at == text.size()) return path;
    choices.push_back(hopeless.contains(at) ? std::vector<Stretch>() : known_at(text, at, text.size(), known));
    --tries;
  }
  return {};
}

/// All of the text: what is stored, and gaps.
std::vector<Stretch> stretches_of(std::string_view text, std::span<const StoredPiece> near, const KnownPieces& known) {
  std::vector<Stretch> all;
  std::size_t at = 0;
  auto fill_gap = [&](std::size_t end) {
    while (at < end) {
      auto stored = known_at(text, at, end, known);
      all.push_back(stored.empty() ? Stretch{at, end, {}} : std::move(stored.back()));
      at = all.back().end;
    }
  };
  for (auto& stored : find_stored(text, near)) {
    fill_gap(stored.begin);
    at = stored.end;
    all.push_back(std::move(stored));
  }
  fill_gap(text.size());
  return all;
}

struct Cost {
  std::size_t uploads = kNever, pieces = kNever;
  auto operator<=>(const Cost&) const = default;
};

}  // namespace

std::vector<Piece> cut_around(std::string_view text, std::span<const StoredPiece> near, const KnownPieces& known,
                              std::size_t json_room) {
  auto stretches = stretches_of(text, near, known);
  auto is_gap = [](const Stretch& stretch) { return !stretch.stored; };
  if (std::any_of(stretches.begin(), stretches.end(), is_gap))
    if (auto whole = whole_of_known(text, known); !whole.empty()) stretches = std::move(whole);
  // The cheapest way to cut what is before each stretch: the last one is stored, or the last few are cut anew together.
  struct Step {
    Cost cost;
    std::size_t from = 0;
    bool is_new = false;
  };
  std::vector<Step> best(stretches.size() + 1);
  best[0].cost = {0, 0};
  for (std::size_t i = 1; i <= stretches.size(); ++i) {
    auto consider = [&](std::size_t from, std::size_t uploads, std::size_t pieces, bool is_new) {
      const Cost& before = best[from].cost;
      Cost cost{before.uploads + uploads, before.pieces + pieces};
      if (cost < best[i].cost) best[i] = {cost, from, is_new};
    };
    if (stretches[i - 1].stored) consider(i - 1, 0, 1, false);
    std::size_t bytes = 0, json = 0;
    for (std::size_t from = i; from-- > 0 && i - from <= kMostJoined;) {
      const Stretch& stretch = stretches[from];
      bytes += stretch.end - stretch.begin;
      json += json_inside(text.substr(stretch.begin, stretch.end - stretch.begin));
      std::size_t pieces =
          std::max((bytes + kMaxChunkText - 1) / kMaxChunkText, (json + json_room - 3) / (json_room - 2));
      consider(from, pieces, pieces, true);
    }
  }
  std::vector<std::size_t> ends;
  for (std::size_t i = stretches.size(); i > 0; i = best[i].from) ends.push_back(i);
  std::vector<Piece> pieces;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Step& step = best[*end];
    std::size_t begin = stretches[step.from].begin;
    std::string_view part = text.substr(begin, stretches[*end - 1].end - begin);
    if (!step.is_new) {
      pieces.push_back({part, stretches[*end - 1].stored, {}});
      continue;
    }
    for (std::string_view piece : cut_text(part, json_room)) {
      ContentHash hash = ContentHash::of(piece);
      auto stored = known.chunks.find(hash);
      pieces.push_back({piece, stored == known.chunks.end() ? std::nullopt : std::optional(stored->second), hash});
    }
  }
  return pieces;
}

}  // namespace playfs
