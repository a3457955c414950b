#include "http/pages/messages.h"

#include <utility>

#include <fmt/format.h>

#include "http/pages/lists.h"
#include "model/mentions.h"
#include "service/store.h"

namespace playfs::http {

namespace {

constexpr std::size_t kNamed = 40;  // mentions and links of one message
constexpr std::size_t kBeginning = 80;
constexpr std::size_t kInsteadOfWhole = 600;
constexpr std::size_t kAnsweredRecords = 100;  // parents read to show what was answered
constexpr std::size_t kAnsweredBytes = 1 << 20;

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

std::vector<std::string> mentions_of(const JsonObject& fields) {
  std::vector<std::string> handles = texts_of(fields, "mentions");
  for (std::string& handle : handles)
    if (handle.size() > 1 && handle.front() == '@') handle.erase(0, 1);
  return handles;
}

template <class Show>
void show_named(Html& html, std::string_view label, const std::vector<std::string>& texts, Show show) {
  if (texts.empty()) return;
  auto line = html.open("div", {{"class", "named"}});
  html.element("span", {{"class", "label"}}, label);
  auto list = html.open("ul");
  for (const std::string& text : texts) {
    auto item = html.open("li");
    show(html, text);
  }
}

std::string author_of(const Record& message) { return excerpt_or(text_field(message.fields, "agent"), 60, "somebody"); }

void show_message_byline(Html& html, const Record& message, std::string_view thread) {
  auto line = html.open("p", {{"class", "byline"}});
  if (std::string agent = text_field(message.fields, "agent"); !agent.empty()) show_agent(html, agent);
  else html.element("span", {{"class", "agent"}}, "somebody");
  {
    auto link = html.open("a", {{"class", "permalink"},
                                {Address::href, url_of_message(thread, message.id)},
                                {"title", "This message, and what answers it"}});
    show_time(html, message.created_at);
  }
  show_edited(html, message);
}

void show_words(Html& html, const JsonObject& fields, bool is_hidden) {
  const std::string body = text_field(fields, "body");
  const std::vector<std::string> named = mentions_of(fields);
  std::vector<std::string> handles = mentions_in(body);
  handles.insert(handles.end(), named.begin(), named.end());
  if (body.empty()) html.element("p", {{"class", "note"}}, is_hidden ? "hidden by the steward" : "(no text)");
  else show_prose(html, body, handles);
  show_named(html, "Mentions", named, show_agent);
  show_named(html, "Links", texts_of(fields, "links"), show_address);
  show_fields(html, fields, {"thread", "parent", "agent", "body", "mentions", "links"});
}

void show_beginning(Html& html, const Record& message, std::string_view thread) {
  show_prose(html, excerpt(text_field(message.fields, "body"), kInsteadOfWhole));
  auto more = html.open("p", {{"class", "more"}});
  html.link(url_of_message(thread, message.id), "Read the whole message");
}

}  // namespace

std::string anchor_of(std::string_view message) { return "message-" + std::string(message); }

std::string beginning_of(const Record& message) {
  return author_of(message) + ": " + excerpt_or(text_field(message.fields, "body"), kBeginning, "(no text)");
}

Answered::Answered(Reader& reader, std::string thread, const std::vector<Reply>& shown) : thread_(std::move(thread)) {
  for (const Reply& reply : shown)
    messages_.emplace(reply.message->id, Message{Url::here().at(anchor_of(reply.message->id)),
                                                 beginning_of(*reply.message), false, false});
  // Together, so that one bound holds for all of them.
  const Reader::Part part(reader, kAnsweredRecords, kAnsweredBytes);
  for (const Reply& reply : shown)
    if (!reply.parent.empty() && !reply.shows_parent && !messages_.contains(reply.parent))
      messages_.emplace(reply.parent, read(reader, reply.parent));
}

Answered::Message Answered::read(Reader& reader, const std::string& id) const {
  Message found;
  found.url = url_of_message(thread_, id);
  auto message = reader.get("messages", id);
  if (!message) {
    found.is_missing = message.error().code == ErrorCode::not_found;
    return found;
  }
  found.beginning = beginning_of(*message);
  const std::string thread = text_field(message->fields, "thread");
  found.in_other_thread = thread != thread_;
  if (found.in_other_thread)
    found.url = may_be_segment(thread) ? url_of_message(thread, id) : url_of_record("messages", id);
  return found;
}

void Answered::show(Html& html, const Reply& reply) const {
  if (reply.parent.empty() || reply.shows_parent) return;
  auto line = html.open("p", {{"class", "answers"}});
  auto known = messages_.find(reply.parent);
  if (known == messages_.end()) return html.text("In reply to a message that is not shown");
  const Message& message = known->second;
  if (message.is_missing) {
    html.text("In reply to a message that does not exist: ");
    return html.element("code", {{"class", "id"}}, excerpt(reply.parent, kBeginning));
  }
  html.text("In reply to ");
  {
    auto link = html.open("a", {{Address::href, message.url}});
    show_name(html, message.beginning.empty() ? "an earlier message" : message.beginning);
  }
  if (message.in_other_thread) html.text(" in another thread");
}

void show_message(Html& html, const Reply& reply, std::string_view thread, const Answered& answered,
                  std::size_t most_bytes) {
  const Record& message = *reply.message;
  auto article = html.open("article", {{"class", fmt::format("message depth-{}", reply.depth)},
                                       {"id", anchor_of(message.id)},
                                       {"aria-label", "Message by " + author_of(message)}});
  show_message_byline(html, message, thread);
  answered.show(html, reply);
  Html words(most_bytes);
  show_words(words, message.fields, message.status == service::kHiddenStatus);
  if (words.is_past_limit()) show_beginning(html, message, thread);
  else html.append(words);
}

}  // namespace playfs::http
