#include "vfs/directories/project.h"

#include <sys/stat.h>

#include "model/path.h"
#include "vfs/attempt_fetches.h"
#include "vfs/control/draft.h"
#include "vfs/control/request_file.h"
#include "vfs/control/requests.h"
#include "vfs/control/work_request.h"
#include "vfs/directories/revisions.h"
#include "vfs/directories/tree_root.h"
#include "vfs/projects_in_use.h"
#include "vfs/published/head_fetches.h"
#include "vfs/published/history.h"
#include "vfs/published/instructions.h"
#include "vfs/published/record_fetches.h"
#include "vfs/published/revision_fetches.h"
#include "vfs/published/revision_tree.h"
#include "vfs/work/work_node.h"
#include "vfs/work/work_trees.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

/// The node never changes, but the kernel's repeated lookup tells us that the project is in use.
constexpr double kWorkEntrySeconds = 60;

/// `work` must be first: in a mount of one work tree it is a link to the root.
constexpr std::pair<const char*, mode_t> kNames[] = {
    {"work", S_IFDIR},   {"head", S_IFLNK},         {"revisions", S_IFDIR},     {"branches", S_IFDIR},
    {"at", S_IFDIR},     {"project.json", S_IFREG}, {"revision.json", S_IFREG}, {"state.json", S_IFREG},
    {"status", S_IFREG}, {"status.json", S_IFREG},  {"log", S_IFREG},           {"log.ndjson", S_IFREG},
    {"commit", S_IFREG},
};

Attempt<void> add_revisions(Mount& mount, const OperationPtr& op, ProjectStatus& status) {
  PLAYFS_ATTEMPT(status.branches, known_branches(mount, op, status.project, status.head, status.left_out));
  PLAYFS_ATTEMPT(status.latest, known_summary(mount, op, status.head));
  // Revisions being merged are already listed as such.
  std::erase_if(status.branches, [&](const SummaryPtr& branch) {
    return std::count(status.merging.begin(), status.merging.end(), branch->id) > 0;
  });
  return {};
}

/// Whether the service no longer has a project that may have staged changes here: it was deleted, or the service was
/// rolled back to before it existed.
Attempt<bool> is_only_here(Mount& mount, const OperationPtr& op, const ProjectId& project) {
  return mount.works().exist(project) ? is_gone(mount, op, project) : Attempt<bool>(false);
}

}  // namespace

Attempt<ProjectStatus> status_here(Mount& mount, const OperationPtr& op, const ProjectId& project) {
  ProjectStatus status;
  status.project = project;
  PLAYFS_ATTEMPT(status.gone, is_only_here(mount, op, project));
  if (status.gone) {
    status.health = mount.site().client().health();
    auto tree = mount.works().here(op, project);
    if (!tree && tree.error().fetch) return tl::unexpected<NoValue>(std::move(tree).error());
    if (tree) PLAYFS_ATTEMPT_CHECK((*tree)->describe(op, status));
    else status.no_work_tree = std::move(tree).error().error;
    return status;
  }
  PLAYFS_ATTEMPT(content::Head head, head_here(mount, project));
  status.name = head.project.name;
  status.head = head.shown.value_or(head.project.latest_revision);
  if (head.refused) status.head_refused = *head.refused;
  // Events do not vouch for it, and it is older than following allows, including a response under way.
  const auto age = mount.clock().steady() - head.fetched_at;
  if (age > 2 * mount.options().refresh + content::Patience::kLongest && !mount.site().is_told(project))
    status.head_age = std::chrono::duration_cast<std::chrono::seconds>(age);
  status.base = status.head;
  status.health = mount.site().client().health();
  if (mount.works().exist(project)) {
    auto tree = mount.works().here(op, project);
    if (tree) {
      PLAYFS_ATTEMPT_CHECK((*tree)->describe(op, status));
      PLAYFS_ATTEMPT_CHECK(add_revisions(mount, op, status));
      return status;
    }
    if (tree.error().fetch) return tl::unexpected<NoValue>(std::move(tree).error());
    status.no_work_tree = std::move(tree).error().error;
  } else if (mount.options().read_only) {
    status.no_work_tree = Error{ErrorCode::read_only, "the mount is read-only"};
  }
  PLAYFS_ATTEMPT(RevisionTreePtr tree, known_revision(mount, op, status.head));
  if (tree) {
    const Manifest& manifest = tree->tree.manifest();
    status.refused = manifest.refused;
    const bool shows = mount.options().instructions == Instructions::show;
    const PathSet paths = shows ? instructions_of_others(mount, manifest) : hidden_instructions(mount, manifest);
    (shows ? status.instructions_of_others : status.hidden).assign(paths.begin(), paths.end());
  }
  PLAYFS_ATTEMPT_CHECK(add_revisions(mount, op, status));
  return status;
}

