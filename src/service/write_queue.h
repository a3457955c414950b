// Group commit: concurrent writes share one transaction, and so one fsync.
//
// The first thread to arrive leads: it takes all writes that queued up during the previous commit, runs them on the one
// writing connection, commits, and wakes the others with their results. Needs no thread, and costs a single writer
// nothing.
#pragma once

#include <deque>

#include "base/callback.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/sqlite.h"

namespace playfs::service {

class WriteQueue {
 public:
  explicit WriteQueue(Database& database) : database_(database) {}

  /// Runs `write` inside a transaction and returns once that is committed. A write that fails is rolled back alone; a
  /// commit that fails fails every write in it. `write` runs once, possibly on another caller's thread, one at a time,
  /// with no lock of the queue held.
  [[nodiscard]] Status run(UniqueFunction<Status()> write);

 private:
  struct Waiting {
    UniqueFunction<Status()> write;
    Status result;
    bool done = false;
    Condition changed;
  };

  void run_together(const std::deque<Waiting*>& batch);
  [[nodiscard]] Status commit_all(const std::deque<Waiting*>& batch);

  Database& database_;  // used by the leader alone
  Mutex mutex_;
  std::deque<Waiting*> queue_ PLAYFS_GUARDED_BY(mutex_);
  bool led_ PLAYFS_GUARDED_BY(mutex_) = false;
};

}  // namespace playfs::service
