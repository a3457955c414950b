// The records on a site that are for one agent: mentions, replies to its messages, messages in its threads, answers to
// its mail. inbox_marks.h knows which of them were seen.
//
// take() examines each version of a record once; the text came with the list. Its findings are kept in a file, so that
// the next process need not examine the records again. An edit changes the text of an entry, which stays where it is;
// an entry that is hidden, or that the service has lost, is not shown, but comes back as it was. A message waits until
// the authors of its thread and parent are known, also while these are hidden or lost. Memory is bounded, whatever
// strangers post: only the newest entries are kept, and only the newest bytes of their lines.
//
// Thread-safe; take() and save() do local I/O.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "content/inbox_lines.h"
#include "content/site.h"
#include "model/for_me.h"

namespace playfs::content {

class Inbox {
 public:
  static constexpr std::size_t kMost = 10'000;        ///< entries
  static constexpr std::size_t kMostBytes = 2 << 20;  ///< of their lines; then the older half is dropped
  static constexpr std::size_t kMostMissing = 256;    ///< that one take() returns

  struct Lists {
    ListPtr messages, threads, mail;
    bool operator==(const Lists&) const = default;
  };
  struct Entry {
    std::string collection, id;
    WallTime at;  ///< of its creation, or of the change that brought it here again
    ForMe why = ForMe::no;
    std::uint64_t position = 0;  ///< increases; an entry keeps it
    bool is_listed = true;       ///< not lost by the service
  };
  struct Missing {
    std::string collection, id;
    WallTime updated;
  };

  /// `directory`: where the file is kept, as for InboxMarks. With an empty `me`, the inbox stays empty. `site` and
  /// `clock` outlive it.
  Inbox(Site& site, const Clock& clock, std::string me, const std::string& directory);

  [[nodiscard]] const std::string& me() const { return me_; }
  /// Whether take() would find nothing to look at.
  [[nodiscard]] bool has_taken(const Lists& lists) const PLAYFS_EXCLUDES(mutex_);
  /// Examines what is new or changed. Returns the records whose text is not stored locally: request them
  /// (Site::record_text), and call it again. REQUIRES: one call at a time.
  std::vector<Missing> take(const Lists& lists, const CancelToken& cancel) PLAYFS_EXCLUDES(mutex_);
  /// Call if the service did not have this record. A single answer may be wrong, so take() asks for it again: after a
  /// second, then with twice the delay each time, up to about an hour.
  void is_gone(const Missing& record) PLAYFS_EXCLUDES(mutex_);
  /// Whether so much was examined since the last save() that it is time for another.
  [[nodiscard]] bool is_to_be_saved() const PLAYFS_EXCLUDES(mutex_);
  /// Merges the findings into the file, which other processes write too: the later version of each record wins.
  /// Errors: busy, if another process keeps it locked.
  [[nodiscard]] Status save() PLAYFS_EXCLUDES(mutex_);
  /// Call before an entry is marked: saves, unless the file is up to date. Otherwise, after a crash, an edit that
  /// brings the entry back would be taken for the version that was marked.
  [[nodiscard]] Status save_before_mark() PLAYFS_EXCLUDES(mutex_);

  /// Changes whenever entries() may have changed.
  [[nodiscard]] std::uint64_t version() const PLAYFS_EXCLUDES(mutex_);
  /// Oldest first, without what is hidden or lost.
  [[nodiscard]] std::vector<Entry> entries() const PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Entry> find(const std::string& id) const PLAYFS_EXCLUDES(mutex_);
  /// The entries as lines of NDJSON, in the order in which they came.
  struct Lines {
    std::string text;
    std::uint64_t end = 0;  ///< the place behind them, in all lines that there ever were
  };
  [[nodiscard]] Lines lines() const PLAYFS_EXCLUDES(mutex_);
  /// Those from such a place on; nullopt if anything before has changed, or some of them are dropped.
  [[nodiscard]] std::optional<Lines> lines_from(std::uint64_t place) const PLAYFS_EXCLUDES(mutex_);
  /// Whether older entries or lines were dropped.
  [[nodiscard]] bool is_cut() const PLAYFS_EXCLUDES(mutex_);