ProjectDirectory::ProjectDirectory(Mount& mount, NodePtr parent, std::string name, ProjectId project)
    : VirtualDirectory(mount, std::move(parent), std::move(name)), project_(std::move(project)) {}

Attempt<ListedNames> ProjectDirectory::names(const OperationPtr&) {
  auto listed = [](mode_t work) {
    std::vector<ListedName> names;
    for (const auto& [name, type] : kNames) names.push_back({name, names.empty() ? work : type, 3 + names.size()});
    return std::make_shared<const std::vector<ListedName>>(std::move(names));
  };
  static const ListedNames with_work = listed(S_IFDIR), with_link_to_it = listed(S_IFLNK);
  return mount().options().project ? with_link_to_it : with_work;
}

mode_t ProjectDirectory::type_of(const std::string& name) const {
  if (name == "work" && mount().options().project) return S_IFLNK;
  for (const auto& [known, type] : kNames) {
    if (name == known) return type;
  }
  return S_IFREG;
}

NodePtr ProjectDirectory::directory_in_use(const std::string& name) {
  NodePtr known = VirtualDirectory::directory_in_use(name);
  if (known || name != "work") return known;
  auto tree = mount().works().find(project_);
  return tree ? tree->root(shared_from_this(), name) : nullptr;
}

Attempt<LookupResult> ProjectDirectory::child(const OperationPtr& op, const std::string& name) {
  bool known = std::any_of(std::begin(kNames), std::end(kNames), [&](const auto& item) { return item.first == name; });
  if (!known) return nothing(kEndless);
  if (name == "revisions") return directory<RevisionsDirectory>(op, name, project_);
  if (name == "branches") return directory<BranchesDirectory>(op, name, project_);
  if (name == "at") return directory<AtDirectory>(op, name, project_);
  // If the work tree is the whole mount, the root does this.
  const bool is_mount = mount().options().project.has_value();
  if (!is_mount) mount().in_use().touch(project_, std::static_pointer_cast<ProjectDirectory>(shared_from_this()));
  if (name == "work" && is_mount) {
    PLAYFS_ATTEMPT(content::Head head, head_here(mount(), project_));
    return symlink(op, name, "../..", head.project.created_at, kEndless);
  }
  if (name == "work") return work(op);
  if (name == "head") return head(op);
  return control_file(op, name);
}

void ProjectDirectory::head_moved() {
  mount().notifications().entry_changed(id(), "head", project_.text());
  head_seen();
}

void ProjectDirectory::head_seen() {
  if (auto work = children().living<TreeRoot>("work")) work->head_seen();
}

Attempt<LookupResult> ProjectDirectory::head(const OperationPtr& op) {
  PLAYFS_ATTEMPT(RevisionTreePtr revision, shown_here(mount(), op, project_));
  if (!revision || why_not_a_component(revision->revision.id.text())) return nothing();
  mount().site().prefetch(revision);
  PLAYFS_ATTEMPT(content::Head known, head_here(mount(), project_));
  // Invalidated when head moves (ProjectsInUse). Expires as well, since only projects in use are followed.
  return symlink(op, "head", "revisions/" + revision->revision.id.text(), known.project.created_at,
                 mount().refresh_seconds());
}

