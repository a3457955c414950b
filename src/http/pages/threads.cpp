// Threads, and the conversation in one.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "http/pages/conversation.h"
#include "http/pages/lists.h"
#include "http/pages/views.h"

namespace playfs::http {

namespace {

constexpr std::size_t kThreads = 50;
constexpr std::size_t kMessages = 100;
constexpr std::size_t kNamed = 40;  // mentions and links of one message

/// A list of texts, or a single text as a list of one.
std::vector<std::string> texts_of(const JsonObject& fields, std::string_view name) {
  std::vector<std::string> texts;
  const Json* value = fields.find(name);
  if (value && value->string() && !value->string()->empty()) texts.push_back(*value->string());
  if (value && value->array())
    for (const Json& item : *value->array()) {
      if (texts.size() == kNamed) break;
      if (item.string() && !item.string()->empty()) texts.push_back(*item.string());
      else if (const JsonObject* object = item.object())
        // Some clients write a link as an object with a title.
        for (std::string_view member : {"url", "href", "handle", "id"})
          if (std::string text = text_field(*object, member); !text.empty()) {
            texts.push_back(std::move(text));
            break;
          }
    }
  return texts;
}

std::string anchor_of(std::string_view message) { return "message-" + percent_encode(message); }

void show_named(Html& html, std::string_view label, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  auto line = html.open("div", {{"class", "named"}});
  html.element("span", {{"class", "label"}}, label);
  auto list = html.open("ul");
  for (const std::string& text : texts) {
    auto item = html.open("li");
    show_address(html, text);
  }
}

void show_reply(Html& html, const Reply& reply) {
  const Record& message = *reply.message;
  std::string agent = text_field(message.fields, "agent");
  auto article =
      html.open("article", {{"class", fmt::format("message depth-{}", reply.depth)},
                            {"id", anchor_of(message.id)},
                            {"aria-label", "Message by " + (agent.empty() ? "somebody" : excerpt(agent, 60))}});
  {
    auto line = html.open("p", {{"class", "byline"}});
    {
      auto who = html.open("span", {{"class", "agent"}});
      show_name(html, agent.empty() ? "somebody" : excerpt(agent, 60));
    }
    show_time(html, message.created_at);
  }
  show_prose(html, text_field(message.fields, "body"));
  show_named(html, "Mentions", texts_of(message.fields, "mentions"));
  show_named(html, "Links", texts_of(message.fields, "links"));
  show_fields(html, message.fields, {"thread", "parent", "agent", "body", "mentions", "links"});
}

}  // namespace

Result<Document> threads_page(Visit& visit) {
  PLAYFS_TRY(RecordList list, visit.reader.list("threads", kThreads, visit.cursor()));
  Document document;
  document.title = "Threads";
  document.section = Section::threads;
  Html& html = document.main;
  html.element("h1", "Threads");
  if (list.records.empty()) show_nothing(html, "Nobody has said anything yet.");
  else {
    auto items = html.open("ul", {{"class", "items"}});
    for (const Record& record : list.records) show_thread_item(html, "h2", record);
  }
  show_pager(html, Url() / "threads", visit.cursor(), list.next, "Older threads");
  return document;
}

Result<Document> thread_page(Visit& visit, const std::string& id) {
  PLAYFS_TRY(Record thread, visit.reader.get("threads", id));
  PLAYFS_TRY(RecordList messages, visit.reader.parts("messages", id, kMessages, visit.cursor()));
  Document document;
  document.title = title_of(thread);
  document.section = Section::threads;
  document.crumbs = {{"Threads", Url() / "threads"}};
  Html& html = document.main;
  {
    auto heading = html.open("h1");
    show_name(html, title_of(thread));
    if (std::string kind = text_field(thread.fields, "kind"); !kind.empty())
      html.element("span", {{"class", "badge"}}, excerpt(kind, 24));
  }
  show_byline(html, text_field(thread.fields, "agent"), thread.created_at);
  if (std::string body = text_field(thread.fields, "body"); !body.empty()) show_prose(html, body);
  show_fields(html, thread.fields, {"title", "agent", "kind", "body"});
  {
    auto section = html.open("section", {{"class", "conversation"}, {"aria-labelledby", "messages"}});
    html.element("h2", {{"id", "messages"}}, "Messages");
    // Older messages come first in a conversation, so the link to them does too.
    show_pager(html, Url() / "threads" / id, visit.cursor(), messages.next, "Earlier messages");
    if (messages.records.empty()) show_nothing(html, "No replies yet.");
    for (const Reply& reply : arrange(messages.records)) show_reply(html, reply);
  }
  show_record_link(html, "threads", id);
  return document;
}

}  // namespace playfs::http
