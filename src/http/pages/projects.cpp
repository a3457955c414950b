// The list of projects, and a project's head.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "http/pages/content.h"
#include "http/pages/feed.h"
#include "http/pages/history.h"
#include "http/pages/last_changes.h"
#include "http/pages/lists.h"
#include "http/pages/tree.h"
#include "http/pages/views.h"
#include "wire/records.h"

namespace playfs::http {

namespace {

constexpr std::size_t kProjects = 30;
constexpr std::size_t kReadmeCeiling = 64 * 1024;
constexpr std::size_t kActivity = 30;  // revisions looked at
constexpr std::size_t kActivityShown = 5;

void show_head_line(Html& html, const Project& project, const Revision& head) {
  auto block = html.open("div", {{"class", "latest"}});
  {
    auto line = html.open("p", {{"class", "headline"}, {"dir", "auto"}});
    html.link(url_of_revision(project.id.text(), head.id.text()), headline(head.message, "(no message)"));
  }
  show_byline(html, head.agent, format_iso8601(head.created_at));
}

const std::pair<const std::string, FileEntry>* find_readme(const Manifest& manifest) {
  for (std::string_view name : {"README.md", "README", "README.txt", "readme.md"})
    if (auto found = manifest.files.find(name);
        found != manifest.files.end() && found->second.mode != FileMode::symlink)
      return &*found;
  return nullptr;
}

void show_readme(Html& html, Reader& reader, const Revision& head) {
  const auto* readme = find_readme(head.manifest);
  if (!readme) return;
  auto section = html.open("section", {{"class", "readme"}, {"aria-labelledby", "readme"}});
  html.element("h2", {{"id", "readme"}}, readme->first);
  auto content = read_content(reader, readme->second, kReadmeCeiling);
  if (content && content->mismatch.empty() && content->is_text) return show_prose(html, content->bytes);
  auto note = html.open("p", {{"class", "nothing"}});
  html.text("It is not shown here. ");
  html.link(url_of_file(head.project.text(), head.id.text(), readme->first), "Its own page says why");
}

/// Who changed a name last.
void show_last_change(Html& html, const std::string& project, const LastChanges& changes, std::string_view name) {
  auto found = changes.find(name);
  if (found == changes.end()) return html.element("span", {{"class", "note"}}, "older");
  const LastChange& change = found->second;
  {
    auto line = html.open("p", {{"class", "excerpt"}, {"dir", "auto"}});
    html.link(url_of_revision(project, change.id), headline(change.message, "(no message)"));
  }
  show_byline(html, change.agent, change.time);
}

void show_top(Html& html, Reader& reader, const Revision& head) {
  const std::string& project = head.project.text();
  auto section = html.open("section", {{"aria-labelledby", "files"}});
  html.element("h2", {{"id", "files"}}, "Files");
  const LastChanges changes = last_changes(reader, head);
  show_folder(html, head, "", "Last changed",
              [&](const TreeEntry& entry) { show_last_change(html, project, changes, entry.name); });
  show_refused(html, head.manifest);
  auto all = html.open("p", {{"class", "more"}});
  html.link(url_of_revision(project, head.id.text()).at("files"), "All files in one list");
}

void show_head(Html& html, Visit& visit, const Project& project) {
  const std::string& latest = project.latest_revision.text();
  if (latest.empty()) return show_nothing(html, "Nothing has been published in this project yet.");
  auto head = visit.reader.revision(latest);
  if (!head && head.error().code == ErrorCode::not_found)
    return show_nothing(html, "The project names " + latest + " as its latest revision, which does not exist.");
  if (!head) {
    show_nothing(html, "The latest revision cannot be read: " + head.error().message + ".");
    return show_record_link(html, "revisions", latest);
  }
  if (head->project != project.id) {
    show_nothing(html, "The project names " + latest + " as its latest revision, which is another project's.");
    return show_record_link(html, "revisions", latest);
  }
  show_head_line(html, project, *head);
  show_top(html, visit.reader, *head);
  show_readme(html, visit.reader, *head);
}

void show_entry(Html& html, const Project& project, const LogEntry& entry) {
  auto item = html.open("li");
  {
    auto line = html.open("p", {{"class", "headline"}, {"dir", "auto"}});
    html.link(url_of_revision(project.id.text(), entry.node.id), headline(entry.message, "(no message)"));
    if (entry.node.head) html.element("span", {{"class", "badge head"}}, "head");
  }
  auto line = html.open("p", {{"class", "byline"}});
  if (!entry.agent.empty()) show_agent(html, entry.agent);
  show_time(html, entry.time);
  if (entry.node.head || project.latest_revision.empty()) return;
  html.link(url_of_diff(project.id.text(), project.latest_revision.text(), entry.node.id), "difference to head");
}

/// The revisions other than head that no revision has as a parent. Children are newer than their parents, so none is
/// missed among the newest revisions.
std::vector<LogEntry> branches_of(const std::vector<LogEntry>& log) {
  std::set<std::string_view> built_on;
  for (const LogEntry& entry : log) built_on.insert(entry.node.parents.begin(), entry.node.parents.end());
  std::vector<LogEntry> branches;
  for (const LogEntry& entry : log)
    if (!entry.node.head && !built_on.contains(entry.node.id)) branches.push_back(entry);
  return branches;
}

void show_entries(Html& html, const Project& project, const std::vector<LogEntry>& entries) {
  auto items = html.open("ul", {{"class", "items"}});
  for (std::size_t i = 0; i < std::min(entries.size(), kActivityShown); ++i) show_entry(html, project, entries[i]);
}

Status show_activity(Html& html, Visit& visit, const Project& project) {
  PLAYFS_TRY(RecordList list, visit.reader.parts("revisions", project.id.text(), kActivity, {}));
  if (list.records.empty()) return {};
  std::vector<LogEntry> log;
  for (const Record& record : list.records) log.push_back(log_entry_of(record, project.latest_revision.text()));
  const Url history = url_of_log(project.id.text());
  {
    auto section = html.open("section", {{"aria-labelledby", "activity"}});
    html.element("h2", {{"id", "activity"}}, "Latest revisions");
    show_entries(html, project, log);
    auto more = html.open("p", {{"class", "more"}});
    html.link(history, "The whole history");
  }
  const std::vector<LogEntry> branches = branches_of(log);
  if (branches.empty()) return {};
  auto section = html.open("section", {{"aria-labelledby", "branches"}});
  html.element("h2", {{"id", "branches"}}, "Branches");
  html.element(
      "p", {{"class", "note"}},
      fmt::format("{} of the latest {} revisions {} beside head, and nothing has been built on {}.", branches.size(),
                  log.size(), branches.size() == 1 ? "is" : "are", branches.size() == 1 ? "it" : "them"));
  show_entries(html, project, branches);
  if (branches.size() <= kActivityShown) return {};
  auto more = html.open("p", {{"class", "more"}});
  html.link(history, "All of them are in the history");
  return {};
}

}  // namespace

Result<Document> projects_page(Visit& visit) {
  PLAYFS_TRY(RecordList list, visit.reader.list("projects", kProjects, visit.cursor()));
  Document document;
  document.title = "Projects";
  document.section = Section::projects;
  Html& html = document.main;
  html.element("h1", "Projects");
  if (list.records.empty()) show_nothing(html, "No projects yet. Create the first one: playfs init NAME");
  else {
    auto items = html.open("ul", {{"class", "items"}});
    for (const Record& record : list.records) show_project_item(html, "h2", visit.reader, record);
  }
  show_pager(html, Url() / "projects", visit.cursor(), list.next, "Older projects");
  return document;
}

Result<Document> project_page(Visit& visit, const std::string& id) {
  PLAYFS_TRY(Project project, visit.reader.project(id));
  Document document;
  document.title = title_of(project.raw);
  document.section = Section::projects;
  document.crumbs = {{"Projects", Url() / "projects"}};
  document.feed = feed_of_project(id);
  Html& html = document.main;
  {
    auto heading = html.open("h1");
    show_name(html, title_of(project.raw));
  }
  const std::string_view told = show_lead(html, project.raw.fields);
  show_tabs(html, project, Tab::files);
  show_head(html, visit, project);
  PLAYFS_CHECK(show_activity(html, visit, project));
  {
    auto section = html.open("section", {{"aria-labelledby", "about"}});
    html.element("h2", {{"id", "about"}}, "About this project");
    show_fields(html, project.raw.fields, {"name", "latest_revision", told});
    auto list = html.open("dl", {{"class", "fields"}});
    html.element("dt", "created");
    {
      auto detail = html.open("dd");
      show_time(html, project.raw.created_at);
    }
    html.element("dt", "id");
    auto detail = html.open("dd");
    html.element("code", {{"class", "id"}}, project.id.text());
  }
  show_record_link(html, "projects", id);
  return document;
}

}  // namespace playfs::http
