// Attempts: an operation runs synchronously over what is available locally, and reruns once missing data has arrived.
//
// An attempt returns Attempt<T>: a value, an error, or a NoValue that carries the Fetch for what is missing. The driver
// (attempt_driver.h) starts that fetch and, when it succeeds, reruns the whole attempt. Node code therefore stays
// linear: it asks for what it needs and returns whatever stops it. Between two runs it keeps only what it noted in the
// Operation, so an attempt must not change anything before the last point at which it can stop.
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
#include "vfs/file_system.h"
#include "vfs/names_used.h"

namespace playfs::vfs {

/// Fetches something; reports success when a retry is worthwhile. Called at most once.
using Fetch = UniqueFunction<void(CancelToken, Callback<void>)>;

/// Why an attempt ended without a value: a final error, or something still to be fetched.
struct NoValue {
  NoValue(Error final_error) : error(std::move(final_error)) {}  // NOLINT(google-explicit-constructor): as fail()
  explicit NoValue(Fetch fetch_it) : fetch(std::move(fetch_it)) {}

  Error error;  ///< final if `fetch` is empty
  Fetch fetch;  ///< what to run before the retry; empty: there is nothing to fetch
};

template <class T>
using Attempt = tl::expected<T, NoValue>;

inline tl::unexpected<NoValue> missing(Fetch fetch) { return tl::unexpected<NoValue>(NoValue(std::move(fetch))); }

/// Noted when an operation continues a listing or the growth of a file: a cached list of any age will do.
inline constexpr const char* kGoesOn = "goes on";

/// What the kernel keeps locked until the operation is answered: these nodes' names (directory lock), pages, or both.
struct Locked {
  std::vector<NodeId> nodes;
  bool names = false, pages = false;
};

/// One kernel operation, across all its attempts. Thread-safe: the loser of a race between a reply and a timer may
/// still write to it.
class Operation {
 public:
  using Limit = std::optional<std::chrono::milliseconds>;
  explicit Operation(Caller from, Locked kept_locked = {}, bool may_yield = false, Limit longest = std::nullopt,
                     std::optional<std::chrono::nanoseconds> sent_back_for = std::nullopt)
      : caller(std::move(from)),
        locked(std::move(kept_locked)),
        yields(may_yield),
        sent_back(sent_back_for),
        may_be_second(sent_back_for.has_value()),
        limit(longest) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  const Caller caller;
  const Locked locked;
  /// A `stale` answer makes the kernel retry the lookup; the program never sees it.
  const bool yields;
  /// How much longer the thread counts as sent back (sent_back.h), if it does. The kernel may then be retrying the call
  /// already, and another `stale` could reach the program.
  const std::optional<std::chrono::nanoseconds> sent_back;
  const bool may_be_second;
  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  /// Total time the operation may wait; `out_of_time` is cancelled when it is over.
  const Limit limit;
  CancelSource out_of_time;
  /// The id of a stand-in, for a request file that this operation makes. Used by attempts only.
  std::optional<NodeId> id_for_new;
  /// The link by whose name its thread reached the record, if it did. Set before the first attempt.
  NamedRecordPtr named;

  /// Facts that a fetch leaves for the next attempt ("the list was read", "the request was sent").
  void note(std::string fact) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    facts_.insert(std::move(fact));
  }
  [[nodiscard]] bool noted(const std::string& fact) const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return facts_.contains(fact);
  }

  /// Keeps a value for the next attempts, under a name that implies its type.
  template <class T>
  void hold(std::string name, std::shared_ptr<const T> what) PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    held_.insert_or_assign(std::move(name), std::move(what));
  }
  /// nullptr if there is nothing of that name. REQUIRES: T is the type it was held as.
  template <class T>
  [[nodiscard]] std::shared_ptr<const T> held(const std::string& name) const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto found = held_.find(name);
    return found == held_.end() ? nullptr : std::static_pointer_cast<const T>(found->second);
  }

  /// The operation's result, kept while it waits for something else before it may answer.
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
  std::map<std::string, std::shared_ptr<const void>> held_ PLAYFS_GUARDED_BY(mutex_);
  std::any outcome_ PLAYFS_GUARDED_BY(mutex_);
};
using OperationPtr = std::shared_ptr<Operation>;

}  // namespace playfs::vfs

// PLAYFS_TRY and PLAYFS_CHECK for attempts. Also accept expressions that yield a Result.
#define PLAYFS_ATTEMPT(declaration, expression) \
  PLAYFS_ATTEMPT_INNER(PLAYFS_CONCAT(playfs_attempt_, __LINE__), declaration, expression)
#define PLAYFS_ATTEMPT_INNER(temporary, declaration, expression)                                                       \
  auto temporary = (expression);                                                                                       \
  if (!temporary) return tl::unexpected<::playfs::vfs::NoValue>(::playfs::vfs::NoValue(std::move(temporary).error())); \
  declaration = std::move(*temporary)
#define PLAYFS_ATTEMPT_CHECK(expression)                                                                        \
  do {                                                                                                          \
    if (auto playfs_attempt = (expression); !playfs_attempt)                                                    \
      return tl::unexpected<::playfs::vfs::NoValue>(::playfs::vfs::NoValue(std::move(playfs_attempt).error())); \
  } while (false)
