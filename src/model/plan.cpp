#include "model/plan.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "model/chunking.h"
#include "model/rechunk.h"

namespace playfs {

namespace {

constexpr std::size_t kLeastChunkRoom = 64;  // required by cut_around
constexpr std::size_t kPathsInRefusal = 10;

/// Longer text fits in no record, so it is chunked from the start.
constexpr std::size_t kNeverInline = kMaxRecordSize;

/// A part of a text that must be uploaded.
struct NewPiece {
  std::uint64_t offset = 0;
  std::size_t size = 0;
  ContentHash hash;
  std::size_t position = 0;  ///< of the first chunk with this text
};

/// A text cut into chunks.
struct Chunking {
  std::vector<ChunkId> chunks;                      ///< chunk list for entries, with placeholders
  std::vector<std::optional<std::size_t>> missing;  ///< per chunk: the piece to upload, if any
  std::vector<NewPiece> pieces;
};

/// A text that may be inline or chunked, and the entries that hold it.
struct Item {
  std::vector<FileEntry*> entries;
  std::vector<std::string> paths;
  Bytes bytes;
  ContentEncoding encoding = ContentEncoding::text;
  std::size_t text_size = 0;
  std::size_t text_json = 0;       ///< its length inside a JSON string; set only if it may be inline
  std::vector<FileEntry*> vacant;  ///< entries without their text yet; it is read for those that stay inline
  bool may_be_inline = false;
  bool is_rechunked = false;  ///< cut around stored chunks
  bool chunked = false;
  Chunking cut;
  std::size_t inline_size = 0;  ///< of all entries together
  std::size_t chunked_size = 0;

  [[nodiscard]] std::size_t writes() const { return cut.pieces.size(); }
  [[nodiscard]] std::size_t saved() const { return inline_size > chunked_size ? inline_size - chunked_size : 0; }
};

struct PathSize {
  std::size_t size = 0;
  std::string what;
};

tl::unexpected<Error> refuse(std::size_t needed, std::vector<PathSize> costs) {
  std::sort(costs.begin(), costs.end(),
            [](const PathSize& a, const PathSize& b) { return a.size != b.size ? a.size > b.size : a.what < b.what; });
  std::string list;
  for (std::size_t i = 0; i < std::min(costs.size(), kPathsInRefusal); ++i)
    list += fmt::format("{}{} {}", i == 0 ? "" : ", ", costs[i].what, costs[i].size);
  if (costs.size() > kPathsInRefusal) list += fmt::format(" and {} more", costs.size() - kPathsInRefusal);
  return fail(
      ErrorCode::file_too_big,
      fmt::format("the revision needs {} bytes, but its record holds {}: {}", needed, kRecordRoom, list),
      "remove files from the project, or combine small ones: each costs its path, its hash and one id per chunk");
}

class Planner {
 public:
  Planner(PlanInput input, const RecordSizes& sizes) : input_(std::move(input)), sizes_(sizes) {
    plan_.draft = std::move(input_.draft);
    plan_.base = input_.base;
    placeholder_ = ChunkId(std::string(input_.chunk_id_size, '0'));
  }

  Result<Plan> run() {
    PLAYFS_CHECK(check_names());
    apply_changes();
    PLAYFS_CHECK(collect_items());
    PLAYFS_TRY(bool fits, choose());
    if (!fits) {
      PLAYFS_TRY(fits, choose_with_fewest_chunks());
    }
    if (!fits) {
      PLAYFS_CHECK(go_on_elsewhere());
      return std::move(plan_);
    }
    for (Item& item : items_) PLAYFS_CHECK(emit(item));
    plan_.revision_size = sizes_.revision(plan_.draft);
    return std::move(plan_);
  }

 private:
  using Files = std::map<std::string, FileEntry, std::less<>>;

  static bool is_continuations(const std::string& path) {
    const std::string name = kContinuationPath;
    return path == name || path.starts_with(name + "/");
  }