Attempt<LookupResult> ProjectDirectory::work(const OperationPtr& op) {
  PLAYFS_ATTEMPT(bool only_here, is_only_here(mount(), op, project_));
  if (only_here) {
    PLAYFS_ATTEMPT(std::shared_ptr<WorkTree> tree, mount().works().here(op, project_));
    return found(op, tree->root(shared_from_this(), "work"), kWorkEntrySeconds);
  }
  PLAYFS_ATTEMPT(content::Head head, head_for_use(mount(), op, project_));
  begin_fetching(mount(), head.shown.value_or(head.project.latest_revision));
  auto tree = mount().works().here(op, project_);
  std::shared_ptr<TreeRoot> root = children().living<TreeRoot>("work");
  if (!tree) {
    if (tree.error().fetch) return tl::unexpected<NoValue>(std::move(tree).error());
    const Error& refusal = tree.error().error;
    if (!shows_head_instead(refusal)) return fail(refusal);
    // Not writable: show head itself, and follow it.
    PLAYFS_ATTEMPT_CHECK(shown_here(mount(), op, project_));
    if (!root)
      root = children().get<TreeRoot>(
          "work", [](const TreeRoot&) { return true; },
          [&] { return std::make_shared<TreeRoot>(mount(), shared_from_this(), "work", project_, std::nullopt); });
  }
  if (root) root->head_seen();
  // A caller that waited for news must see it in the tree, not what the kernel cached before. Waits only briefly, since
  // the kernel may itself be waiting for this lookup.
  if (asked_for_head(op, project_) && !op->noted("told"))
    return missing(until_kernel_knows(mount(), op, project_, "told", std::chrono::seconds(1)));
  // Programs that entered before the tree became writable stay in the same directory.
  if (root) return found(op, root, mount().refresh_seconds());
  return found(op, (*tree)->root(shared_from_this(), "work"), kWorkEntrySeconds);
}

Attempt<LookupResult> ProjectDirectory::control_file(const OperationPtr& op, const std::string& name) {
  if (name == "commit") return commit_file(op);
  const WallTime now = mount().clock().wall();
  PLAYFS_ATTEMPT(bool only_here, is_only_here(mount(), op, project_));
  if (only_here) {
    if (name != "status" && name != "status.json") return nothing();
    PLAYFS_ATTEMPT(ProjectStatus status, status_here(mount(), op, project_));
    return name == "status" ? snapshot(op, name, status_text(status), now)
                            : snapshot(op, name, wire::to_pretty_text(status_json(status)), now);
  }
  PLAYFS_ATTEMPT(content::Head head, head_for_use(mount(), op, project_));
  if (name == "project.json") {
    PLAYFS_ATTEMPT(RecordPartPtr part, known_part(mount(), op, "projects", project_.text(), text_of_record));
    const auto changed = parse_iso8601(part->record.updated_at);
    return record_file(
        op, name,
        {"projects", project_.text(), shown_text_of(mount(), "projects", project_.text(), text_of_record, *part)},
        changed.value_or(head.project.created_at));
  }
  if (name == "state.json") return state_file(op);
  if (name == "status" || name == "status.json") {
    PLAYFS_ATTEMPT(ProjectStatus status, status_here(mount(), op, project_));
    if (name == "status") return snapshot(op, name, status_text(status), now);
    return snapshot(op, name, wire::to_pretty_text(status_json(status)), now);
  }
  PLAYFS_ATTEMPT(const RevisionId latest, shown_id(mount(), op, project_));
  if (name == "revision.json") {
    if (latest.empty()) return nothing();
    PLAYFS_ATTEMPT(RecordPartPtr part, known_part(mount(), op, "revisions", latest.text(), text_of_record));
    return snapshot(op, name, shown_text_of(mount(), "revisions", latest.text(), text_of_record, *part), now, 0,
                    "a revision never changes: edit in work/, and commit");
  }
  PLAYFS_ATTEMPT(std::vector<SummaryPtr> line, line_of(mount(), op, project_, latest));
  std::size_t bytes = 0;
  for (const SummaryPtr& revision : line) bytes += revision->agent.size() + revision->message.size();
  PLAYFS_ATTEMPT(std::string text, rendered(mount(), op, name, bytes, [line = std::move(line), name] {
                   return name == "log" ? log_text(line) : log_ndjson(line);
                 }));
  return snapshot(op, name, std::move(text), now);
}

Attempt<ShownText> ProjectDirectory::state(const OperationPtr& op) {
  RevisionId base;
  std::optional<std::string> staged;
  bool described = false;
  if (mount().works().exist(project_)) {
    auto tree = mount().works().here(op, project_);
    if (tree) {
      base = id_of((*tree)->stage().base());
      staged = (*tree)->stage().staged_state();
      described = true;
    } else if (tree.error().fetch) {
      return tl::unexpected<NoValue>(std::move(tree).error());
    }
  }
  if (staged) {
    auto parsed = wire::parse_json(*staged);
    return ShownText(parsed ? wire::to_pretty_text(*parsed) : *staged);
  }
  if (!described) {
    PLAYFS_ATTEMPT(base, shown_id(mount(), op, project_));
  }
  if (base.empty()) return ShownText(text_of_state({}).text);
  PLAYFS_ATTEMPT(RecordPartPtr part, known_part(mount(), op, "revisions", base.text(), text_of_state));
  return shown_text_of(mount(), "revisions", base.text(), text_of_state, *part);
}

