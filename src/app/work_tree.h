// A project's mounted work tree, as commands speak to it: by the ioctls of include/playfs/ioctl.h and by the files
// beside it. Blocking; for one thread.
#pragma once

#include <playfs/ioctl.h>

#include <string>

#include "app/mounted.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "model/json.h"

namespace playfs::app {

class WorkTree {
 public:
  /// The work tree of the project that holds `path`.
  static Result<WorkTree> open(const std::string& path);

  [[nodiscard]] const MountedPlace& place() const { return place_; }

  [[nodiscard]] Result<playfs_status> status() const;
  /// REQUIRES: agent, message and flags are set; the rest is filled in.
  [[nodiscard]] Status commit(playfs_commit& request) const;
  /// Moves the base to head.
  [[nodiscard]] Result<playfs_update> update() const;
  /// Takes another revision of the project in.
  [[nodiscard]] Result<playfs_merge> merge(const std::string& revision) const;
  /// Gives back what is being published.
  [[nodiscard]] Result<playfs_cancel> cancel() const;
  /// Drops what is staged at and below `path` (absolute), which need not exist any more; answers how many paths.
  [[nodiscard]] Result<std::uint32_t> discard(const std::string& path) const;

 private:
  explicit WorkTree(MountedPlace place, UniqueFd root) : place_(std::move(place)), root_(std::move(root)) {}
  /// The errno of an ioctl that began at `since`, with the reason in words that the mount wrote down for it.
  [[nodiscard]] Error why(int errnum, const std::string& what, WallTime since) const;
  template <class T>
  [[nodiscard]] Status call(int fd, unsigned long request, T& argument, const std::string& what) const;
  [[nodiscard]] Result<std::uint32_t> discard_at(int fd, const std::string& path) const;

  MountedPlace place_;
  UniqueFd root_;
};

}  // namespace playfs::app