  [[nodiscard]] Status check_names() const {
    for (const PutFile& file : input_.puts)
      if (is_continuations(file.path))
        return fail(ErrorCode::invalid_argument,
                    file.path + ": reserved, since large manifests continue in a file of this name", "rename it");
    return {};
  }

  void apply_changes() {
    Manifest& manifest = plan_.draft.manifest;
    std::set<std::string_view> put;
    for (const PutFile& file : input_.puts) put.insert(file.path);
    for (const auto& path : input_.deletions)
      if (!put.contains(path)) manifest.files.erase(path);
    // A new file replaces a refused entry at its path, since a manifest has one entry per path.
    std::erase_if(manifest.refused, [&](const RefusedEntry& entry) { return put.contains(entry.path); });
    for (PutFile& file : input_.puts) {
      FileEntry& entry = manifest.files[file.path];
      if (file.published) {
        entry = std::move(*file.published);
      } else {
        // Keep the unknown fields that other clients set on this path.
        entry = FileEntry{.hash_claim = file.hash.hex(),
                          .size_claim = file.size,
                          .mode = {},
                          .encoding = {},
                          .inline_text = {},
                          .chunks = {},
                          .extra = std::move(entry.extra)};
      }
      entry.mode = file.mode;
    }
  }

  Status collect_items() {
    std::set<std::string_view> put;
    for (const PutFile& file : input_.puts) {
      put.insert(file.path);
      FileEntry& entry = plan_.draft.manifest.files.find(file.path)->second;
      if (file.published) {
        if (entry.inline_text) PLAYFS_CHECK(add_carried(file.path, entry));
        continue;
      }
      auto stored = input_.stored.contents.find(file.hash);
      bool is_stored = stored != input_.stored.contents.end() && !stored->second.chunks.empty();
      entry.encoding = is_stored ? stored->second.encoding : file.encoding;
      entry.inline_text.emplace();
      PLAYFS_CHECK(add(file.path, entry, file.content, file.hash, is_stored ? &stored->second : nullptr));
    }
    for (auto& [path, entry] : plan_.draft.manifest.files)
      if (entry.inline_text && !put.contains(path)) PLAYFS_CHECK(add_carried(path, entry));
    for (Item& item : items_) measure(item);
    return {};
  }

  /// Adds an entry that already contains its text.
  Status add_carried(const std::string& path, FileEntry& entry) {
    if (entry.inline_text->empty()) return {};  // costs nothing
    // Treats the record's text as plain text, whatever it encodes.
    Bytes text(*entry.inline_text);
    PLAYFS_TRY(Item * item, item_of(path, text, ContentEncoding::text, ContentHash::of(*entry.inline_text), nullptr));
    item->entries.push_back(&entry);
    item->paths.push_back(path);
    if (item->text_size > kNeverInline) entry = in_chunks(std::move(entry), *item);
    else item->may_be_inline = true;  // other clients' entries move only if necessary
    return {};
  }

  /// Adds an entry for these bytes, whose text is not filled in yet.
  Status add(const std::string& path, FileEntry& entry, const Bytes& bytes, const ContentHash& hash,
             const StoredContent* stored) {
    if (bytes.size() == 0) return {};  // inline, costs nothing
    ContentHash text_hash = hash;
    if (entry.encoding != ContentEncoding::text) {
      Text text(bytes, entry.encoding);
      text_hash = hash_of(text, 0, text.size());
      PLAYFS_CHECK(text.status());
    }
    PLAYFS_TRY(Item * item, item_of(path, bytes, entry.encoding, text_hash, stored));
    item->entries.push_back(&entry);
    item->paths.push_back(path);
    if (item->text_size > kNeverInline) entry = in_chunks(std::move(entry), *item);
    else item->vacant.push_back(&entry);
    item->may_be_inline |= item->text_size <= kMaxInlineText;
    return {};
  }

