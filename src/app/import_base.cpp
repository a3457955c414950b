#include "app/import_base.h"

#include <deque>
#include <set>

#include "app/lookup.h"
#include "base/await.h"
#include "base/fd.h"
#include "runtime/places.h"

namespace playfs::app {

namespace {

/// An ancestor not found among this many counts as none: one parent too many does no harm.
constexpr std::size_t kMostLookedAt = 256;

/// Whether `ancestor` is `revision` or one of its ancestors.
bool holds(runtime::ClientStack& stack, const RevisionTreePtr& revision, const RevisionId& ancestor) {
  std::set<RevisionId> seen;
  std::deque<RevisionTreePtr> left{revision};
  while (!left.empty() && seen.size() < kMostLookedAt) {
    RevisionTreePtr next = std::move(left.front());
    left.pop_front();
    if (next->revision.id == ancestor) return true;
    for (const RevisionId& parent : next->revision.parents) {
      if (parent == ancestor) return true;
      if (!seen.insert(parent).second) continue;
      auto tree = await<RevisionTreePtr>([&](auto done) { stack.site().revision(parent, {}, std::move(done)); });
      if (tree) left.push_back(std::move(*tree));
    }
  }
  return false;
}

/// Earlier versions gave exports no id.
std::string export_id_of(const std::optional<TreeOrigin>& mark) {
  if (!mark) return "";
  return mark->export_id.empty() ? mark->site + " " + mark->project.text() : mark->export_id;
}

}  // namespace

Result<ImportOrigin> ImportOrigin::open(runtime::ClientStack& stack, const ProjectId& project,
                                        const std::string& directory, const std::optional<TreeOrigin>& mark) {
  ImportOrigin origin;
  const runtime::Source& source = stack.source();
  origin.directory_ = directory;
  origin.here_ = {source.text, source.base_path, project, {}, Extent::whole, export_id_of(mark)};
  origin.is_marked_ = mark && mark->site == source.text && mark->project == project;
  PLAYFS_TRY(std::string state, stack.state_directory());
  state += "/imported";
  PLAYFS_CHECK(make_private_directory(state));
  origin.remembered_ = state + "/" + runtime::as_component(project.text() + "\n" + directory) + ".json";
  if (origin.is_marked_) {
    origin.origin_ = mark;
  } else {
    PLAYFS_TRY(auto remembered, read_origin(origin.remembered_));
    // Otherwise an export has replaced the directory that was imported then.
    if (remembered && remembered->export_id == origin.here_.export_id) origin.origin_ = std::move(remembered);
  }
  origin.lacks_files_ = mark && mark->extent == Extent::lacks_files && (origin.is_marked_ || !origin.origin_);
  return origin;
}

Status ImportOrigin::move_to(const RevisionId& revision) const {
  TreeOrigin moved = here_;
  moved.revision = revision;
  return is_marked_ ? write_mark(directory_, moved) : write_origin(remembered_, moved);
}

Result<ImportBase> base_of_import(const CommandContext& context, runtime::ClientStack& stack, const ProjectId& project,
                                  const RevisionId& head, const std::optional<TreeOrigin>& origin,
                                  const std::optional<std::string>& named) {
  ImportBase base;
  if (named) {
    PLAYFS_TRY(RevisionTreePtr tree, find_revision(context, stack, *named));
    if (tree->revision.project != project)
      return fail(ErrorCode::invalid_argument, "revision " + *named + " belongs to another project",
                  context.next_command({{"log", "--project", project.text()}}));
    base.revision = tree->revision.id;
    // The directory still contains what it was made from, besides what the user brought in.
    if (origin && !holds(stack, tree, origin->revision)) base.beside = origin->revision;
    return base;
  }
  if (origin) {
    auto tree =
        await<RevisionTreePtr>([&](auto done) { stack.site().revision(origin->revision, {}, std::move(done)); });
    base.revision = origin->revision;
    if (tree && (*tree)->revision.project == project) return base;
    // A service restored from a backup may have lost the revision; then the base is unknown.
    if (!tree && tree.error().code != ErrorCode::not_found) return fail(tree.error());
  }
  base.revision = head;
  base.known = head.empty();
  return base;
}

}  // namespace playfs::app
