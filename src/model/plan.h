// Turns a commit into records: which files are inline in the manifest, which are chunked, and which chunks are already
// stored. Pure functions over plain values.
//
// A plan uses the fewest writes that keep every record within the service's size limit. Chunked text is uploaded once,
// however many paths hold it. If the manifest is too large, the planner chunks the inline texts that free enough room
// with the fewest uploads and, among equally cheap choices, those that free the most room for the next commit (so large
// files move and small ones stay). Inline entries of the base take part on the same terms, since one may be the
// cheapest to move; on a tie the entry that this commit wrote moves. A changed file is cut around its previous chunks
// (model/rechunk.h).
//
// If the manifest still does not fit, it moves to a file of its own (Continuation), which is chunked too. Small files
// stay inline there, so that many share a chunk and a small change costs one.
//
// Content is read from its source (model/bytes.h), one window at a time. Memory holds only what the manifest gets:
// hashes, ids, and text that ends up inline.
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
#include "model/rechunk.h"
#include "model/records.h"

namespace playfs {

/// Reserved in every record for what the service adds: an id of the maximum length (200 bytes), two timestamps (about
/// 50 bytes each with their names), a status, a wrapping `data`, and a margin for unknown fields.
inline constexpr std::size_t kSystemFieldsReserve = 512;
/// The most that is sent as one record's body, in bytes of JSON.
inline constexpr std::size_t kRecordRoom = kMaxRecordSize - kSystemFieldsReserve;
/// The most text inline in a manifest, in bytes: the specification's "about 8 KB".
inline constexpr std::size_t kMaxInlineText = 8 * 1024;
/// The assumed length of a chunk id, that of a UUID, until one has been seen.
inline constexpr std::size_t kUsualIdSize = 36;

/// How records and entries are printed. Implemented by wire and passed in, because model may not include wire.
class RecordSizes {
 public:
  virtual ~RecordSizes() = default;
  [[nodiscard]] virtual std::size_t entry(const FileEntry& entry) const = 0;
  [[nodiscard]] virtual std::size_t revision(const RevisionDraft& draft) const = 0;
  [[nodiscard]] virtual std::size_t chunk(const ChunkDraft& draft) const = 0;
  /// Not a size but the continuation's text.
  [[nodiscard]] virtual std::string continuation(const std::map<std::string, FileEntry, std::less<>>& files) const = 0;
};

/// One path that a commit adds or changes.
struct PutFile {
  std::string path;
  FileMode mode = FileMode::regular;
  std::optional<FileEntry> published;                ///< for unchanged bytes (rename, chmod): the entry to carry over
  Bytes content;                                     ///< otherwise: the raw bytes
  std::uint64_t size = 0;                            ///< of `content`
  ContentHash hash;                                  ///< of `content`
  ContentEncoding encoding = ContentEncoding::text;  ///< of `content`, see examine()
};

/// Content that the service already has.
struct StoredContent {
  ContentEncoding encoding = ContentEncoding::text;
  std::vector<ChunkId> chunks;
};

/// What a plan may reference instead of uploading. REQUIRES: uploaded by this client, or fetched and compared. An
/// entry's claim is not enough, since anyone can publish chunks under a false hash.
struct Stored {
  std::unordered_map<ContentHash, StoredContent> contents;  ///< by SHA-256 of the raw bytes
  const KnownPieces* pieces = nullptr;                      ///< chunks of any file
  /// By path: the chunks, in order, of the file that this one was probably made from; for the continuation, those of
  /// the base's.
  std::map<std::string, std::vector<StoredPiece>, std::less<>> near;
};

struct PlanInput {
  RevisionDraft draft;        ///< the whole revision; `manifest` is what the changes apply to, see carried_forward
  RevisionId base;            ///< `rev` of the chunks; may be empty
  std::vector<PutFile> puts;  ///< REQUIRES: distinct paths
  std::vector<std::string> deletions;
  Stored stored;
  std::size_t chunk_id_size = kUsualIdSize;  ///< expected, in bytes of JSON without quotes
};

/// A text that chunks are cut from.
struct PlannedText {
  std::string path;
  Bytes bytes;
  ContentEncoding encoding = ContentEncoding::text;
};

/// A chunk to upload, as a range of its text.
struct PlannedChunk {
  std::size_t text = 0;  ///< index into Plan::texts
  std::uint64_t sequence = 0;
  std::uint64_t offset = 0;
  std::size_t size = 0;
  ContentHash hash;
};

struct Plan {
  /// Complete except for the ids of chunks yet to be uploaded, which placeholders of equal length stand for.
  RevisionDraft draft;
  RevisionId base;  ///< `rev` of the chunks
  std::vector<PlannedText> texts;
  std::vector<PlannedChunk> uploads;  ///< distinct texts
  /// How many more chunks follow, which need another plan: a continuation contains chunk ids, so its text is known only
  /// once `uploads` have theirs. The draft cannot be filled before.
  std::size_t uploads_to_follow = 0;
  struct Hole {
    std::string path;
    std::size_t position = 0;  ///< in the entry's chunk list
    std::size_t upload = 0;    ///< index into uploads
  };
  std::vector<Hole> holes;
  std::size_t revision_size = 0;  ///< of the draft as JSON, assuming ids of the expected length
  std::string continuation;       ///< text of the continuation, if any; the draft then lists no files
};

/// The parts of a manifest that carry over to the next revision: entries, refused ones and unknown fields. Fields about
/// one revision do not: `auto` is dropped and `tx` replaced.
Manifest carried_forward(Manifest base, std::string tx);

/// Fails with `file_too_big` if a file is larger than playfs shows.
Status check_file_size(const std::string& path, std::uint64_t size);

/// Fails like that, or, listing each path's cost, if the files cannot
/// fit whatever their content. Checks sizes only, so that content that will never be sent need not be read. Success
/// does not guarantee that the plan fits.
Status check_could_fit(const PlanInput& input, const RecordSizes& sizes);

/// Fails with `file_too_big`, listing each path's cost, if the manifest or a chunk exceeds kRecordRoom; with
/// `invalid_argument` if a file is put at the continuation's path; or if content cannot be read.
Result<Plan> make_plan(PlanInput input, const RecordSizes& sizes);

/// Reads the text of one of plan.uploads. Fails with `corrupt` if it changed since planning.
Result<ChunkDraft> draft_of(const Plan& plan, const PlannedChunk& chunk);

/// The plan's revision with its uploads' ids filled in. REQUIRES: one id per plan.uploads, and no uploads to follow.
RevisionDraft fill(const Plan& plan, std::span<const ChunkId> ids);

}  // namespace playfs
