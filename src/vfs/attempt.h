// How an operation is tried: synchronously, over what is here, and again when what was missing has arrived.
//
// An attempt returns Attempt<T>: a value, an error, or a Stop that carries the Fetch which brings what was missing.
// The driver (drive.h) starts that fetch and runs the whole attempt again once it has succeeded. So the code of the
// nodes is plain: it asks for what it needs, returns what stops it, and holds no state between two tries but what it
// noted in the Operation. Attempts therefore change nothing before the last thing that may stop them.
#pragma once

#include <any>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "model/records.h"
#include "vfs/file_system.h"

namespace playfs::vfs {

/// Brings something; answers success when trying again is worth while. Called at most once.
using Fetch = UniqueFunction<void(CancelToken, Callback<void>)>;

/// Why an attempt ended without a value: for good, or for want of something.
struct Stop {
  Stop(Error final_error) : error(std::move(final_error)) {}  // NOLINT(google-explicit-constructor): as fail()
  explicit Stop(Fetch fetch_it) : fetch(std::move(fetch_it)) {}

  Error error;  ///< where there is nothing to fetch
  Fetch fetch;  ///< empty: `error` is final
};

template <class T>
using Attempt = tl::expected<T, Stop>;

inline tl::unexpected<Stop> missing(Fetch fetch) { return tl::unexpected<Stop>(Stop(std::move(fetch))); }

/// The fact that an operation goes on with a listing: it shows what is known, of whatever age.
inline constexpr const char* kGoesOn = "goes on";

/// What the kernel keeps locked until an operation is answered: the names in these nodes, or pages of them, or both.
struct Locked {
  std::vector<NodeId> nodes;
  bool names = false, pages = false;
};

/// One operation of the kernel's, for as long as it is tried. Thread-safe: an answer that lost a race against a timer
/// may still write to it.
class Operation {
 public:
  using Limit = std::optional<std::chrono::milliseconds>;
  explicit Operation(Caller from, Locked kept_locked = {}, bool may_yield = false, Limit longest = std::nullopt)
      : caller(std::move(from)), locked(std::move(kept_locked)), yields(may_yield), limit(longest) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const Caller caller;
  const Locked locked;
  /// Where it is answered `stale` the kernel asks again, and nobody hears of it.
  const bool yields;
  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  /// How long it may wait in all; cancels `out_of_time` then.
  const Limit limit;
  CancelSource out_of_time;

  /// Facts that a fetch leaves for the next try ("the list was read", "the request was sent").
  void note(std::string fact) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    facts_.insert(std::move(fact));
  }
  [[nodiscard]] bool noted(const std::string& fact) const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return facts_.contains(fact);
  }

  /// Records that were fetched on this operation's behalf, by "collection/id".
  void keep(std::string name, Record record) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    records_.insert_or_assign(std::move(name), std::move(record));
  }
  [[nodiscard]] std::optional<Record> kept(const std::string& name) const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto found = records_.find(name);
    return found == records_.end() ? std::nullopt : std::optional(found->second);
  }

  /// What the operation came to, where it still has to wait for something else before it may say so.
  template <class T>
  void set_outcome(T outcome) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
  }
  template <class T>
  [[nodiscard]] std::optional<T> outcome() const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const T* outcome = std::any_cast<T>(&outcome_);
    return outcome ? std::optional<T>(*outcome) : std::nullopt;
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> facts_ PLAYFS_GUARDED_BY(mutex_);
  std::map<std::string, Record> records_ PLAYFS_GUARDED_BY(mutex_);
  std::any outcome_ PLAYFS_GUARDED_BY(mutex_);
};
using OperationPtr = std::shared_ptr<Operation>;

}  // namespace playfs::vfs

// PLAYFS_TRY and PLAYFS_CHECK for attempts: also for expressions that yield a Result.
#define PLAYFS_ATTEMPT(declaration, expression) \
  PLAYFS_ATTEMPT_INNER(PLAYFS_CONCAT(playfs_attempt_, __LINE__), declaration, expression)
#define PLAYFS_ATTEMPT_INNER(temporary, declaration, expression)                                                 \
  auto temporary = (expression);                                                                                 \
  if (!temporary) return tl::unexpected<::playfs::vfs::Stop>(::playfs::vfs::Stop(std::move(temporary).error())); \
  declaration = std::move(*temporary)
#define PLAYFS_ATTEMPT_CHECK(expression)                                                                  \
  do {                                                                                                    \
    if (auto playfs_attempt = (expression); !playfs_attempt)                                              \
      return tl::unexpected<::playfs::vfs::Stop>(::playfs::vfs::Stop(std::move(playfs_attempt).error())); \
  } while (false)
