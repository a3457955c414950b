// playfs revert: takes the changes of a published revision back, in the work tree, for the next commit to publish.
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/renames.h"
#include "app/work_files.h"
#include "app/work_tree_access.h"
#include "base/shell.h"
#include "compare/trees.h"
#include "model/merge.h"

namespace playfs::app {

namespace {

/// What a file becomes; `text`: merged, otherwise that of `path` before the revision.
struct Reverted {
  FileMode mode = FileMode::regular;
  std::optional<std::string> text;
  std::string path;
};

struct RevertPlan {
  std::map<std::string, Reverted> put;  ///< by the path in the work tree
  std::set<std::string> remove;
  std::vector<std::string> conflicts;
  std::size_t merged_bytes = 0;
};

using Content = std::optional<std::string>;

struct Sides {
  const ReadableTree& before;  ///< the revision's parent
  const ReadableTree& after;   ///< the revision
  const ReadableTree& work;
};

bool can_be_merged(const std::string& text) {
  return text.size() <= kMaxMergedText && count_lines(text) <= kMaxMergedLines && text.find('\0') == std::string::npos;
}

Status plan_file(RevertPlan& plan, const Sides& sides, const compare::FileChange& change) {
  std::string path = change.path;
  PLAYFS_TRY(auto entry, sides.work.entry_at(path));
  if (!entry && change.after) {
    PLAYFS_TRY(auto moved_to, new_path_of(path, sides.after, sides.work));
    path = std::move(moved_to).value_or(path);
    PLAYFS_TRY(entry, sides.work.entry_at(path));
  }
  PLAYFS_TRY(const Content before, sides.before.content(change.path, change.before));
  PLAYFS_TRY(const Content after, sides.after.content(change.path, change.after));
  PLAYFS_TRY(const Content here, sides.work.content(path, entry ? &*entry : nullptr));
  auto is = [&](const FileEntry* other, const Content& content) {
    return other ? entry && entry->mode == other->mode && here == content : !entry;
  };
  if (is(change.before, before)) return {};  // it is as it was before
  if (is(change.after, after)) {
    if (change.before) plan.put.emplace(path, Reverted{change.before->mode, std::nullopt, change.path});
    else plan.remove.insert(path);
    return {};
  }
  const bool are_files = entry && change.before && change.after && entry->mode != FileMode::symlink &&
                         change.before->mode != FileMode::symlink && change.after->mode != FileMode::symlink;
  if (are_files && before && after && here && can_be_merged(*before) && can_be_merged(*after) && can_be_merged(*here)) {
    PLAYFS_TRY(MergedText merged, merge_text(*after, *here, *before));
    plan.merged_bytes += merged.text.size();
    if (!merged.conflicts && plan.merged_bytes <= kMostMergedText) {
      const FileMode mode = entry->mode == change.after->mode ? change.before->mode : entry->mode;
      plan.put.emplace(path, Reverted{mode, std::move(merged.text), change.path});
      return {};
    }
  }
  plan.conflicts.push_back(path);
  return {};
}

Status carry_out(const RevertPlan& plan, const ReadableTree& before, const std::string& work) {
  PLAYFS_TRY(const WorkFiles files, WorkFiles::open(work));
  for (const std::string& path : plan.remove) {
    PLAYFS_CHECK(files.remove(path));
    PLAYFS_CHECK(files.remove_empty_directories_above(path));
  }
  for (const auto& [path, file] : plan.put) {
    Content content = file.text;
    if (!content) {
      PLAYFS_TRY(const auto entry, before.entry_at(file.path));
      PLAYFS_TRY(content, before.content(file.path, entry ? &*entry : nullptr));
    }
    if (!content) return fail(ErrorCode::not_found, "the parent has lost '" + file.path + "'");
    PLAYFS_CHECK(files.replace(path, file.mode, *content));
  }
  return {};
}

Error in_conflict(const RevertPlan& plan, const RevisionId& revision, const RevisionId& parent) {
  constexpr std::size_t kMostNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < plan.conflicts.size() && i < kMostNamed; ++i)
    names += (i == 0 ? "" : ", ") + plan.conflicts[i];
  if (plan.conflicts.size() > kMostNamed)
    names += " and " + std::to_string(plan.conflicts.size() - kMostNamed) + " more";
  Error error{ErrorCode::conflict,
              "what the revision changed was changed again since in " + names + "; nothing was reverted"};
  error.hint = parent.empty()
                   ? "edit these files"
                   : "playfs diff " + shell_operand(parent.text() + ".." + revision.text()) + ", then edit these files";
  return error;
}

}  // namespace

Result<ExitCode> revert(CommandContext& context, const RevertArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "revert"));
  PLAYFS_TRY(const JsonObject status, tree->status_document());
  PLAYFS_TRY(const RevisionId id, revision_of(*tree, status, arguments.revision));
  PLAYFS_TRY(auto revisions, tree->revisions(1));
  PLAYFS_TRY(const auto shown, revisions->find(id));
  if (!shown) return fail(ErrorCode::not_found, "the project has no revision '" + id.text() + "'", "playfs log");
  const auto& parents = shown->revision.parents;
  const RevisionId parent = parents.empty() ? RevisionId() : parents.front();
  PLAYFS_TRY(const auto before, tree->tree(parent.text()));
  PLAYFS_TRY(const auto after, tree->tree(id.text()));
  PLAYFS_TRY(const Manifest old_files, before->list(""));
  PLAYFS_TRY(const Manifest new_files, after->list(""));
  const auto work = tree->work();
  RevertPlan plan;
  for (const compare::FileChange& change : compare::changes_between(old_files, new_files))
    PLAYFS_CHECK(plan_file(plan, {*before, *after, *work}, change));
  if (!plan.conflicts.empty()) return fail(in_conflict(plan, id, parent));
  PLAYFS_CHECK(carry_out(plan, *before, tree->place().work));

  const std::size_t changed = plan.put.size() + plan.remove.size();
  if (changed == 0) {
    context.out.note("Nothing to revert: the work tree has none of its changes.");
  } else {
    const std::string& message = shown->revision.message;
    const std::string title = "Revert \"" + message.substr(0, message.find('\n')) + "\"";
    context.out.note("Reverted " + safe(id.text()) + " in " + std::to_string(changed) +
                     (changed == 1 ? " file" : " files") + ". Try: playfs commit -m " + shell_word(safe(title)));
  }
  Json::Array reverted;
  for (const auto& [path, file] : plan.put) reverted.emplace_back(path);
  for (const std::string& path : plan.remove) reverted.emplace_back(path);
  context.out.document(
      JsonObject{{"project", tree->place().project}, {"revision", id.text()}, {"reverted", std::move(reverted)}});
  return ExitCode::done;
}

}  // namespace playfs::app
