#include "vfs/directories/projects.h"

#include <sys/stat.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "content/names.h"
#include "model/path.h"
#include "vfs/control/requests.h"
#include "vfs/directories/project.h"
#include "vfs/link_names.h"
#include "vfs/mount.h"
#include "vfs/published/head_fetches.h"
#include "vfs/work/work_trees.h"

namespace playfs::vfs {
namespace {

/// Empty: by-name/ has no link for it.
std::string_view link_of(const content::Listed& project) {
  const bool has_link =
      !why_not_a_component(project.name) && !why_not_a_component(project.id) && is_shown_as_it_is(project.name);
  return has_link ? std::string_view(project.name) : std::string_view();
}

/// The fixed names of projects/ come before the listed ones.
constexpr std::uint64_t kFirstListed = kFirstPosition + 2;

const Form& form() {
  static const Form projects{.plain = "name",
                             .fields = {{"name", "the project's name; by-name/ has a link for it"}},
                             .others = true,
                             .example = R"({"name": "my-project", "description": "what it is for"})",
                             .corrected = "correct it by writing JSON to projects/ID/project.json"};
  return projects;
}

}  // namespace

ListedNames DerivedNames::of(const ListPtr& list, const Make& make) {
  {
    MutexLock lock(mutex_);
    if (from_ == list) return names_;
  }
  auto names = std::make_shared<const std::vector<ListedName>>(make(*list));
  MutexLock lock(mutex_);
  from_ = list;
  names_ = names;
  return names;
}

bool ListedIds::contain(const ListPtr& list, std::string_view id) {
  const auto& items = *list;
  MutexLock lock(mutex_);
  if (of_ != list) {
    of_ = list;
    order_.resize(items.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::sort(order_.begin(), order_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return items[a].id < items[b].id; });
  }
  auto found = std::lower_bound(order_.begin(), order_.end(), id,
                                [&](std::uint32_t place, std::string_view wanted) { return items[place].id < wanted; });
  return found != order_.end() && items[*found].id == id;
}

Attempt<ListedNames> ProjectsDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "projects"));
  return derived_.of(list, [](const std::vector<content::Listed>& projects) {
    std::vector<ListedName> names = {{"new", S_IFREG, kFirstPosition}, {"by-name", S_IFDIR, kFirstPosition + 1}};
    // Oldest first: new ones go to the end, so a listing under way keeps its place.
    for (std::size_t i = projects.size(); i > 0; --i) {
      const std::string& id = projects[i - 1].id;
      if (why_not_a_component(id)) continue;
      names.push_back({id, S_IFDIR, kFirstListed + (projects.size() - i)});
    }
    return names;
  });
}

Attempt<LookupResult> ProjectsDirectory::child(const OperationPtr& op, const std::string& name) {
  if (name == "new") {
    return request_file(
        op, name, help_document(form()),
        {.run = [this](const OperationPtr& request, std::string text) { return create(request, std::move(text)); },
         .creates = "projects"});
  }
  if (name == "by-name") return directory<ByNameDirectory>(op, name);
  if (why_not_a_component(name)) return nothing(kEndless);
  if (name.size() > kMaxIdLength) return nothing(kEndless);
  // Any existing project can be entered, listed or not: the service is asked about unknown ones. A project that may
  // have staged changes can be entered whatever the service has.
  ProjectId id(name);
  ListPtr list = mount().site().try_list("projects");
  const bool is_known = (list && ids_.contain(list, name)) || mount().works().exist(id);
  if (!is_known) PLAYFS_ATTEMPT_CHECK(head_here(mount(), id));
  return directory<ProjectDirectory>(op, name, id);
}

Async<RequestAnswer> ProjectsDirectory::create(OperationPtr op, std::string text) {
  PLAYFS_CO_TRY(JsonObject body, request_body(text, form()));
  auto created = create_record(mount(), op, path_below("new"), "projects", std::move(body));
  co_return co_await created;
}

Attempt<ListedNames> ByNameDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, "projects"));
  mount().site().names_were_shown("projects");
  const bool is_whole = mount().site().is_list_whole("projects");
  return derived_.of(list, [is_whole](const std::vector<content::Listed>& projects) {
    std::vector<ListedName> names;
    if (!is_whole) return names;
    const auto holders = content::holders_of(projects, link_of);
    for (std::size_t i = projects.size(); i > 0; --i) {
      const std::string_view name = link_of(projects[i - 1]);
      if (!name.empty() && holders.at(name) == &projects[i - 1])
        names.push_back({std::string(name), S_IFLNK, kFirstPosition + (projects.size() - i)});
    }
    return names;
  });
}

Attempt<LookupResult> ByNameDirectory::child(const OperationPtr& op, const std::string& name) {
  if (why_not_a_component(name)) return nothing(kEndless);
  PLAYFS_ATTEMPT(ListPtr list, fresh_list(mount(), op, "projects"));
  const content::Listed* project = content::holder_of(*list, name);
  if (!project) {
    PLAYFS_ATTEMPT(list, list_here(mount(), op, "projects"));
    project = content::holder_of(*list, name);
  }
  mount().site().names_were_shown("projects");
  // If older projects are missing from the list, the name may be that of one of them.
  if (!project || !mount().site().is_list_whole("projects") || why_not_a_component(project->id)) return nothing();
  mount().names_used().note(op->caller.pid, {"projects", project->id, name});
  // As for other links, but builds look up a project's path often: while events report renames, the kernel keeps it.
  auto is_told = [this] { return mount().site().is_list_told("projects"); };
  const double seconds =
      is_told() ? mount().told_names().given("projects", project->id, shared_from_this(), name, is_told) : 0;
  return symlink(op, name, "../" + project->id, project->created_at, seconds);
}

}  // namespace playfs::vfs