  Result<Item*> item_of(const std::string& path, const Bytes& bytes, ContentEncoding encoding,
                        const ContentHash& text_hash, const StoredContent* stored) {
    auto [known, is_new] = item_of_text_.try_emplace(text_hash, items_.size());
    if (!is_new) return &items_[known->second];
    Item& item = items_.emplace_back();
    item.bytes = bytes;
    item.encoding = encoding;
    Text text(bytes, encoding);
    item.text_size = text.size();
    if (item.text_size <= kNeverInline) item.text_json = json_inside(text, 0, text.size());
    PLAYFS_CHECK(text.status());
    if (stored) {
      item.cut.chunks = stored->chunks;
      item.cut.missing.resize(stored->chunks.size());
    } else {
      auto near = input_.stored.near.find(path);
      item.is_rechunked = near != input_.stored.near.end();
      PLAYFS_TRY(item.cut, cut(text, path, item.is_rechunked ? near->second : std::vector<StoredPiece>()));
    }
    return &item;
  }

  Result<Chunking> cut(Text& text, const std::string& path, std::span<const StoredPiece> near) const {
    ChunkDraft empty{input_.base, path, text.size(), ContentHash(), {}};
    std::size_t around = sizes_.chunk(empty) - 2;  // the empty text's quotes count as text
    if (around + kLeastChunkRoom > kRecordRoom) return refuse(around, {{around, path}});
    std::size_t room = std::min(kMaxChunkJson, kRecordRoom - around);
    PLAYFS_TRY(auto pieces, cut_around(text, near, input_.stored.pieces, room));
    Chunking chunking;
    std::unordered_map<ContentHash, std::size_t> seen;
    for (Piece& piece : pieces) {
      if (piece.stored) {
        chunking.chunks.push_back(*std::move(piece.stored));
        chunking.missing.emplace_back();
        continue;
      }
      auto [same, is_new] = seen.try_emplace(piece.hash, chunking.pieces.size());
      if (is_new) chunking.pieces.push_back({piece.offset, piece.size, piece.hash, chunking.chunks.size()});
      chunking.chunks.push_back(placeholder_);
      chunking.missing.emplace_back(same->second);
    }
    return chunking;
  }

  void measure(Item& item) {
    item.inline_size = item.vacant.size() * item.text_json;
    item.chunked_size = 0;
    for (const FileEntry* entry : item.entries) {
      item.inline_size += sizes_.entry(*entry);
      item.chunked_size += sizes_.entry(in_chunks(*entry, item));
    }
    item.chunked = !item.may_be_inline;
  }

  static FileEntry in_chunks(FileEntry entry, const Item& item) {
    entry.inline_text.reset();
    entry.chunks = item.cut.chunks;
    return entry;
  }

  /// Returns false if there is no room even with everything chunked.
  Result<bool> choose() {
    // The size with all of `items_` inline; adjusted below for those that are not.
    std::size_t size = sizes_.revision(plan_.draft);
    for (const Item& item : items_) size += item.vacant.size() * item.text_json;
    for (const Item& item : items_)
      if (item.chunked) size = size - item.inline_size + item.chunked_size;
    std::vector<Item*> open;
    least_ = size;
    for (Item& item : items_) {
      if (item.chunked || item.saved() == 0) continue;
      least_ -= item.saved();
      if (item.writes() == 0) {
        item.chunked = true;
        size -= item.saved();
      } else {
        open.push_back(&item);
      }
    }
    if (least_ > kRecordRoom) return false;
    if (size > kRecordRoom) chunk_cheapest(open, size - kRecordRoom);
    return true;
  }

