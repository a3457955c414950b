// Reports what is staged. That may mean reading files of any size, so it is done once, where waiting is allowed.
#include <algorithm>

#include "model/path.h"
#include "publish/conflicts.h"
#include "vfs/mount.h"
#include "vfs/published/instructions.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {

Attempt<void> WorkTree::compare_changes(const OperationPtr& op) {
  if (op->noted("compared changes")) return {};
  return missing(compare(op, "compared changes", [self = shared_from_this()]() -> Status {
    PLAYFS_TRY([[maybe_unused]] auto changes, self->stage_->changes());
    PLAYFS_TRY([[maybe_unused]] auto conflicts, publish::unresolved(*self->stage_));
    return {};
  }));
}

Fetch WorkTree::compare(const OperationPtr& op, const std::string& fact, UniqueFunction<Status()> work) {
  return [self = shared_from_this(), op, fact, work = std::move(work)](const CancelToken& cancel,
                                                                       Callback<void> done) mutable {
    auto told = [op, fact, done = std::move(done)](Result<bool> compared) mutable {
      if (!compared) return done(fail(std::move(compared).error()));
      op->note(fact);
      done({});
    };
    if (!self->comparisons_.join(fact, cancel, std::move(told))) return;
    self->mount_.comparing().post([self, fact, work = std::move(work)]() mutable {
      Status compared = work();
      self->comparisons_.land(fact, compared ? Result<bool>(true) : Result<bool>(fail(std::move(compared).error())));
    });
  };
}

Result<std::vector<stage::Change>> WorkTree::staged(RevisionTreePtr& base) const {
  for (;;) {
    base = stage_->base();
    PLAYFS_TRY(auto changes, stage_->changes());
    if (stage_->base() == base) return changes;
  }
}

Attempt<WorkStatus> WorkTree::work_status(const OperationPtr& op) {
  PLAYFS_ATTEMPT_CHECK(check_may_write(op->caller));
  WorkStatus status;
  status.project = project_.text();
  if (auto head = mount_.site().try_head(project_))
    status.head = head->shown.value_or(head->project.latest_revision).text();
  PLAYFS_ATTEMPT_CHECK(compare_changes(op));
  RevisionTreePtr base;
  PLAYFS_ATTEMPT(auto changes, staged(base));
  if (base) status.base = base->revision.id.text();
  for (const stage::Change& change : changes) ++(change.pending ? status.pending : status.staged);
  PLAYFS_ATTEMPT(auto conflicts, publish::unresolved(*stage_));
  status.conflicts = static_cast<std::uint32_t>(conflicts.size());
  if (publish::Publisher* publishing = publisher()) {
    status.set(publishing->progress());
    PLAYFS_ATTEMPT(auto queue, publishing->queue());
    status.queued = static_cast<std::uint32_t>(queue.empty() ? 0 : queue.size() - 1);
  }
  return status;
}

Attempt<void> WorkTree::describe(const OperationPtr& op, ProjectStatus& status) {
  PLAYFS_ATTEMPT_CHECK(compare_changes(op));
  PLAYFS_ATTEMPT_CHECK(describe(status));
  return {};
}

Status WorkTree::describe(ProjectStatus& status) {
  RevisionTreePtr base;
  PLAYFS_TRY(status.changes, staged(base));
  status.base = id_of(base);
  if (base) {
    const Manifest& manifest = base->tree.manifest();
    status.refused = manifest.refused;
    status.hidden = stage_->hidden();
    if (mount_.options().instructions == Instructions::show) {
      const PathSet others = instructions_of_others(mount_, manifest);
      status.instructions_of_others.assign(others.begin(), others.end());
    }
  }
  status.branch = is_on_branch();
  status.state_staged = stage_->staged_state().has_value();
  status.lost_files = stage_->lost_files();
  PLAYFS_TRY(status.unpublished, stage_->unpublished());
  PLAYFS_TRY(status.conflicts, publish::unresolved(*stage_));
  status.merging = stage_->merge_parents();
  status.checkpoints = stage_->checkpoints();
  if (publish::Publisher* publishing = publisher()) {
    status.progress = publishing->progress();
    PLAYFS_TRY(status.queue, publishing->queue());
    status.left_out = publishing->left_out();
    status.last = publishing->last();
    if (auto lost = publishing->lost_base(); lost && (!stage_->is_clean() || status.base == lost->revision))
      status.lost = lost->revision;
  }
  return {};
}

Attempt<std::string> WorkTree::staged_word(const OperationPtr& op, const std::string& path) {
  PLAYFS_ATTEMPT_CHECK(compare_changes(op));
  PLAYFS_ATTEMPT(auto changes, stage_->changes());
  bool staged = false;
  for (const stage::Change& change : changes) {
    if (!is_at_or_below(change.path, path)) continue;
    if (change.pending) return std::string("pending");
    staged = true;
  }
  if (staged) return std::string("staged");
  PLAYFS_ATTEMPT(auto unpublished, stage_->unpublished());
  bool ignored = std::any_of(unpublished.begin(), unpublished.end(),
                             [&](const std::string& name) { return is_at_or_below(path, name); });
  return std::string(ignored && !path.empty() ? "ignored" : "published");
}

}  // namespace playfs::vfs
