// What a mount has below its file system, of one simulated process: site, stage and publisher as they are, over a
// simulated network, on a directory of its own. Opened, used and ended on fibers.
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

/// What was read of the service; it may be lost at any time, and is shared by those who run at the same time.
struct Cache {
  static std::shared_ptr<Cache> open(const std::string& directory);
  std::unique_ptr<cache::ObjectStore> objects;
  std::unique_ptr<cache::RecordIndex> records;
};

/// An empty directory for a process, with databases in which nothing stands: making them anew each time would be most
/// of what a run costs. First called outside of fibers.
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

  /// An error is one of the service's: try again.
  Status open();
  /// It is killed: nothing more is heard of it.
  void sever() { transport_.sever(); }
  /// After that, from a fiber that holds nothing: whoever waits in it is answered.
  void interrupt();
  [[nodiscard]] CancelToken stopping() const { return stop_.token(); }

  [[nodiscard]] stage::Stage& stage() { return *stage_; }
  [[nodiscard]] publish::Publisher& publisher() { return *publisher_; }
  [[nodiscard]] content::Site& site() { return *site_; }
  [[nodiscard]] const ProjectId& project() const { return parts_.project; }
  [[nodiscard]] World& world() { return parts_.world; }
  content::EventLog& events() { return *events_; }

  // As a mount does it (vfs/work_tree.cpp).
  /// A clean tree follows head, unless it stands on a branch or is in conflict.
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
  UseCount following_;  ///< calls of follow_head() that are under way or to come
  SimulatedTransport transport_;
  std::unique_ptr<content::EventLog> events_;
  std::unique_ptr<SimulatedExecutor> executor_;
  std::unique_ptr<remote::Client> client_;
  std::unique_ptr<content::Site> site_;
  std::unique_ptr<stage::Stage> stage_;
  std::unique_ptr<publish::Publisher> publisher_;
};

}  // namespace playfs::sim
