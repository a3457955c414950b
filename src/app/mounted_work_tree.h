// A command's access to a project's mounted work tree: the ioctls of include/playfs/ioctl.h and the files beside it.
// Blocking; for one thread.
#pragma once

#include <playfs/ioctl.h>

#include <string>

#include "app/mounted.h"
#include "base/fd.h"
#include "base/result.h"

namespace playfs::app {

/// Whether the kernel's time limit of a call has passed, rather than the service's: the call is to be repeated.
[[nodiscard]] bool is_out_of_time(const Status& called);

class MountedWorkTree {
 public:
  /// The work tree of the project that holds `path`.
  static Result<MountedWorkTree> open(const std::string& path);

  [[nodiscard]] const MountedPlace& place() const { return place_; }

  [[nodiscard]] Result<playfs_status> status() const;
  /// REQUIRES: agent, message and flags are set. Fills in the rest.
  [[nodiscard]] Status commit(playfs_commit& request) const;
  /// Moves the base to head.
  [[nodiscard]] Result<playfs_update> update() const;
  /// Merges another revision of the project into the work tree.
  [[nodiscard]] Result<playfs_merge> merge(const std::string& revision) const;
  /// Cancels what is being published, and returns it to the stage.
  [[nodiscard]] Result<playfs_cancel> cancel() const;
  /// Drops what is staged at and below `path`, relative to the work tree's root ("" for the root itself); it need not
  /// exist any more. Returns the number of paths. `dry_run`: changes nothing, returns the same.
  [[nodiscard]] Result<std::uint32_t> discard(const std::string& path, bool dry_run) const;

 private:
  explicit MountedWorkTree(MountedPlace place, UniqueFd root) : place_(std::move(place)), root_(std::move(root)) {}
  /// The error, as reported in the struct if the call filled it in.
  [[nodiscard]] Error why(int errnum, const std::string& what, const playfs_error& told) const;
  template <class T>
  [[nodiscard]] Status call(unsigned long request, T& argument, const std::string& what) const;
  /// For calls that may take long and can be repeated: where the kernel limits the time of a request, the mount ends it
  /// earlier, and keeps what it has fetched so far.
  template <class T>
  [[nodiscard]] Status call_until_it_ends(unsigned long request, T& argument, const std::string& what) const;

  MountedPlace place_;
  UniqueFd root_;
};

}  // namespace playfs::app
