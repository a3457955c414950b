// Programs commit the staged changes, or cancel what is under way.
#include "publish/conflicts.h"
#include "vfs/attempt_fetches.h"
#include "vfs/once.h"
#include "vfs/projects_in_use.h"
#include "vfs/published/file_content.h"
#include "vfs/work/work_tree.h"
#include "wire/json.h"

namespace playfs::vfs {
Async<void> WorkTree::know_rules(OperationPtr op) {
  // That may mean matching everything new against rules written by strangers, in files that may not be here yet.
  PLAYFS_AWAIT_CHECK(compare(op, "judged", [self = shared_from_this()]() -> Status {
    static_cast<void>(self->stage_->rules_needed());
    return {};
  }));
  PLAYFS_AWAIT_CHECK(repeat([&]() -> Attempt<void> {
    for (const FileRef& rules : stage_->rules_needed()) PLAYFS_ATTEMPT_CHECK(blob_here(mount_, rules));
    return {};
  }));
  co_return Status();
}

Async<CommitResult> WorkTree::commit(OperationPtr op, CommitRequest request) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  if (request.again.empty()) PLAYFS_AWAIT_CHECK(know_rules(op));
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
