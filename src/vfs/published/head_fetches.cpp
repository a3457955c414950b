#include "vfs/published/head_fetches.h"

#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"
#include "vfs/published/revision_fetches.h"

namespace playfs::vfs {
namespace {

/// A callback that drops the value; the next attempt finds what was fetched where it was stored.
template <class T>
Callback<T> only_status(Callback<void> done) {
  return [done = std::move(done)](Result<T> result) mutable {
    done(result ? Status() : Status(fail(std::move(result).error())));
  };
}

std::string asked_fact(const ProjectId& id) { return "asked/" + id.text(); }

}  // namespace

Attempt<content::Head> head_here(Mount& mount, const ProjectId& id) {
  if (auto head = mount.site().try_head(id)) return std::move(*head);
  return missing([&mount, id](CancelToken cancel, Callback<void> done) {
    mount.site().head(id, std::move(cancel), only_status<content::Head>(std::move(done)));
  });
}

Attempt<bool> is_gone(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  if (mount.site().try_head(id)) return false;
  const std::string fact = "gone/projects/" + id.text();
  if (op->noted(fact)) return true;
  return missing([&mount, op, id, fact](CancelToken cancel, Callback<void> done) {
    mount.site().head(id, std::move(cancel), [op, fact, done = std::move(done)](Result<content::Head> head) mutable {
      const bool is_gone = !head && head.error().code == ErrorCode::not_found;
      if (is_gone) op->note(fact);
      done(head || is_gone ? Status() : Status(fail(std::move(head).error())));
    });
  });
}

bool asked_for_head(const OperationPtr& op, const ProjectId& id) { return op->noted(asked_fact(id)); }

Attempt<content::Head> head_for_use(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  PLAYFS_ATTEMPT(content::Head head, head_here(mount, id));
  if (mount.site().is_current(id) || asked_for_head(op, id)) return head;
  const std::string what = "projects/" + id.text();
  const auto patience = mount.site().patience().left_for(what);
  if (!patience) return head;
  return missing(
      fetch_news(mount, op, what, *patience, asked_fact(id), [&mount, id](CancelToken cancel, Callback<void> done) {
        mount.site().shown_head(id, std::move(cancel), only_status<content::Head>(std::move(done)));
      }));
}

Attempt<RevisionId> shown_id(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  PLAYFS_ATTEMPT(content::Head head, head_for_use(mount, op, id));
  if (!head.shown) {
    return missing([&mount, id](CancelToken cancel, Callback<void> done) {
      mount.site().shown_head(id, std::move(cancel), only_status<content::Head>(std::move(done)));
    });
  }
  return std::move(*head.shown);
}

Attempt<RevisionTreePtr> shown_here(Mount& mount, const OperationPtr& op, const ProjectId& id) {
  PLAYFS_ATTEMPT(const RevisionId shown, shown_id(mount, op, id));
  if (shown.empty()) return RevisionTreePtr();
  return revision_here(mount, op, shown);
}

void bring_shown(Mount& mount, const ProjectId& project, std::function<void(const RevisionTreePtr&)> came) {
  auto head = mount.site().try_head(project);
  if (!head || (head->shown && head->shown->empty())) return;
  if (!head->shown) {
    // Head's record arrived before anyone asked for the revision it names: nobody else will request that one.
    mount.site().shown_head(
        project, mount.gate()->closing(),
        [&mount, project, gate = mount.gate(), came = std::move(came)](const Result<content::Head>& shown) mutable {
          auto ticket = gate->enter();
          if (ticket && shown) bring_shown(mount, project, std::move(came));
        });
    return;
  }
  mount.site().revision(*head->shown, mount.gate()->closing(),
                        [gate = mount.gate(), came = std::move(came)](const Result<RevisionTreePtr>& tree) {
                          auto ticket = gate->enter();
                          if (ticket && tree) came(*tree);
                        });
}

}  // namespace playfs::vfs
