// A mount without a kernel: all of a mount's parts over HTTP, and a program that works in it by the operations that the
// kernel would make. Each has a cache, a state directory and connections of its own, as if it were on another machine;
// the threads that work for contents are shared.
#pragma once

#include <memory>
#include <string>

#include "base/executor.h"
#include "base/random.h"
#include "content/site.h"
#include "counted_transport.h"
#include "remote/client.h"
#include "vfs/mount_file_system.h"

namespace playfs::bench {

class SimulatedMount {
 public:
  struct Place {
    std::string origin;     ///< of the service
    std::string directory;  ///< for cache and state; created
    std::string address;    ///< of the machine, as the service is to see it
    std::string agent;
  };
  /// The last four must outlive it.
  static Result<std::unique_ptr<SimulatedMount>> open(const Place& place, RequestCounts& counts, const Clock& clock,
                                                      Random& random, Executor& executor);
  ~SimulatedMount();
  SimulatedMount(const SimulatedMount&) = delete;
  SimulatedMount& operator=(const SimulatedMount&) = delete;

  // What a program in the mount does. Each call waits for the answers.
  [[nodiscard]] Status look_at(const std::string& path);
  [[nodiscard]] Status list(const std::string& directory);
  [[nodiscard]] Result<std::string> read(const std::string& path);
  /// Replaces a file's content; creates it if missing.
  [[nodiscard]] Status write(const std::string& path, const std::string& text);
  [[nodiscard]] Result<vfs::CommitResult> commit(const std::string& work_tree, const std::string& message);

  /// Whether the service tells it of changes, so that it does not ask.
  [[nodiscard]] bool is_told() const { return site_->events_state().is_live; }
  /// The revision that it shows; empty: none yet.
  [[nodiscard]] RevisionId shown(const ProjectId& project) const;

 private:
  SimulatedMount() = default;
  [[nodiscard]] Result<vfs::Entry> lookup(vfs::NodeId parent, const std::string& name);
  /// Follows links, which must be relative and lead down.
  [[nodiscard]] Result<vfs::Entry> walk(const std::string& path);

  std::unique_ptr<CountedTransport> transport_;
  std::unique_ptr<remote::Client> client_;
  std::unique_ptr<cache::ObjectStore> objects_;
  std::unique_ptr<cache::RecordIndex> records_;
  std::unique_ptr<content::EventLog> events_;
  std::unique_ptr<content::Site> site_;
  std::unique_ptr<vfs::MountFileSystem> files_;
};

}  // namespace playfs::bench
