// A service and work trees on it, in one process: the fixture for tests of publishing.
//
// The service is the real one over its store in a temporary directory. A WorkTree is what a mount has below its file
// system: transport (with faults), client, caches, site, stage and publisher. World's plain requests are another
// client, which shares none of that.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "content/site.h"
#include "publish/publisher.h"
#include "remote/client.h"
#include "runtime/local_playground.h"
#include "runtime/local_transport.h"
#include "stage/stage.h"
#include "support/eventually.h"
#include "support/faulty_transport.h"
#include "support/running_clock.h"
#include "support/temporary_directory.h"

namespace playfs::test {

/// A revision's content as the service has it: bytes by path, assembled here and not verified.
using Contents = std::map<std::string, std::string>;

class World {
 public:
  World();
  ~World();

  // Another client: plain requests, as in the API's documentation.
  Record create(const std::string& collection, const std::string& body);
  void change(const std::string& collection, const std::string& id, const std::string& body);
  void set_head(const std::string& project, const std::string& revision);
  Record get(const std::string& collection, const std::string& id);
  std::string head(const std::string& project);
  std::vector<Record> all(const std::string& collection);
  Contents contents(const std::string& revision);

  /// Saves the store, to restore it later: what was written in between is then gone, keys included, as after an
  /// operator restored a backup.
  void back_up(const std::string& name = "backup");
  void restore(const std::string& name = "backup");

  [[nodiscard]] net::Transport& transport() { return *transport_; }
  [[nodiscard]] Executor& executor() { return executor_; }
  RunningClock clock;
  SystemRandom random;

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<runtime::LocalPlayground> playground_;
  ThreadPool executor_{3};
  std::unique_ptr<runtime::LocalTransport> transport_;
  std::unique_ptr<remote::Client> client_;
};

/// How long a publication here waits for a request that got no answer.
inline constexpr std::chrono::milliseconds kLateArrival{100};

class WorkTree {
 public:
  /// Based on the project's head, in `directory`, which may hold what another one left. Empty if the directory is and
  /// the project has no revision. Without `reconciles` it sends only what a test requests. With `repeats` the client
  /// itself retries requests, as it does in a mount.
  WorkTree(World& world, std::string project, std::string directory, FaultyTransport::Plan plan = {},
           publish::JournalProbe probe = {}, bool reconciles = false, bool repeats = false,
           publish::MergePolicy policy = {}, std::chrono::milliseconds late_arrival = kLateArrival);
  ~WorkTree();

  void write(const std::string& path, const std::string& content, unsigned permissions = 0644);
  void rename(const std::string& from, const std::string& to);
  void remove(const std::string& path);
  [[nodiscard]] std::string read(const std::string& path);

  /// Starts a commit and waits until it ends.
  Result<publish::CommitResult> commit(const std::string& message = "message");
  // These wait, and throw what they waited for in vain: until no publication is under way; until one reports an error
  // that it goes on after; until at least so many commits are queued.
  void wait_until_idle();
  void wait_until_it_fails();
  void wait_until_queued(std::size_t commits);
  /// For a head that does not seem to hold the base: repeats until it is known whether the base is lost.
  Result<bool> keep_lost_base(const RevisionTreePtr& head);
  /// As after kill -9: nothing is sent any more.
  void kill();

  FaultyTransport faults;
  std::unique_ptr<content::EventLog> events;
  std::unique_ptr<content::Site> site;
  std::unique_ptr<stage::Stage> stage;
  std::unique_ptr<publish::Publisher> publisher;

 private:
  stage::InodePtr directory_of(const std::string& path, std::string& name);
  const std::string journal_directory_;
  std::unique_ptr<ThreadPool> executor_;
  std::unique_ptr<remote::Client> client_;
  std::unique_ptr<cache::ObjectStore> objects_;
  std::unique_ptr<cache::RecordIndex> records_;
};

/// Copies what a killed process would leave on disk.
void copy_directory(const std::string& from, const std::string& to);

}  // namespace playfs::test
