// Callers that wait for a commit's outcome: each is answered once, by whatever comes first. A caller that stopped
// waiting may ask again, about commits in progress and about the latest outcomes. Thread-safe; callbacks run with no
// lock held.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/mutex.h"
#include "publish/outcome.h"

namespace playfs::publish {

class Waiters {
 public:
  using Id = std::uint64_t;
  /// Number of outcomes that are kept.
  static constexpr std::size_t kMostEnded = 64;

  /// The commit is in progress from now on, until all its waiters are answered.
  void begin(const std::string& tx);
  /// It is journalled: if the program ends, it is pending.
  void is_journalled(const std::string& tx);
  [[nodiscard]] bool is_under_way(const std::string& tx) const;
  /// The outcome of a commit that has ended, if it is known.
  [[nodiscard]] std::optional<Result<CommitResult>> outcome_of(const std::string& tx) const;

  /// Adds a waiter for commit `tx`. Without `waits` it is answered as soon as the content is frozen.
  Id add(std::string tx, bool waits, Callback<CommitResult> done);
  /// Keeps the registration as long as the waiter waits.
  void keep(Id id, CancelToken::Registration on_cancel);

  void answer(Id id, Result<CommitResult> result);
  /// Answers all waiters of a commit that has ended.
  void answer_all(const std::string& tx, const Result<CommitResult>& result);
  /// Answers the waiters of a commit that do not wait for its end.
  void answer_hasty(const std::string& tx, const CommitResult& so_far);
  /// Answers the waiters of all journalled commits, each with its own error; the commits continue nevertheless.
  void refuse_journalled(const std::function<Error(const std::string& tx)>& error_of);
  /// Answers all remaining waiters when the program ends.
  void answer_rest();

 private:
  struct Waiter {
    std::string tx;
    Callback<CommitResult> done;
    bool waits = true;
    CancelToken::Registration on_cancel;
  };
  struct Ended {
    std::string tx;
    Result<CommitResult> result;
  };
  void answer_where(const std::function<bool(const Waiter&)>& wanted, const Result<CommitResult>& result);

  mutable Mutex mutex_;
  Id next_ PLAYFS_GUARDED_BY(mutex_) = 1;
  std::map<Id, Waiter> waiters_ PLAYFS_GUARDED_BY(mutex_);
  std::map<std::string, bool> under_way_ PLAYFS_GUARDED_BY(mutex_);  ///< by tx: whether it is journalled
  std::deque<Ended> ended_ PLAYFS_GUARDED_BY(mutex_);                ///< newest last
};

}  // namespace playfs::publish
