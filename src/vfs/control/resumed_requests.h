// Requests that nobody waits for and whose outcome is unknown: what an earlier mount left, and plain text that was
// accepted before the service failed to answer. They are sent again until there is an answer or they are a day old;
// then their text is saved (RequestJournal::give_up).
//
// The requests of one file form a line: they are sent in the order in which they were written, and what is written to
// the file later waits for them (`tried`, `keeps_waiting`). But a text to which nobody ever answers must not close the
// file for a day: after ten minutes it is overtaken.
//
// Thread-safe; its lock is a leaf.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "vfs/attempt.h"
#include "vfs/control/request_journal.h"

namespace playfs::vfs {

class Mount;
struct Sent;

/// What to do about an attempt that decided nothing.
inline constexpr const char* kSentAgain = "nothing need be done: it is sent again by itself, for a day";

class ResumedRequests {
 public:
  explicit ResumedRequests(Mount& mount) : mount_(mount) {}

  /// Finds what earlier mounts left, and sends it. On a disk thread.
  void find() PLAYFS_EXCLUDES(mutex_);
  /// Takes over a request of this mount that failed for `why`. `order`: its text's.
  void add(const std::shared_ptr<JournalledRequest>& request, std::int64_t order, const Error& why)
      PLAYFS_EXCLUDES(mutex_);
  /// Tries at once what waits for the file, unless the service has set a time, and waits until that has been tried.
  [[nodiscard]] Fetch tried(const std::string& path);
  /// Why a new request to the file has to wait; nullopt: it need not.
  [[nodiscard]] std::optional<Error> keeps_waiting(const std::string& path) const PLAYFS_EXCLUDES(mutex_);

 private:
  struct Waiting {
    std::shared_ptr<JournalledRequest> request;
    std::int64_t order;  ///< 0: of an earlier mount
    SteadyTime since;
    bool is_told;  ///< that it failed and is sent again
  };
  struct Waiter {
    UniqueFunction<void()> answer;
    CancelToken::Registration registration;
  };
  struct Line {
    std::deque<Waiting> waiting;
    std::size_t at = 0;       ///< which one is tried: the first, or the next if the first may be overtaken
    bool is_tried = false;    ///< a round of attempts is under way
    std::uint64_t round = 0;  ///< counts rounds: a later one makes the timer of an earlier one void
    std::chrono::seconds pause{};
    SteadyTime not_before{};  ///< as the service has said
    std::optional<Error> why;
    std::list<Waiter> waiters;
  };

  void wait(const std::string& path, const CancelToken& cancel, Callback<void> done) PLAYFS_EXCLUDES(mutex_);
  void push(Waiting waiting) PLAYFS_EXCLUDES(mutex_);
  /// Begins a round, unless one is under way. `round`: only if none has begun since that one.
  void begin(const std::string& path, std::optional<std::uint64_t> round = {}) PLAYFS_EXCLUDES(mutex_);
  void later(const std::string& path, std::chrono::seconds pause) PLAYFS_EXCLUDES(mutex_);
  /// Tries the next one of the round. On a disk thread.
  void next(const std::string& path) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Waiting> first(const std::string& path) PLAYFS_EXCLUDES(mutex_);
  void attempt(const std::string& path, const Waiting& waiting);
  void answered(const std::string& path, const Waiting& waiting, Result<Sent> outcome) PLAYFS_EXCLUDES(mutex_);
  void failed(const std::string& path, const Waiting& waiting, const Error& why) PLAYFS_EXCLUDES(mutex_);
  void refused(const Waiting& waiting, const Error& why) PLAYFS_EXCLUDES(mutex_);
  void remove(const Waiting& waiting) PLAYFS_EXCLUDES(mutex_);
  void end_round(const std::string& path) PLAYFS_EXCLUDES(mutex_);

  Mount& mount_;
  mutable Mutex mutex_;
  std::map<std::string, Line> lines_ PLAYFS_GUARDED_BY(mutex_);  ///< by the control file
};

}  // namespace playfs::vfs
