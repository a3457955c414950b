// A service and work trees over it, in one process: what tests of publishing play in.
//
// The service is the real one over its store in a temporary directory. A WorkTree is what a mount has below its file
// system: transport (with faults), client, caches, site, stage and publisher. A Stranger is another client, which
// knows nothing of all that.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/local_transport.h"
#include "app/playground.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "content/site.h"
#include "publish/publisher.h"
#include "remote/client.h"
#include "stage/stage.h"
#include "support/faulty_transport.h"

namespace playfs::test {

/// A temporary directory of this object's own.
class TempDirectory {
 public:
  TempDirectory();
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The content of a revision as its service has it: bytes by path, put together here and compared with nothing.
using Contents = std::map<std::string, std::string>;

/// The machine's, put forward by a test.
class ShiftedClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall() const override { return {system_.wall().nanoseconds + shift_.load()}; }
  [[nodiscard]] SteadyTime steady() const override {
    return system_.steady() + std::chrono::nanoseconds(shift_.load());
  }
  void advance(std::chrono::nanoseconds by) { shift_ += by.count(); }

 private:
  SystemClock system_;
  std::atomic<std::int64_t> shift_{0};
};

class World {
 public:
  World();
  ~World();

  // Another client: plain requests, as the API's document shows them.
  Record create(const std::string& collection, const std::string& body);
  void set_head(const std::string& project, const std::string& revision);
  Record get(const std::string& collection, const std::string& id);
  std::string head(const std::string& project);
  std::vector<Record> all(const std::string& collection);
  Contents contents(const std::string& revision);

  /// The store as it is now, to be put back later: what was written in between is gone then, keys included, as after
  /// an operator restored the service from a backup.
  void back_up(const std::string& name = "backup");
  void restore(const std::string& name = "backup");

  [[nodiscard]] net::Transport& transport() { return *transport_; }
  [[nodiscard]] Executor& executor() { return executor_; }
  ShiftedClock clock;
  SystemRandom random;

 private:
  TempDirectory directory_;
  std::unique_ptr<app::Playground> playground_;
  ThreadPool executor_{3};
  std::unique_ptr<app::LocalTransport> transport_;
  std::unique_ptr<remote::Client> client_;
};

/// How long a publication here waits for a request that got no answer.
inline constexpr std::chrono::milliseconds kLateArrival{100};

class WorkTree {
 public:
  /// On the project's head, in `directory`, which may hold what another left there. Where the directory holds nothing
  /// and the project has no revision, the tree is empty. Without `visits` all that is sent is what a test asks for.
  /// With `repeats` the client tries each request again by itself, as it does in a mount.
  WorkTree(World& world, std::string project, std::string directory, FaultyTransport::Plan plan = {},
           publish::JournalProbe probe = {}, bool visits = false, bool repeats = false,
           publish::MergePolicy policy = {}, std::chrono::milliseconds late_arrival = kLateArrival);
  ~WorkTree();

  void write(const std::string& path, const std::string& content, unsigned permissions = 0644);
  void rename(const std::string& from, const std::string& to);
  void remove(const std::string& path);
  [[nodiscard]] std::string read(const std::string& path);

  /// Starts a commit and waits for its end.
  Result<publish::CommitResult> commit(const std::string& message = "message");
  /// Waits until nothing is under way.
  void wait_until_idle();
  /// As whoever sees that head does not hold the base, until it is known whether that is lost.
  Result<bool> keep_lost_base(const RevisionTreePtr& head);
  /// As kill -9 leaves it: nothing is sent any more.
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
