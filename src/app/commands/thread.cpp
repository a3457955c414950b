// playfs thread: lists, begins and shows threads, and follows one.
#include <chrono>
#include <thread>
#include <unordered_set>

#include "app/commands/conversation.h"
#include "app/conversation.h"
#include "app/json_fields.h"
#include "app/pager.h"
#include "app/record_reading.h"
#include "app/sending.h"
#include "app/written_text.h"
#include "base/await.h"
#include "base/text.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr std::chrono::seconds kAskForMessagesEvery{3};

JsonObject thread_document(const runtime::ClientStack& stack, const Record& thread) {
  return JsonObject{{"site", stack.source().text}, {"thread", wire::encode_record(thread)}};
}

void print_conversation(CommandContext& context, const runtime::ClientStack& stack, const Conversation& conversation) {
  JsonObject document = thread_document(stack, conversation.thread);
  Json::Array messages;
  print_thread_heading(context.out, conversation);
  for (const Placed& placed : in_order(conversation.messages)) {
    const Record& message = conversation.messages[placed.index];
    if (!context.out.json()) {
      print_message(context.out, message, placed);
      continue;
    }
    Json record = wire::encode_record(message);
    messages.push_back(JsonObject{{"depth", static_cast<std::uint64_t>(placed.depth)}, {"message", std::move(record)}});
  }
  if (conversation.messages.empty() && conversation.missing == 0)
    context.out.note("No messages yet. Try: " + safe(context.next_command({{"post"}, {conversation.thread.id}})));
  document.append("messages", std::move(messages));
  document.append("left_out", static_cast<std::uint64_t>(conversation.left_out.size() + conversation.missing));
  context.out.document(std::move(document));
}

/// Prints messages as they arrive, until stdout is closed.
Result<ExitCode> follow(CommandContext& context, runtime::ClientStack& stack, const Conversation& conversation) {
  std::unordered_set<std::string> printed;
  auto print = [&](const Record& message) {
    if (!printed.insert(message.id).second) return;
    if (context.out.json()) context.out.stream_item(*wire::encode_record(message).object());
    else print_message(context.out, message, {});
    context.io.out.flush();
  };
  print_thread_heading(context.out, conversation);
  for (const Record& message : conversation.messages) print(message);
  const std::string& thread = conversation.thread.id;
  bool is_away = false;
  auto away = [&](const Error& error) {
    if (!std::exchange(is_away, true)) context.out.note("Waiting for the service: " + safe(error.message));
  };
  std::unordered_set<std::string> before(conversation.left_out.begin(), conversation.left_out.end());
  for (;; std::this_thread::sleep_for(kAskForMessagesEvery)) {
    if (!context.io.out) return ExitCode::failed;
    auto ids = message_ids(stack, thread);
    if (!ids && !is_transient(ids.error().code)) return fail(std::move(ids).error());
    if (!ids) {
      away(ids.error());
      continue;
    }
    // The list is the last known one while the service is away.
    if (const remote::Health health = stack.client().health(); health.reachable) is_away = false;
    else away({ErrorCode::unreachable, health.last_error});
    for (auto id = ids->rbegin(); id != ids->rend(); ++id) {
      if (printed.contains(*id) || before.contains(*id)) continue;
      auto message = await<Record>([&](auto done) { stack.site().record("messages", *id, {}, std::move(done)); });
      if (message) print(*message);
      else if (is_transient(message.error().code)) away(message.error());
      else before.insert(*id);
    }
  }
}

}  // namespace

Result<ExitCode> thread_list(CommandContext& context, const ThreadListArguments& arguments) {
  Listing listing{"threads",
                  "threads",
                  {"kind", "agent", "title"},
                  "No threads",
                  {{"thread", "new", "TITLE", "--kind", "discussion", "-m", "TEXT"}},
                  arguments.limit};
  if (!arguments.kind.empty())
    listing.wanted = [&](const Record& thread) { return text_of_field(thread, "kind") == arguments.kind; };
  return print_listing(context, listing);
}

Result<ExitCode> thread_new(CommandContext& context, const ThreadNewArguments& arguments) {
  if (trim(arguments.title).empty())
    return fail(ErrorCode::invalid_argument, "a thread needs a title", "playfs thread new TITLE");
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(const std::string agent, context.agent(arguments.agent, stack->source().text));
  Beginning beginning{{{"title", arguments.title}, {"agent", agent}, {"kind", arguments.kind}}, {}};
  if (arguments.body) {
    PLAYFS_TRY(WrittenText written, WrittenText::get(context, arguments.body, ""));
    beginning.message = message_body("", "", agent, written.text());
    PLAYFS_CHECK(check_fits(*beginning.message, "post its first message"));
  }
  if (arguments.dry_run) {
    if (beginning.message) beginning.thread.set("body", *beginning.message->find("body"));
    return show_unsent(context, "threads", std::move(beginning.thread));
  }
  PLAYFS_TRY(const BegunThread begun, begin_thread(context, *stack, std::move(beginning)));
  const Record& thread = begun.thread;
  context.out.line(context.out.is_terminal() ? safe(thread.id) : thread.id);
  JsonObject document = thread_document(*stack, thread);
  if (begun.message) {
    PLAYFS_TRY(const Record message, *begun.message);
    document.append("message", wire::encode_record(message));
  }
  context.out.note("Began '" + safe(arguments.title) +
                   "'. Try: " + safe(context.next_command({{"thread", "show"}, {thread.id}, {"--follow"}})));
  context.out.document(std::move(document));
  return ExitCode::done;
}

Result<ExitCode> thread_show(CommandContext& context, const ThreadShowArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(Record thread, find_record(context, *stack, kThread, arguments.thread));
  PLAYFS_TRY(Conversation conversation, read_conversation(*stack, std::move(thread)));
  if (arguments.follow) return follow(context, *stack, conversation);
  const Pager pager(context, arguments.pager);
  print_conversation(context, *stack, conversation);
  return ExitCode::done;
}

}  // namespace playfs::app
