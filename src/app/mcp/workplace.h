// Which work tree `playfs mcp` serves: that around a directory, or a clone of its own in the state directory, which is
// made when a tool first needs it, so that a client that connects does not wait for it.
//
// Thread-safe: whoever comes first makes it, and the others wait.
#pragma once

#include <memory>
#include <string>

#include "app/mcp/lane.h"
#include "app/mounted.h"
#include "app/work_files.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs::app {

struct FoundWork {
  MountedPlace place;
  std::unique_ptr<const WorkFiles> files;
};

class Workplace {
 public:
  /// A mount's or a clone's.
  explicit Workplace(MountedPlace place) : given_(std::move(place)) {}
  /// A clone of this project, by id or name.
  explicit Workplace(std::string project) : project_(std::move(project)) {}

  /// Makes it the lane's working directory. The result lives as long as this.
  Result<const FoundWork*> enter(Lane& lane) PLAYFS_EXCLUDES(mutex_);

 private:
  [[nodiscard]] Result<std::unique_ptr<const FoundWork>> find(Lane& lane) const;
  [[nodiscard]] Result<MountedPlace> own_clone(CommandContext& context) const;

  const std::optional<MountedPlace> given_;
  const std::string project_;
  Mutex mutex_;
  Condition found_or_failed_;
  bool is_looked_for_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<const FoundWork> found_ PLAYFS_GUARDED_BY(mutex_);  ///< once set it stays
};

}  // namespace playfs::app
