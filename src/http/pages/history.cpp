// A project's log.
#include "http/pages/history.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "http/pages/lists.h"

namespace playfs::http {

namespace {

constexpr std::size_t kRevisions = 40;
constexpr std::size_t kParentsNamed = 4;

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
  if (!entry.agent.empty()) show_agent(html, entry.agent);
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

Result<Document> log_page(Visit& visit, const std::string& id) {
  PLAYFS_TRY(Project project, visit.reader.project(id));
  PLAYFS_TRY(RecordList list, visit.reader.parts("revisions", id, kRevisions, visit.cursor()));
  std::vector<LogEntry> log;
  for (const Record& record : list.records) log.push_back(log_entry_of(record, project.latest_revision.text()));

  Document document;
  document.title = "History of " + title_of(project.raw);
  document.section = Section::projects;
  document.crumbs = {{"Projects", Url() / "projects"}, {title_of(project.raw), url_of_project(id)}};
  Html& html = document.main;
  {
    auto heading = html.open("h1");
    html.text("History of ");
    show_name(html, title_of(project.raw));
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
