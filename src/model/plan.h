// How a commit becomes records: which files stand inline in the manifest, which are cut into chunks, and which of
// those chunks are stored already. Pure functions over plain values.
//
// The plan has the fewest writes for which every record stays within what the service keeps. Text that was cut is
// uploaded once, however many paths hold it; of what could stand inline, the planner chunks those texts whose chunks
// cost the fewest uploads for the room that is missing, and among equally cheap choices those that free the most
// room for the next commit (so the large ones; smaller files stay inline). Entries that the base has inline take
// part on the same terms, since one of them may be the cheapest way to make room; of two equal choices it is the
// entry that this commit wrote that moves. A changed file is cut around the chunks that it had (model/recut.h).
//
// A manifest with no room for all files goes on in a file of its own (Continuation), which is cut into chunks too.
// Small files stand inline there, so that many of them share a chunk, and a small change costs one.
//
// Content is read where it stands (model/bytes.h), a window at a time. In memory is what the manifest gets: hashes,
// ids, and the text that stands inline in the end.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/bytes.h"
#include "model/continuation.h"
#include "model/records.h"
#include "model/recut.h"

namespace playfs {

/// Kept free in every record for what the service adds when it stores one: an id of the greatest length (200 bytes),
/// two times (some 50 each, with their names), a status, a wrapping `data`, and a rest for fields that are not known.
inline constexpr std::size_t kSystemFieldsReserve = 512;
/// The most that is sent as the body of one record, in bytes of JSON.
inline constexpr std::size_t kRecordRoom = kMaxRecordSize - kSystemFieldsReserve;
/// The most text that stands inline in a manifest, in bytes: "about 8 KB".
inline constexpr std::size_t kMaxInlineText = 8 * 1024;
/// A chunk's id is presumed to be as long as a UUID until one was seen.
inline constexpr std::size_t kUsualIdSize = 36;

/// How records and entries are printed. Wire's own answer, handed in because model stands below wire.
class RecordSizes {
 public:
  virtual ~RecordSizes() = default;
  [[nodiscard]] virtual std::size_t entry(const FileEntry& entry) const = 0;
  [[nodiscard]] virtual std::size_t revision(const RevisionDraft& draft) const = 0;
  [[nodiscard]] virtual std::size_t chunk(const ChunkDraft& draft) const = 0;
  /// Not a size: the text of a continuation.
  [[nodiscard]] virtual std::string continuation(const std::map<std::string, FileEntry, std::less<>>& files) const = 0;
};

/// One path that a commit adds or changes.
struct PutFile {
  std::string path;
  FileMode mode = FileMode::regular;
  std::optional<FileEntry> published;  ///< bytes that did not change (renamed, chmod-ed): the entry to carry over
  Bytes content;                       ///< otherwise: the raw bytes
  std::uint64_t size = 0;              ///< of them
  ContentHash hash;                    ///< of them
  ContentEncoding encoding = ContentEncoding::text;  ///< in which they travel, see examine()
};

/// A file's content that the service has already.
struct StoredContent {
  ContentEncoding encoding = ContentEncoding::text;
  std::vector<ChunkId> chunks;
};

/// What a plan may refer to instead of uploading it. REQUIRES: uploaded by this client, or fetched and compared; an
/// entry's claim is not enough, since anyone may publish chunks under a hash that is not theirs.
struct Stored {
  std::unordered_map<ContentHash, StoredContent> contents;  ///< by SHA-256 of the raw bytes
  const KnownPieces* pieces = nullptr;                      ///< chunks, whatever files they are of
  /// By path: the chunks of the file that this one probably was made from, in order; for the continuation those of the
  /// base's.
  std::map<std::string, std::vector<StoredPiece>, std::less<>> near;
};

struct PlanInput {
  RevisionDraft draft;        ///< all of the revision; `manifest` is what it is changed from, see carried_forward
  RevisionId base;            ///< `rev` of the chunks; may be empty
  std::vector<PutFile> puts;  ///< REQUIRES: no path twice
  std::vector<std::string> deletions;
  Stored stored;
  std::size_t chunk_id_size = kUsualIdSize;  ///< of the ids that the service will give, in bytes of JSON without quotes
};

/// A text that chunks are cut from.
struct PlannedText {
  std::string path;
  Bytes bytes;
  ContentEncoding encoding = ContentEncoding::text;
};

/// A chunk to be uploaded: where its text stands.
struct PlannedChunk {
  std::size_t text = 0;  ///< index into Plan::texts
  std::uint64_t sequence = 0;
  std::uint64_t offset = 0;
  std::size_t size = 0;
  ContentHash hash;
};

struct Plan {
  /// Complete but for the ids of chunks that are not uploaded yet, in whose place something as long stands.
  RevisionDraft draft;
  RevisionId base;  ///< `rev` of the chunks
  std::vector<PlannedText> texts;
  std::vector<PlannedChunk> uploads;  ///< no text twice
  /// How many chunks have to be uploaded after those, for which another plan has to be made then: a continuation names
  /// chunks, so that its text is known only when they have their ids. The draft cannot be filled before.
  std::size_t uploads_to_follow = 0;
  struct Hole {
    std::string path;
    std::size_t position = 0;  ///< in the entry's list of chunks
    std::size_t upload = 0;    ///< index into uploads
  };
  std::vector<Hole> holes;
  std::size_t revision_size = 0;  ///< of the draft as JSON, should the ids have the presumed length
  std::string continuation;       ///< its text, where the manifest has one; its files are there, and not in the draft
};

/// What of a manifest goes on in the next revision: entries, refused ones and unknown fields. Not what this protocol
/// says of one revision alone: `auto` is dropped, `tx` replaced.
Manifest carried_forward(Manifest base, std::string tx);

/// Fails with `file_too_big` where a file is larger than is shown, and, saying what each path costs, where the files
/// cannot fit whatever their content. Looks at sizes only, so that contents which will never be sent need not be read.
/// Passing it promises nothing.
Status check_could_fit(const PlanInput& input, const RecordSizes& sizes);

/// Fails with `file_too_big`, saying what each path costs, where the manifest or a chunk cannot stay within
/// kRecordRoom; with `invalid_argument` where a file is put where the continuation stands; where content cannot be
/// read.
Result<Plan> make_plan(PlanInput input, const RecordSizes& sizes);

/// One of plan.uploads with its text. Fails with `corrupt` where that is no longer what was planned.
Result<ChunkDraft> draft_of(const Plan& plan, const PlannedChunk& chunk);

/// The plan's revision with the ids of its uploads in place. REQUIRES: one id for each of plan.uploads, and none to
/// follow.
RevisionDraft fill(const Plan& plan, std::span<const ChunkId> ids);

}  // namespace playfs
