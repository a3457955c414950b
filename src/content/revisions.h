// Revisions with their trees: from memory, disk or the service. A revision seen once is never fetched again. A tree has
// all files, including those in the manifest's continuation. Thread-safe.
//
// That the service lacks a revision is remembered for a while, for callers that prefer skipping it to asking again, and
// noted on disk for other processes: a command that shows a history is a new one each time. get() always asks.
#pragma once

#include <chrono>
#include <memory>
#include <unordered_map>

#include "cache/lru.h"
#include "content/blobs.h"
#include "content/single_flight.h"
#include "content/site_context.h"
#include "content/turns.h"
#include "model/tree.h"

namespace playfs::content {

class Revisions {
 public:
  Revisions(SiteContext& context, Blobs& blobs, Turns& turns) : context_(context), blobs_(blobs), turns_(turns) {}

  /// nullptr if neither in memory nor on disk. Does local I/O, and parses a record of any size.
  [[nodiscard]] RevisionTreePtr known(const RevisionId& id);
  /// The same for callers on a thread that others wait for: parses only a record of ordinary size.
  [[nodiscard]] RevisionAtOnce known_at_once(const RevisionId& id);
  /// `of`: the project, if known. A request that nobody waits for when its turn comes is not sent.
  void get(const RevisionId& id, const ProjectId& of, const CancelToken& cancel, Callback<RevisionTreePtr> done);
  /// Whether the service said within `refresh` that it has no such revision, and nothing since may have changed that.
  [[nodiscard]] bool was_absent(const RevisionId& id);
  /// The same for a parent in a history: said within a minute, if that is longer, also to another process. Does local
  /// I/O.
  [[nodiscard]] bool was_absent_lately(const RevisionId& id);
  /// Call on any news of revisions: an absent one may have been stored.
  void forget_absent();
  void close() { flights_.close(); }

 private:
  [[nodiscard]] RevisionTreePtr in_memory(const RevisionId& id);
  /// Parses what is stored, unless it has more than `most` bytes.
  RevisionAtOnce read(const RevisionId& id, std::size_t most);
  /// Continues a flight with what is stored, or with a request.
  void look(const RevisionId& id, const ProjectId& of);
  void arrived(const RevisionId& id, SteadyTime asked_at, Result<Record> answer);
  /// Continues with a record that is here, fetching its continuation, if any, like any file.
  void complete(const RevisionId& id, Revision revision);
  /// Ensures one object per revision, even if several threads decode it.
  RevisionTreePtr adopt(RevisionTreePtr tree);

  // Bytes of memory, as parsed.
  static constexpr std::size_t kKeptBytes = 8 << 20;
  static constexpr std::size_t kAbsentKept = 4096;
  static constexpr std::chrono::milliseconds kLately = std::chrono::minutes(1);

  SiteContext& context_;
  Blobs& blobs_;
  Turns& turns_;
  SingleFlight<RevisionId, RevisionTreePtr> flights_;
  Mutex mutex_;
  cache::Lru<RevisionId, RevisionTreePtr> recent_ PLAYFS_GUARDED_BY(mutex_){kKeptBytes};
  /// Includes revisions that only other owners keep alive.
  std::unordered_map<RevisionId, std::weak_ptr<const RevisionTree>> alive_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t prune_at_ PLAYFS_GUARDED_BY(mutex_) = 256;
  cache::Lru<RevisionId, SteadyTime> absent_ PLAYFS_GUARDED_BY(mutex_){kAbsentKept};  ///< time of the request
  SteadyTime news_at_ PLAYFS_GUARDED_BY(mutex_) =
      SteadyTime::min();                            ///< absences requested before this no longer count,
  WallTime news_wall_ PLAYFS_GUARDED_BY(mutex_){};  ///< nor those noted before this
};

}  // namespace playfs::content
