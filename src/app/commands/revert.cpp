// playfs revert: takes the changes of a published revision back, in the work tree, for the next commit to publish.
#include <memory>
#include <optional>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/renames.h"
#include "app/work_edits.h"
#include "app/work_tree_access.h"
#include "base/shell.h"
#include "compare/trees.h"
#include "model/merge.h"

namespace playfs::app {

namespace {

using Content = std::optional<std::string>;

/// What a revision changed, and what the work tree has now.
struct Sides {
  const ReadableTree& before;  ///< the revision's parent
  const ReadableTree& after;   ///< the revision
  const ReadableTree& work;
  std::set<std::string> ours;       ///< paths that are published or staged: anything else is none of the project's
  std::vector<std::string> hidden;  ///< in one of the revisions
};

struct RevertPlan {
  WorkEdits edits;
  std::vector<std::string> conflicts = {};
  std::size_t merged_bytes = 0;
};

bool can_be_merged(const std::string& text) {
  return text.size() <= kMaxMergedText && count_lines(text) <= kMaxMergedLines && text.find('\0') == std::string::npos;
}

bool is_file(const FileEntry* entry) { return entry && entry->mode != FileMode::symlink; }

/// The file as it is now without the change; nullopt if that cannot be told.
Result<std::optional<std::string>> merged(RevertPlan& plan, const Content& before, const Content& after,
                                          const Content& here) {
  if (!before || !after || !here || !can_be_merged(*before) || !can_be_merged(*after) || !can_be_merged(*here))
    return std::optional<std::string>();
  PLAYFS_TRY(MergedText text, merge_text(*after, *here, *before));
  plan.merged_bytes += text.text.size();
  if (text.conflicts || plan.merged_bytes > kMostMergedText) return std::optional<std::string>();
  return std::optional(std::move(text.text));
}

/// Where the work tree has the file that the revision changed at this path.
Result<std::string> path_now(const Sides& sides, const compare::FileChange& change) {
  PLAYFS_TRY(const auto entry, sides.work.entry_at(change.path));
  if (entry || !change.after) return change.path;
  auto is_ours = [&](const std::string& path) { return sides.ours.contains(path); };
  PLAYFS_TRY(auto moved_to, new_path_of(change.path, sides.after, sides.work, is_ours));
  return std::move(moved_to).value_or(change.path);
}

Status plan_file(RevertPlan& plan, const Sides& sides, const compare::FileChange& change) {
  if (may_be_hidden(sides.hidden, change.path)) {
    plan.conflicts.push_back(change.path);
    return {};
  }
  PLAYFS_TRY(const std::string path, path_now(sides, change));
  PLAYFS_TRY(const auto found, sides.work.entry_at(path));
  const FileEntry* entry = found ? &*found : nullptr;
  PLAYFS_TRY(const Content before, sides.before.content(change.path, change.before));
  PLAYFS_TRY(const Content after, sides.after.content(change.path, change.after));
  PLAYFS_TRY(const Content here, sides.work.content(path, entry));
  const FileStateNow now = state_of(entry, here);
  if (now == state_of(change.before, before)) return {};  // it is as it was before
  bool is_planned = false;
  if (now == state_of(change.after, after)) {
    is_planned =
        change.before ? plan.edits.put(path, change.before->mode, change.path, now) : plan.edits.remove(path, now);
  } else if (is_file(entry) && is_file(change.before) && is_file(change.after)) {
    PLAYFS_TRY(auto text, merged(plan, before, after, here));
    const FileMode mode = entry->mode == change.after->mode ? change.before->mode : entry->mode;
    is_planned = text && plan.edits.put_text(path, mode, *std::move(text), now);
  }
  if (!is_planned) plan.conflicts.push_back(path);
  return {};
}

Error in_conflict(const RevertPlan& plan, const RevisionId& revision, const RevisionId& parent) {
  constexpr std::size_t kMostNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < plan.conflicts.size() && i < kMostNamed; ++i)
    names += (i == 0 ? "" : ", ") + plan.conflicts[i];
  if (plan.conflicts.size() > kMostNamed)
    names += " and " + std::to_string(plan.conflicts.size() - kMostNamed) + " more";
  Error error{ErrorCode::conflict, "what the revision changed was changed again since, or cannot be shown, in " +
                                       names + "; nothing was reverted"};
  error.hint = "edit these files";
  if (!parent.empty())
    error.hint = "playfs diff " + shell_operand(parent.text() + ".." + revision.text()) + ", then edit these files";
  return error;
}

Result<std::set<std::string>> paths_of_project(WorkTreeAccess& tree, const JsonObject& status) {
  std::set<std::string> paths;
  PLAYFS_TRY(const auto base, tree.tree(text_of(status, "base")));
  PLAYFS_TRY(const Manifest files, base->list(""));
  for (const auto& [path, entry] : files.files) paths.insert(path);
  if (const Json::Array* staged = array_of(status, "staged"))
    for (const Json& each : *staged)
      if (each.object()) paths.insert(text_of(*each.object(), "path"));
  return paths;
}

Result<RevisionId> parent_of(RevisionSource& revisions, const ShownRevision& shown) {
  if (shown.revision.parents.empty()) return RevisionId();
  const RevisionId& parent = shown.revision.parents.front();
  PLAYFS_TRY(const auto found, revisions.find(parent));
  if (found) return parent;
  return fail(ErrorCode::not_found,
              "the service does not have the revision's parent " + parent.text() + ", so what it changed is unknown");
}

}  // namespace

