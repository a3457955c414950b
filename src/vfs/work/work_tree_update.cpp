// A program moves the base: an update to head, or a merge of another revision.
#include "base/text.h"
#include "publish/conflicts.h"
#include "vfs/mount.h"
#include "vfs/published/head_fetches.h"
#include "vfs/published/revision_fetches.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {
namespace {

Error why_latest_is_not_shown(const content::Head& head) {
  if (head.refused) return *head.refused;
  return {ErrorCode::offline,
          "revision " + escape_for_terminal(head.project.latest_revision.text()) + ", now head, could not be read yet",
          "retry playfs update later"};
}

}  // namespace

Async<content::Head> WorkTree::ask_for_head() {
  PLAYFS_AWAIT_CHECK(answer<content::Head>([this](CancelToken cancel, Callback<content::Head> done) {
    mount_.site().client().ask_now();
    mount_.site().refresh_head(project_, std::move(cancel), std::move(done));
  }));
  auto shown = answer<content::Head>([this](CancelToken cancel, Callback<content::Head> done) {
    mount_.site().shown_head(project_, std::move(cancel), std::move(done));
  });
  co_return co_await shown;
}

Async<UpdateResult> WorkTree::update(OperationPtr op) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  PLAYFS_AWAIT_CHECK(ask_for_head());
  Updating asked;
  std::optional<UpdateResult> result;
  while (!result) {
    if (asked.needs_publisher) PLAYFS_AWAIT_CHECK(opened_publisher());
    PLAYFS_AWAIT(result, update_step(op, asked));
  }
  PLAYFS_AWAIT_CHECK(tell(op, "the work tree is now based on " + result->base));
  PLAYFS_AWAIT(const content::Head head, repeat([&] { return head_here(mount_, project_); }));
  if (!head.shows_latest()) co_return fail(why_latest_is_not_shown(head));
  co_return std::move(*result);
}

Async<std::optional<UpdateResult>> WorkTree::update_step(OperationPtr op, Updating& asked) {
  PLAYFS_AWAIT(const content::Head head, repeat([&] { return head_here(mount_, project_); }));
  if (!head.is_settled() && asked.awaited.insert(head.project.latest_revision).second) {
    // A newer head than the one awaited above, seen by a commit that we waited for.
    PLAYFS_AWAIT_CHECK(answer<content::Head>([this](CancelToken cancel, Callback<content::Head> done) {
      mount_.site().shown_head(project_, std::move(cancel), std::move(done));
    }));
    co_return std::nullopt;
  }
  const RevisionId latest = head.shown.value_or(RevisionId());
  {
    // If news of the same head is moving the tree right now, wait until its invalidations are queued.
    MutexLock moving(moving_);
  }
  const RevisionTreePtr base = stage_->base();
  RevisionTreePtr tree;
  if (!latest.empty() && !(base && base->revision.id == latest)) {
    Attempt<RevisionTreePtr> here = revision_here(mount_, op, latest);
    if (!here) {
      PLAYFS_AWAIT_CHECK(wait_for(std::move(here).error()));
      co_return std::nullopt;
    }
    tree = std::move(*here);
  }
  auto after_opening_publisher = [&] {
    asked.needs_publisher = true;
    return std::optional<UpdateResult>();
  };
  if (base && base->revision.id != latest && !is_known_to_hold(tree, base)) {
    // A revision shown in place of the latest one may be older than what was published from here, which would vanish.
    if (!head.shows_latest() && !is_on_branch()) co_return fail(why_latest_is_not_shown(head));
    if (!asked.bases.contains(base->revision.id)) {
      if (!publisher()) co_return after_opening_publisher();
      PLAYFS_AWAIT_CHECK(keep_lost_base(tree));
      asked.bases.insert(base->revision.id);
      co_return std::nullopt;
    }
  }
  // A record that is older than one that was read before does not name the latest revision. This comes after the base,
  // which may be missing for the same reason: one wait is enough for both.
  if (!asked.checked_head) {
    if (is_older_than_seen(head.project)) {
      if (!publisher()) co_return after_opening_publisher();
      if (Status newest = publisher()->check_head(head.project); !newest) {
        look_at_head_again_soon();
        co_return fail(std::move(newest).error());
      }
    }
    asked.checked_head = true;
  }
  if (tree && latest != base_id()) {
    know_instructions(tree);
    PLAYFS_CO_TRY(const bool is_free, is_free_to_follow(tree));
    if (!is_free) {
      if (!publisher()) co_return after_opening_publisher();
      PLAYFS_AWAIT(const auto done, integrate(tree, true));
      // Otherwise a commit ended first, so the tree is based on more than that head: look at the current one.
      if (done.base != latest) co_return std::nullopt;
      co_return UpdateResult{done.base.text(), static_cast<std::uint32_t>(done.conflicts)};
    }
    PLAYFS_CO_CHECK(move_base(tree, id_of(base)));
  }
  PLAYFS_CO_CHECK(stage_->check_disk());  // an earlier, failed update may have come this far
  // The tree is as far as it can get.
  if (!head.shows_latest()) co_return fail(why_latest_is_not_shown(head));
  PLAYFS_CO_TRY(const auto conflicts, publish::unresolved(*stage_));
  co_return UpdateResult{base_id().text(), static_cast<std::uint32_t>(conflicts.size())};
}

Async<UpdateResult> WorkTree::merge(OperationPtr op, RevisionId revision) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  PLAYFS_AWAIT(const RevisionTreePtr tree, repeat([&] { return revision_of_project(mount_, op, revision, project_); }));
  PLAYFS_AWAIT(const auto done, integrate(tree, false));
  PLAYFS_AWAIT_CHECK(tell(op, "the work tree is now based on " + done.base.text()));
  co_return UpdateResult{done.base.text(), static_cast<std::uint32_t>(done.conflicts)};
}

Async<publish::Integrated> WorkTree::integrate(RevisionTreePtr revision, bool is_head) {
  PLAYFS_AWAIT(publish::Publisher* const publishing, opened_publisher());
  auto integrated = answer<publish::Integrated>(
      [this, publishing, revision, is_head](CancelToken cancel, Callback<publish::Integrated> done) {
        mount_.site().client().ask_now();
        if (is_head) publishing->update(revision, std::move(cancel), std::move(done));
        else publishing->merge(revision, std::move(cancel), std::move(done));
      });
  co_return co_await integrated;
}

}  // namespace playfs::vfs
