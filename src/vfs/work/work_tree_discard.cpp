// Programs drop staged changes, keep them in checkpoints, and bring them back.
#include <algorithm>
#include <iterator>

#include "model/path.h"
#include "publish/conflicts.h"
#include "vfs/attempt_fetches.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {
namespace {

/// The paths with staged changes, or in conflict while head's version is in place; the project's state is one.
Result<PathSet> staged_paths(stage::Stage& stage) {
  PLAYFS_TRY(auto changes, stage.changes());
  PathSet staged;
  for (const stage::Change& change : changes)
    if (!change.pending) staged.insert(change.path);
  for (const stage::Conflicted& each : stage.conflicted())
    if (each.beside.empty()) staged.insert(each.path);
  if (stage.staged_state()) staged.insert(stage::kStatePath);
  return staged;
}

/// The root always has some: at least itself, and what was merged into it.
bool has_any_within(const PathSet& paths, const std::string& top) { return top.empty() || has_at_or_below(paths, top); }

bool is_there(stage::Stage& stage, std::string_view path) {
  stage::InodePtr at = stage.root();
  while (at && !path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    auto next = stage.lookup(at, path.substr(0, slash));
    at = next ? *next : nullptr;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return at != nullptr;
}

}  // namespace

Async<DiscardResult> WorkTree::discard(OperationPtr op, std::vector<std::string> paths, bool dry_run,
                                       std::uint64_t kept_in) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  DiscardResult result;
  PLAYFS_AWAIT_CHECK(on_disk(mount_, [self = shared_from_this(), &paths, dry_run, kept_in, &result]() -> Status {
    PLAYFS_TRY(result, self->discard_all(paths, dry_run, kept_in));
    return {};
  }));
  if (!dry_run) PLAYFS_AWAIT_CHECK(tell(op, "the staged changes were discarded"));
  co_return result;
}

Result<DiscardResult> WorkTree::discard_all(const std::vector<std::string>& paths, bool dry_run,
                                            std::uint64_t kept_in) {
  const PathSet all(paths.begin(), paths.end());
  auto would_drop = [&]() -> Result<stage::Discarded> {
    PLAYFS_TRY(const PathSet staged, staged_paths(*stage_));
    PLAYFS_TRY(stage::Discarded planned, stage_->discard(all, true));
    // Checked last: a publication under way does not mean that nothing is there.
    for (const std::string& path : paths)
      if (!has_any_within(staged, path) && !is_there(*stage_, path))
        return fail(ErrorCode::not_found, path + " does not exist, and nothing is staged at or below it",
                    "playfs status");
    return planned;
  };
  DiscardResult result;
  auto dropped = [&]() -> Result<stage::Discarded> {
    if (dry_run) return would_drop();
    // From here on nothing changes, so that nothing is dropped that the checkpoint has not.
    const auto hold = stage_->hold_writers();
    PLAYFS_TRY(const stage::Discarded planned, would_drop());
    if (!planned.paths.empty() || !stage_->merge_parents().empty()) {
      PLAYFS_TRY(result.checkpoint, keep_before_discard(*hold, paths, kept_in));
    }
    return stage_->discard(all);
  }();
  if (!dry_run) {
    if (dropped) tell_kernel(dropped->changed);
    staged_less();
  }
  PLAYFS_CHECK(dropped);
  result.paths = static_cast<std::uint32_t>(dropped->paths.size());
  const PathSet at(dropped->paths.begin(), dropped->paths.end());
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(result.at),
               [&](const std::string& path) { return has_any_within(at, path); });
  return result;
}

Result<std::uint64_t> WorkTree::keep_before_discard(const stage::Stage::Hold& held,
                                                    const std::vector<std::string>& paths, std::uint64_t kept_in) {
  // Not if any was written since that checkpoint was made.
  if (kept_in != 0 && stage_->has_kept(kept_in, paths, held)) return kept_in;
  auto made = stage_->checkpoint("before a discard", held);
  if (made) return *made ? (*made)->id : 0;
  Error error = made.error().while_doing("nothing was discarded");
  if (error.code == ErrorCode::no_space)
    error.hint = "playfs checkpoint drop ID; or delete files with rm, which does not keep them in a checkpoint";
  return fail(std::move(error));
}

void WorkTree::staged_less() {
  if (publish::Publisher* publishing = publisher(); publishing && stage_->is_clean()) publishing->forget_lost_base();
  follow_head();
}

Async<CheckpointResult> WorkTree::checkpoint(OperationPtr op, CheckpointRequest request) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  if (request.drop == 0) PLAYFS_AWAIT_CHECK(know_rules(op));
  CheckpointResult result;
  PLAYFS_AWAIT_CHECK(on_disk(mount_, [self = shared_from_this(), &request, &result]() -> Status {
    if (request.drop != 0) return self->stage_->drop_checkpoint(request.drop);
    PLAYFS_TRY(const auto made, self->stage_->checkpoint(request.message));
    if (made) result = {made->id, made->paths};
    return {};
  }));
  co_return result;
}

Async<RestoreResult> WorkTree::restore(OperationPtr op, RestoreRequest request) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  PLAYFS_AWAIT_CHECK(know_rules(op));
  RestoreResult result;
  PLAYFS_AWAIT_CHECK(on_disk(mount_, [self = shared_from_this(), &request, &result]() -> Status {
    PLAYFS_TRY(result, self->restore_now(request));
    return {};
  }));
  PLAYFS_AWAIT_CHECK(tell(op, "the checkpoint was restored"));
  co_return result;
}

Result<RestoreResult> WorkTree::restore_now(const RestoreRequest& request) {
  PLAYFS_TRY(const stage::Restored restored, stage_->restore(request.id, request.paths));
  tell_kernel(restored.changed);
  staged_less();
  PLAYFS_TRY(const auto conflicts, publish::unresolved(*stage_));
  return RestoreResult{static_cast<std::uint32_t>(restored.paths.size()), restored.before,
                       static_cast<std::uint32_t>(conflicts.size()), restored.base_then.text(),
                       restored.base_now.text()};
}

}  // namespace playfs::vfs
