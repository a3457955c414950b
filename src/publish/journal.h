// What a publisher is about to do, on disk before it is done, so that a restart can finish it.
//
// One SQLite database (`publish.db`) with a row for each publication and one for each chunk that it uploads. Every
// call is one transaction that is synced before it returns: what was not journalled was not sent. A revision's body is
// kept as the exact text that is sent. So is a chunk's, unless its text stands in a frozen file: then the row says
// where, and has a hash of the body that was made of it (README.md, "What is journalled of a chunk").
//
// Nothing here grows without end, and nothing is handed out that grows with what was ever published: chunks that are
// known are looked up one by one, uploads read in windows.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/content_hash.h"
#include "model/ids.h"
#include "model/manifest.h"

namespace playfs::publish {

inline constexpr std::size_t kTxDigits = 32;  ///< of a commit's id in hex: 128 bits

/// How far a publication is. A row stands at the step that is being done; doing it again after a crash is harmless.
enum class Step {
  queued = 0,     ///< asked for; perhaps frozen already
  frozen = 1,     ///< the stage holds the pending layer; to be planned
  uploading = 2,  ///< its chunks have rows; some may be acknowledged
  posting = 3,    ///< the revision's body and key are fixed; perhaps sent
  posted = 4,     ///< the revision exists; head has to be looked at
  patching = 5,   ///< a PATCH of head was about to be sent
  settling = 6,   ///< the outcome is certain; the stage has to learn it
  thawing = 7,    ///< given up for good; the stage has to learn it
  ended = 8,
};

/// How it ended, as the journal keeps it.
enum class Ending { nothing = 0, published = 1, branched = 2, failed = 3, cancelled = 4 };

struct Publication {
  std::int64_t number = 0;  ///< the order of the queue
  std::string tx;           ///< the commit's id: 128 bits in hex
  std::string agent;
  std::string message;
  bool may_merge = true;  ///< false: rather a branch
  Step step = Step::queued;
  RevisionId base;                  ///< from `frozen`; may be empty
  std::uint32_t files_changed = 0;  ///< from `frozen`
  std::string key;                  ///< from `posting`: the revision's Idempotency-Key
  std::string body;                 ///< from `posting` until it ends: what is sent, exactly; empty: it was forgotten
  RevisionId revision;              ///< from `posted`
  RevisionId merged;                ///< from `settling`: the automatic merge that is head, where there is one
  std::string conflicts;            ///< paths that stand against head, one a line; from `posting` or `settling`
  std::uint32_t chunks = 0;         ///< from `uploading`: how many are uploaded in all
  std::uint32_t writes = 0;         ///< write requests: what was acknowledged, and each PATCH before it is sent
  Ending ending = Ending::nothing;  ///< from `settling` or `thawing`
  std::string error_code;           ///< name_of(code), from `thawing`
  std::string error_message;
  std::string error_hint;
};

/// A chunk that is stored, by its text's hash.
struct KnownChunk {
  ChunkId id;
  std::uint64_t size = 0;  ///< of its text, in bytes
};
/// The text of a chunk that is stored, by the chunk's id.
struct KnownText {
  ContentHash hash;
  std::uint64_t size = 0;
};
/// So many chunks are known at the most: 12 GB of text or so. The oldest go, and would be uploaded again.
inline constexpr std::int64_t kMostKnownChunks = 1'000'000;
/// So many names of facts: those that are forgotten (what was announced) are looked for at the service again.
inline constexpr std::int64_t kMostFacts = 100'000;

/// Where the text of a chunk stands in a file of the frozen layer, and what else its body is made of.
struct Recipe {
  std::string path;     ///< of the frozen file, and of the record
  RevisionId revision;  ///< `rev` of the record
  std::uint64_t sequence = 0;
  ContentEncoding encoding = ContentEncoding::text;
  std::uint64_t offset = 0;  ///< in the text
  ContentHash body_hash;     ///< of the exact body that goes with the key
};

struct Upload {
  std::int64_t number = 0;  ///< within its publication
  std::string key;
  std::string body;       ///< empty in the journal where there is a recipe
  ContentHash text_hash;  ///< of the chunk's text
  std::uint64_t text_size = 0;
  ChunkId chunk;  ///< empty until it was acknowledged
  std::optional<Recipe> recipe = {};
};

/// How far the uploads of a publication are.
struct UploadTotals {
  std::uint32_t chunks = 0, chunks_done = 0;
  std::uint64_t bytes = 0, bytes_done = 0;  ///< of text
};

/// A revision that the work tree stood on and that the service has no more, since it went back to an older state.
struct LostBase {
  RevisionId revision;
  RevisionId survivor;  ///< the newest one of its line that is still there; empty: none
  bool operator==(const LostBase&) const = default;
};

/// A chunk that was stored once, and that the service has no more.
struct LostChunk {
  ChunkId chunk;
  std::string fresh_key;  ///< for sending it again: the old one may still be answered with the chunk that is gone
};

/// One change of the journal, all or nothing.
struct JournalChange {
  const Publication* publication = nullptr;  ///< its row as it becomes; nullptr: no row changes
  bool is_new = false;                       ///< it gets a row, behind all others
  bool is_last = false;                      ///< it ended: its uploads go, and all rows before it
  std::vector<std::int64_t> dropped;         ///< rows of publications that wait, by number: they go
  std::vector<Upload> added;                 ///< uploads of the publication
  std::vector<Upload> acknowledged;          ///< uploads of the publication that have their chunk now
  const Upload* rekeyed = nullptr;           ///< an upload of the publication that gets another key and body
  std::vector<Upload> known;                 ///< chunks that may be referred to
  std::vector<LostChunk> lost;               ///< chunks that are gone: uploads that have one are without it again
  std::map<std::string, std::string> facts;  ///< by name; empty: gone
};

/// How far the log of revisions was read, and what was found there: see LogScan.
struct ScanChange {
  std::string position;
  std::map<RevisionId, WallTime> found;  ///< beside those that are known
  std::vector<RevisionId> forgotten;
};

/// The last publication of which a revision may have been sent. It is kept beside the rows, and written once they are
/// synced: rows that do not go as far as that have been lost since.
struct Sent {
  std::int64_t number = 0;
  std::string tx;
};

/// Where the journal is kept. Thread-safe.
class JournalStorage {
 public:
  virtual ~JournalStorage() = default;
  /// Synced when it returns, and so is `sent`.
  virtual Status write(const JournalChange& change) = 0;
  virtual Result<std::optional<Publication>> front() = 0;
  /// All that have not ended, oldest first, without their bodies.
  virtual Result<std::vector<Publication>> waiting() = 0;
  virtual Result<std::optional<Publication>> last() = 0;
  virtual Result<std::vector<Upload>> unsent(const Publication& publication, std::int64_t from, std::size_t most) = 0;
  virtual Result<UploadTotals> totals(const Publication& publication) = 0;
  virtual Result<std::optional<KnownChunk>> known_chunk(const ContentHash& text) = 0;
  virtual Result<std::optional<KnownText>> known_text(const ChunkId& chunk) = 0;
  virtual Result<std::set<std::size_t>> known_sizes() = 0;
  /// Empty where there is none of that name.
  virtual Result<std::string> fact(const std::string& name) = 0;
  /// All whose names begin like this; by what comes after it.
  virtual Result<std::map<std::string, std::string>> facts(const std::string& prefix) = 0;
  /// Nothing where nothing was sent, or where that is not known any more.
  virtual Result<std::optional<Sent>> sent() = 0;
  virtual Status forget_sent() = 0;
};

/// A SQLite database in that directory; creates what is missing. It knows `most_known` chunks.
Result<std::unique_ptr<JournalStorage>> open_journal_database(const std::string& directory,
                                                              std::int64_t most_known = kMostKnownChunks);

/// Told of every change of the journal, before it and after it was synced. A simulator crashes here.
using JournalProbe = std::function<void(std::string_view what, bool synced)>;

class Journal {
 public:
  static Result<std::unique_ptr<Journal>> open(const std::string& directory, JournalProbe probe = {});
  explicit Journal(std::unique_ptr<JournalStorage> storage, JournalProbe probe = {})
      : storage_(std::move(storage)), probe_(std::move(probe)) {}