  /// Cutting around stored chunks yields more chunks, each costing an id in the manifest. If they do not fit, files are
  /// cut from scratch; if that does not help, the earlier cuts are restored.
  Result<bool> choose_with_fewest_chunks() {
    std::vector<std::pair<Item*, Chunking>> before;
    for (Item& item : items_) {
      if (!item.is_rechunked) continue;
      Text text(item.bytes, item.encoding);
      PLAYFS_TRY(Chunking anew, cut(text, item.paths.front(), {}));
      if (anew.chunks.size() >= item.cut.chunks.size()) continue;
      before.emplace_back(&item, rechunk(item, std::move(anew)));
    }
    if (before.empty()) return false;
    PLAYFS_TRY(bool fits, choose());
    if (fits) return true;
    for (auto& [item, chunking] : before) rechunk(*item, std::move(chunking));
    return false;
  }

  /// Returns the previous chunking.
  Chunking rechunk(Item& item, Chunking chunking) {
    Chunking before = std::exchange(item.cut, std::move(chunking));
    if (item.text_size > kNeverInline)
      for (FileEntry* entry : item.entries) *entry = in_chunks(std::move(*entry), item);
    measure(item);
    return before;
  }

  /// Moves all files into the continuation.
  Status go_on_elsewhere() {
    Manifest& manifest = plan_.draft.manifest;
    auto there = manifest.files.lower_bound(kContinuationPath);
    if (there != manifest.files.end() && is_continuations(there->first))
      return fail(ErrorCode::file_too_big,
                  there->first + " has the name of the file in which the manifest would continue",
                  "delete it, or remove files from the project");
    std::erase_if(manifest.refused, [](const RefusedEntry& entry) { return entry.path == kContinuationPath; });
    std::vector<Item*> open;
    std::size_t inline_json = 0;
    for (Item& item : items_) {
      item.chunked = item.text_size > kMaxInlineText || (item.writes() == 0 && item.saved() > 0);
      if (!item.chunked) inline_json += item.entries.size() * item.text_json;
      if (item.chunked || item.saved() == 0) PLAYFS_CHECK(emit(item));
      else open.push_back(&item);
    }
    std::stable_sort(open.begin(), open.end(), [](const Item* a, const Item* b) { return a->saved() < b->saved(); });
    auto move_largest = [&] {
      Item& item = *open.back();
      open.pop_back();
      item.chunked = true;
      inline_json -= item.entries.size() * item.text_json;
      return emit(item);
    };
    // The ids of a longer continuation cannot fit in the record, so move files out without reading them.
    const std::size_t most = (kRecordRoom / (input_.chunk_id_size + 3) + 1) * kMaxChunkText;
    while (inline_json > most && !open.empty()) PLAYFS_CHECK(move_largest());
    for (Item* item : open) PLAYFS_CHECK(fill_in(*item));
    auto near = input_.stored.near.find(kContinuationPath);
    for (;;) {
      std::string text = sizes_.continuation(manifest.files);
      Text windows(text);
      PLAYFS_TRY(Chunking chunking, cut(windows, kContinuationPath,
                                        near != input_.stored.near.end() ? near->second : std::vector<StoredPiece>()));
      FileEntry entry;
      entry.hash_claim = ContentHash::of(text).hex();
      entry.size_claim = text.size();
      entry.chunks = chunking.chunks;
      Files files = std::exchange(manifest.files, {});
      manifest.continuation = Continuation{std::move(entry), true};
      plan_.revision_size = sizes_.revision(plan_.draft);
      if (plan_.revision_size <= kRecordRoom) {
        plan_.continuation = std::move(text);
        upload_continuation(chunking);
        return {};
      }
      manifest.files = std::move(files);
      manifest.continuation.reset();
      least_ = plan_.revision_size;
      if (open.empty()) return refuse_all();
      // Each chunk fewer frees an id.
      std::size_t excess = (plan_.revision_size - kRecordRoom) / (input_.chunk_id_size + 3) + 1;
      for (std::size_t freed = 0; freed < excess * kMaxChunkText && !open.empty();) {
        freed += open.back()->saved();
        PLAYFS_CHECK(move_largest());
      }
    }
  }

