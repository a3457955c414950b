// What programs do with the staged changes: commit them, discard them, cancel what is under way.
#include <set>

#include <fmt/format.h>

#include "model/path.h"
#include "publish/conflicts.h"
#include "vfs/attempt_fetches.h"
#include "vfs/once.h"
#include "vfs/projects_in_use.h"
#include "vfs/published/file_content.h"
#include "vfs/work/work_tree.h"
#include "wire/json.h"

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

Async<CommitResult> WorkTree::commit(OperationPtr op, CommitRequest request) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  if (request.again.empty()) {
    // Freezing the change decides what is ignored. That may mean matching everything new against rules written by
    // strangers, in files that may not be here yet.
    PLAYFS_AWAIT_CHECK(compare(op, "judged", [self = shared_from_this()]() -> Status {
      static_cast<void>(self->stage_->rules_needed());
      return {};
    }));
    PLAYFS_AWAIT_CHECK(repeat([&]() -> Attempt<void> {
      for (const FileRef& rules : stage_->rules_needed()) PLAYFS_ATTEMPT_CHECK(blob_here(mount_, rules));
      return {};
    }));
  }
  PLAYFS_AWAIT(publish::Publisher* const publishing, opened_publisher());
  if (request.agent.empty()) request.agent = mount_.options().agent;
  CommitResult result;
  if (!request.again.empty()) {
    PLAYFS_AWAIT(result, answer<CommitResult>([publishing, request](CancelToken cancel, Callback<CommitResult> done) {
                   publishing->outcome_of(request.again, request.wait, std::move(cancel), std::move(done));
                 }));
  } else if (request.dry_run) {
    PLAYFS_AWAIT(const auto planned, answer<publish::PlannedCommit>(
                                         [publishing](CancelToken cancel, Callback<publish::PlannedCommit> done) {
                                           publishing->plan(std::move(cancel), std::move(done));
                                         }));
    result = publish::result_of(planned);
  } else {
    PLAYFS_AWAIT(result,
                 answer<CommitResult>([this, publishing, request](CancelToken cancel, Callback<CommitResult> done) {
                   mount_.site().client().ask_now();
                   publishing->commit(request, std::move(cancel), std::move(done));
                 }));
  }
  if (result.outcome == Outcome::pending) co_return result;
  mount_.in_use().head_moved(project_);
  // It is published, whatever the kernel still shows.
  auto telling = tell(op, "the commit has ended");
  if (Status told = co_await telling; !told) mount_.site().events().error(document_path(), told.error());
  co_return result;
}

Attempt<void> WorkTree::check_may_commit(const OperationPtr& op) {
  PLAYFS_ATTEMPT_CHECK(check_may_write(op->caller));
  PLAYFS_ATTEMPT(auto pending, stage_->pending());
  if (pending) return {};  // the commit is queued and judged when its turn comes
  PLAYFS_ATTEMPT_CHECK(compare_changes(op));
  PLAYFS_ATTEMPT_CHECK(publish::check_resolved(*stage_));
  return {};
}

Async<std::uint32_t> WorkTree::discard(OperationPtr op, std::vector<std::string> paths, bool dry_run) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  std::uint32_t count = 0;
  PLAYFS_AWAIT_CHECK(on_disk(mount_, [self = shared_from_this(), &paths, dry_run, &count]() -> Status {
    PLAYFS_TRY(count, self->discard_all(paths, dry_run));
    return {};
  }));
  if (!dry_run) PLAYFS_AWAIT_CHECK(tell(op, "the staged changes were discarded"));
  co_return count;
}

Result<std::uint32_t> WorkTree::discard_all(const std::vector<std::string>& paths, bool dry_run) {
  std::uint32_t planned = 0, discarded = 0;
  // Check all of them before changing anything.
  if (dry_run || paths.size() > 1) {
    for (const std::string& path : paths) {
      PLAYFS_TRY(const std::uint32_t count, discard_now(path, true));
      planned += count;
    }
  }
  if (dry_run) return planned;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto count = discard_now(paths[i], false);
    // A path below one that was named earlier is as published already, and may no longer exist.
    if (!count && count.error().code == ErrorCode::not_found && i > 0) continue;
    if (!count) {
      Error error = count.error();
      if (i > 0) error.message += fmt::format("; the {} paths before it are already discarded", i);
      return fail(std::move(error));
    }
    discarded += *count;
  }
  return discarded;
}

Result<std::uint32_t> WorkTree::discard_now(const std::string& path, bool dry_run) {
  PLAYFS_TRY(std::size_t before, staged_below(*stage_, path));
  PLAYFS_TRY(stage::Discarded discarded, stage_->discard(path, dry_run));
  if (!dry_run) tell_kernel(discarded.changed);
  // Checked last: a publication under way does not mean that nothing is there.
  if (before == 0 && !is_there(*stage_, path))
    return fail(ErrorCode::not_found, path + " does not exist, and nothing is staged at or below it", "playfs status");
  const auto count = static_cast<std::uint32_t>(discarded.paths.size());
  if (dry_run) return count;
  if (publish::Publisher* publishing = publisher(); publishing && stage_->is_clean()) publishing->forget_lost_base();
  follow_head();
  return count;
}

Async<Cancelled> WorkTree::cancel(OperationPtr op) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  publish::Publisher* const publishing = publisher();
  if (!publishing) co_return Cancelled();  // nothing was ever committed here
  auto cancelled = answer<Cancelled>([publishing](const CancelToken& cancel, Callback<Cancelled> done) {
    // The publisher notices between two steps, and freezing a large file is a long one: let the caller leave earlier.
    Once<Cancelled> first(std::move(done));
    auto interrupted = std::make_shared<CancelToken::Registration>(cancel.on_cancel([first] {
      first(fail(ErrorCode::interrupted,
                 "interrupted, but the cancellation continues: commits not yet sent are staged again"));
    }));
    publishing->cancel([first, interrupted](Result<Cancelled> cancelled) { first(std::move(cancelled)); });
  });
  co_return co_await cancelled;
}

Status WorkTree::stage_state(const Caller& caller, std::string text) {
  PLAYFS_CHECK(check_may_write(caller));
  return stage_->stage_state(std::move(text));
}

std::optional<Result<CommitResult>> WorkTree::last_commit() const {
  publish::Publisher* publishing = publisher();
  if (!publishing) return std::nullopt;
  publish::Progress progress = publishing->progress();
  if (progress.phase != Phase::idle) return progress.so_far;
  return publishing->last();
}

std::string WorkTree::document(const CommitResult& result) const {
  publish::Publisher* publishing = publisher();
  auto plan = publishing && result.outcome == Outcome::planned ? publishing->last_plan() : std::nullopt;
  if (!plan || plan->id != result.tx) return {};  // replaced by another dry run
  JsonObject json = commit_members(result);
  json.set("schema_version", kSchemaVersion);
  json.set("plan", plan_json(*plan));
  return wire::to_pretty_text(json);
}

std::string WorkTree::document_path() const {
  return mount_.options().project ? ".playfs/project/commit" : "projects/" + project_.text() + "/commit";
}

}  // namespace playfs::vfs
