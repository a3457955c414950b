// A project's mounted work tree: the ioctls of include/playfs/ioctl.h, and the control files beside it.
#pragma once

#include <playfs/ioctl.h>

#include <string>

#include "app/work_tree_access.h"
#include "base/fd.h"

namespace playfs::app {

class MountedWorkTree final : public WorkTreeAccess {
 public:
  explicit MountedWorkTree(MountedPlace place) : WorkTreeAccess(std::move(place)) {}

  [[nodiscard]] Result<std::string> status_text() override;
  [[nodiscard]] Result<JsonObject> status_document() override;
  [[nodiscard]] Status look_for_branches() override;
  [[nodiscard]] Result<std::unique_ptr<RevisionSource>> revisions(std::uint64_t limit) override;
  [[nodiscard]] bool has_revision(const std::string& id) override;
  [[nodiscard]] Result<std::unique_ptr<ReadableTree>> tree(const std::string& revision) override;

  [[nodiscard]] Result<vfs::WorkStatus> status() override;
  [[nodiscard]] std::optional<Error> why_it_waits() override;
  [[nodiscard]] Result<publish::CommitResult> commit(const publish::CommitRequest& request,
                                                     const std::function<bool()>& interrupted) override;
  [[nodiscard]] JsonObject details(const publish::CommitResult& result) override;
  [[nodiscard]] Result<vfs::UpdateResult> update() override;
  [[nodiscard]] Result<vfs::UpdateResult> merge(const std::string& revision) override;
  [[nodiscard]] Result<publish::Cancelled> cancel() override;
  [[nodiscard]] Result<DroppedChanges> discard(const std::vector<std::string>& paths, bool dry_run) override;
  [[nodiscard]] Result<vfs::CheckpointResult> checkpoint(const std::string& message) override;
  [[nodiscard]] Status drop_checkpoint(std::uint64_t id) override;
  [[nodiscard]] Result<vfs::RestoreResult> restore(const vfs::RestoreRequest& request) override;

 private:
  /// A new descriptor for each call, since status() may run beside another.
  [[nodiscard]] Result<UniqueFd> root() const;
  /// The error, as reported in the struct if the call filled it in.
  [[nodiscard]] Error why(int errnum, const std::string& what, const playfs_error& told) const;
  template <class T>
  [[nodiscard]] Status call(unsigned long request, T& argument, const std::string& what) const;
  /// For calls that may take long and can be repeated: where the kernel limits the time of a request, the mount ends it
  /// earlier, and keeps what it has fetched so far.
  template <class T>
  [[nodiscard]] Status call_until_it_ends(unsigned long request, T& argument, const std::string& what) const;
  /// By one request. Its answer has all fields. REQUIRES: several paths have room in it.
  [[nodiscard]] Result<vfs::DiscardResult> discard_at_once(const std::vector<std::string>& paths, bool dry_run,
                                                           std::uint64_t kept_in) const;
  [[nodiscard]] Status commit(playfs_commit& request) const;
  [[nodiscard]] Status wait_for_outcome(playfs_commit& request, const std::function<bool()>& interrupted) const;

  bool takes_lists_ = true;  ///< of paths to discard
};

}  // namespace playfs::app
