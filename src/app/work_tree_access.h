// A project's work tree as commands use it: mounted, where another process serves it, or cloned, where this one has the
// same engine. Blocking; for one thread, except status().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/history.h"
#include "app/kept_changes.h"
#include "app/mounted.h"
#include "app/readable_tree.h"
#include "app/transfer_progress.h"
#include "base/result.h"
#include "model/json.h"
#include "publish/publisher.h"
#include "vfs/file_system.h"

namespace playfs::app {

struct CommandContext;

class WorkTreeAccess {
 public:
  explicit WorkTreeAccess(MountedPlace place) : place_(std::move(place)) {}
  virtual ~WorkTreeAccess() = default;
  WorkTreeAccess(const WorkTreeAccess&) = delete;
  WorkTreeAccess& operator=(const WorkTreeAccess&) = delete;

  [[nodiscard]] const MountedPlace& place() const { return place_; }
  /// Whether a publication goes on when the command has ended.
  [[nodiscard]] bool publishes_in_background() const { return !place_.clone; }

  // What is known of the project, in the words of a mount's control files.
  [[nodiscard]] virtual Result<std::string> status_text() = 0;
  [[nodiscard]] virtual Result<JsonObject> status_document() = 0;
  /// Has the status list all branches.
  [[nodiscard]] virtual Status look_for_branches() = 0;
  /// Its history. `limit`: how many revisions will be requested, 0: all of them.
  [[nodiscard]] virtual Result<std::unique_ptr<RevisionSource>> revisions(std::uint64_t limit) = 0;
  /// Whether a word is the id of one of the project's revisions.
  [[nodiscard]] virtual bool has_revision(const std::string& id) = 0;
  /// Of what is read with a service of this process's own; nullptr: a mount reads it.
  [[nodiscard]] virtual TransferProgress* progress() { return nullptr; }
  /// The files of a revision; "" has none.
  [[nodiscard]] virtual Result<std::unique_ptr<ReadableTree>> tree(const std::string& revision) = 0;
  /// Those of the work tree.
  [[nodiscard]] virtual std::unique_ptr<ReadableTree> work() const;

  /// Callable on another thread while one of those below runs.
  [[nodiscard]] virtual Result<vfs::WorkStatus> status() = 0;
  /// Likewise. Why the publication under way waits; nullopt if it does not, or nobody knows.
  [[nodiscard]] virtual std::optional<Error> why_it_waits() = 0;
  /// Where `interrupted` becomes true, answers `pending` while the publication goes on.
  [[nodiscard]] virtual Result<publish::CommitResult> commit(const publish::CommitRequest& request,
                                                             const std::function<bool()>& interrupted) = 0;
  /// What the result of a commit has besides: the plan of a dry run.
  [[nodiscard]] virtual JsonObject details(const publish::CommitResult& result) = 0;
  /// Moves the base to head.
  [[nodiscard]] virtual Result<vfs::UpdateResult> update() = 0;
  /// Merges another revision of the project into the work tree.
  [[nodiscard]] virtual Result<vfs::UpdateResult> merge(const std::string& revision) = 0;
  /// Cancels what is being published, and returns it to the stage.
  [[nodiscard]] virtual Result<publish::Cancelled> cancel() = 0;
  /// Drops what is staged at and below these paths, relative to the work tree's root ("" for the root itself); they
  /// need not exist any more. What is staged is kept in a checkpoint first. `dry_run`: changes nothing, returns the
  /// same number of paths. Of many paths some may be dropped when it fails, which the error says; not after a dry run,
  /// unless others write meanwhile.
  [[nodiscard]] virtual Result<DroppedChanges> discard(const std::vector<std::string>& paths, bool dry_run) = 0;
  /// Keeps what is staged.
  [[nodiscard]] virtual Result<vfs::CheckpointResult> checkpoint(const std::string& message) = 0;
  [[nodiscard]] virtual Status drop_checkpoint(std::uint64_t id) = 0;
  /// Stages what a checkpoint has; it is listed in the status.
  [[nodiscard]] virtual Result<vfs::RestoreResult> restore(const vfs::RestoreRequest& request) = 0;

 private:
  const MountedPlace place_;
};

/// The revision that a word names: an id, "head" or "base"; nullopt for anything else. `status`: status_document().
std::optional<std::string> revision_named(WorkTreeAccess& tree, const JsonObject& status, const std::string& word);
/// Likewise; not_found if there is none.
Result<RevisionId> revision_of(WorkTreeAccess& tree, const JsonObject& status, const std::string& word);

/// The revisions that are being merged into the work tree.
std::vector<std::string> revisions_merged(const JsonObject& status);

/// The work tree of the project that holds the absolute `path`; in a clone, once no other command works in it.
/// `command` is what others are told who wait for this one.
Result<std::unique_ptr<WorkTreeAccess>> open_work_tree(CommandContext& context, const std::string& path,
                                                       const std::string& command);
Result<std::unique_ptr<WorkTreeAccess>> open_work_tree(CommandContext& context, MountedPlace place,
                                                       const std::string& command);

}  // namespace playfs::app
