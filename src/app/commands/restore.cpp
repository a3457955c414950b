// playfs restore: gives files of the work tree what they have in a revision. New files stay.
#include <map>
#include <memory>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/path_in_work.h"
#include "app/work_files.h"
#include "app/work_tree_access.h"

namespace playfs::app {

namespace {

struct RestorePlan {
  std::map<std::string, FileEntry> put;
  std::set<std::string> remove;
  std::size_t kept = 0;  ///< files that neither the revision nor the base has: this may be the only copy
};

/// Adds what has to change at and below `path`.
Status plan(RestorePlan& plan, const std::string& path, const ReadableTree& source, const ReadableTree& base,
            const ReadableTree& work) {
  PLAYFS_TRY(const Manifest wanted, source.list(path));
  PLAYFS_TRY(const Manifest present, work.list(path));
  if (wanted.files.empty() && present.files.empty())
    return fail(ErrorCode::not_found, "neither the revision nor the work tree has '" + path + "'", "playfs log PATH");
  for (const auto& [file, entry] : wanted.files) {
    if (const FileEntry* here = present.file_at(file)) {
      PLAYFS_TRY(const bool same, have_the_same(file, source, entry, work, *here));
      if (same) continue;
    } else if (auto below = present.files.lower_bound(file + "/");
               below != present.files.end() && is_at_or_below(below->first, file)) {
      return fail(ErrorCode::is_a_directory, "'" + file + "' is a directory now", "move it away first");
    }
    plan.put.emplace(file, entry);
  }
  for (const auto& [file, entry] : present.files) {
    if (wanted.file_at(file)) continue;
    PLAYFS_TRY(const auto published, base.entry_at(file));
    if (published) plan.remove.insert(file);
    else ++plan.kept;
  }
  return {};
}

Status carry_out(const RestorePlan& plan, const ReadableTree& source, const std::string& work) {
  PLAYFS_TRY(const WorkFiles files, WorkFiles::open(work));
  for (const std::string& path : plan.remove) {
    PLAYFS_CHECK(files.remove(path));
    PLAYFS_CHECK(files.remove_empty_directories_above(path));
  }
  for (const auto& [path, entry] : plan.put) {
    PLAYFS_TRY(const auto content, source.content(path, &entry));
    if (!content) return fail(ErrorCode::not_found, "the revision has lost '" + path + "'");
    PLAYFS_CHECK(files.replace(path, entry.mode, *content));
  }
  return {};
}

/// From the base, files become what they were before they were staged.
Status unstage(const RestorePlan& plan, WorkTreeAccess& tree) {
  for (const auto& [path, entry] : plan.put) {
    PLAYFS_TRY(const auto count, tree.discard(path, false));
    static_cast<void>(count);
  }
  return {};
}

std::string files(std::size_t count) { return std::to_string(count) + (count == 1 ? " file" : " files"); }

}  // namespace

Result<ExitCode> restore(CommandContext& context, const RestoreArguments& arguments) {
  std::vector<PathInWork> targets;
  for (const std::string& path : arguments.paths) {
    PLAYFS_TRY(PathInWork at, path_in_work(context, path, "restore"));
    if (!targets.empty() && at.place.work != targets.front().place.work)
      return fail(ErrorCode::invalid_argument, path + " is not in the work tree " + targets.front().place.work);
    targets.push_back(std::move(at));
  }
  PLAYFS_TRY(auto tree, open_work_tree(context, targets.front().place, "restore"));
  PLAYFS_TRY(const JsonObject status, tree->status_document());
  PLAYFS_TRY(const RevisionId revision, revision_of(*tree, status, arguments.revision));
  const std::string base_id = text_of(status, "base");
  PLAYFS_TRY(const auto source, tree->tree(revision.text()));
  PLAYFS_TRY(const auto base, tree->tree(base_id));
  const auto work = tree->work();
  RestorePlan planned;
  for (const PathInWork& at : targets) PLAYFS_CHECK(plan(planned, at.path, *source, *base, *work));

  if (revision.text() == base_id) PLAYFS_CHECK(unstage(planned, *tree));
  else PLAYFS_CHECK(carry_out(planned, *source, tree->place().work));

  const std::size_t changed = planned.put.size() + planned.remove.size();
  if (changed == 0) context.out.note("Nothing to restore: it is all as in " + safe(revision.text()) + ".");
  else context.out.note("Restored " + files(changed) + " from " + safe(revision.text()) + ".");
  if (planned.kept > 0)
    context.out.note("Left " + files(planned.kept) + " alone that " + (planned.kept == 1 ? "is" : "are") +
                     " not published. To delete what is staged: playfs discard");
  Json::Array restored, removed;
  for (const auto& [path, entry] : planned.put) restored.emplace_back(path);
  for (const std::string& path : planned.remove) removed.emplace_back(path);
  context.out.document(JsonObject{{"project", tree->place().project},
                                  {"revision", revision.text()},
                                  {"restored", std::move(restored)},
                                  {"removed", std::move(removed)}});
  return ExitCode::done;
}

}  // namespace playfs::app
