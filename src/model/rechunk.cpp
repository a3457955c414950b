#include "model/rechunk.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <limits>
#include <utility>

#include "model/chunking.h"

namespace playfs {

namespace {

/// Shorter chunks are found only at the start or end of the text, where it matches the previous file: a search would
/// hit them by chance everywhere.
constexpr std::size_t kHashedBytes = 32;
/// Budget of compared bytes without a match, per byte of text. Repetitive text would need far more.
constexpr std::size_t kComparedPerByte = 64;
/// How many neighbouring stretches are joined even if one new piece cannot hold them.
constexpr std::size_t kMostJoined = 24;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max() / 4;

constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15;

std::uint64_t byte(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]) + 1u; }

/// A rolling hash of the window.
std::uint64_t weak_hash(std::string_view window) {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < kHashedBytes; ++i) hash = hash * kBase + byte(window, i);
  return hash;
}

bool stands_at(Text& text, std::size_t at, const StoredPiece& piece) {
  return ContentHash::of(text.view(at, piece.size)) == piece.hash;
}

/// A stretch of the text: a stored chunk, or a gap between two.
struct Stretch {
  std::size_t begin = 0, end = 0;
  std::optional<ChunkId> stored;
};

/// Finds chunks in a text by the hash of their first bytes.
class Search {
 public:
  Search(Text& text, std::span<const StoredPiece> near) : text_(text), budget_(text.size() * kComparedPerByte) {
    for (const auto& piece : near) {
      if (piece.size < kHashedBytes) continue;
      by_hash_[piece.beginning].push_back(&piece);
      filter_.set(piece.beginning % filter_.size());
    }
    for (auto& [hash, pieces] : by_hash_)
      std::stable_sort(pieces.begin(), pieces.end(), [](const auto* a, const auto* b) { return a->size > b->size; });
    for (std::size_t i = 1; i < kHashedBytes; ++i) leaving_ *= kBase;
  }

  /// Appends the chunks found in [from, to), in order and without overlap.
  void run(std::size_t from, std::size_t to, std::vector<Stretch>& found) {
    if (by_hash_.empty() || to - from < kHashedBytes) return;
    std::uint64_t hash = weak_hash(text_.view(from, kHashedBytes));
    for (std::size_t at = from; budget_ > 0;) {
      if (const StoredPiece* piece = filter_.test(hash % filter_.size()) ? match(hash, at, to) : nullptr) {
        found.push_back({at, at + piece->size, piece->id});
        at += piece->size;
        if (to - at < kHashedBytes) return;
        hash = weak_hash(text_.view(at, kHashedBytes));
        continue;
      }
      if (at + kHashedBytes >= to) return;
      std::string_view window = text_.view(at, kHashedBytes + 1);
      hash = (hash - byte(window, 0) * leaving_) * kBase + byte(window, kHashedBytes);
      ++at;
    }
  }

 private:
  const StoredPiece* match(std::uint64_t hash, std::size_t at, std::size_t to) {
    auto pieces = by_hash_.find(hash);
    if (pieces == by_hash_.end()) return nullptr;
    for (const auto* piece : pieces->second) {
      if (piece->size > to - at) continue;
      bool may_be = weak_hash(text_.view(at + piece->size - kHashedBytes, kHashedBytes)) == piece->ending;
      if (may_be && stands_at(text_, at, *piece)) return piece;
      budget_ -= std::min(budget_, piece->size);
    }
    return nullptr;
  }

  Text& text_;
  std::size_t budget_;
  std::uint64_t leaving_ = 1;
  std::unordered_map<std::uint64_t, std::vector<const StoredPiece*>> by_hash_;
  std::bitset<1 << 16> filter_;
};