  void upload_continuation(const Chunking& chunking) {
    plan_.holes.clear();  // they are in the continuation, which needs their ids first
    if (!plan_.uploads.empty()) {
      plan_.uploads_to_follow = chunking.pieces.size();
      return;
    }
    plan_.texts.push_back({kContinuationPath, plan_.continuation, ContentEncoding::text});
    for (std::size_t i = 0; i < chunking.missing.size(); ++i)
      if (chunking.missing[i]) plan_.holes.push_back({kContinuationPath, i, *chunking.missing[i]});
    for (const NewPiece& piece : chunking.pieces)
      plan_.uploads.push_back({plan_.texts.size() - 1, piece.position, piece.offset, piece.size, piece.hash});
  }

  /// Chunks the items with the fewest writes that together save `excess` bytes: an exactly solved knapsack problem. It
  /// stays small because everything in `open` fits into one record once chunked.
  static void chunk_cheapest(const std::vector<Item*>& open, std::size_t excess) {
    std::size_t all = 0;
    for (const Item* item : open) all += item->writes();
    std::vector<std::optional<std::size_t>> most_saved(all + 1);  // by exact number of writes
    most_saved[0] = 0;
    std::vector<std::vector<bool>> taken(open.size(), std::vector<bool>(all + 1));
    for (std::size_t i = 0; i < open.size(); ++i) {
      std::size_t writes = open[i]->writes();
      for (std::size_t w = all; w >= writes; --w) {
        if (!most_saved[w - writes]) continue;
        std::size_t saved = *most_saved[w - writes] + open[i]->saved();
        if (most_saved[w] && *most_saved[w] >= saved) continue;
        most_saved[w] = saved;
        taken[i][w] = true;
      }
    }
    std::size_t fewest = 0;
    while (!most_saved[fewest] || *most_saved[fewest] < excess) ++fewest;
    for (std::size_t i = open.size(); i-- > 0;) {
      if (!taken[i][fewest]) continue;
      open[i]->chunked = true;
      fewest -= open[i]->writes();
    }
  }

  Status refuse_all() {
    for (Item& item : items_)
      if (item.saved() > 0 || !item.may_be_inline)
        for (FileEntry* entry : item.entries) *entry = in_chunks(std::move(*entry), item);
    std::vector<PathSize> costs;
    for (const auto& [path, entry] : plan_.draft.manifest.files)
      costs.push_back({json_size_of_string(path) + 1 + sizes_.entry(entry), path});
    std::size_t refused = 0;
    for (const auto& entry : plan_.draft.manifest.refused)
      refused += json_size_of_string(entry.path) + 1 + json_size(entry.entry);
    if (refused > 0) costs.push_back({refused, "(hidden entries)"});
    if (!plan_.draft.state.is_null()) costs.push_back({json_size(plan_.draft.state), "(the project's state)"});
    costs.push_back({json_size_of_string(plan_.draft.message), "(the message)"});
    return refuse(least_, std::move(costs));
  }

  /// Fills in the text of entries that stay inline.
  Status fill_in(Item& item) {
    if (item.vacant.empty()) return {};
    PLAYFS_TRY(std::string text, read_text(item.bytes, item.encoding, 0, item.text_size));
    for (FileEntry* entry : item.vacant) entry->inline_text = text;
    item.vacant.clear();
    return {};
  }

