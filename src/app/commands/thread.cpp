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

constexpr std::chrono::seconds kAskEvery{3};

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
    context.out.note("No messages yet. Try: " + safe(context.next_command({"post", conversation.thread.id})));
  document.append("messages", std::move(messages));
  document.append("left_out", static_cast<std::uint64_t>(conversation.left_out.size() + conversation.missing));
  context.out.document(std::move(document));
}

/// Prints messages as they come, for as long as somebody reads.
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
  for (;; std::this_thread::sleep_for(kAskEvery)) {
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

/// Without its thread, which does not exist yet.
Result<JsonObject> first_message(CommandContext& context, const std::string& text, const std::string& agent) {
  PLAYFS_TRY(WrittenText written, WrittenText::get(context, text, ""));
  JsonObject message = message_body("", "", agent, written.text());
  PLAYFS_CHECK(check_fits(message, "post its first message"));
  return message;
}

}  // namespace

Result<ExitCode> thread_list(CommandContext& context, const ThreadListArguments& arguments) {
  Listing listing;
  listing.collection = listing.key = "threads";
  listing.limit = arguments.limit;
  if (!arguments.kind.empty())
    listing.wanted = [&](const Record& thread) { return text_of(thread.fields, "kind") == arguments.kind; };
  listing.line = [](const Record& thread) {
    return safe(thread.id) + "  " + safe(thread.created_at) + "  " + safe(text_of(thread.fields, "kind")) + "  " +
           safe(text_of(thread.fields, "agent")) + "  " + safe(text_of(thread.fields, "title"));
  };
  listing.none = "No threads. Try: playfs thread new TITLE --kind discussion -m TEXT";
  return print_listing(context, listing);
}

Result<ExitCode> thread_new(CommandContext& context, const ThreadNewArguments& arguments) {
  if (trim(arguments.title).empty())
    return fail(ErrorCode::invalid_argument, "a thread needs a title", "playfs thread new TITLE");
  PLAYFS_TRY(auto stack, context.open_client_stack());
  const std::string agent = arguments.agent.value_or(context.agent(stack->source().text));
  JsonObject body{{"title", arguments.title}, {"agent", agent}, {"kind", arguments.kind}};
  // Before the thread begins: a message that cannot be sent would leave it empty.
  std::optional<JsonObject> message;
  if (arguments.body) {
    PLAYFS_TRY(message, first_message(context, *arguments.body, agent));
  }
  if (arguments.dry_run) {
    if (message) body.set("body", *message->find("body"));
    return show_unsent(context, "threads", std::move(body));
  }
  PLAYFS_TRY(Record thread,
             create_record(*stack, {"threads", "begin the thread", context.next_command({"thread", "list"})},
                           std::move(body)));
  context.out.line(context.out.is_terminal() ? safe(thread.id) : thread.id);
  JsonObject document = thread_document(*stack, thread);
  if (message) {
    message->set("thread", thread.id);
    auto posted = create_record(
        *stack, {"messages", "post its first message", context.next_command({"thread", "show", thread.id})},
        std::move(*message));
    if (!posted) {
      Error error = std::move(posted).error().while_doing("the thread " + thread.id + " has begun");
      error.hint = context.next_command({"post", thread.id, "-m", "…"}) + ", to post it there";
      return fail(std::move(error));
    }
    document.append("message", wire::encode_record(*posted));
  }
  context.out.note("Began '" + safe(arguments.title) +
                   "'. Try: " + safe(context.next_command({"thread", "show", thread.id, "--follow"})));
  context.out.document(std::move(document));
  return ExitCode::done;
}

Result<ExitCode> thread_show(CommandContext& context, const ThreadShowArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_client_stack());
  PLAYFS_TRY(Record thread, find_record(context, *stack, kThread, arguments.thread));
  PLAYFS_TRY(Conversation conversation, read_conversation(*stack, std::move(thread)));
  if (arguments.follow) return follow(context, *stack, conversation);
  const Pager pager(context, arguments.pager);
  print_conversation(context, *stack, conversation);
  return ExitCode::done;
}

}  // namespace playfs::app
