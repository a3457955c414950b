// Group commit on one SQLite connection: concurrent writes share one transaction, and so one fsync. Thread-safe.
#pragma once

#include <limits>

#include "base/callback.h"
#include "base/result.h"
#include "base/sqlite.h"
#include "service/group_queue.h"

namespace playfs::service {

class WriteQueue {
 public:
  explicit WriteQueue(Database& database)
      : database_(database),
        queue_(std::numeric_limits<std::size_t>::max(), [this](const Batch& batch) { run_together(batch); }) {}

  /// Runs `write` inside a transaction and returns once that is committed. A write that fails is rolled back alone; a
  /// commit that fails fails every write in it. `write` runs once, possibly on another caller's thread, one at a time,
  /// with no lock of the queue held.
  [[nodiscard]] Status run(UniqueFunction<Status()> write);

 private:
  struct Write {
    UniqueFunction<Status()> run;
    Status result;
  };
  using Batch = GroupQueue<Write>::Group;

  void run_together(const Batch& batch);
  [[nodiscard]] Status commit_all(const Batch& batch);

  Database& database_;  // used by the leader alone
  GroupQueue<Write> queue_;
};

}  // namespace playfs::service
