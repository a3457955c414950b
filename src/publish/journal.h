// The write-ahead journal: what a publisher is about to do, on disk before it is done, so that a restart can finish it.
//
// One SQLite database (`publish.db`) with a row for each publication and one for each chunk that it uploads. Every call
// is one transaction that is synced before it returns: nothing is sent before it is journalled. A revision's body is
// stored as the exact text that is sent. So is a chunk's, unless its text is in a frozen file: then the row has its
// location and a hash of the body (README.md, "What is journalled of a chunk").
//
// The journal is bounded, and no call returns an amount of data that grows with what was ever published: known chunks
// are looked up one by one, and uploads are read in windows.
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

/// The step in progress. Repeating it after a crash is harmless.
enum class Step {
  queued = 0,     ///< requested; perhaps frozen already
  frozen = 1,     ///< the stage holds the pending layer; planning comes next
  uploading = 2,  ///< its chunks have rows; some may be acknowledged
  posting = 3,    ///< the revision's body and key are fixed; perhaps sent
  posted = 4,     ///< the revision exists; head has to be examined
  patching = 5,   ///< a PATCH of head was about to be sent
  settling = 6,   ///< the outcome is certain; the stage has yet to be told
  thawing = 7,    ///< the commit failed or was cancelled; the stage has yet to be told
  ended = 8,
};

/// How it ended, as stored in the journal.
enum class Ending { nothing = 0, published = 1, branched = 2, failed = 3, cancelled = 4 };

struct Publication {
  std::int64_t number = 0;  ///< the position in the queue
  std::string tx;           ///< the commit's id: 128 bits in hex
  std::string agent;
  std::string message;
  bool may_merge = true;  ///< false: prefer a branch
  Step step = Step::queued;
  RevisionId base;                     ///< from `frozen`; may be empty
  std::uint32_t files_changed = 0;     ///< from `frozen`
  std::string key;                     ///< from `posting`: the revision's Idempotency-Key
  std::string body;                    ///< from `posting` until the end: the exact text sent; empty if it was lost
  RevisionId revision;                 ///< from `posted`
  RevisionId merged;                   ///< from `settling`: the automatic merge that is head, if any
  std::vector<std::string> conflicts;  ///< paths in conflict with head; from `posting` or `settling`
  std::uint32_t chunks = 0;            ///< from `uploading`: how many are uploaded in total
  std::uint32_t writes = 0;            ///< acknowledged write requests, and each PATCH before it is sent
  Ending ending = Ending::nothing;     ///< from `settling` or `thawing`
  std::string error_code;              ///< name_of(code), from `thawing`
  std::string error_message;
  std::string error_hint;
};

/// A stored chunk, looked up by the hash of its text.
struct KnownChunk {
  ChunkId id;
  std::uint64_t size = 0;  ///< of its text, in bytes
};
/// The text of a stored chunk, looked up by the chunk's id.
struct KnownText {
  ContentHash hash;
  std::uint64_t size = 0;
};
/// At most this many chunks are known, about 12 GB of text. The text of forgotten older ones would be uploaded again.
inline constexpr std::int64_t kMostKnownChunks = 1'000'000;
/// At most this many facts. Forgotten ones (announcements) are looked up at the service again.
inline constexpr std::int64_t kMostFacts = 100'000;

/// The location of a chunk's text in a file of the frozen layer, and the rest of what its body is made of.
struct Recipe {
  std::string path;     ///< of the frozen file, and of the record
  RevisionId revision;  ///< `rev` of the record
  std::uint64_t sequence = 0;
  ContentEncoding encoding = ContentEncoding::text;
  std::uint64_t offset = 0;  ///< in the text
  ContentHash body_hash;     ///< of the exact body that the key is used with
};

struct Upload {
  std::int64_t number = 0;  ///< within its publication
  std::string key;
  std::string body;       ///< empty in the journal if there is a recipe
  ContentHash text_hash;  ///< of the chunk's text
  std::uint64_t text_size = 0;
  ChunkId chunk;  ///< empty until acknowledged
  std::optional<Recipe> recipe = {};
};

/// Progress of a publication's uploads.
struct UploadTotals {
  std::uint32_t chunks = 0, chunks_done = 0;
  std::uint64_t bytes = 0, bytes_done = 0;  ///< of text
};

/// A base of the work tree that the service lost when it went back to an older state.
struct LostBase {
  RevisionId revision;
  RevisionId survivor;  ///< the newest revision of its line that is still there; may be empty
  bool operator==(const LostBase&) const = default;
};

/// A chunk that was stored and that the service does not have any more.
struct LostChunk {
  ChunkId chunk;
  std::string fresh_key;  ///< for sending it again: the service may answer the old key with the lost chunk
};

