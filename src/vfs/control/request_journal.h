// The write-ahead journal of requests that create records: each is on disk, with its Idempotency-Keys, before it is
// sent. So a request that is repeated keeps its keys, and the service makes its records once. It is repeated when
//
// - the mount ended before the answer: the next mount sends it again (`left_behind`), until it has an answer;
// - it was accepted, and the service did not answer: the mount sends it again (`keep_sending`);
// - the writer got the error that it may or may not have arrived, was interrupted (`set_left`) or saw the mount end,
// and
//   writes the same again, in this mount or another one of the same directory (`begin` finds the keys).
//
// A service remembers a key per caller. So a request is only ever sent as the account that wrote it, even after another
// `playfs login`.
//
// Once write(2) or close(2) accepted a request, its text is never lost: it leaves the journal when it has its outcome,
// or after its text was written to `unsent_directory()` and synced (`give_up`). A process that dies between the two
// leaves both, and the next mount repeats the step; that yields the same file, since each key has one file there.
//
// A text that is still being written is a draft, which is on disk too. The next mount moves the drafts of one that is
// gone to `unsent_directory()`, unless a request was made of them.
//
// Each request or draft is one file with a checksum, synced, 0600, in a directory that all mounts of a site share. A
// mount's files begin with its name, and it holds a lock on NAME.lock; the next mount takes over the files of one that
// is gone. All calls do local I/O, so they belong on a disk thread. Thread-safe; its lock is a leaf.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/result.h"
#include "model/json.h"
#include "vfs/control/text_room.h"

namespace playfs::vfs {

/// One record to create.
struct RequestStep {
  std::string collection;
  JsonObject body;
  std::string key = {};   ///< its Idempotency-Key; given by the journal
  std::string made = {};  ///< the id of the record, once the service has created it
  /// The title by which the path led to the message's thread, which must have it at each attempt; empty: the path has
  /// its id.
  std::string thread_title = {};
};

/// What was written to a control file. Each step waits for the one before it.
struct JournalledRequest {
  std::string path;  ///< of the control file
  std::vector<RequestStep> steps;
  WallTime begun;
  std::string caller = {};  ///< as whom it is sent: Client::caller() when it was written
  /// False for requests of earlier versions, which did not journal the caller: they are sent again only if a writer
  /// repeats them.
  bool is_caller_known = true;
  bool is_resumed = false;  ///< sent again by the mount until it has an answer
  bool is_joined = false;   ///< resumed, and repeated by its writer meanwhile
  /// Its writer knows that it failed, and repeats it or not. Else the mount sends it again, or saves its text.
  bool is_told = false;
  /// An attempt was made, and nobody knows what became of it. What is checked before it is sent journals this before
  /// the attempt, by the name that earlier versions gave it ("checked"); the first ones did not, so theirs count as
  /// sent.
  bool may_have_arrived = false;
  bool is_of_earlier_version = false;  ///< as read from the disk
  std::string name = {};               ///< of its file
  std::string draft = {};              ///< of the text that it was made of
};

/// Whose journal it is, for what its user reads.
struct JournalUser {
  std::string agent = {};  ///< the mount's default
  std::string site = {};   ///< as `playfs mount` takes it
};

class RequestJournal {
 public:
  static constexpr std::size_t kMost = 64;  ///< requests in the journal
  /// The age at which requests expire: services may forget keys, so an older one might be made twice.
  static constexpr std::chrono::hours kLongest{24};
  /// How long after the answer to a resumed request its writer, who saw the mount end, may still repeat it.
  static constexpr std::chrono::minutes kJustAnswered{1};

  /// Creates `directory` with the first request.
  RequestJournal(std::string directory, const Clock& clock, Random& random, JournalUser user = {})
      : directory_(std::move(directory)), user_(std::move(user)), clock_(clock), random_(random) {}