  /// Adds a publication behind all others.
  [[nodiscard]] Status enqueue(const std::string& tx, const std::string& agent, const std::string& message,
                               bool may_merge = true);
  /// Likewise one that had begun and of which nothing else is known: perhaps it was sent.
  [[nodiscard]] Status record_forgotten(const std::string& tx, RevisionId base, std::uint32_t files_changed);
  /// Likewise where its row is there, but older than what was sent.
  [[nodiscard]] Status record_forgotten_again(const Publication& older, RevisionId base, std::uint32_t files_changed);
  [[nodiscard]] Result<std::optional<Sent>> sent() { return storage_->sent(); }
  /// What is known of it belongs to another journal than this one has become.
  [[nodiscard]] Status forget_sent() { return storage_->forget_sent(); }
  /// One that has ended, and of which the stage does not know that yet.
  [[nodiscard]] Status record_ending_again(const Publication& ended);
  /// The oldest that has not ended.
  [[nodiscard]] Result<std::optional<Publication>> front() { return storage_->front(); }
  /// All that have not ended, oldest first, without their bodies.
  [[nodiscard]] Result<std::vector<Publication>> waiting() { return storage_->waiting(); }
  /// The last that ended.
  [[nodiscard]] Result<std::optional<Publication>> last() { return storage_->last(); }