/// One change of the journal: a transaction.
struct JournalChange {
  const Publication* publication = nullptr;  ///< its new row; nullptr: no row changes
  bool is_new = false;                       ///< insert the row, behind all others
  bool is_last = false;                      ///< it ended: remove its uploads and all earlier rows
  std::vector<std::int64_t> dropped;         ///< numbers of queued publications to remove
  std::vector<Upload> added;                 ///< uploads of the publication
  std::vector<Upload> acknowledged;          ///< uploads of the publication that have a chunk now
  const Upload* rekeyed = nullptr;           ///< an upload of the publication with a new key and body
  std::vector<Upload> known;                 ///< stored chunks that may be referred to
  std::vector<LostChunk> lost;               ///< chunks that are gone; uploads with one lose it
  std::map<std::string, std::string> facts;  ///< by name; an empty value removes the fact
};

/// Position and findings of LogScan.
struct ScanChange {
  std::string position;
  std::map<RevisionId, WallTime> found;  ///< in addition to those journalled before
  std::vector<RevisionId> forgotten;
};

/// The last publication whose revision may have been sent. Stored beside the database and written after its rows are
/// synced: if the rows are behind it, the journal has lost some.
struct Sent {
  std::int64_t number = 0;
  std::string tx;
};

/// The journal's storage. Thread-safe.
class JournalStorage {
 public:
  virtual ~JournalStorage() = default;
  /// The change, including `sent`, is synced when this returns.
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
  /// Empty if there is no fact of that name.
  virtual Result<std::string> fact(const std::string& name) = 0;
  /// All facts whose names begin with `prefix`; the keys are the rest of their names.
  virtual Result<std::map<std::string, std::string>> facts(const std::string& prefix) = 0;
  /// nullopt if nothing was sent, or if that is unknown.
  virtual Result<std::optional<Sent>> sent() = 0;
  virtual Status forget_sent() = 0;
};

/// A SQLite database in `directory`; creates what is missing. Remembers `most_known` chunks.
Result<std::unique_ptr<JournalStorage>> open_journal_database(const std::string& directory,
                                                              std::int64_t most_known = kMostKnownChunks);

/// Called for every change of the journal, before it and after it was synced. A simulator crashes here.
using JournalProbe = std::function<void(std::string_view what, bool synced)>;

class Journal {
 public:
  static Result<std::unique_ptr<Journal>> open(const std::string& directory, JournalProbe probe = {});
  explicit Journal(std::unique_ptr<JournalStorage> storage, JournalProbe probe = {})
      : storage_(std::move(storage)), probe_(std::move(probe)) {}

  /// Adds a publication to the end of the queue.
  [[nodiscard]] Status enqueue(const std::string& tx, const std::string& agent, const std::string& message,
                               bool may_merge = true);
  /// Adds one that had begun and of which nothing else is known; it may have been sent.
  [[nodiscard]] Status record_forgotten(const std::string& tx, RevisionId base, std::uint32_t files_changed);
  /// The same if its row is there, but older than what was sent.
  [[nodiscard]] Status record_forgotten_again(const Publication& older, RevisionId base, std::uint32_t files_changed);
  [[nodiscard]] Result<std::optional<Sent>> sent() { return storage_->sent(); }
  /// Call this if `sent` belongs to a different journal than this one.
  [[nodiscard]] Status forget_sent() { return storage_->forget_sent(); }
  /// Moves a publication that has ended back to `settling` or `thawing`, because the stage has yet to be told.
  [[nodiscard]] Status record_ending_again(const Publication& ended);
  /// The oldest that has not ended.
  [[nodiscard]] Result<std::optional<Publication>> front() { return storage_->front(); }
  /// All that have not ended, oldest first, without their bodies.
  [[nodiscard]] Result<std::vector<Publication>> waiting() { return storage_->waiting(); }
  /// The last that ended.
  [[nodiscard]] Result<std::optional<Publication>> last() { return storage_->last(); }

  [[nodiscard]] Status record_frozen(Publication& publication, RevisionId base, std::uint32_t files_changed);
  /// Adds chunks to be uploaded, and moves to `uploading`. Large numbers are added by several calls.
  [[nodiscard]] Status record_uploads(Publication& publication, const std::vector<Upload>& uploads);
  /// Uploads without a chunk, starting at number `from`.
  [[nodiscard]] Result<std::vector<Upload>> unsent(const Publication& publication, std::int64_t from,
                                                   std::size_t most) {
    return storage_->unsent(publication, from, most);
  }
  [[nodiscard]] Result<UploadTotals> totals(const Publication& publication) { return storage_->totals(publication); }
  /// Gives an upload a new key and body; it may have been sent under the old ones.
  [[nodiscard]] Status record_rekeyed(const Publication& publication, const Upload& upload);
  /// The uploads have their `chunk`, which any commit may refer to from now on.
  [[nodiscard]] Status record_acknowledged(Publication& publication, const std::vector<Upload>& uploads);
  [[nodiscard]] Status record_posting(Publication& publication, std::string key, std::string body,
                                      std::vector<std::string> conflicts = {});
  [[nodiscard]] Status record_posted(Publication& publication, RevisionId revision);
  /// Counts a write that is about to be sent after the revision.
  [[nodiscard]] Status record_patching(Publication& publication);
  [[nodiscard]] Status record_settling(Publication& publication, Ending ending, RevisionId merged = {},
                                       std::vector<std::string> conflicts = {});
  /// `in_doubt`: it was sent, and was not found at the service however long it was looked for.
  [[nodiscard]] Status record_thawing(Publication& publication, const Error& error, bool in_doubt = false);
  /// Likewise, on request; also removes the publications queued behind it.
  [[nodiscard]] Status record_cancelling(Publication& publication, std::vector<std::int64_t> behind);
  /// The tx of commits that returned to the stage in doubt, until they are seen at the service after all.
  [[nodiscard]] Result<std::set<std::string>> given_back_in_doubt();
  [[nodiscard]] Status record_came_late(const std::string& tx);
  /// Removes publications queued behind the first.
  [[nodiscard]] Status drop(std::vector<std::int64_t> behind);
  /// Keeps the row as the last one; removes its body and uploads, and the previous last row.
  [[nodiscard]] Status record_ended(Publication& publication);