  /// Journals the request, or finds the one that it repeats, with its keys and the records made so far. `order`
  /// increases from one request to the next, also from mount to mount. `caller`: who writes now; a request written
  /// under another account is never the same. `draft`: the one that the request replaces.
  [[nodiscard]] Result<JournalledRequest> begin(std::string path, std::vector<RequestStep> steps,
                                                std::int64_t order = 0, const std::string& caller = {},
                                                const std::string& draft = {}) PLAYFS_EXCLUDES(mutex_);
  /// Journals the records made so far, `may_have_arrived` and `is_told`. The title stays as the journal has it.
  [[nodiscard]] Status record(JournalledRequest request) PLAYFS_EXCLUDES(mutex_);
  /// Marks that the mount sends it again, since its writer was told that it was accepted.
  [[nodiscard]] Status keep_sending(JournalledRequest& request) PLAYFS_EXCLUDES(mutex_);
  /// Whether the mount sends it again, here or for another writer of the same.
  [[nodiscard]] bool is_sent_again(const JournalledRequest& request) const PLAYFS_EXCLUDES(mutex_);
  /// Whether the writer of this draft's request was interrupted. If he writes the same again, it is the same request.
  void set_left(const std::string& draft, bool is_left) PLAYFS_EXCLUDES(mutex_);
  /// Whether it is still to be sent: nobody has got its outcome.
  [[nodiscard]] bool is_unfinished(const JournalledRequest& request) const PLAYFS_EXCLUDES(mutex_);
  /// Whether it may have arrived, by an attempt here or by another sender of the same request.
  [[nodiscard]] bool may_have_arrived(const JournalledRequest& request) const PLAYFS_EXCLUDES(mutex_);
  /// The title by which a request that the mount sends again is addressed by now: its writer may have repeated it.
  [[nodiscard]] std::string thread_title(const JournalledRequest& request) const PLAYFS_EXCLUDES(mutex_);
  /// This mount has renamed the thread: what waits for it under its old title is addressed to the new one.
  void readdress(const std::string& thread, const std::string& from, const std::string& to) PLAYFS_EXCLUDES(mutex_);
  /// Whether one that was left behind may be sent by itself. Those that may not are to be given up.
  [[nodiscard]] Status may_be_sent(const JournalledRequest& request) const;
  /// It has its outcome.
  void end(const JournalledRequest& request) PLAYFS_EXCLUDES(mutex_);
  /// Gives up a request that will not be sent again although its writer was told that it was accepted: saves its text,
  /// then journals that the writer was informed. If the text cannot be saved, the next mount tries again. Returns the
  /// error that says where the text is.
  [[nodiscard]] Error give_up(JournalledRequest request, Error why) PLAYFS_EXCLUDES(mutex_);

  // Drafts: texts that are being written, and are no requests yet (draft.h).
  [[nodiscard]] std::string new_draft() { return random_.uuid(); }
  /// Fails if there is no room to save it (text_room.h), unless it is a saved text, which is being sent; but each
  /// admits one at a time, since equal texts are two. Nothing is removed to make room: each saved text is somebody's
  /// who was told that it was accepted.
  [[nodiscard]] Status keep_draft(const std::string& draft, const std::string& path, std::string_view text)
      PLAYFS_EXCLUDES(mutex_);
  void drop_draft(const std::string& draft) PLAYFS_EXCLUDES(mutex_);
  /// Saves a text that was accepted, but will be no request. If that fails, its draft stays for the next mount. Returns
  /// the error that says where it is.
  [[nodiscard]] Error give_up_draft(const std::string& draft, const std::string& path, const std::string& text,
                                    Error why) PLAYFS_EXCLUDES(mutex_);

  /// Where the texts of requests that were given up are saved.
  [[nodiscard]] std::string unsent_directory() const { return unsent_directory_of(directory_); }

