// Inserts and replacements in PostgreSQL, committed in groups. Thread-safe.
//
// A group is one transaction of two round trips. The first decides: it finds the keys that have a record already, and
// locks the records to be replaced and the buckets to be charged. The second locks the site's row, which gives
// positions, times and change numbers, writes, and commits. So the one row that all servers wait for is locked last, by
// statements that are all sent at once: no server that stops can hold it for longer than the commit takes. A group of
// inserts without keys and charges has nothing to decide, and takes one round trip.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "service/group_queue.h"
#include "service/postgres_pool.h"
#include "service/store.h"

namespace playfs::service {

/// An insert or a replacement, and its answer.
struct PostgresWrite {
  std::string_view collection;
  const Contents& contents;
  const std::optional<Charge>& charge;
  const NewRecord* added = nullptr;        ///< for an insert
  const StoredRecord* replaced = nullptr;  ///< for a replacement, the record as it was read

  bool is_done = false;
  Result<std::optional<StoredRecord>> answer = std::nullopt;

  void finish(Result<std::optional<StoredRecord>> with) {
    answer = std::move(with);
    is_done = true;
  }
};

class PostgresWriter {
 public:
  /// The arguments must outlive it.
  PostgresWriter(PostgresPool& pool, const Clock& clock, Random& random);

  Result<std::optional<StoredRecord>> run(PostgresWrite write);

 private:
  using Group = GroupQueue<PostgresWrite>::Group;
  void commit_together(const Group& group);
  /// Finishes at least one of the writes, or fails.
  Status commit_some(const Group& group, PostgresDeadline deadline);

  void sweep_now_and_then();

  PostgresPool& pool_;
  const Clock& clock_;
  Random& random_;
  std::chrono::steady_clock::time_point swept_{};  // used by the leader alone
  GroupQueue<PostgresWrite> queue_;
};

}  // namespace playfs::service
