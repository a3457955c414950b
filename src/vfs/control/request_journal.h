// The write-ahead journal of requests that create records: what is about to be sent, with its Idempotency-Keys, on disk
// before it is sent. So a request is repeated with the key that it had before, whatever happened in between:
//
// - the mount ended before the answer: the next mount sends it again (`left_behind`), until it has an answer;
// - the writer was told that nobody knows whether it arrived, or saw the mount end, and writes the same again (`begin`
//   finds the keys).
//
// Services know a key from the caller who sent it, so a request is sent as the one who wrote it, also after another
// `playfs login`, or not at all.
//
// Whoever wrote a request was told that it was taken, so its text is never lost: it leaves the journal when it has its
// outcome, or after its text was written to `unsent_directory()` and synced (`give_up`). A process that dies between
// the two leaves both, and the next mount does it again: one key has one file there.
//
// One file for each request, synced, 0600, in a directory that all mounts of a site share. A mount's files begin with
// its name, and it holds a lock on NAME.lock: of a mount that is gone, the next one takes the files over. All calls do
// local I/O, so they belong on a disk thread. Thread-safe; its lock is a leaf.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/result.h"
#include "model/json.h"

namespace playfs::vfs {

/// One record to create.
struct RequestStep {
  std::string collection;
  JsonObject body;
  std::string key = {};   ///< its Idempotency-Key; given by the journal
  std::string made = {};  ///< the id of the record, once the service has created it
};

/// What was written to a control file. Each step waits for the one before it.
struct JournalledRequest {
  std::string path;  ///< of the control file
  std::vector<RequestStep> steps;
  WallTime begun;
  std::string caller = {};  ///< as whom it is sent: Client::caller() when it was written
  /// Earlier versions did not journal the caller: such a request is sent again only by who repeats it.
  bool is_caller_known = true;
  bool is_resumed = false;   ///< begun in an earlier mount, and sent again in this one until it has an answer
  bool is_joined = false;    ///< the same, by its writer, who repeated it
  bool is_told = false;      ///< its writer knows that it failed, and repeats it or not
  bool is_repeated = false;  ///< its writer repeats it, so that it may have arrived before
  std::string name = {};     ///< of its file
};

class RequestJournal {
 public:
  static constexpr std::size_t kMost = 64;  ///< requests in the journal
  /// Services may forget keys, so an older request would perhaps be sent twice.
  static constexpr std::chrono::hours kLongest{24};
  /// How long after the answer to a resumed request its writer, who saw the mount end, may still repeat it.
  static constexpr std::chrono::minutes kJustAnswered{1};

  /// Creates `directory` with the first request.
  RequestJournal(std::string directory, const Clock& clock, Random& random)
      : directory_(std::move(directory)), clock_(clock), random_(random) {}

  /// Journals the request, or finds the one that its writer repeats, with its keys and what it has made. `order`
  /// increases from one request to the next, also from mount to mount. `caller`: who writes now. What somebody else
  /// wrote under an account is another request.
  [[nodiscard]] Result<JournalledRequest> begin(std::string path, std::vector<RequestStep> steps,
                                                std::int64_t order = 0, const std::string& caller = {})
      PLAYFS_EXCLUDES(mutex_);
  /// Journals what has been made so far, and `is_told`.
  [[nodiscard]] Status record(const JournalledRequest& request) PLAYFS_EXCLUDES(mutex_);
  /// Whether it is to be sent again: it was resumed, and nobody has got its outcome.
  [[nodiscard]] bool is_unfinished(const JournalledRequest& request) const PLAYFS_EXCLUDES(mutex_);
  /// Whether one that was left behind may be sent by itself. Those that may not are to be given up.
  [[nodiscard]] Status may_be_sent(const JournalledRequest& request) const;
  /// It has its outcome.
  void end(const JournalledRequest& request) PLAYFS_EXCLUDES(mutex_);
  /// It is not sent again, and its writer, who was told that it was taken, does not know: keeps its text for him, and
  /// then journals that he knows. If the text cannot be kept, the next mount does this again. Returns the error that
  /// says where the text is.
  [[nodiscard]] Error give_up(JournalledRequest request, Error why) PLAYFS_EXCLUDES(mutex_);

  /// For the texts of requests that are not sent again.
  [[nodiscard]] std::string unsent_directory() const { return directory_ + "/unsent"; }

  struct LeftBehind {
    std::vector<JournalledRequest> requests;  ///< to be sent again if they may be, in their order
    std::vector<Error> unreadable;            ///< what became of files that are no requests, or cannot be read now
  };
  /// Takes over what mounts that are gone have left unfinished.
  [[nodiscard]] LeftBehind left_behind() PLAYFS_EXCLUDES(mutex_);

 private:
  [[nodiscard]] Status open() PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_too_old(const JournalledRequest& request) const;
  /// Makes room, at the cost of the oldest request that its writer knows of.
  [[nodiscard]] Status make_room() PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  /// Reads one that was taken over.
  void take(const std::string& name, LeftBehind& left) PLAYFS_EXCLUDES(mutex_);
  /// Moves a damaged file, as it is, to the unsent texts. Returns the error that says so.
  [[nodiscard]] Error set_aside(const std::string& name) const;

  const std::string directory_;
  const Clock& clock_;
  Random& random_;
  mutable Mutex mutex_;
  std::string own_ PLAYFS_GUARDED_BY(mutex_);  ///< this mount's name; empty: not opened
  UniqueFd lock_ PLAYFS_GUARDED_BY(mutex_);
  std::set<std::string> under_way_ PLAYFS_GUARDED_BY(mutex_);                   ///< names
  std::map<std::string, JournalledRequest> told_ PLAYFS_GUARDED_BY(mutex_);     ///< by name
  std::map<std::string, JournalledRequest> resumed_ PLAYFS_GUARDED_BY(mutex_);  ///< by name
  struct Answered {
    JournalledRequest request;
    WallTime when;
  };
  std::vector<Answered> answered_ PLAYFS_GUARDED_BY(mutex_);  ///< resumed ones; at most kMost
};

}  // namespace playfs::vfs
