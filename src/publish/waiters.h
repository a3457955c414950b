// Those who wait for the outcome of a commit: each is answered once, by whatever comes first. Thread-safe; callbacks
// run with no lock held.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/mutex.h"
#include "publish/outcome.h"

namespace playfs::publish {

class Waiters {
 public:
  using Id = std::uint64_t;

  /// For the commit `tx`. Without `waits` it is answered as soon as what is published is fixed.
  Id add(std::string tx, bool waits, Callback<CommitResult> done);
  /// Keeps a hook for as long as it waits.
  void keep(Id id, CancelToken::Registration on_cancel);
  /// Its commit is on disk: should the program end, it is pending.
  void is_journalled(Id id);

  void answer(Id id, Result<CommitResult> result);
  /// All of that commit.
  void answer_all(const std::string& tx, const Result<CommitResult>& result);
  /// Those of that commit who do not wait for its end.
  void answer_hasty(const std::string& tx, const CommitResult& so_far);
  /// Whoever is left, since the program ends.
  void answer_rest();

 private:
  struct Waiter {
    std::string tx;
    Callback<CommitResult> done;
    bool waits = true;
    bool is_journalled = false;
    CancelToken::Registration on_cancel;
  };
  void answer_where(const std::function<bool(const Waiter&)>& wanted, const Result<CommitResult>& result);

  Mutex mutex_;
  Id next_ PLAYFS_GUARDED_BY(mutex_) = 1;
  std::map<Id, Waiter> waiters_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::publish