  [[nodiscard]] Status record_frozen(Publication& publication, RevisionId base, std::uint32_t files_changed);
  /// Adds chunks to be uploaded, and goes to `uploading`. Many are added by several calls.
  [[nodiscard]] Status record_uploads(Publication& publication, const std::vector<Upload>& uploads);
  /// Uploads without a chunk, from that number on.
  [[nodiscard]] Result<std::vector<Upload>> unsent(const Publication& publication, std::int64_t from,
                                                   std::size_t most) {
    return storage_->unsent(publication, from, most);
  }
  [[nodiscard]] Result<UploadTotals> totals(const Publication& publication) { return storage_->totals(publication); }
  /// Another key and body for an upload that may have been sent under those it had.
  [[nodiscard]] Status record_rekeyed(const Publication& publication, const Upload& upload);
  /// Their `chunk` is set: they may be referred to from now on, by any commit.
  [[nodiscard]] Status record_acknowledged(Publication& publication, const std::vector<Upload>& uploads);
  [[nodiscard]] Status record_posting(Publication& publication, std::string key, std::string body,
                                      std::string conflicts = {});
  [[nodiscard]] Status record_posted(Publication& publication, RevisionId revision);
  /// Counts a write that is about to be sent after the revision.
  [[nodiscard]] Status record_patching(Publication& publication);
  [[nodiscard]] Status record_settling(Publication& publication, Ending ending, RevisionId merged = {},
                                       std::string conflicts = {});
  /// `in_doubt`: it was sent, and was not found at the service as long as it was looked for.
  [[nodiscard]] Status record_thawing(Publication& publication, const Error& error, bool in_doubt = false);
  /// Likewise, because somebody asked for it; with those that wait behind it.
  [[nodiscard]] Status record_cancelling(Publication& publication, std::vector<std::int64_t> behind);
  /// The commits that were given back in doubt, by tx, until they are seen at the service after all.
  [[nodiscard]] Result<std::set<std::string>> given_back_in_doubt();
  [[nodiscard]] Status record_came_late(const std::string& tx);
  /// Forgets those that wait behind it.
  [[nodiscard]] Status drop(std::vector<std::int64_t> behind);
  /// Keeps the row as the last one and forgets bodies, uploads and the last one before it.
  [[nodiscard]] Status record_ended(Publication& publication);

  /// Chunks that were uploaded for no publication.
  [[nodiscard]] Status record_known(const std::vector<Upload>& uploads);
  /// Chunks turned out to be gone: nothing refers to them any more, and those that the publication had uploaded (if
  /// it is about one) are to be uploaded again.
  [[nodiscard]] Status record_lost_chunks(const Publication* publication, const std::vector<LostChunk>& lost);
  /// The revision is not there, or must not be sent as it is: back to where it is planned. Its key and body are kept,
  /// so that the same body is posted under the same key. `hollow`: a revision that is there and has its files, without
  /// all their chunks.
  [[nodiscard]] Status record_planning_again(Publication& publication, const RevisionId& hollow = {});
  /// The last `hollow` of the commit; empty: none.
  [[nodiscard]] Result<RevisionId> hollow(const std::string& tx);
  /// How often that was for this publication.
  [[nodiscard]] Result<int> times_planned_again(const Publication& publication);

  /// The service went back. Forgets up to where the log was verified and which thread is the project's: both may be
  /// gone. `verified`: when the survivor was made.
  [[nodiscard]] Status record_lost_base(const LostBase& lost, WallTime verified);
  /// Until the next commit, or until what was lost is given up.
  [[nodiscard]] Result<std::optional<LostBase>> lost_base();
  [[nodiscard]] Status record_no_lost_base();

  /// A chunk that was uploaded from here, by the SHA-256 of its text; of kMostKnownChunks, the latest.
  [[nodiscard]] Result<std::optional<KnownChunk>> known_chunk(const ContentHash& text) {
    return storage_->known_chunk(text);
  }
  [[nodiscard]] Result<std::optional<KnownText>> known_text(const ChunkId& chunk) {
    return storage_->known_text(chunk);
  }
  /// How long their texts are, in bytes; some may be of chunks that were forgotten.
  [[nodiscard]] Result<std::set<std::size_t>> known_sizes() { return storage_->known_sizes(); }
  /// How long the longest id of a chunk was that was ever stored from here, in bytes of JSON; 0 where none was.
  [[nodiscard]] Result<std::size_t> longest_id();

  /// The revision that the work tree was left on when it became a branch; empty where it did not.
  [[nodiscard]] Result<RevisionId> branch();
  [[nodiscard]] Status record_no_branch();

  /// The time of the head that was verified last: siblings are looked for from there on.
  [[nodiscard]] Result<std::optional<WallTime>> watermark();
  [[nodiscard]] Status record_watermark(WallTime time, const ScanChange& scan = {});

  /// How far the log was read; empty where it never was.
  [[nodiscard]] Result<std::string> scan_position();
  [[nodiscard]] Result<std::map<RevisionId, WallTime>> scan_found();
  [[nodiscard]] Status record_scan(const ScanChange& scan);

  /// What was said to others: the project's thread, once it is known, and the revisions that were announced there.
  [[nodiscard]] Result<std::string> thread();
  [[nodiscard]] Status record_thread(const std::string& id);
  [[nodiscard]] Result<bool> is_announced(const RevisionId& revision);
  [[nodiscard]] Status record_announced(const RevisionId& revision);

 private:
  Status write(std::string_view what, const JournalChange& change);
  /// Adds the longest id to the change, where one of these is longer than all before.
  Status note_longest(const std::vector<Upload>& stored, JournalChange& change);

  const std::unique_ptr<JournalStorage> storage_;
  const JournalProbe probe_;
};

}  // namespace playfs::publish