 private:
  enum Collection : std::size_t { messages, threads, mail };
  /// One version of a record that was examined. While it is hidden or gone, the rest is as of the last one that was
  /// shown.
  struct Looked {
    std::int64_t updated = 0;
    bool has_author = false;  ///< it was shown once, so `is_mine` is known
    bool is_mine = false;
    bool mentions_me = false;
    bool is_hidden = false;
    bool is_gone = false;
    std::uint8_t times_gone = 0;               ///< in succession
    SteadyTime ask_again = SteadyTime::max();  ///< if it is gone
    std::int64_t answer = 0;                   ///< checksum of the steward's answer to a mail
  };
  struct Work {
    Collection in;
    const Listed* item;
    std::int64_t at;
  };
  using RecordName = std::pair<Collection, std::string>;  ///< with its id
  /// A message that can be classified only after another record was examined.
  struct Wait {
    std::int64_t updated = 0;  ///< of the message
    RecordName for_record;
  };
  /// One call of take().
  struct Round {
    const CancelToken& cancel;
    std::vector<Missing> missing = {};
    std::array<std::unordered_set<std::string_view>, 3> to_look_at = {};
    std::size_t strays = 0;  ///< messages that wait for a record that no list has
  };
  using LookedAt = std::array<std::unordered_map<std::string, Looked>, 3>;
  /// What the file has.
  struct Saved {
    LookedAt looked;
    std::unordered_map<std::string, Wait> waits;
    std::vector<Entry> entries;
  };
  static const char* name_of(Collection collection);
  static std::optional<Collection> collection_named(std::string_view name);
  static Collection collection_of(const Entry& entry) { return entry.collection == name_of(mail) ? mail : messages; }
  /// The name of a record's line.
  static std::string line_of(Collection collection, const std::string& id) {
    return std::string(name_of(collection)) + '/' + id;
  }

  void load() PLAYFS_EXCLUDES(mutex_);
  /// What the file has; nothing, if there is none, or it is damaged or another agent's.
  [[nodiscard]] Result<Saved> read_saved() const;
  [[nodiscard]] Saved parsed(std::string_view text) const;
  /// A record's line: what is known of it, and back.
  [[nodiscard]] static Looked looked_of(std::int64_t updated, std::string_view flags);
  [[nodiscard]] static std::string flags_of(const Looked& looked);
  static void parse_line(std::string_view line, Saved& saved);
  [[nodiscard]] std::string text_of(const Saved& saved) const;
  /// Adds to `saved` what it lacks, or has only in an earlier version.
  void merge_into(Saved& saved) const PLAYFS_REQUIRES(mutex_);
  /// What is to be looked at, oldest first.
  [[nodiscard]] std::vector<Work> work_of(Collection collection, const ListPtr& list) PLAYFS_EXCLUDES(mutex_);
  /// Returns false if it was stopped.
  bool look_at(const std::vector<Work>& work, Round& round) PLAYFS_EXCLUDES(mutex_);
  void apply(const Work& work, const Record& record, Round& round) PLAYFS_REQUIRES(mutex_);
  void apply_message(const Work& work, const Record& message, Round& round) PLAYFS_REQUIRES(mutex_);
  void apply_mail(const Work& work, const Record& record) PLAYFS_REQUIRES(mutex_);
  void has_looked(Collection collection, const std::string& id, Looked looked) PLAYFS_REQUIRES(mutex_);
  [[nodiscard]] Looked looked_at(Collection collection, const std::string& id) const PLAYFS_REQUIRES(mutex_);
  [[nodiscard]] bool is_shown(const Entry& entry) const PLAYFS_REQUIRES(mutex_);
  /// Finds out which entries of a collection the service has lost.
  void look_for_lost(Collection collection) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_known(const RecordName& record) const PLAYFS_REQUIRES(mutex_);
  /// Whether a message may wait for it.
  [[nodiscard]] bool is_awaited(const RecordName& record, Round& round) const PLAYFS_REQUIRES(mutex_);
  /// Whether it still waits, so that reading it would be useless.
  [[nodiscard]] bool is_waiting(const Work& work, Round& round) const PLAYFS_EXCLUDES(mutex_);
  /// The messages among them that no longer need to wait.
  [[nodiscard]] std::vector<Work> ready_of(const std::vector<Work>& work) const PLAYFS_EXCLUDES(mutex_);
  /// Adds an entry, or moves it to the end, as new.
  void add(const Work& work, ForMe why, const Record& record, bool is_anew) PLAYFS_REQUIRES(mutex_);
  void add_entry(Entry entry) PLAYFS_REQUIRES(mutex_);
  /// Forgets records that are no longer listed.
  void forget_others(const Lists& lists) PLAYFS_EXCLUDES(mutex_);

  Site& site_;
  const Clock& clock_;
  const std::string me_, directory_, path_;
  mutable Mutex mutex_;
  bool is_loaded_ PLAYFS_GUARDED_BY(mutex_) = false;
  Lists taken_ PLAYFS_GUARDED_BY(mutex_);
  LookedAt looked_ PLAYFS_GUARDED_BY(mutex_);
  SteadyTime ask_again_ PLAYFS_GUARDED_BY(mutex_) = SteadyTime::max();  ///< for the first of those that are gone
  std::uint64_t version_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, Wait> waits_ PLAYFS_GUARDED_BY(mutex_);  ///< of messages, by id
  std::size_t unsaved_ PLAYFS_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Entry> entries_ PLAYFS_GUARDED_BY(mutex_);  ///< by position
  std::unordered_map<std::string, std::uint64_t> places_ PLAYFS_GUARDED_BY(mutex_);
  std::uint64_t next_ PLAYFS_GUARDED_BY(mutex_) = 1;
  InboxLines lines_ PLAYFS_GUARDED_BY(mutex_){kMostBytes};
  bool is_cut_ PLAYFS_GUARDED_BY(mutex_) = false;  ///< older entries, or their lines, were left out
};

}  // namespace playfs::content
