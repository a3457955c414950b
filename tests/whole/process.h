// What a mount has below its file system, for one simulated process: the real site, stage and publisher, over a
// simulated network, in a directory of its own. Opened, used and closed on fibers.
#pragma once

#include <memory>
#include <string>

#include "cache/object_store.h"
#include "cache/record_index.h"
#include "content/site.h"
#include "publish/publisher.h"
#include "remote/client.h"
#include "stage/stage.h"
#include "whole/network.h"

namespace playfs::sim {

/// What was read from the service. It may be lost at any time, and is shared by processes that run at the same time.
struct Cache {
  static std::shared_ptr<Cache> open(const std::string& directory);
  std::unique_ptr<cache::ObjectStore> objects;
  std::unique_ptr<cache::RecordIndex> records;
};

/// An empty directory for a process, with empty databases: creating them for every run would dominate its cost. Call it
/// for the first time outside of fibers.
void make_home(const std::string& directory, bool forgets = false);

class Process {
 public:
  struct Parts {
    World& world;
    const service::Service& service;
    Watcher& watcher;
    const Weather& weather;
    std::string address;
    std::string directory;
    ProjectId project;
    std::shared_ptr<Cache> cache;
    std::string agent;
    nanoseconds skew{};
    std::uint64_t boot = 0;  ///< of its machine
    publish::JournalProbe probe;
    stage::Housekeeping housekeeping;
  };
  explicit Process(Parts parts);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// An error is the service's: try again.
  Status open();
  /// Simulates a kill: nothing more is heard of it.
  void sever() { transport_.sever(); }
  /// Call after sever(), from a fiber that holds nothing: answers all waiters in it.
  void interrupt();
  [[nodiscard]] CancelToken stopping() const { return stop_.token(); }

  [[nodiscard]] stage::Stage& stage() { return *stage_; }
  [[nodiscard]] publish::Publisher& publisher() { return *publisher_; }
  [[nodiscard]] content::Site& site() { return *site_; }
  [[nodiscard]] const ProjectId& project() const { return parts_.project; }
  [[nodiscard]] World& world() { return parts_.world; }
  content::EventLog& events() { return *events_; }

  // As in a mount (vfs/work/work_tree_follow.cpp, vfs/work/work_tree_update.cpp).
  /// A clean tree follows head, unless it is on a branch or has conflicts.
  void follow_head(const RevisionTreePtr& head);
  void follow_head_in(std::chrono::seconds delay, const RevisionTreePtr& head);
  Result<publish::Integrated> update(const RevisionTreePtr& head);

 private:
  [[nodiscard]] bool is_free_to_follow() const;
  [[nodiscard]] bool is_known_to_hold(const RevisionTreePtr& head, const RevisionTreePtr& base) const;

  const Parts parts_;
  SimulatedClock clock_;
  CancelSource stop_;
  bool is_ending_ = false;
  UseCount following_;  ///< pending or running calls of follow_head()
  SimulatedTransport transport_;
  std::unique_ptr<content::EventLog> events_;
  std::unique_ptr<SimulatedExecutor> executor_;
  std::unique_ptr<remote::Client> client_;
  std::unique_ptr<content::Site> site_;
  std::unique_ptr<stage::Stage> stage_;
  std::unique_ptr<publish::Publisher> publisher_;
};

}  // namespace playfs::sim
