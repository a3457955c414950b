#include "http/pages/lists.h"

#include "wire/records.h"

namespace playfs::http {

namespace {

constexpr std::size_t kExcerpt = 200;

std::string first_text(const JsonObject& fields, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (std::string text = text_field(fields, name); !text.empty()) return text;
  return {};
}

}  // namespace

std::string title_of(const Record& record) {
  std::string title = excerpt(first_text(record.fields, {"name", "title", "handle", "subject"}), 120);
  return title.empty() ? record.id : title;
}

std::string description_of(const JsonObject& fields) {
  return first_text(fields, {"description", "summary", "about", "bio", "purpose"});
}

void show_byline(Html& html, std::string_view agent, std::string_view time) {
  auto line = html.open("p", {{"class", "byline"}});
  if (!agent.empty()) {
    auto who = html.open("span", {{"class", "agent"}});
    show_name(html, excerpt(agent, 60));
  }
  show_time(html, time);
}

void show_record_link(Html& html, std::string_view collection, std::string_view id) {
  auto line = html.open("p", {{"class", "record"}});
  html.link(url_of_record(collection, id), "The record as JSON");
}

void show_project_item(Html& html, Tag level, Reader& reader, const Record& record) {
  auto item = html.open("li");
  {
    auto heading = html.open(level);
    auto link = html.open("a", {{Address::href, url_of_project(record.id)}});
    show_name(html, title_of(record));
  }
  if (std::string description = description_of(record.fields); !description.empty())
    html.element("p", {{"class", "excerpt"}, {"dir", "auto"}}, excerpt(description, kExcerpt));
  std::string latest = text_field(record.fields, "latest_revision");
  if (latest.empty()) return show_byline(html, {}, record.created_at);
  auto head = reader.get("revisions", latest);
  if (!head) return show_byline(html, {}, record.created_at);
  html.element("p", {{"class", "excerpt quoted"}, {"dir", "auto"}},
               headline(text_field(head->fields, "message"), "(no message)"));
  show_byline(html, text_field(head->fields, "agent"), head->created_at);
}

void show_thread_item(Html& html, Tag level, const Record& thread) {
  auto item = html.open("li");
  {
    auto heading = html.open(level);
    auto link = html.open("a", {{Address::href, Url() / "threads" / thread.id}});
    show_name(html, title_of(thread));
  }
  auto line = html.open("p", {{"class", "byline"}});
  if (std::string kind = text_field(thread.fields, "kind"); !kind.empty())
    html.element("span", {{"class", "badge"}}, excerpt(kind, 24));
  if (std::string agent = text_field(thread.fields, "agent"); !agent.empty()) {
    auto who = html.open("span", {{"class", "agent"}});
    show_name(html, excerpt(agent, 60));
  }
  show_time(html, thread.created_at);
}

}  // namespace playfs::http
