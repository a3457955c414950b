// A mount without a kernel: the real service in this process, and a file system over it whose operations the test calls
// like the kernel. The test decides what arrives on the connection between the two.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/await.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/random.h"
#include "content/site.h"
#include "remote/client.h"
#include "runtime/local_playground.h"
#include "runtime/local_transport.h"
#include "support/eventually.h"
#include "support/faulty_transport.h"
#include "support/running_clock.h"
#include "support/temporary_directory.h"
#include "vfs/mount_file_system.h"

namespace playfs::vfs::test {

using playfs::test::eventually;

/// Records the kernel notifications.
class RecordedNotifications final : public KernelNotifier {
 public:
  void entry_changed(NodeId parent, const std::string& name) override;
  void node_changed(NodeId node, std::int64_t offset) override;
  [[nodiscard]] bool of_entry(NodeId parent, const std::string& name) const;
  [[nodiscard]] bool of_node(NodeId node) const;

 private:
  mutable Mutex mutex_;
  std::vector<std::pair<NodeId, std::string>> entries_ PLAYFS_GUARDED_BY(mutex_);
  std::vector<NodeId> nodes_ PLAYFS_GUARDED_BY(mutex_);
};

/// The service, which several mounts may share.
class Service {
 public:
  Service();
  Record create(const std::string& collection, JsonObject body);
  void patch(const std::string& collection, const std::string& id, JsonObject body);
  Record get(const std::string& collection, const std::string& id);

  ProjectId project(const std::string& name);
  /// Creates a revision with these manifest entries and makes it head.
  RevisionId publish(const ProjectId& project, JsonObject files, const std::string& parent = "");
  /// The entry of an ordinary small text file.
  static Json file(const std::string& text);

  [[nodiscard]] net::Transport& transport() { return *transport_; }
  [[nodiscard]] Executor& executor() { return executor_; }

  SystemClock clock;
  SystemRandom random;

 private:
  playfs::test::TemporaryDirectory directory_;
  ThreadPool executor_{2};
  std::unique_ptr<runtime::LocalPlayground> playground_;
  std::unique_ptr<runtime::LocalTransport> transport_;
  std::unique_ptr<remote::Client> client_;
};

class Mounted {
 public:
  explicit Mounted(Service& service, const std::function<void(FileSystemOptions&)>& adjust = {},
                   const std::string& state_directory = {});
  ~Mounted();

  // Makes operations like the kernel, and waits for them.
  Result<Entry> lookup(NodeId parent, const std::string& name);
  /// The entry at a path from the root; fails with not_found if a lookup finds nothing.
  Result<Entry> walk(const std::string& path);
  Result<std::string> read(NodeId node, std::uint64_t offset = 0, std::size_t size = 1 << 20);
  Result<std::string> read_file(const std::string& path);
  Result<std::string> read_link(const std::string& path);
  Result<std::size_t> write(NodeId node, const std::string& data, std::uint64_t offset = 0);
  /// Creates the file if it is missing, and writes.
  Status write_file(const std::string& path, const std::string& data);
  Result<std::vector<std::string>> list(const std::string& path);
  Result<std::string> xattr(const std::string& path, const std::string& name);
  Result<CommitResult> commit(const std::string& path, const std::string& message);

  [[nodiscard]] FileSystem& fs() { return *fs_; }
  [[nodiscard]] MountFileSystem& playground() { return *fs_; }
  [[nodiscard]] content::Site& site() { return *site_; }

  Caller caller;
  RecordedNotifications told;

 private:
  playfs::test::TemporaryDirectory directory_;
  ThreadPool executor_{2};

 public:
  playfs::test::FaultyTransport network;
  playfs::test::RunningClock clock;

 private:
  SystemRandom random_;
  std::unique_ptr<remote::Client> client_;
  std::unique_ptr<cache::ObjectStore> objects_;
  std::unique_ptr<cache::RecordIndex> records_;
  std::unique_ptr<content::EventLog> events_;
  std::unique_ptr<content::Site> site_;
  std::unique_ptr<MountFileSystem> fs_;
};

}  // namespace playfs::vfs::test
