// playfs log: shows the revisions of a project, newest first: head, the work tree's base, the branches and all their
// ancestors, with the graph of their parents; or those of them that changed a path or a text.
#include "app/commands/commands.h"
#include "app/graph.h"
#include "app/history.h"
#include "app/json_fields.h"
#include "app/lookup.h"
#include "app/pager.h"
#include "app/path_history.h"
#include "app/path_in_work.h"
#include "app/published_tree.h"
#include "app/revisions.h"
#include "app/work_tree_access.h"

namespace playfs::app {

namespace {

/// The starting points of a history, and labels for some of its revisions.
struct Starts {
  std::vector<RevisionId> revisions;
  std::map<RevisionId, std::vector<std::string>> labels;

  void add(const std::string& id, const char* label) {
    if (id.empty()) return;
    revisions.emplace_back(id);
    labels[revisions.back()].emplace_back(label);
  }
};

Result<Starts> starts_of(CommandContext& context, WorkTreeAccess& tree, bool all) {
  if (all) PLAYFS_CHECK(tree.look_for_branches());
  PLAYFS_TRY(JsonObject status, tree.status_document());
  Starts starts;
  starts.add(text_of(status, "head"), "head");
  starts.add(text_of(status, "base"), "base");
  for (const std::string& each : revisions_merged(status)) starts.add(each, "merging");
  if (const Json::Array* branches = array_of(status, "branches"))
    for (const Json& each : *branches)
      if (each.object()) starts.add(text_of(*each.object(), "revision"), "branch");
  if (starts.revisions.empty()) context.out.note("Nothing has been published yet.");
  return starts;
}

/// `path_history`: nullptr shows all.
Status print(CommandContext& context, History& history, PathHistory* path_history, const Starts& starts,
             const LogArguments& arguments) {
  Graph graph;
  for (std::uint64_t count = 0; arguments.limit == 0 || count < arguments.limit;) {
    if (!context.io.out) return {};  // the reader is gone
    PLAYFS_TRY(auto shown, history.next());
    if (!shown && count == 0 && path_history) context.out.note("Nothing that was published has changed it.");
    if (!shown) return {};
    const Revision* revision = &shown->revision;
    std::vector<RevisionId> parents = revision->parents;
    std::erase_if(parents, [&](const RevisionId& parent) { return !history.has(parent); });
    if (path_history) {
      PLAYFS_TRY(const bool was_changed, path_history->was_changed_in(revision->id, parents));
      if (!was_changed) continue;
    }
    ++count;
    auto found = starts.labels.find(revision->id);
    const auto labels = found == starts.labels.end() ? std::vector<std::string>() : found->second;
    if (context.out.json()) {
      JsonObject item = revision_document(*shown);
      Json::Array names;
      for (const std::string& label : labels) names.emplace_back(label);
      item.append("labels", std::move(names));
      context.out.stream_item(std::move(item));
      continue;
    }
    auto lines = arguments.oneline ? std::vector{revision_line(context.out, *revision, labels)}
                                   : revision_lines(context.out, *shown, labels);
    // Without the revisions between them, those that are shown have no lines to be joined by.
    if (arguments.graph && !path_history) {
      std::vector<std::string> drawn;
      for (const RevisionId& parent : parents) drawn.push_back(parent.text());
      lines = graph.draw(revision->id.text(), drawn, lines);
    }
    for (const std::string& line : lines) context.out.line(line);
  }
  return {};
}

/// Like path_in_work(), but anything of a project outside its work tree stands for the project.
Result<MountedPlace> place_of_log(const CommandContext& context, const std::optional<std::string>& path) {
  if (!path) return find_project_at(context.io.absolute("."));
  if (auto at = path_in_work(context, *path, "log")) {
    at->place.in_work = at->path;
    return std::move(at->place);
  }
  return find_project_at(context.io.absolute(*path));
}

}  // namespace

Result<ExitCode> log(CommandContext& context, const LogArguments& arguments) {
  OpenStack stack;
  std::unique_ptr<WorkTreeAccess> tree;
  std::unique_ptr<RevisionSource> source;  // uses one of these
  Starts starts;
  Pager pager(context, arguments.pager);
  std::string project, path;
  TreeOf tree_of;
  auto is_limited = [&] { return !path.empty() || !arguments.text.empty(); };
  if (arguments.project) {
    PLAYFS_TRY(stack, context.open_client_stack());
    PLAYFS_TRY(Project found, find_project(context, *stack, *arguments.project));
    project = found.id.text();
    starts.add(found.latest_revision.text(), "head");
    if (starts.revisions.empty()) context.out.note("Nothing has been published yet.");
    source = remote_revisions(*stack);
    path = normal_path(arguments.path.value_or(""));
    tree_of = [&](const std::string& revision) { return published_tree(*stack, revision); };
  } else {
    PLAYFS_TRY(auto place, place_of_log(context, arguments.path));
    path = arguments.path ? place.in_work.value_or("") : "";
    PLAYFS_TRY(tree, open_work_tree(context, std::move(place), "log"));
    project = tree->place().project;
    PLAYFS_TRY(starts, starts_of(context, *tree, arguments.all));
    PLAYFS_TRY(source, tree->revisions(is_limited() ? 0 : arguments.limit));
    tree_of = [&](const std::string& revision) { return tree->tree(revision); };
  }
  History history(*source, ProjectId(project));
  for (const RevisionId& id : starts.revisions) PLAYFS_CHECK(history.add(id));
  PathHistory path_history(std::move(tree_of), path, arguments.text);
  PLAYFS_CHECK(print(context, history, is_limited() ? &path_history : nullptr, starts, arguments));
  if (history.left_parents_out())
    context.out.note("Some revisions have too many parents to show: their history is incomplete here.");
  if (path_history.left_files_out())
    context.out.note("Some files are too large to be searched: what they changed is not counted.");
  return ExitCode::done;
}

}  // namespace playfs::app