/// Stored chunks in the text, in order and without overlap. No cut splits a character, since the chunks, and so the
/// gaps, are whole texts.
std::vector<Stretch> find_stored(Text& text, std::span<const StoredPiece> near) {
  std::vector<Stretch> before, after;
  std::size_t begin = 0, end = text.size(), first = 0, last = near.size();
  auto fits = [&](const StoredPiece& piece) { return piece.size <= end - begin; };
  for (; first < last && fits(near[first]) && stands_at(text, begin, near[first]); ++first) {
    if (near[first].size == 0) continue;
    before.push_back({begin, begin + near[first].size, near[first].id});
    begin += near[first].size;
  }
  for (; last > first && fits(near[last - 1]) && stands_at(text, end - near[last - 1].size, near[last - 1]); --last) {
    if (near[last - 1].size == 0) continue;
    end -= near[last - 1].size;
    after.push_back({end, end + near[last - 1].size, near[last - 1].id});
  }
  Search(text, near).run(begin, end, before);
  before.insert(before.end(), after.rbegin(), after.rend());
  return before;
}

/// The known chunks found in the text at `at`, longest last.
Result<std::vector<Stretch>> known_at(Text& text, std::size_t at, std::size_t end, const KnownPieces* known) {
  std::vector<Stretch> found;
  if (!known || known->sizes().empty()) return found;
  // One byte more, to see whether a character starts there.
  std::string_view window = text.view(at, std::min(end, at + *known->sizes().rbegin() + 1) - at);
  ContentHasher beginning;  // fed with ever longer prefixes
  std::size_t hashed = 0;
  for (std::size_t size : known->sizes()) {
    if (size > end - at) break;
    bool is_cut = size < window.size() ? (static_cast<unsigned char>(window[size]) & 0xC0) != 0x80 : true;
    if (size == 0 || !is_cut) continue;
    beginning.update(window.substr(hashed, size - hashed));
    hashed = size;
    PLAYFS_TRY(auto chunk, known->find(beginning.so_far()));
    if (chunk) found.push_back({at, at + size, std::move(chunk)});
  }
  return found;
}

/// The whole text as known chunks, as an earlier version would be; empty if impossible. The longest chunk is not always
/// right, so this backtracks, up to a limit.
Result<std::vector<Stretch>> whole_of_known(Text& text, const KnownPieces* known) {
  std::size_t tries = 2 * text.size() / kMaxChunkText + 64;
  std::vector<std::vector<Stretch>> choices;
  PLAYFS_TRY(choices.emplace_back(), known_at(text, 0, text.size(), known));
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
    std::vector<Stretch> here;
    if (!hopeless.contains(at)) {
      PLAYFS_TRY(here, known_at(text, at, text.size(), known));
    }
    choices.push_back(std::move(here));
    --tries;
  }
  return std::vector<Stretch>();
}

/// The whole text as stored chunks and gaps.
Result<std::vector<Stretch>> stretches_of(Text& text, std::span<const StoredPiece> near, const KnownPieces* known) {
  std::vector<Stretch> all;
  std::size_t at = 0;
  auto fill_gap = [&](std::size_t end) -> Status {
    while (at < end) {
      PLAYFS_TRY(auto stored, known_at(text, at, end, known));
      all.push_back(stored.empty() ? Stretch{at, end, {}} : std::move(stored.back()));
      at = all.back().end;
    }
    return {};
  };
  for (auto& stored : find_stored(text, near)) {
    PLAYFS_CHECK(fill_gap(stored.begin));
    at = stored.end;
    all.push_back(std::move(stored));
  }
  PLAYFS_CHECK(fill_gap(text.size()));
  return all;
}

struct Cost {
  std::size_t uploads = kNever, pieces = kNever;
  auto operator<=>(const Cost&) const = default;
};

}  // namespace

StoredPiece stored_piece(ChunkId id, std::string_view text) {
  StoredPiece piece{std::move(id), text.size(), ContentHash::of(text), 0, 0};
  if (text.size() >= kHashedBytes) {
    piece.beginning = weak_hash(text);
    piece.ending = weak_hash(text.substr(text.size() - kHashedBytes));
  }
  return piece;
}

