// A project's mounted work tree, as commands speak to it: by the ioctls of include/playfs/ioctl.h and by the files
// beside it. Blocking; for one thread.
#pragma once

#include <playfs/ioctl.h>

#include <string>

#include "app/mounted.h"
#include "base/fd.h"
#include "base/result.h"

namespace playfs::app {

/// Whether the kernel's limit of a call has passed, as opposed to the service's patience: it is to be asked again.
[[nodiscard]] bool is_out_of_time(const Status& called);

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
  /// Drops what is staged at and below `path`, relative to the work tree's root ("" for the root itself), which need
  /// not exist any more; answers how many paths. `dry_run`: changes nothing, and answers as if.
  [[nodiscard]] Result<std::uint32_t> discard(const std::string& path, bool dry_run) const;

 private:
  explicit WorkTree(MountedPlace place, UniqueFd root) : place_(std::move(place)), root_(std::move(root)) {}
  /// What failed, in the words that came back with the call.
  [[nodiscard]] Error why(int errnum, const std::string& what, const playfs_error& told) const;
  template <class T>
  [[nodiscard]] Status call(unsigned long request, T& argument, const std::string& what) const;
  /// The same of what may take long, and may be asked for again: where the kernel limits the time of a request the
  /// mount ends it before that, and keeps what has come so far.
  template <class T>
  [[nodiscard]] Status call_until_it_ends(unsigned long request, T& argument, const std::string& what) const;

  MountedPlace place_;
  UniqueFd root_;
};

}  // namespace playfs::app