  struct LeftBehind {
    std::vector<JournalledRequest> requests;  ///< to be sent again if they may be, in their order
    std::vector<Error> unreadable;            ///< what became of files that are no requests, or cannot be read now
    std::vector<std::pair<std::string, Error>> drafts;  ///< by their control files: where texts are that were not sent
  };
  /// Takes over the unfinished requests of mounts that are gone.
  [[nodiscard]] LeftBehind left_behind() PLAYFS_EXCLUDES(mutex_);

 private:
  [[nodiscard]] Status open() PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] Status write(const JournalledRequest& request) PLAYFS_EXCLUDES(mutex_);
  /// Under way, or sent again by the mount; nullptr: it is neither.
  [[nodiscard]] const JournalledRequest* unfinished(const std::string& name) const PLAYFS_REQUIRES(mutex_);
  /// The thread may have been renamed here since its sender got it.
  void take_title(JournalledRequest& request) const PLAYFS_REQUIRES(mutex_);
  [[nodiscard]] bool is_too_old(const JournalledRequest& request) const;
  /// Makes room by dropping the oldest request whose writer knows its outcome.
  [[nodiscard]] Status make_room() PLAYFS_EXCLUDES(mutex_);
  /// Forgets those whose writers repeated them in another mount.
  void drop_taken_over() PLAYFS_EXCLUDES(mutex_);
  /// The one that the same text repeats, if the failed request was another living mount's. Takes it over.
  [[nodiscard]] std::optional<JournalledRequest> of_another_mount(const std::string& path,
                                                                  const std::vector<RequestStep>& steps,
                                                                  const std::string& caller) PLAYFS_EXCLUDES(mutex_);
  /// Whether the text is saved, by a file that admits no other text at this time. Remembers that for the draft.
  [[nodiscard]] bool admit_saved(const std::string& draft, std::string_view text) PLAYFS_EXCLUDES(mutex_);
  /// Whether the draft, or the request that was made of it, has no outcome yet.
  [[nodiscard]] bool is_in_use(const std::string& draft) const PLAYFS_REQUIRES(mutex_);
  /// nullopt: it was admitted since there was room.
  [[nodiscard]] std::optional<SavedText> saved_of(const std::string& draft) const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string own_name() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string path_of_draft(const std::string& draft) const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::string path_of(const std::string& name) const { return directory_ + "/" + name; }
  /// Reads one that was taken over.
  void take(const std::string& name, LeftBehind& left) PLAYFS_EXCLUDES(mutex_);
  /// Drops one that nobody may repeat any more.
  void forget(const JournalledRequest& request, LeftBehind& left) PLAYFS_EXCLUDES(mutex_);
  /// Saves a draft that was taken over as an unsent text. `is_sent`: drops it instead, since it became a request.
  void take_draft(const std::string& name, bool is_sent, LeftBehind& left) const;
  /// Moves a damaged file unchanged to the unsent texts. Returns the error that says so.
  [[nodiscard]] Error set_aside(const std::string& name) const;

  const std::string directory_;
  const JournalUser user_;
  const Clock& clock_;
  Random& random_;
  mutable Mutex mutex_;
  std::string own_ PLAYFS_GUARDED_BY(mutex_);  ///< this mount's name; empty: not opened
  UniqueFd lock_ PLAYFS_GUARDED_BY(mutex_);
  struct UnderWay {
    JournalledRequest request;
    bool is_left = false;  ///< by its writer
  };
  std::map<std::string, UnderWay> under_way_ PLAYFS_GUARDED_BY(mutex_);         ///< by name
  std::map<std::string, JournalledRequest> told_ PLAYFS_GUARDED_BY(mutex_);     ///< by name
  std::map<std::string, JournalledRequest> resumed_ PLAYFS_GUARDED_BY(mutex_);  ///< by name
  std::map<std::string, SavedText> admitted_ PLAYFS_GUARDED_BY(mutex_);         ///< by their drafts
  struct Answered {
    JournalledRequest request;
    WallTime when;
  };
  std::vector<Answered> answered_ PLAYFS_GUARDED_BY(mutex_);  ///< resumed ones; at most kMost
};

}  // namespace playfs::vfs
