// playfs restore: gives files of the work tree what they have in a revision. New files stay.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/path_in_work.h"
#include "app/work_edits.h"
#include "app/work_tree_access.h"
#include "base/shell.h"

namespace playfs::app {

namespace {

struct RestorePlan {
  WorkEdits edits;
  /// Files that the base does not have, staged or ignored, unless they were named themselves: these may be the only
  /// copies. Also those that the revision may have in entries that cannot be shown.
  std::size_t kept = 0;
  std::size_t fresh = 0;  ///< likewise, and the revision does not have them either
};

struct Trees {
  const ReadableTree& source;
  const ReadableTree& base;
  const ReadableTree& work;
  std::vector<std::string> hidden;  ///< in the source
};

/// Adds what has to change at and below `path`.
Status plan(RestorePlan& plan, const std::string& path, const Trees& trees) {
  PLAYFS_TRY(const Manifest wanted, trees.source.list(path));
  PLAYFS_TRY(const Manifest present, trees.work.list(path));
  if (wanted.files.empty() && may_be_hidden(trees.hidden, path) && !path.empty())
    return fail(ErrorCode::refused_input, "what the revision has at '" + path + "' cannot be shown", "playfs status");
  if (wanted.files.empty() && present.files.empty())
    return fail(ErrorCode::not_found, "neither the revision nor the work tree has '" + path + "'", "playfs log PATH");
  for (const auto& [file, entry] : wanted.files) {
    if (const FileEntry* here = present.file_at(file)) {
      PLAYFS_TRY(const bool same, have_the_same(file, trees.source, entry, trees.work, *here));
      if (same) continue;
      PLAYFS_TRY(const auto published, trees.base.entry_at(file));
      if (!published && file != path) {
        ++plan.kept;
        continue;
      }
    }
    PLAYFS_TRY(FileStateNow now, state_at(trees.work, file));
    plan.edits.put(file, entry.mode, file, now);
  }
  for (const auto& [file, entry] : present.files) {
    if (wanted.file_at(file)) continue;
    PLAYFS_TRY(const auto published, trees.base.entry_at(file));
    const bool is_unsure = may_be_hidden(trees.hidden, file);
    if (!published || is_unsure) {
      ++(is_unsure ? plan.kept : plan.fresh);
      continue;
    }
    PLAYFS_TRY(FileStateNow now, state_at(trees.work, file));
    plan.edits.remove(file, now);
  }
  return {};
}

/// From the base, files become what they were before they were staged.
Result<KeptChanges> unstage(const WorkEdits& edits, WorkTreeAccess& tree) {
  const auto paths = edits.put_paths();
  PLAYFS_CHECK(edits.check_ways());
  PLAYFS_CHECK(tree.discard(paths, true));
  PLAYFS_TRY(DroppedChanges dropped, tree.discard(paths, false));
  return std::move(dropped.kept);
}

/// What is staged where something is put or removed has no other copy. What is written after this is not replaced.
Result<KeptChanges> replace(WorkEdits& edits, const JsonObject& status, const RevisionId& revision,
                            WorkTreeAccess& tree) {
  std::set<std::string> paths;
  for (auto& replaced : {edits.put_paths(), edits.removed_paths()}) paths.insert(replaced.begin(), replaced.end());
  auto is_replaced = [&](const Json& staged) {
    return staged.object() && paths.contains(text_of(*staged.object(), "path"));
  };
  KeptChanges kept;
  const Json::Array* staged = array_of(status, "staged");
  if (staged && std::any_of(staged->begin(), staged->end(), is_replaced)) {
    PLAYFS_TRY(const vfs::CheckpointResult made, tree.checkpoint("before restoring from " + revision.text()));
    kept.add(made.id, {""});
  }
  PLAYFS_CHECK(edits.carry_out());
  return kept;
}

std::string files(std::size_t count) { return std::to_string(count) + (count == 1 ? " file" : " files"); }

void tell(Output& out, const JsonObject& status, const RestorePlan& planned, const RevisionId& revision) {
  const std::size_t changed = planned.edits.size();
  if (changed == 0) out.note("Nothing to restore: it is all as in " + safe(revision.text()) + ".");
  else out.note("Restored " + files(changed) + " from " + safe(revision.text()) + ".");
  if (planned.kept > 0)
    out.note("Left " + files(planned.kept) + " alone that " + (planned.kept == 1 ? "is" : "are") +
             " not published, or cannot be compared. playfs restore NAME replaces a single one.");
  if (planned.fresh > 0)
    out.note("Left " + files(planned.fresh) + " alone that " + (planned.fresh == 1 ? "is" : "are") +
             " neither published nor in " + safe(revision.text()) + ". To drop what is staged: playfs discard PATH");
  if (changed == 0) return;
  for (const std::string& each : revisions_merged(status))
    out.note("Still merging " + safe(each) +
             ": the next commit merges it without what was restored. To abandon the merge: playfs discard, at the work "
             "tree's root.");
}

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
  PLAYFS_TRY(auto hidden, source->refused());
  const auto work = tree->work();
  RestorePlan planned{WorkEdits(tree->place().work, *work, *source)};
  const Trees trees{*source, *base, *work, std::move(hidden)};
  for (const PathInWork& at : targets) PLAYFS_CHECK(plan(planned, at.path, trees));

  PLAYFS_TRY(const KeptChanges kept, revision.text() == base_id ? unstage(planned.edits, *tree)
                                                                : replace(planned.edits, status, revision, *tree));

  tell(context.out, status, planned, revision);
  std::string named;
  for (const PathInWork& at : targets) named += " " + shell_operand(at.named);
  auto word = [&](const std::string& path) { return shell_operand(tree->place().work + "/" + path); };
  for (const KeptChanges::Kept& each : kept.all())
    context.out.note("To bring back what was staged: playfs checkpoint restore " + std::to_string(each.checkpoint) +
                     (kept.all().size() == 1 ? named : each.words(word)));
  Json::Array restored, removed;
  for (const std::string& path : planned.edits.put_paths()) restored.emplace_back(path);
  for (const std::string& path : planned.edits.removed_paths()) removed.emplace_back(path);
  context.out.document(JsonObject{{"project", tree->place().project},
                                  {"revision", revision.text()},
                                  {"restored", std::move(restored)},
                                  {"removed", std::move(removed)}});
  return ExitCode::done;
}

}  // namespace playfs::app
