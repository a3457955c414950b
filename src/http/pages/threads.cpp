// Threads, the conversation in one, and one message of it.
#include <algorithm>

#include <fmt/format.h>

#include "http/pages/feed.h"
#include "http/pages/lists.h"
#include "http/pages/messages.h"

namespace playfs::http {

namespace {

constexpr std::size_t kThreads = 50;
constexpr std::size_t kMessages = 100;
constexpr std::size_t kHtmlOfMessage = 17'000;  // kMessages of these fit into a page, and most of 16 KB do
constexpr std::size_t kHtmlOfThread = 100'000;

// To find the answers to one message, among all that came after it.
constexpr std::size_t kLookedThrough = 600;
constexpr std::size_t kBytesLookedThrough = 1536 << 10;
constexpr std::size_t kAnswers = 25;
// Enough for any record, with room for the answers.
constexpr std::size_t kHtmlOfOwnPage = Html::kMostBytes / 4 * 3;
constexpr std::size_t kAncestors = 12;

void show_heading(Html& html, const Record& thread) {
  auto heading = html.open("h1");
  show_name(html, title_of(thread));
  if (std::string kind = text_field(thread.fields, "kind"); !kind.empty())
    html.element("span", {{"class", "badge"}}, excerpt(kind, 24));
}

void show_opening(Html& html, const Record& thread) {
  {
    auto line = html.open("p", {{"class", "byline"}});
    if (std::string agent = text_field(thread.fields, "agent"); !agent.empty()) show_agent(html, agent);
    show_time(html, thread.created_at);
    show_edited(html, thread);
  }
  Html words(kHtmlOfThread);
  if (std::string body = text_field(thread.fields, "body"); !body.empty()) show_prose(words, body);
  show_fields(words, thread.fields, {"title", "agent", "kind", "body"});
  if (words.is_past_limit())
    html.element("p", {{"class", "note"}}, "This thread's other fields are too large to show here.");
  else html.append(words);
}

void show_extent(Html& html, const RecordList& messages, bool has_newer) {
  const bool is_part = has_newer || !messages.next.empty();
  if (messages.records.empty() || !is_part) return;
  auto line = html.open("p", {{"class", "note"}});
  html.text(fmt::format("{} messages of a longer conversation, from ", messages.records.size()));
  show_time(html, messages.records.back().created_at);
  html.text(" to ");
  show_time(html, messages.records.front().created_at);
  html.text(".");
}

/// The messages that a message answers, each with what it answers itself, the nearest first.
std::vector<Record> ancestors_of(Reader& reader, const Record& message) {
  std::vector<Record> ancestors;
  const Record* last = &message;
  ancestors.reserve(kAncestors);
  while (ancestors.size() < kAncestors) {
    auto parent = reader.get("messages", text_field(last->fields, "parent"));
    // Messages can be edited, so that their parents lead in a circle.
    if (!parent || parent->created_at >= last->created_at) break;
    ancestors.push_back(*std::move(parent));
    last = &ancestors.back();
  }
  return ancestors;
}

void show_ancestors(Html& html, const std::string& thread, const std::vector<Record>& ancestors) {
  if (ancestors.empty()) return;
  auto section = html.open("section", {{"class", "above"}, {"aria-labelledby", "above"}});
  html.element("h2", {{"id", "above"}}, "In reply to");
  auto list = html.open("ol");
  for (auto message = ancestors.rbegin(); message != ancestors.rend(); ++message) {
    auto item = html.open("li");
    const std::string own = text_field(message->fields, "thread");
    auto link = html.open("a", {{Address::href, url_of_message(may_be_segment(own) ? own : thread, message->id)}});
    show_name(html, beginning_of(*message));
  }
}

/// A message and those after it in its thread, as far as one page may look.
struct Aftermath {
  std::vector<Record> messages;  ///< newest first
  bool is_whole = false;         ///< the message is the last of them
  std::string cursor;            ///< of the page of the conversation that it is on, if `is_whole`
};

Result<Aftermath> look_after(Reader& reader, const std::string& thread, const Record& message) {
  Aftermath after;
  const Reader::Part part(reader, kLookedThrough, kBytesLookedThrough);
  std::string cursor;
  do {
    PLAYFS_TRY(RecordList list, reader.parts("messages", thread, kMessages, cursor));
    for (Record& record : list.records) {
      const bool found = record.id == message.id;
      after.messages.push_back(std::move(record));
      if (!found) continue;
      after.is_whole = true;
      after.cursor = cursor;
      return after;
    }
    cursor = list.next;
  } while (!cursor.empty() && reader.may_read(kMessages));
  return after;
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
    for (const Record& record : list.records) show_thread_item(html, "h2", visit.reader, record);
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
  document.feed = feed_of_thread(id);
  Html& html = document.main;
  show_heading(html, thread);
  show_opening(html, thread);
  {
    auto section = html.open("section", {{"class", "conversation"}, {"aria-labelledby", "messages"}});
    html.element("h2", {{"id", "messages"}}, "Messages");
    show_extent(html, messages, !visit.cursor().empty());
    // Older messages come first in a conversation, so the link to them does too.
    show_pager(html, url_of_thread(id), visit.cursor(), messages.next, "Earlier messages");
    if (messages.records.empty()) show_nothing(html, "No replies yet.");
    const std::vector<Reply> replies = arrange(messages.records);
    const Answered answered(visit.reader, id, replies);
    for (const Reply& reply : replies) show_message(html, reply, id, answered, kHtmlOfMessage);
    if (messages.records.size() > kMessages / 2)
      show_pager(html, url_of_thread(id), visit.cursor(), messages.next, "Earlier messages");
  }
  show_record_link(html, "threads", id);
  return document;
}

Result<Document> message_page(Visit& visit, const std::string& thread_id, const std::string& id) {
  PLAYFS_TRY(Record message, visit.reader.get("messages", id));
  if (text_field(message.fields, "thread") != thread_id)
    return fail(ErrorCode::not_found, "message " + id + " is not in this thread");
  // Anybody may write a message into a thread that does not exist.
  auto thread = visit.reader.get("threads", thread_id);
  const std::string title = thread ? title_of(*thread) : "A thread that does not exist";
  Document document;
  document.title = beginning_of(message) + " · " + title;
  document.section = Section::threads;
  document.crumbs = {{"Threads", Url() / "threads"}};
  if (thread) document.crumbs.push_back({title, url_of_thread(thread_id)});
  Html& html = document.main;
  {
    auto heading = html.open("h1");
    html.text("Message in ");
    show_name(html, title);
  }
  const std::vector<Record> ancestors = ancestors_of(visit.reader, message);
  show_ancestors(html, thread_id, ancestors);

  PLAYFS_TRY(Aftermath after, look_after(visit.reader, thread_id, message));
  const bool is_whole = after.is_whole;
  // As the oldest, it comes first, and all that answers it stands below it.
  if (!is_whole) after.messages.push_back(std::move(message));
  std::vector<Reply> replies = arrange(after.messages);
  const std::size_t answers = replies.front().branch_end - 1;
  replies.resize(std::min(answers, kAnswers) + 1);
  replies.front().shows_parent = !ancestors.empty();
  const Answered answered(visit.reader, thread_id, replies);
  {
    auto section = html.open("section", {{"class", "conversation"}, {"aria-label", "The message"}});
    show_message(html, replies.front(), thread_id, answered, kHtmlOfOwnPage);
  }
  {
    auto section = html.open("section", {{"class", "conversation"}, {"aria-labelledby", "answers"}});
    html.element("h2", {{"id", "answers"}}, "Answers");
    if (answers == 0)
      show_nothing(html, is_whole ? "Nobody has answered it." : "No answers among the latest messages.");
    for (std::size_t i = 1; i < replies.size(); ++i)
      show_message(html, replies[i], thread_id, answered, kHtmlOfMessage);
    if (answers > kAnswers)
      html.element("p", {{"class", "note"}},
                   fmt::format("And {} more; the conversation has them all.", answers - kAnswers));
    if (!is_whole)
      html.element("p", {{"class", "note"}},
                   fmt::format("Only the latest {} messages of the thread were looked through for answers.",
                               after.messages.size() - 1));
  }
  if (thread) {
    auto more = html.open("p", {{"class", "more"}});
    Url conversation = url_of_thread(thread_id);
    if (!after.cursor.empty()) conversation = conversation.with("cursor", after.cursor);
    html.link(is_whole ? conversation.at(anchor_of(id)) : conversation, "Back to the conversation");
  }
  show_record_link(html, "messages", id);
  return document;
}

}  // namespace playfs::http
