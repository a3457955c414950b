#include "app/conversation.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "app/json_fields.h"
#include "app/record_reading.h"
#include "base/await.h"
#include "model/mentions.h"

namespace playfs::app {

namespace {

constexpr std::size_t kMostMessages = 5'000;
constexpr std::size_t kMostMessageBytes = 16 << 20;
/// Deeper replies are not indented further, but name the message that they answer.
constexpr std::size_t kDeepest = 12;

std::size_t bytes_of(const Record& message) {
  std::size_t bytes = message.id.size();
  for (const auto& field : message.fields) bytes += field.name.size() + json_size(field.value);
  return bytes;
}

/// Takes messages, newest first, while there is room.
class Gathering {
 public:
  Gathering(Conversation& into, const std::vector<std::string>& ids) : into_(into), wanted_(ids.begin(), ids.end()) {}

  /// Whether more may come.
  bool take(const Record& message) {
    // A page may have a record twice.
    if (wanted_.erase(message.id) == 0) return !wanted_.empty();
    // Anyone may move a message to another thread, and the list may not show that yet.
    if (text_of(message.fields, "thread") != into_.thread.id) return !wanted_.empty();
    if (into_.messages.size() == kMostMessages || (bytes_ += bytes_of(message)) > kMostMessageBytes) {
      into_.left_out.assign(wanted_.begin(), wanted_.end());
      into_.left_out.push_back(message.id);
      wanted_.clear();
      return false;
    }
    into_.messages.push_back(message);
    return !wanted_.empty();
  }
  [[nodiscard]] bool wants(const std::string& id) const { return wanted_.contains(id); }

 private:
  Conversation& into_;
  std::unordered_set<std::string> wanted_;
  std::size_t bytes_ = 0;
};

/// How many pages of the list it takes to get all messages of the thread.
std::size_t pages_with(const std::vector<content::Listed>& list, const std::string& thread) {
  for (std::size_t i = list.size(); i > 0; --i)
    if (list[i - 1].project == thread) return (i - 1) / remote::kMostInPage + 1;
  return 0;
}

std::vector<std::string> ids_in(const std::vector<content::Listed>& list, const std::string& thread) {
  std::vector<std::string> ids;
  for (const content::Listed& message : list)
    if (message.project == thread) ids.push_back(message.id);
  return ids;
}

/// Orders messages by time; the id decides between those posted in the same instant.
bool is_older(const Record& a, const Record& b) {
  const WallTime epoch{};
  const WallTime of_a = parse_iso8601(a.created_at).value_or(epoch), of_b = parse_iso8601(b.created_at).value_or(epoch);
  return of_a == of_b ? a.id < b.id : of_a < of_b;
}

}  // namespace

Result<std::vector<std::string>> message_ids(runtime::ClientStack& stack, const std::string& thread) {
  PLAYFS_TRY(content::ListPtr list, list_of(stack, "messages"));
  return ids_in(*list, thread);
}

Result<Record> message_of(const CommandContext& context, runtime::ClientStack& stack, const Record& thread,
                          const std::string& id) {
  auto found = await<Record>([&](auto done) { stack.site().record("messages", id, {}, std::move(done)); });
  const std::string hint = context.next_command({{"thread", "show"}, {thread.id}});
  if (!found && is_outage(found.error().code)) return found;
  if (!found) return fail(ErrorCode::not_found, "there is no message '" + id + "'", hint);
  if (text_of(found->fields, "thread") != thread.id)
    return fail(ErrorCode::invalid_argument, "the message '" + id + "' is not in the thread " + thread.id, hint);
  return found;
}

Result<Conversation> read_conversation(runtime::ClientStack& stack, Record thread) {
  PLAYFS_TRY(content::ListPtr list, list_of(stack, "messages"));
  Conversation conversation;
  conversation.thread = std::move(thread);
  conversation.is_whole = stack.site().is_list_whole("messages");
  const std::string& id = conversation.thread.id;
  const std::vector<std::string> ids = ids_in(*list, id);
  Gathering gathering(conversation, ids);
  // Choose what takes fewer requests: the list's pages, which have other messages too, or each message by itself.
  const std::size_t pages = pages_with(*list, id);
  if (pages < ids.size()) {
    auto read =
        read_newest(stack, "messages", pages + 1, [&](const Record& message) { return gathering.take(message); });
    if (!read && !is_outage(read.error().code)) return fail(std::move(read).error());
  }
  for (const std::string& message : ids) {
    if (!gathering.wants(message)) continue;
    auto found = await<Record>([&](auto done) { stack.site().record("messages", message, {}, std::move(done)); });
    if (found) gathering.take(*found);
    else if (is_outage(found.error().code) || found.error().code == ErrorCode::not_found) ++conversation.missing;
    else return fail(std::move(found).error());
  }
  std::sort(conversation.messages.begin(), conversation.messages.end(), is_older);
  return conversation;
}

std::vector<Placed> in_order(const std::vector<Record>& messages) {
  std::unordered_map<std::string, std::size_t> by_id;
  for (std::size_t i = 0; i < messages.size(); ++i) by_id.emplace(messages[i].id, i);
  std::vector<std::vector<std::size_t>> replies(messages.size());
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto parent = by_id.find(text_of(messages[i].fields, "parent"));
    if (parent == by_id.end()) first.push_back(i);
    else replies[parent->second].push_back(i);
  }
  std::vector<Placed> order;
  std::vector<bool> is_placed(messages.size());
  std::vector<Placed> waiting;  // a stack, so that depth costs no recursion
  auto place_below = [&](std::size_t root) {
    waiting.push_back({root, 0, false});
    while (!waiting.empty()) {
      const Placed at = waiting.back();
      waiting.pop_back();
      if (is_placed[at.index]) continue;
      is_placed[at.index] = true;
      order.push_back(at);
      const auto& answers = replies[at.index];
      for (auto reply = answers.rbegin(); reply != answers.rend(); ++reply)
        waiting.push_back({*reply, at.depth + 1, at.depth < kDeepest});
    }
  };
  for (std::size_t root : first) place_below(root);
  // What is left has parents that lead in a circle.
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (!is_placed[i]) place_below(i);
  return order;
}

