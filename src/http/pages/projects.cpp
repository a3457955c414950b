// The list of projects, a project's head, and its log.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "http/pages/content.h"
#include "http/pages/graph.h"
#include "http/pages/lists.h"
#include "http/pages/tree.h"
#include "http/pages/views.h"
#include "wire/records.h"

namespace playfs::http {

namespace {

constexpr std::size_t kProjects = 30;
constexpr std::size_t kRevisions = 40;
constexpr std::size_t kReadmeCeiling = 64 * 1024;
constexpr std::size_t kParentsNamed = 4;
constexpr std::size_t kLead = 400;  // characters of a description at the top of the page

std::string name_of(const Project& project) { return title_of(project.raw); }

enum class Tab { files, history };

void show_tabs(Html& html, const Project& project, Tab tab) {
  auto navigation = html.open("nav", {{"class", "tabs"}, {"aria-label", "Project"}});
  auto list = html.open("ul");
  auto entry = [&](Tab own, const Url& url, std::string_view label) {
    auto item = html.open("li");
    if (own == tab) html.element("a", {{Address::href, url}, {"aria-current", "page"}}, label);
    else html.link(url, label);
  };
  entry(Tab::files, url_of_project(project.id.text()), "Files");
  entry(Tab::history, url_of_log(project.id.text()), "History");
}

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

void show_readme(Html& html, Reader& reader, const Manifest& manifest) {
  const auto* readme = find_readme(manifest);
  if (!readme) return;
  auto content = read_content(reader, readme->second, kReadmeCeiling);
  // The file's own page explains what is wrong with it.
  if (!content || !content->mismatch.empty() || !content->is_text) return;
  auto section = html.open("section", {{"class", "readme"}, {"aria-labelledby", "readme"}});
  html.element("h2", {{"id", "readme"}}, readme->first);
  show_prose(html, content->bytes);
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
  show_head_line(html, project, *head);
  show_files(html, project.id.text(), *head);
  show_readme(html, visit.reader, head->manifest);
}

/// The parts of a revision that the log shows. The manifest is not read, so a broken one does no harm here.
struct LogEntry {
  GraphNode node;
  std::string agent, message, time;
};

LogEntry log_entry_of(const Record& record, const std::string& head) {
  LogEntry entry;
  entry.node = {record.id, {}, record.id == head};
  if (const Json* parents = record.fields.find("parents"); parents && parents->array())
    for (const Json& parent : *parents->array())
      if (parent.string() && !parent.string()->empty() && parent.string()->size() <= kMaxIdLength)
        entry.node.parents.push_back(*parent.string());
  entry.agent = text_field(record.fields, "agent");
  entry.message = text_field(record.fields, "message");
  entry.time = record.created_at;
  return entry;
}

void show_parents(Html& html, const std::string& project, const std::vector<std::string>& parents) {
  auto line = html.open("span", {{"class", "parents"}});
  html.text(parents.empty() ? "first revision" : parents.size() == 1 ? "after " : "merges ");
  for (std::size_t i = 0; i < std::min(parents.size(), kParentsNamed); ++i) {
    if (i > 0) html.text(", ");
    html.link(url_of_revision(project, parents[i]), short_id(parents[i]));
  }
  if (parents.size() > kParentsNamed) html.text(fmt::format(" and {} more", parents.size() - kParentsNamed));
}

void show_log_entry(Html& html, const std::string& project, const LogEntry& entry) {
  auto item = html.open("li");
  {
    auto first = html.open("p", {{"class", "headline"}, {"dir", "auto"}});
    html.link(url_of_revision(project, entry.node.id), headline(entry.message, "(no message)"));
    if (entry.node.head) html.element("span", {{"class", "badge head"}}, "head");
  }
  auto second = html.open("p", {{"class", "byline"}});
  if (!entry.agent.empty()) {
    auto who = html.open("span", {{"class", "agent"}});
    show_name(html, excerpt(entry.agent, 40));
  }
  show_time(html, entry.time);
  html.element("code", {{"class", "id"}, {"title", entry.node.id}}, short_id(entry.node.id));
  show_parents(html, project, entry.node.parents);
}

/// A form to choose two revisions; its answer redirects to their difference.
void show_comparison(Html& html, const std::string& project, const std::vector<LogEntry>& log) {
  if (log.size() < 2) return;
  auto details = html.open("details", {{"class", "compare"}});
  html.element("summary", "Compare two revisions");
  auto form = html.open("form", {{Address::action, url_of_project(project) / "diff"}, {"method", "get"}});
  auto choice = [&](std::string_view name, std::string_view label, std::size_t chosen) {
    auto whole = html.open("label");
    html.element("span", label);
    auto select = html.open("select", {{"name", name}});
    for (std::size_t i = 0; i < log.size(); ++i) {
      std::string text = short_id(log[i].node.id) + " " + excerpt(log[i].message, 60);
      if (i == chosen) html.element("option", {{"value", log[i].node.id}, {"selected", "selected"}}, text);
      else html.element("option", {{"value", log[i].node.id}}, text);
    }
  };
  choice("from", "From", 1);
  choice("to", "To", 0);
  html.element("button", {{"type", "submit"}}, "Show the difference");
}

void show_log(Html& html, const std::string& project, const std::vector<LogEntry>& log, bool continues) {
  std::vector<GraphNode> nodes;
  for (const LogEntry& entry : log) nodes.push_back(entry.node);
  auto whole = html.open("div", {{"class", "log"}});
  draw(nodes, lay_out(nodes), continues, html);
  auto list = html.open("ol", {{"class", "revisions"}});
  for (const LogEntry& entry : log) show_log_entry(html, project, entry);
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
  document.title = name_of(project);
  document.section = Section::projects;
  document.crumbs = {{"Projects", Url() / "projects"}};
  Html& html = document.main;
  {
    auto heading = html.open("h1");
    show_name(html, name_of(project));
  }
  const std::string description = description_of(project.raw.fields);
  const std::string lead = excerpt(description, kLead);
  if (!lead.empty()) html.element("p", {{"class", "lead"}, {"dir", "auto"}}, lead);
  show_tabs(html, project, Tab::files);
  show_head(html, visit, project);
  {
    auto section = html.open("section", {{"aria-labelledby", "about"}});
    html.element("h2", {{"id", "about"}}, "About this project");
    show_fields(html, project.raw.fields, {"name", "latest_revision", lead == description ? "description" : "name"});
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

Result<Document> log_page(Visit& visit, const std::string& id) {
  PLAYFS_TRY(Project project, visit.reader.project(id));
  PLAYFS_TRY(RecordList list, visit.reader.parts("revisions", id, kRevisions, visit.cursor()));
  std::vector<LogEntry> log;
  for (const Record& record : list.records) log.push_back(log_entry_of(record, project.latest_revision.text()));

  Document document;
  document.title = "History of " + name_of(project);
  document.section = Section::projects;
  document.crumbs = {{"Projects", Url() / "projects"}, {name_of(project), url_of_project(id)}};
  Html& html = document.main;
  {
    auto heading = html.open("h1");
    html.text("History of ");
    show_name(html, name_of(project));
  }
  show_tabs(html, project, Tab::history);
  if (!log.empty()) {
    show_comparison(html, id, log);
    show_log(html, id, log, !list.next.empty());
  } else show_nothing(html, "Nothing has been published in this project yet.");
  show_pager(html, url_of_log(id), visit.cursor(), list.next, "Older revisions");
  return document;
}

}  // namespace playfs::http