Attempt<LookupResult> ProjectDirectory::state_file(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ShownText text, state(op));
  return request_file_showing(
      op, "state.json", [&] { return text; },
      {[this](const OperationPtr& request, std::string written) { return stage_state(request, std::move(written)); }});
}

Async<RequestAnswer> ProjectDirectory::stage_state(OperationPtr op, std::string text) {
  auto json = wire::parse_json(text);
  if (!json) co_return fail(ErrorCode::invalid_argument, "the state is not valid JSON: " + json.error().message);
  PLAYFS_AWAIT(const auto tree, repeat([&] { return mount().works().here(op, project_); }));
  PLAYFS_CO_CHECK(tree->stage_state(op->caller, wire::to_text(*json)));
  co_return RequestAnswer{wire::to_pretty_text(*json), false};
}

Attempt<LookupResult> ProjectDirectory::commit_file(const OperationPtr& op) {
  std::string otherwise = help_document(work_request_form());
  if (auto tree = mount().works().find(project_)) {
    if (auto last = tree->last_commit()) otherwise = *last ? commit_document(**last) : error_document(last->error());
  }
  Request request;
  request.check = [this](const OperationPtr& writing) -> Attempt<void> {
    PLAYFS_ATTEMPT(std::shared_ptr<WorkTree> tree, mount().works().here(writing, project_));
    PLAYFS_ATTEMPT_CHECK(tree->check_may_commit(writing));
    return {};
  };
  request.run = [this](const OperationPtr& running, std::string text) { return commit(running, std::move(text)); };
  return request_file(op, "commit", std::move(otherwise), std::move(request));
}

Async<RequestAnswer> ProjectDirectory::commit(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(WorkRequest wanted, parse_work_request(text));
  PLAYFS_AWAIT(const auto tree, repeat([&] { return mount().works().here(op, project_); }));
  if (wanted.kind == WorkRequest::Kind::cancel) {
    PLAYFS_AWAIT(const Cancelled cancelled, tree->cancel(op));
    co_return RequestAnswer{wire::to_pretty_text(JsonObject{{"schema_version", kSchemaVersion},
                                                            {"cancelled", std::int64_t{cancelled.commits}},
                                                            {"too_late", cancelled.too_late}})};
  }
  if (wanted.kind == WorkRequest::Kind::update) {
    PLAYFS_AWAIT(const UpdateResult updated, tree->update(op));
    co_return RequestAnswer{update_document("updated", updated)};
  }
  if (wanted.kind == WorkRequest::Kind::merge) {
    PLAYFS_AWAIT(const UpdateResult merged, tree->merge(op, wanted.revision));
    co_return RequestAnswer{update_document("merged", merged)};
  }
  if (wanted.kind == WorkRequest::Kind::discard) {
    PLAYFS_AWAIT(const DiscardResult dropped, tree->discard(op, wanted.paths, wanted.commit.dry_run));
    co_return RequestAnswer{discard_document(dropped, wanted.commit.dry_run)};
  }
  if (wanted.kind == WorkRequest::Kind::checkpoint) {
    PLAYFS_AWAIT(const CheckpointResult made, tree->checkpoint(op, {wanted.message}));
    co_return RequestAnswer{checkpoint_document(made)};
  }
  if (wanted.kind == WorkRequest::Kind::restore) {
    PLAYFS_AWAIT(const RestoreResult restored, tree->restore(op, {wanted.checkpoint, wanted.paths}));
    co_return RequestAnswer{restore_document(wanted.checkpoint, restored)};
  }
  wanted.commit.journalled = [draft = (*op->held<RequestTextPtr>(kRequestText))->draft()] { draft->end(); };
  PLAYFS_AWAIT(const CommitResult result, tree->commit(op, std::move(wanted.commit)));
  std::string lasting = tree->document(result);
  if (lasting.empty()) co_return RequestAnswer{commit_document(result), false};
  co_return RequestAnswer{std::move(lasting)};
}

}  // namespace playfs::vfs