Result<std::vector<Piece>> cut_around(Text& text, std::span<const StoredPiece> near, const KnownPieces* known,
                                      std::size_t json_room) {
  PLAYFS_TRY(auto stretches, stretches_of(text, near, known));
  auto is_gap = [](const Stretch& stretch) { return !stretch.stored; };
  if (std::any_of(stretches.begin(), stretches.end(), is_gap)) {
    PLAYFS_TRY(auto whole, whole_of_known(text, known));
    if (!whole.empty()) stretches = std::move(whole);
  }
  std::vector<std::size_t> json_before = {0};
  for (const auto& stretch : stretches)
    json_before.push_back(json_before.back() + json_inside(text, stretch.begin, stretch.end));
  auto pieces_in = [&](std::size_t from, std::size_t to) {
    const std::size_t bytes = stretches[to - 1].end - stretches[from].begin, json = json_before[to] - json_before[from];
    return std::max((bytes + kMaxChunkText - 1) / kMaxChunkText, (json + json_room - 3) / (json_room - 2));
  };
  // The cheapest cut before each stretch: it ends in a stored chunk, or in a few stretches cut anew together.
  struct Step {
    Cost cost;
    std::size_t from = 0;
    bool is_new = false;
  };
  std::vector<Step> best(stretches.size() + 1);
  best[0].cost = {0, 0};
  std::size_t first = 0;  // of the stretches that fit in one piece
  for (std::size_t i = 1; i <= stretches.size(); ++i) {
    auto consider = [&](std::size_t from, std::size_t uploads, std::size_t pieces, bool is_new) {
      const Cost& before = best[from].cost;
      Cost cost{before.uploads + uploads, before.pieces + pieces};
      if (cost < best[i].cost) best[i] = {cost, from, is_new};
    };
    auto consider_new = [&](std::size_t from) {
      const std::size_t pieces = pieces_in(from, i);
      consider(from, pieces, pieces, true);
    };
    if (stretches[i - 1].stored) consider(i - 1, 0, 1, false);
    for (std::size_t from = i; from-- > 0 && i - from <= kMostJoined;) consider_new(from);
    while (first + 1 < i && pieces_in(first, i) > 1) ++first;
    consider_new(first);
    if (i == stretches.size()) consider_new(0);
  }
  std::vector<std::size_t> ends;
  for (std::size_t i = stretches.size(); i > 0; i = best[i].from) ends.push_back(i);
  auto cut_anew = [&](std::size_t begin, std::size_t until, std::vector<Piece>& pieces) -> Status {
    for (std::size_t size : cut_text(text, begin, until, json_room)) {
      ContentHash hash = hash_of(text, begin, begin + size);
      std::optional<ChunkId> stored;
      if (known) {
        PLAYFS_TRY(stored, known->find(hash));
      }
      pieces.push_back({begin, size, std::move(stored), hash});
      begin += size;
    }
    return {};
  };
  std::vector<Piece> pieces;
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Step& step = best[*end];
    std::size_t begin = stretches[step.from].begin, until = stretches[*end - 1].end;
    if (!step.is_new) {
      pieces.push_back({begin, until - begin, stretches[*end - 1].stored, {}});
      continue;
    }
    PLAYFS_CHECK(cut_anew(begin, until, pieces));
  }
  // The cost estimate uses sizes alone. Character boundaries can leave pieces unfilled and make more of them.
  auto uploads = [](const std::vector<Piece>& all) {
    return std::count_if(all.begin(), all.end(), [](const Piece& piece) { return !piece.stored; });
  };
  if (uploads(pieces) > static_cast<std::ptrdiff_t>(best.back().cost.uploads)) {
    std::vector<Piece> anew;
    PLAYFS_CHECK(cut_anew(0, text.size(), anew));
    if (uploads(anew) < uploads(pieces)) pieces = std::move(anew);
  }
  PLAYFS_CHECK(text.status());
  return pieces;
}

}  // namespace playfs