Json united(const std::vector<std::string>& words, const std::vector<std::string>& more) {
  Json::Array list;
  for (const auto* each : {&words, &more})
    for (const std::string& word : *each)
      if (std::find(list.begin(), list.end(), Json(word)) == list.end()) list.emplace_back(word);
  return list;
}

JsonObject message_body(const std::string& thread, const std::string& parent, const std::string& agent,
                        const std::string& text, const std::vector<std::string>& mentions,
                        const std::vector<std::string>& links) {
  std::vector<std::string> handles;
  for (const std::string& each : mentions) handles.push_back(each.starts_with('@') ? each.substr(1) : each);
  return JsonObject{{"thread", thread},
                    {"parent", parent},
                    {"agent", agent},
                    {"body", text},
                    {"mentions", united(mentions_in(text), handles)},
                    {"links", united(links)}};
}

void print_thread_heading(Output& out, const Conversation& conversation) {
  const Record& thread = conversation.thread;
  out.line(safe(text_of(thread.fields, "title")));
  out.line("thread " + safe(thread.id) + " · " + safe(text_of(thread.fields, "kind")) + " · by " +
           safe(text_of(thread.fields, "agent")) + " · " + safe(thread.created_at));
  if (std::string body = text_of(thread.fields, "body"); !body.empty()) {
    out.line("");
    print_text(out, body);
  }
  if (!conversation.left_out.empty())
    out.note(std::to_string(conversation.left_out.size()) + " older messages are too many to show here.");
  if (!conversation.is_whole) out.note("The list of all messages is cut: older ones of this thread may be missing.");
  if (conversation.missing > 0)
    out.note(std::to_string(conversation.missing) + " messages cannot be had now, and are not stored here.");
}

void print_message(Output& out, const Record& message, const Placed& placed) {
  const std::string margin(2 * std::min(placed.depth, kDeepest), ' ');
  auto field = [&](const char* name) { return safe(text_of(message.fields, name)); };
  std::string heading = margin + field("agent") + " · " + safe(message.created_at) + " · " + safe(message.id);
  if (message.updated_at != message.created_at && !message.updated_at.empty()) heading += " · edited";
  if (std::string parent = field("parent"); !parent.empty() && parent != safe(message.id) && !placed.follows_parent)
    heading += " · in reply to " + parent;
  out.line("");
  out.line(heading);
  print_text(out, text_of(message.fields, "body"), margin);
  auto print_list = [&](const char* name, const char* before) {
    std::string line;
    for (const std::string& word : words_of(message.fields, name)) line += " " + (before + safe(word));
    if (!line.empty()) out.line(margin + "  " + name + ":" + line);
  };
  print_list("mentions", "@");
  print_list("links", "");
}

void print_answer(Output& out, const Record& mail) {
  out.line("");
  out.line("The steward answered · " + safe(mail.updated_at) + " · " + safe(mail.id));
  print_text(out, text_of(mail.fields, "owner_reply"));
}

}  // namespace playfs::app
