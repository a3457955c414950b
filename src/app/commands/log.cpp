// playfs log: the revisions of a project, newest first: head and all that it was made from.
#include <queue>
#include <set>
#include <sstream>
#include <tuple>

#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/lookup.h"
#include "app/mounted.h"
#include "app/revisions.h"
#include "base/await.h"
#include "base/fd.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::size_t kLargestLog = 64 << 20;

struct History {
  std::string site;
  ProjectId project;
  std::vector<Revision> revisions;
};

/// As the mount tells it.
Result<History> mounted_history(Context& context, const LogArguments& arguments) {
  PLAYFS_TRY(MountedPlace place, find_project_at(context.io.absolute(arguments.path)));
  History history{place.source, ProjectId(place.project), {}};
  PLAYFS_TRY(std::string text, read_file(place.project_directory + "/log.ndjson", kLargestLog));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto entry = wire::parse_json(line);
    const JsonObject* fields = entry ? entry->object() : nullptr;
    if (fields == nullptr) continue;
    Revision revision;
    revision.id = RevisionId(text_of(*fields, "revision"));
    revision.project = history.project;
    revision.agent = text_of(*fields, "agent");
    revision.message = text_of(*fields, "message");
    revision.created_at = parse_iso8601(text_of(*fields, "created_at")).value_or(WallTime{});
    if (const Json::Array* parents = array_of(*fields, "parents"))
      for (const Json& parent : *parents)
        if (parent.string() != nullptr) revision.parents.emplace_back(*parent.string());
    history.revisions.push_back(std::move(revision));
  }
  return history;
}

/// Asked of the service: from head through all parents, the newest first. Histories come from strangers: a parent
/// that is not there is left out, and none is visited twice.
Result<History> remote_history(Context& context, const std::string& name, std::uint64_t limit) {
  PLAYFS_TRY(auto world, context.open_world());
  PLAYFS_TRY(Project project, find_project(*world, name));
  History history{world->source().text, project.id, {}};
  auto older = [](const RevisionTreePtr& a, const RevisionTreePtr& b) {
    return std::tie(a->revision.created_at, a->revision.id) < std::tie(b->revision.created_at, b->revision.id);
  };
  std::priority_queue<RevisionTreePtr, std::vector<RevisionTreePtr>, decltype(older)> next(older);
  std::set<RevisionId> seen;
  auto visit = [&](const RevisionId& id) -> Status {
    if (id.empty() || !seen.insert(id).second) return {};
    auto revision = await<RevisionTreePtr>([&](auto done) { world->site().revision(id, {}, std::move(done)); });
    if (!revision && revision.error().code == ErrorCode::not_found) return {};
    if (!revision) return fail(revision.error());
    next.push(std::move(*revision));
    return {};
  };
  PLAYFS_CHECK(visit(project.latest_revision));
  while (!next.empty() && (limit == 0 || history.revisions.size() < limit)) {
    RevisionTreePtr revision = next.top();
    next.pop();
    history.revisions.push_back(revision->revision);
    for (const RevisionId& parent : revision->revision.parents) PLAYFS_CHECK(visit(parent));
  }
  return history;
}

}  // namespace

Result<ExitCode> log(Context& context, const LogArguments& arguments) {
  PLAYFS_TRY(History history, arguments.project ? remote_history(context, *arguments.project, arguments.limit)
                                                : mounted_history(context, arguments));
  if (arguments.limit > 0 && history.revisions.size() > arguments.limit) history.revisions.resize(arguments.limit);
  if (history.revisions.empty()) context.out.note("Nothing has been published yet.");
  Json::Array items;
  for (const Revision& revision : history.revisions) {
    print_revision(context.out, revision);
    items.push_back(revision_document(revision));
  }
  context.out.document(
      JsonObject{{"site", history.site}, {"project", history.project.text()}, {"revisions", std::move(items)}});
  return ExitCode::done;
}

}  // namespace playfs::app
