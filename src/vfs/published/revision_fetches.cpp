#include "vfs/published/revision_fetches.h"

#include <atomic>

#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"
#include "vfs/once.h"

namespace playfs::vfs {

Attempt<RevisionTreePtr> revision_here(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  const std::string name = "tree/" + id.text();
  if (auto tree = op->held<RevisionTree>(name)) return tree;
  if (auto tree = mount.site().revision_at_once(id).tree) return tree;
  return missing([&mount, op, id, name](CancelToken cancel, Callback<void> done) {
    mount.site().revision(id, std::move(cancel),
                          [op, name, done = std::move(done)](Result<RevisionTreePtr> tree) mutable {
                            if (!tree) return done(fail(std::move(tree).error()));
                            op->hold(name, std::move(*tree));
                            done({});
                          });
  });
}

Attempt<RevisionTreePtr> known_revision(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  const std::string name = "tree/" + id.text(), read = "read/" + name;
  if (auto tree = op->held<RevisionTree>(name)) return tree;
  auto here = mount.site().revision_at_once(id);
  if (!here.takes_long || op->noted(read)) return std::move(here.tree);
  return missing(off_thread(mount, mount.large(), [&mount, op, id, name, read](const auto&, Callback<void> done) {
    if (auto tree = mount.site().try_revision(id)) op->hold(name, std::move(tree));
    op->note(read);
    done({});
  }));
}

Attempt<RevisionTreePtr> revision_of_project(Mount& mount, const OperationPtr& op, const RevisionId& id,
                                             const ProjectId& project) {
  // Histories repeatedly look up parents that may not exist.
  if (mount.site().was_absent(id) && !mount.site().try_revision(id))
    return fail(ErrorCode::not_found, "the service has no such revision");
  PLAYFS_ATTEMPT(RevisionTreePtr tree, revision_here(mount, op, id));
  if (tree->revision.project != project) return fail(ErrorCode::not_found, "the revision belongs to another project");
  return tree;
}

SummaryPtr summary_here(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  auto own = op->held<RevisionSummary>("summary/" + id.text());
  return own ? own : mount.summaries().find(id);
}

SummaryPtr keep_summary(Mount& mount, const OperationPtr& op, const RevisionTree& tree) {
  SummaryPtr summary = content::summary_of(tree);
  op->hold("summary/" + summary->id.text(), summary);
  mount.summaries().add(summary);
  return summary;
}

Attempt<SummaryPtr> known_summary(Mount& mount, const OperationPtr& op, const RevisionId& id) {
  if (auto summary = summary_here(mount, op, id)) return summary;
  PLAYFS_ATTEMPT(RevisionTreePtr tree, known_revision(mount, op, id));
  return tree ? keep_summary(mount, op, *tree) : nullptr;
}

Fetch fetch_revisions(Mount& mount, const OperationPtr& op, const ProjectId& project, std::vector<RevisionId> ids) {
  return [&mount, op, project, ids = std::move(ids)](CancelToken cancel, Callback<void> done) {
    if (ids.empty()) return done({});
    Once<void> all(std::move(done));
    auto left = std::make_shared<std::atomic<std::size_t>>(ids.size());
    for (const RevisionId& id : ids) {
      auto came = [&mount, op, id, all, left](const Result<RevisionTreePtr>& tree) {
        if (tree) {
          keep_summary(mount, op, **tree);
        } else {
          if (tree.error().code == ErrorCode::interrupted) all(fail(tree.error()));
          op->note("gone/" + id.text());
        }
        if (left->fetch_sub(1) == 1) all({});
      };
      mount.site().revision(id, cancel, std::move(came), project);
    }
  };
}

}  // namespace playfs::vfs
