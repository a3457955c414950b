// Fetches all contents of a revision ahead of its readers, within bounds, projects in turn, so that a hanging project
// delays no other. Thread-safe.
#pragma once

#include <deque>
#include <map>

#include "cache/lru.h"
#include "content/blobs.h"
#include "content/site_context.h"

namespace playfs::content {

class Prefetch {
 public:
  Prefetch(SiteContext& context, Blobs& blobs) : context_(context), blobs_(blobs) {}

  /// Returns immediately. A recently requested revision is ignored.
  void start(const RevisionTreePtr& revision);

 private:
  void enqueue(const RevisionTreePtr& revision);
  void go_on();
  std::optional<FileRef> take_next();
  void landed(const ProjectId& project, std::size_t chunks);
  void forget_oldest() PLAYFS_REQUIRES(mutex_);

  static constexpr std::size_t kRemembered = 256;
  static constexpr std::size_t kMostWaiting = 16'384;  ///< files

  SiteContext& context_;
  Blobs& blobs_;
  Mutex mutex_;
  cache::Lru<RevisionId, bool> asked_for_ PLAYFS_GUARDED_BY(mutex_){kRemembered};
  struct Account {
    std::deque<FileRef> waiting;
    /// Chunks of files being fetched. Bounded, because a file's chunks stay in memory until its last one arrives.
    std::size_t begun = 0;
  };
  std::map<ProjectId, Account> accounts_ PLAYFS_GUARDED_BY(mutex_);
  ProjectId last_ PLAYFS_GUARDED_BY(mutex_);           ///< whose turn it was
  std::size_t waiting_ PLAYFS_GUARDED_BY(mutex_) = 0;  ///< files, in total
  std::size_t begun_ PLAYFS_GUARDED_BY(mutex_) = 0;    ///< chunks, in total
};

}  // namespace playfs::content
