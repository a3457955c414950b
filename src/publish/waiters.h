// Those who wait for the outcome of a commit: each is answered once, by whatever comes first. Whoever stopped waiting
// may ask again: for what is under way, and for the outcomes that came last. Thread-safe; callbacks run with no lock
// held.
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
  /// So many outcomes are kept.
  static constexpr std::size_t kMostEnded = 64;

  /// The commit is under way from now on, until all who wait for it are answered.
  void begin(const std::string& tx);
  /// It is on disk: should the program end, it is pending.
  void is_journalled(const std::string& tx);
  [[nodiscard]] bool is_under_way(const std::string& tx) const;
  /// Of one that is not under way any more, if it is known.
  [[nodiscard]] std::optional<Result<CommitResult>> outcome_of(const std::string& tx) const;

  /// For the commit `tx`. Without `waits` it is answered as soon as what is published is fixed.
  Id add(std::string tx, bool waits, Callback<CommitResult> done);
  /// Keeps a hook for as long as it waits.
  void keep(Id id, CancelToken::Registration on_cancel);

  void answer(Id id, Result<CommitResult> result);
  /// All of that commit: it has ended.
  void answer_all(const std::string& tx, const Result<CommitResult>& result);
  /// Those of that commit who do not wait for its end.
  void answer_hasty(const std::string& tx, const CommitResult& so_far);
  /// Those of all commits that are on disk, each with the error of its own: they go on nevertheless.
  void refuse_journalled(const std::function<Error(const std::string& tx)>& error_of);
  /// Whoever is left, since the program ends.
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
  std::deque<Ended> ended_ PLAYFS_GUARDED_BY(mutex_);                ///< the newest last
};

}  // namespace playfs::publish
