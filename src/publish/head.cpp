#include "publish/head.h"

#include <deque>
#include <unordered_set>

#include "base/await.h"
#include "publish/rest.h"

namespace playfs::publish {

namespace {

bool is_older(const Revision& a, const Revision& b) {
  return a.created_at != WallTime{} && b.created_at != WallTime{} && a.created_at < b.created_at;
}

Result<bool> is_ancestor(content::Site& site, const RevisionTreePtr& ours, const RevisionId& base,
                         const RevisionId& head, const CancelToken& cancel, std::size_t most) {
  std::deque<RevisionId> queue = {head};
  std::unordered_set<RevisionId> seen = {head, base};  // ours is no ancestor of its own base
  for (; !queue.empty() && most > 0; --most) {
    auto id = std::move(queue.front());
    queue.pop_front();
    auto revision = await<RevisionTreePtr>([&](auto done) { site.revision(id, cancel, std::move(done)); });
    if (!revision) {
      if (may_heal(revision.error().code)) return fail(revision.error().while_doing("read revision " + id.text()));
      continue;
    }
    if (is_older((*revision)->revision, ours->revision)) continue;
    for (const auto& parent : (*revision)->revision.parents) {
      if (parent == ours->revision.id) return true;
      if (seen.insert(parent).second) queue.push_back(parent);
    }
  }
  return false;
}

}  // namespace

Result<HeadView> look_at_head(content::Site& site, const ProjectId& project, const RevisionId& base,
                              const RevisionTreePtr& ours, const CancelToken& cancel, std::size_t most) {
  auto head = await<content::Head>([&](auto done) { site.refresh_head(project, cancel, std::move(done)); });
  if (!head) return fail(head.error().while_doing("read project " + project.text()));
  HeadView view{Position::elsewhere, head->project.latest_revision};
  if (view.head == ours->revision.id) {
    view.position = Position::ours;
  } else if (view.head.empty() || view.head == base) {
    view.position = Position::base;
  } else {
    PLAYFS_TRY(bool built_on, is_ancestor(site, ours, base, view.head, cancel, most));
    if (built_on) view.position = Position::built_on;
  }
  return view;
}

}  // namespace playfs::publish
