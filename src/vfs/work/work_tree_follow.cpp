// Head moves, and a work tree with nothing staged follows it, unasked.
#include "publish/conflicts.h"
#include "stage/ignore.h"
#include "vfs/mount.h"
#include "vfs/published/head_fetches.h"
#include "vfs/work/work_tree.h"

namespace playfs::vfs {

void WorkTree::head_changed(const RevisionTreePtr& head) {
  // Every participant repairs what others left behind.
  if (publish::Publisher* publishing = publisher()) publishing->reconcile();
  RevisionTreePtr base = stage_->base();
  if (head && (!base || head->revision.id == base->revision.id || is_known_to_hold(head, base)))
    return follow(head, id_of(base));
  if (base) look_for_base(head);
}

void WorkTree::head_seen() {
  if (!mount_.options().follows_head) return;
  if (is_free_to_follow().value_or(false)) follow_head();
}

void WorkTree::opened_under(const RevisionTreePtr& head, bool is_current) {
  if (!mount_.options().follows_head) return;
  RevisionTreePtr base = stage_->base();
  if (is_current) head_changed(head);
  else if (!base || is_known_to_hold(head, base)) follow(head, id_of(base));
}

void WorkTree::follow_head() {
  if (!mount_.options().follows_head) return;
  // Also called on the publisher's thread, which the tree's destructor joins: with a ticket the mount keeps the tree,
  // so that no reference taken here is the last.
  auto ticket = mount_.gate()->enter();
  if (!ticket) return;
  auto head = mount_.site().try_head(project_);
  if (!head || head->shown == base_id()) return;
  bring_shown(mount_, project_, [weak = weak_from_this()](const RevisionTreePtr& tree) {
    if (auto self = weak.lock()) self->head_changed(tree);
  });
}

Result<bool> WorkTree::is_free_to_follow() {
  if (is_on_branch() || !stage_->is_clean()) return false;
  // A path in conflict where head's version is in place has nothing staged, yet still awaits a decision.
  PLAYFS_TRY(auto conflicts, publish::unresolved(*stage_));
  return conflicts.empty();
}

Result<bool> WorkTree::is_free_to_follow(const RevisionTreePtr& head) {
  PLAYFS_TRY(bool is_free, is_free_to_follow());
  if (!is_free || stage::rules_of(stage_->base()) == stage::rules_of(head)) return is_free;
  // If the ignore rules differ, only an update makes sure that nothing local-only gets published.
  PLAYFS_TRY(auto unpublished, stage_->unpublished());
  return unpublished.empty();
}

void WorkTree::follow(const RevisionTreePtr& head, const RevisionId& from) {
  if (!head || head->revision.id == from || !is_free_to_follow(head).value_or(false)) return;
  know_instructions(head);
  auto moved = move_base(head, from);
  // busy: something was staged just now, so the base stays; or a commit moved it, perhaps past this head.
  if (!moved && moved.error().code != ErrorCode::busy) {
    mount_.site().events().error("projects/" + project_.text() + "/work", moved.error().while_doing("follow head"));
  }
}

Status WorkTree::move_base(const RevisionTreePtr& base, const RevisionId& from) {
  MutexLock moving(moving_);
  PLAYFS_TRY(auto changed, stage_->move_base(base, from));
  tell_kernel(changed);
  return {};
}

}  // namespace playfs::vfs