  /// Adds chunks that were uploaded outside of a publication.
  [[nodiscard]] Status record_known(const std::vector<Upload>& uploads);
  /// These chunks are gone: nothing refers to them any more, and those that the publication (if any) had uploaded are
  /// uploaded again.
  [[nodiscard]] Status record_lost_chunks(const Publication* publication, const std::vector<LostChunk>& lost);
  /// The revision is not there, or must not be sent as it is: goes back to planning. Keeps key and body, so that the
  /// same body is posted under the same key. `hollow`: a revision that is in the log with its files, but without all
  /// their chunks.
  [[nodiscard]] Status record_planning_again(Publication& publication, const RevisionId& hollow = {});
  /// The last `hollow` of the commit; empty if none.
  [[nodiscard]] Result<RevisionId> hollow(const std::string& tx);
  /// How often this publication was planned again.
  [[nodiscard]] Result<int> times_planned_again(const Publication& publication);

  /// The service went back. Forgets how far the log was verified and which thread is the project's, since both may be
  /// gone. `verified`: when the survivor was created.
  [[nodiscard]] Status record_lost_base(const LostBase& lost, WallTime verified);
  /// Set until the next commit, or until what was lost is given up.
  [[nodiscard]] Result<std::optional<LostBase>> lost_base();
  [[nodiscard]] Status record_no_lost_base();

  /// A chunk that was uploaded from here, by the SHA-256 of its text; only the latest kMostKnownChunks are known.
  [[nodiscard]] Result<std::optional<KnownChunk>> known_chunk(const ContentHash& text) {
    return storage_->known_chunk(text);
  }
  [[nodiscard]] Result<std::optional<KnownText>> known_text(const ChunkId& chunk) {
    return storage_->known_text(chunk);
  }
  /// The sizes of their texts in bytes; may include those of forgotten chunks.
  [[nodiscard]] Result<std::set<std::size_t>> known_sizes() { return storage_->known_sizes(); }
  /// Length of the longest chunk id ever stored from here, in bytes of JSON; 0 if there is none.
  [[nodiscard]] Result<std::size_t> longest_id();

  /// The branch that the last commit left the work tree on; empty if none.
  [[nodiscard]] Result<RevisionId> branch();
  [[nodiscard]] Status record_no_branch();

  /// The creation time of the head that was verified last: siblings are looked for from there on.
  [[nodiscard]] Result<std::optional<WallTime>> watermark();
  [[nodiscard]] Status record_watermark(WallTime time, const ScanChange& scan = {});

  /// How far the log was read; empty if it never was.
  [[nodiscard]] Result<std::string> scan_position();
  [[nodiscard]] Result<std::map<RevisionId, WallTime>> scan_found();
  [[nodiscard]] Status record_scan(const ScanChange& scan);

  /// The revisions beside head that a convergence left out, and when they were created: they are still named when the
  /// log is forgotten up to a newer head. Replaced as a whole; writes nothing if nothing changed.
  [[nodiscard]] Result<std::map<RevisionId, WallTime>> left_out();
  [[nodiscard]] Status record_left_out(const std::map<RevisionId, WallTime>& left_out);

  /// What was announced: the project's thread, once it is known, and the revisions announced there.
  [[nodiscard]] Result<std::string> thread();
  [[nodiscard]] Status record_thread(const std::string& id);
  [[nodiscard]] Result<bool> is_announced(const RevisionId& revision);
  [[nodiscard]] Status record_announced(const RevisionId& revision);

 private:
  Status write(std::string_view what, const JournalChange& change);
  /// The facts named by this prefix and the id of a revision, with its creation time as their value.
  Result<std::map<RevisionId, WallTime>> revisions_under(const char* prefix);
  /// Adds the longest id to the change, if it is longer than all before.
  Status note_longest(const std::vector<Upload>& stored, JournalChange& change);

  const std::unique_ptr<JournalStorage> storage_;
  const JournalProbe probe_;
};

}  // namespace playfs::publish