  Status emit(Item& item) {
    if (!item.chunked) return fill_in(item);
    const Chunking& cut = item.cut;
    std::vector<std::size_t> upload_of_piece;
    for (const NewPiece& piece : cut.pieces) {
      auto [known, is_new] = upload_of_text_.try_emplace(piece.hash, plan_.uploads.size());
      upload_of_piece.push_back(known->second);
      if (is_new) plan_.uploads.push_back({plan_.texts.size(), piece.position, piece.offset, piece.size, piece.hash});
    }
    if (!cut.pieces.empty()) plan_.texts.push_back({item.paths.front(), item.bytes, item.encoding});
    for (std::size_t e = 0; e < item.entries.size(); ++e) {
      *item.entries[e] = in_chunks(std::move(*item.entries[e]), item);
      for (std::size_t position = 0; position < cut.missing.size(); ++position)
        if (cut.missing[position])
          plan_.holes.push_back({item.paths[e], position, upload_of_piece[*cut.missing[position]]});
    }
    return {};
  }

  PlanInput input_;
  const RecordSizes& sizes_;
  Plan plan_;
  ChunkId placeholder_;
  std::size_t least_ = 0;  ///< lower bound of the revision's size
  std::deque<Item> items_;
  std::unordered_map<ContentHash, std::size_t> item_of_text_;
  std::unordered_map<ContentHash, std::size_t> upload_of_text_;
};

}  // namespace

Manifest carried_forward(Manifest base, std::string tx) {
  base.is_automatic = false;
  base.extra.erase("auto");   // in a form that playfs does not recognise
  base.continuation.reset();  // its files are in `files`; the planner makes a new one if needed
  base.tx = std::move(tx);
  return base;
}

Status check_file_size(const std::string& path, std::uint64_t size) {
  if (size <= kMaxFileSize) return {};
  return fail(ErrorCode::file_too_big,
              fmt::format("{} has {} bytes, but a published file has at most {}", path, size, kMaxFileSize),
              "remove it, split it, or list it in .gitignore");
}

Status check_could_fit(const PlanInput& input, const RecordSizes& sizes) {
  std::vector<PathSize> costs;
  std::size_t least = 0;
  for (const PutFile& file : input.puts) {
    if (!file.published) PLAYFS_CHECK(check_file_size(file.path, file.size));
    FileEntry entry;
    if (file.published) {
      entry = *file.published;
      if (entry.inline_text) entry.inline_text.emplace();  // it might move to stored chunks
    } else {
      entry.hash_claim = file.hash.hex();
      entry.size_claim = file.size;
      entry.chunks.assign(file.size / kMaxRecordSize, ChunkId(std::string(input.chunk_id_size, '0')));
    }
    entry.mode = file.mode;
    costs.push_back({json_size_of_string(file.path) + 1 + sizes.entry(entry), file.path});
    least += costs.back().size;
  }
  // In a continuation each chunk of text costs one id.
  std::size_t in_continuation = least / kMaxChunkText * (input.chunk_id_size + 3);
  if (in_continuation > kRecordRoom) return refuse(least, std::move(costs));
  return {};
}

Result<Plan> make_plan(PlanInput input, const RecordSizes& sizes) { return Planner(std::move(input), sizes).run(); }

Result<ChunkDraft> draft_of(const Plan& plan, const PlannedChunk& chunk) {
  const PlannedText& text = plan.texts[chunk.text];
  ChunkDraft draft{plan.base, text.path, chunk.sequence, chunk.hash, {}};
  PLAYFS_TRY(draft.content, read_text(text.bytes, text.encoding, chunk.offset, chunk.size));
  if (ContentHash::of(draft.content) != chunk.hash)
    return fail(ErrorCode::corrupt, text.path + ": its bytes changed after planning");
  return draft;
}

RevisionDraft fill(const Plan& plan, std::span<const ChunkId> ids) {
  assert(ids.size() == plan.uploads.size() && plan.uploads_to_follow == 0);
  RevisionDraft draft = plan.draft;
  for (const auto& hole : plan.holes) {
    bool is_continued = draft.manifest.continuation && hole.path == kContinuationPath;
    FileEntry& entry = is_continued ? draft.manifest.continuation->entry : draft.manifest.files.find(hole.path)->second;
    entry.chunks[hole.position] = ids[hole.upload];
  }
  return draft;
}

}  // namespace playfs
