// A clone's work tree, served by this process (clone/clone.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/command_context.h"
#include "app/queued_here.h"
#include "app/work_tree_access.h"
#include "clone/clone.h"
#include "vfs/control/control_text.h"
#include "vfs/lone_work_tree.h"

namespace playfs::app {

/// What waits in a clone and was not queued by this user there (queued_here.h).
enum class OthersCommits { refused, taken_over };

class ClonedWorkTree final : public WorkTreeAccess {
 public:
  /// Locks the clone, and takes in what was changed in its directory. A new stage is based on the revision in the
  /// clone's mark. What waits in it to be published goes on, or is the reason why opening fails.
  static Result<std::unique_ptr<ClonedWorkTree>> open(CommandContext& context, MountedPlace place,
                                                      const std::string& command,
                                                      OthersCommits others = OthersCommits::refused);

  [[nodiscard]] const std::vector<publish::QueuedCommit>& taken_over() const { return taken_over_; }

  /// Writes out what the directory lacks of the work tree, and says on stderr what cannot be. `amount`: how much that
  /// is, if it is known.
  Result<clone::BroughtOut> bring_out(Amount amount = {});
  /// All of its base.
  [[nodiscard]] Amount whole() const;

  /// Entries of its base that no tree shows.
  [[nodiscard]] std::vector<RefusedEntry> refused() const;

  [[nodiscard]] Result<std::string> status_text() override;
  [[nodiscard]] Result<JsonObject> status_document() override;
  [[nodiscard]] Status look_for_branches() override;
  [[nodiscard]] Result<std::unique_ptr<RevisionSource>> revisions(std::uint64_t limit) override;
  [[nodiscard]] bool has_revision(const std::string& id) override;
  [[nodiscard]] TransferProgress* progress() override { return &stack_.progress(); }
  [[nodiscard]] Result<std::unique_ptr<ReadableTree>> tree(const std::string& revision) override;

  [[nodiscard]] Result<vfs::WorkStatus> status() override;
  [[nodiscard]] std::optional<Error> why_it_waits() override;
  [[nodiscard]] Result<publish::CommitResult> commit(const publish::CommitRequest& asked,
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
  ClonedWorkTree(CommandContext& context, MountedPlace place, clone::Lock lock, OpenStack stack, OthersCommits others)
      : WorkTreeAccess(std::move(place)),
        context_(context),
        queued_(context.places, this->place().work),
        others_(others),
        lock_(std::move(lock)),
        stack_(std::move(stack)),
        marked_(this->place().clone->revision) {}
  Status begin();
  [[nodiscard]] Status may_go_on(const std::vector<publish::QueuedCommit>& waiting);
  void tell_of_kept();
  void tell_of_unread();
  void tell_of_hidden();
  /// Records the base in the mark, once the directory has all of it: if the stage is lost, a new one begins there.
  Status mark_base();
  [[nodiscard]] Result<vfs::ProjectStatus> project_status();
  /// Runs an operation that changes the stage, and brings the result out.
  template <class T, class Start>
  [[nodiscard]] Result<T> change(Start start);

  CommandContext& context_;
  const QueuedHere queued_;
  const OthersCommits others_;
  const clone::Lock lock_;
  OpenStack stack_;
  std::vector<publish::QueuedCommit> taken_over_;
  RevisionId marked_;                        ///< the base that the mark names
  std::vector<std::string> hidden_;          ///< Stage::hidden(), as last told
  std::unique_ptr<vfs::LoneWorkTree> tree_;  // uses the stack
  std::unique_ptr<clone::Clone> clone_;
};

}  // namespace playfs::app
