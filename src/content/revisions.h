// Revisions with their trees: in memory, on disk, fetched. What was seen once is never fetched again. A tree has all
// files, also those that stand in the manifest's continuation. Thread-safe.
//
// That the service does not have one is remembered for a while, for whoever would rather leave it out than ask again:
// get() asks all the same.
#pragma once

#include <memory>
#include <unordered_map>

#include "cache/lru.h"
#include "content/blobs.h"
#include "content/context.h"
#include "content/single_flight.h"
#include "content/turns.h"
#include "model/tree.h"

namespace playfs::content {

class Revisions {
 public:
  Revisions(Context& context, Blobs& blobs, Turns& turns) : context_(context), blobs_(blobs), turns_(turns) {}

  /// nullptr where it is neither in memory nor on disk. Does local I/O.
  [[nodiscard]] RevisionTreePtr known(const RevisionId& id);
  /// `of`: the project, where it is known. A request that nobody waits for any more when its turn comes is not sent.
  void get(const RevisionId& id, const ProjectId& of, const CancelToken& cancel, Callback<RevisionTreePtr> done);
  /// Whether the service said within `refresh` that it has none of this id, and nothing was heard since that may have
  /// changed it.
  [[nodiscard]] bool was_absent(const RevisionId& id);
  /// There is news of revisions: any of them may have been stored.
  void forget_absent();
  void close() { flights_.close(); }

 private:
  void arrived(const RevisionId& id, SteadyTime asked_at, Result<Record> answer);
  /// Goes on with a record that is here: its continuation, if it has one, is fetched as any file is.
  void complete(const RevisionId& id, Revision revision, std::size_t cost);
  /// One object for each revision, however many threads decode it at once.
  RevisionTreePtr adopt(RevisionTreePtr tree, std::size_t cost);

  // In bytes of JSON, of which a tree in memory needs a few times as many.
  static constexpr std::size_t kKeptBytes = 3 << 20;
  static constexpr std::size_t kAbsentKept = 4096;

  Context& context_;
  Blobs& blobs_;
  Turns& turns_;
  SingleFlight<RevisionId, RevisionTreePtr> flights_;
  Mutex mutex_;
  cache::Lru<RevisionId, RevisionTreePtr> recent_ PLAYFS_GUARDED_BY(mutex_){kKeptBytes};
  /// Also those that only somebody else keeps alive.
  std::unordered_map<RevisionId, std::weak_ptr<const RevisionTree>> alive_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t prune_at_ PLAYFS_GUARDED_BY(mutex_) = 256;
  cache::Lru<RevisionId, SteadyTime> absent_ PLAYFS_GUARDED_BY(mutex_){kAbsentKept};  ///< when it was asked for
  SteadyTime news_at_ PLAYFS_GUARDED_BY(mutex_) =
      SteadyTime::min();  ///< what was asked for before that says nothing any more
};

}  // namespace playfs::content
