// What all nodes of one mount share: the parts they stand on, the table of nodes, the notifications, the work trees.
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/random.h"
#include "content/site.h"
#include "vfs/gate.h"
#include "vfs/late_links.h"
#include "vfs/metrics.h"
#include "vfs/node_table.h"
#include "vfs/notifications.h"
#include "vfs/playground.h"
#include "vfs/sent_back.h"
#include "vfs/spare_memory.h"

namespace playfs::vfs {

class Listings;
class ProjectsInUse;
class RequestsUnderWay;
class WorkTrees;

class Mount {
 public:
  Mount(content::Site& site, const Clock& clock, Executor& executor, Random& random, PlaygroundOptions options);
  /// Ends the requests under way, closes the gate, waits for who is inside, drops the nodes, then the work trees.
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  content::Site& site() { return site_; }
  const Clock& clock() { return clock_; }
  Executor& executor() { return executor_; }
  Random& random() { return random_; }
  const PlaygroundOptions& options() const { return options_; }
  NodeTable& nodes() { return nodes_; }
  Notifications& notifications() { return notifications_; }
  SentBack& sent_back() { return sent_back_; }
  LateLinks& late_links() { return late_links_; }
  Metrics& metrics() { return metrics_; }
  SpareMemory& spare_memory() { return spare_memory_; }
  WorkTrees& works() { return *works_; }
  ProjectsInUse& in_use() { return *in_use_; }
  Listings& listings() { return *listings_; }
  RequestsUnderWay& requests() { return *requests_; }
  const std::shared_ptr<Gate>& gate() { return gate_; }
  WallTime started() const { return started_; }
  /// Of the time that an operation of the kernel's may wait, from now on.
  void set_request_limit(std::chrono::milliseconds limit) { request_limit_ = limit; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> request_limit() const {
    auto limit = request_limit_.load();
    return limit.count() > 0 ? std::optional(limit) : std::nullopt;
  }
  /// Where what waits for the local disk goes, so that a disk which is stuck keeps only those waiting who need it.
  Executor& disk() { return disk_; }
  /// Where files are read, however large, to tell whether they differ: it waits for no sync, and no answer for it.
  Executor& comparing() { return comparing_; }

  /// Runs `task` on the executor, unless the mount has ended by then.
  void soon(Task task);
  void later(std::chrono::nanoseconds delay, Task task);
  /// Seconds that the kernel may believe what others may change.
  [[nodiscard]] double refresh_seconds() const;

  /// Attributes of something that playfs shows and nobody owns: the options' owner; `mode` less the options' umask.
  [[nodiscard]] NodeAttributes attributes(std::uint64_t ino, mode_t mode, std::uint64_t size, WallTime time) const;

  /// What the last request through a control file came to, for reading it back; empty: there was none.
  [[nodiscard]] std::string last_result(const std::string& path) const PLAYFS_EXCLUDES(mutex_);
  void set_last_result(const std::string& path, std::string text) PLAYFS_EXCLUDES(mutex_);
  /// The same for a request that failed, but for one whose maker may not ask for anything here: that is no result of
  /// those who may.
  void set_last_error(const std::string& path, const Error& error) PLAYFS_EXCLUDES(mutex_);

 private:
  content::Site& site_;
  const Clock& clock_;
  Executor& executor_;
  Random& random_;
  const PlaygroundOptions options_;
  const WallTime started_;
  Metrics metrics_;
  NodeTable nodes_;
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  Notifications notifications_;
  SentBack sent_back_;
  LateLinks late_links_{*this};
  SpareMemory spare_memory_;
  std::unique_ptr<ProjectsInUse> in_use_;
  std::unique_ptr<Listings> listings_;
  std::unique_ptr<RequestsUnderWay> requests_;
  std::unique_ptr<WorkTrees> works_;
  mutable Mutex mutex_;
  std::map<std::string, std::string> results_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<std::chrono::milliseconds> request_limit_{std::chrono::milliseconds(0)};
  ThreadPool comparing_;
  ThreadPool disk_;  ///< the first to end
};

}  // namespace playfs::vfs
