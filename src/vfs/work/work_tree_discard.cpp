// Programs drop staged changes, keep them in checkpoints, and bring them back.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/path.h"
#include "publish/conflicts.h"
#include "vfs/attempt_fetches.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {
namespace {

/// Counts the paths with staged changes, or in conflict while head's version is in place; the project's state counts as
/// one.
Result<std::size_t> staged_below(stage::Stage& stage, std::string_view path) {
  PLAYFS_TRY(auto changes, stage.changes());
  std::set<std::string> staged;
  for (const stage::Change& change : changes)
    if (!change.pending && is_at_or_below(change.path, path)) staged.insert(change.path);
  for (const stage::Conflicted& each : stage.conflicted())
    if (each.beside.empty() && is_at_or_below(each.path, path)) staged.insert(each.path);
  if (path.empty() && stage.staged_state()) staged.insert(stage::kStatePath);
  return staged.size();
}

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
  DiscardResult result;
  // Check all of them before changing anything.
  auto count = [&]() -> Result<std::uint32_t> {
    std::uint32_t all = 0;
    for (const std::string& path : paths) {
      PLAYFS_TRY(const std::uint32_t some, discard_now(path, true));
      all += some;
    }
    return all;
  };
  if (dry_run) {
    PLAYFS_TRY(result.paths, count());
    return result;
  }
  auto dropped = [&]() -> Result<std::uint32_t> {
    // From here on nothing changes, so that nothing is dropped that the checkpoint has not.
    const auto hold = stage_->hold_writers();
    PLAYFS_TRY(const std::uint32_t staged, count());
    if (staged > 0 || !stage_->merge_parents().empty()) {
      PLAYFS_TRY(result.checkpoint, keep_before_discard(*hold, paths, kept_in));
    }
    std::uint32_t discarded = 0;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      auto some = discard_now(paths[i], false);
      // A path below one that was named earlier is as published already, and may no longer exist.
      if (!some && some.error().code == ErrorCode::not_found && i > 0) continue;
      if (!some) {
        Error error = some.error();
        if (i > 0) error.message += fmt::format("; the {} paths before it are already discarded", i);
        return fail(std::move(error));
      }
      discarded += *some;
    }
    return discarded;
  }();
  staged_less();
  PLAYFS_TRY(result.paths, std::move(dropped));
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

Result<std::uint32_t> WorkTree::discard_now(const std::string& path, bool dry_run) {
  PLAYFS_TRY(std::size_t before, staged_below(*stage_, path));
  PLAYFS_TRY(stage::Discarded discarded, stage_->discard(path, dry_run));
  if (!dry_run) tell_kernel(discarded.changed);
  // Checked last: a publication under way does not mean that nothing is there.
  if (before == 0 && !is_there(*stage_, path))
    return fail(ErrorCode::not_found, path + " does not exist, and nothing is staged at or below it", "playfs status");
  return static_cast<std::uint32_t>(discarded.paths.size());
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
