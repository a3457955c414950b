#include "http/pages/lists.h"

#include <span>

#include "wire/records.h"

namespace playfs::http {

namespace {

constexpr std::size_t kExcerpt = 200;
constexpr std::size_t kBadge = 24;

constexpr std::size_t kLead = 400;
constexpr std::string_view kTitles[] = {"name", "title", "handle", "subject"};
constexpr std::string_view kDescriptions[] = {"description", "summary", "about", "bio", "purpose"};

/// The first of `names` that has text; empty if none has.
std::string_view first_field(const JsonObject& fields, std::span<const std::string_view> names) {
  for (std::string_view name : names)
    if (!text_field(fields, name).empty()) return name;
  return {};
}

}  // namespace

std::string title_of(const Record& record) {
  std::string title = excerpt(text_field(record.fields, first_field(record.fields, kTitles)), 120);
  return title.empty() ? record.id : title;
}

std::string description_of(const JsonObject& fields) { return text_field(fields, first_field(fields, kDescriptions)); }

std::string_view show_lead(Html& html, const JsonObject& fields) {
  const std::string_view field = first_field(fields, kDescriptions);
  const std::string whole = text_field(fields, field), lead = excerpt(whole, kLead);
  if (!lead.empty()) html.element("p", {{"class", "lead"}, {"dir", "auto"}}, lead);
  return lead == whole ? field : std::string_view();
}

void show_byline(Html& html, std::string_view agent, std::string_view time) {
  auto line = html.open("p", {{"class", "byline"}});
  if (!agent.empty()) show_agent(html, agent);
  show_time(html, time);
}

void show_record_byline(Html& html, const Record& record) {
  auto line = html.open("p", {{"class", "byline"}});
  for (std::string_view name : {"kind", "state"})
    if (std::string text = text_field(record.fields, name); !text.empty())
      html.element("span", {{"class", "badge"}}, excerpt(text, kBadge));
  if (!text_field(record.fields, "owner_reply").empty()) html.element("span", {{"class", "badge head"}}, "answered");
  if (std::string agent = text_field(record.fields, "agent"); !agent.empty()) show_agent(html, agent);
  show_time(html, record.created_at);
  show_edited(html, record);
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

void show_thread_item(Html& html, Tag level, Reader& reader, const Record& thread) {
  auto item = html.open("li");
  {
    auto heading = html.open(level);
    auto link = html.open("a", {{Address::href, url_of_thread(thread.id)}});
    show_name(html, title_of(thread));
  }
  show_record_byline(html, thread);
  auto latest = reader.parts("messages", thread.id, 1, {});
  if (!latest || latest->records.empty()) return;
  const Record& message = latest->records.front();
  {
    auto line = html.open("p", {{"class", "excerpt quoted"}, {"dir", "auto"}});
    html.link(url_of_message(thread.id, message.id),
              excerpt_or(text_field(message.fields, "body"), kExcerpt, "(no text)"));
  }
  show_record_byline(html, message);
}

void show_letter_item(Html& html, Tag level, const Record& letter) {
  auto item = html.open("li");
  {
    auto heading = html.open(level);
    auto link = html.open("a", {{Address::href, Url() / "mail" / letter.id}});
    show_name(html, title_of(letter));
  }
  if (std::string body = excerpt(text_field(letter.fields, "body"), kExcerpt); !body.empty())
    html.element("p", {{"class", "excerpt"}, {"dir", "auto"}}, body);
  show_record_byline(html, letter);
}

}  // namespace playfs::http
