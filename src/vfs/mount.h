// What all nodes of one mount share: services, node table, notifications, work trees. Thread-safe.
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
#include "base/gate.h"
#include "base/mutex.h"
#include "base/random.h"
#include "content/inbox.h"
#include "content/inbox_marks.h"
#include "content/revision_summary.h"
#include "content/site.h"
#include "vfs/late_links.h"
#include "vfs/metrics.h"
#include "vfs/mount_file_system.h"
#include "vfs/names_used.h"
#include "vfs/node_table.h"
#include "vfs/notifications.h"
#include "vfs/own_renames.h"
#include "vfs/sent_back.h"
#include "vfs/shown_text.h"
#include "vfs/spare_memory.h"
#include "vfs/told_names.h"

namespace playfs::vfs {

class Listings;
class ProjectsInUse;
class RequestJournal;
class RequestsUnderWay;
class ResumedRequests;
class WorkTrees;

class Mount {
 public:
  Mount(content::Site& site, const Clock& clock, Executor& executor, Random& random, FileSystemOptions options);
  /// Ends running requests, closes the gate, waits for everyone inside, then drops the nodes and the work trees.
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  /// Starts all threads now, rather than when there is something for them to do: for a mount, which runs on, and might
  /// later find none to be had.
  void start_threads();

  content::Site& site() { return site_; }
  const Clock& clock() { return clock_; }
  Executor& executor() { return executor_; }
  Random& random() { return random_; }
  const FileSystemOptions& options() const { return options_; }
  NodeTable& nodes() { return nodes_; }
  Notifications& notifications() { return notifications_; }
  SentBack& sent_back() { return sent_back_; }
  NamesUsed& names_used() { return names_used_; }
  OwnRenames& own_renames() { return own_renames_; }
  LateLinks& late_links() { return late_links_; }
  Metrics& metrics() { return metrics_; }
  ToldNames& told_names() { return told_names_; }
  SpareMemory& spare_memory() { return spare_memory_; }
  WorkTrees& works() { return *works_; }
  ProjectsInUse& in_use() { return *in_use_; }
  Listings& listings() { return *listings_; }
  /// The inbox of the mount's agent.
  content::Inbox& inbox() { return inbox_; }
  content::InboxMarks& inbox_marks() { return inbox_marks_; }
  RequestsUnderWay& requests() { return *requests_; }
  RequestJournal& journal() { return *journal_; }
  ResumedRequests& resumed() { return *resumed_; }
  const std::shared_ptr<Gate>& gate() { return gate_; }
  WallTime started() const { return started_; }
  /// How long a kernel operation may wait, from now on.
  void set_request_limit(std::chrono::milliseconds limit) { request_limit_ = limit; }
  [[nodiscard]] std::optional<std::chrono::milliseconds> request_limit() const {
    auto limit = request_limit_.load();
    return limit.count() > 0 ? std::optional(limit) : std::nullopt;
  }
  /// For work that may block on the local disk: a stuck disk then holds up only those who need it.
  Executor& disk() { return disk_; }
  /// For reading files of any size to see whether they differ; never waits for a sync, and no reply waits behind it.
  Executor& comparing() { return comparing_; }
  /// For parsing many stored records, and rendering them.
  Executor& reading() { return reading_; }
  /// The same for records of megabytes, which only a hostile service has, so that ordinary ones do not wait for them.
  Executor& large() { return large_; }
  content::Summaries& summaries() { return summaries_; }

  /// Runs `task` on the executor, unless the mount has ended by then.
  void soon(Task task);
  void later(std::chrono::nanoseconds delay, Task task);
  /// How many seconds the kernel may cache what others may change.
  [[nodiscard]] double refresh_seconds() const;

  /// Attributes of something that playfs shows and nobody owns: the options' owner; `mode` without the options' umask.
  [[nodiscard]] NodeAttributes attributes(std::uint64_t ino, mode_t mode, std::uint64_t size, WallTime time) const;

  struct LastResult {
    ShownText text{std::string()};
    std::int64_t order = 0;  ///< of the request; 0: there was none
  };
  /// The result of the last request through a control file, for reading it back; empty if there was none.
  [[nodiscard]] LastResult last_result(const std::string& path) const PLAYFS_EXCLUDES(mutex_);
  /// Keeps the result of a later request: requests of one file may end out of order.
  void set_last_result(const std::string& path, std::int64_t order, ShownText text) PLAYFS_EXCLUDES(mutex_);
  /// The same for a failed request. Ignores errors of callers that lack permission here: they are no result for those
  /// who have it.
  void set_last_error(const std::string& path, std::int64_t order, const Error& error) PLAYFS_EXCLUDES(mutex_);

 private:
  content::Site& site_;
  const Clock& clock_;
  Executor& executor_;
  Random& random_;
  const FileSystemOptions options_;
  const WallTime started_;
  Metrics metrics_;
  NodeTable nodes_;
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  Notifications notifications_;
  SentBack sent_back_;
  NamesUsed names_used_;
  OwnRenames own_renames_;
  LateLinks late_links_{*this};
  ToldNames told_names_{*this};
  SpareMemory spare_memory_;
  std::unique_ptr<ProjectsInUse> in_use_;
  std::unique_ptr<Listings> listings_;
  std::unique_ptr<RequestsUnderWay> requests_;
  std::unique_ptr<RequestJournal> journal_;
  std::unique_ptr<ResumedRequests> resumed_;
  std::unique_ptr<WorkTrees> works_;
  content::Inbox inbox_;
  content::InboxMarks inbox_marks_;
  mutable Mutex mutex_;
  std::map<std::string, LastResult> results_ PLAYFS_GUARDED_BY(mutex_);
  std::atomic<std::chrono::milliseconds> request_limit_{std::chrono::milliseconds(0)};
  content::Summaries summaries_;
  ThreadPool reading_;
  ThreadPool large_;
  ThreadPool comparing_;
  ThreadPool disk_;  ///< destroyed first
};

}  // namespace playfs::vfs