Result<ExitCode> revert(CommandContext& context, const RevertArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "revert"));
  PLAYFS_TRY(const JsonObject status, tree->status_document());
  PLAYFS_TRY(const RevisionId id, revision_of(*tree, status, arguments.revision));
  PLAYFS_TRY(auto revisions, tree->revisions(1));
  PLAYFS_TRY(const auto shown, revisions->find(id));
  if (!shown) return fail(ErrorCode::not_found, "the project has no revision '" + id.text() + "'", "playfs log");
  PLAYFS_TRY(const RevisionId parent, parent_of(*revisions, *shown));
  PLAYFS_TRY(const auto before, tree->tree(parent.text()));
  PLAYFS_TRY(const auto after, tree->tree(id.text()));
  PLAYFS_TRY(const Manifest old_files, before->list(""));
  PLAYFS_TRY(const Manifest new_files, after->list(""));
  PLAYFS_TRY(auto hidden, before->refused());
  PLAYFS_TRY(const auto hidden_after, after->refused());
  hidden.insert(hidden.end(), hidden_after.begin(), hidden_after.end());
  PLAYFS_TRY(auto ours, paths_of_project(*tree, status));
  const auto work = tree->work();
  const Sides sides{*before, *after, *work, std::move(ours), std::move(hidden)};
  RevertPlan plan{WorkEdits(tree->place().work, *work, *before)};
  bool has_changed_files = false;
  for (const compare::FileChange& change : compare::changes_between(old_files, new_files)) {
    if (change.before && change.after) {
      PLAYFS_TRY(const bool same, have_the_same(change.path, *before, *change.before, *after, *change.after));
      if (same) continue;
    }
    has_changed_files = true;
    PLAYFS_CHECK(plan_file(plan, sides, change));
  }
  if (!plan.conflicts.empty()) return fail(in_conflict(plan, id, parent));
  PLAYFS_CHECK(plan.edits.carry_out());

  const std::size_t changed = plan.edits.size();
  if (!has_changed_files) {
    context.out.note("The revision changed no file. (The project's state is not reverted.)");
  } else if (changed == 0) {
    context.out.note("Nothing to revert: the work tree has none of its changes.");
  } else {
    const std::string& message = shown->revision.message;
    const std::string title = "Revert \"" + message.substr(0, message.find('\n')) + "\"";
    context.out.note("Reverted " + safe(id.text()) + " in " + std::to_string(changed) +
                     (changed == 1 ? " file" : " files") + ". Try: playfs commit -m " + shell_word(safe(title)));
  }
  Json::Array reverted;
  for (const std::string& path : plan.edits.put_paths()) reverted.emplace_back(path);
  for (const std::string& path : plan.edits.removed_paths()) reverted.emplace_back(path);
  context.out.document(
      JsonObject{{"project", tree->place().project}, {"revision", id.text()}, {"reverted", std::move(reverted)}});
  return ExitCode::done;
}

}  // namespace playfs::app
