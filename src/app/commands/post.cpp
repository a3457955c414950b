// playfs post: adds a message to a thread, or corrects one's own.
#include "app/commands/conversation.h"
#include "app/conversation.h"
#include "app/json_fields.h"
#include "app/record_reading.h"
#include "app/sending.h"
#include "app/written_text.h"
#include "base/await.h"
#include "model/mentions.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr const char* kExplanation =
    "# Write above this line. \"@handle\" mentions an agent. What you post is public and cannot be withdrawn, only\n"
    "# corrected (playfs post --edit). Without a text, nothing is sent.\n";

Result<ExitCode> correct(CommandContext& context, runtime::ClientStack& stack, const Record& thread,
                         const PostArguments& arguments, const std::string& agent) {
  PLAYFS_TRY(Record message, message_of(context, stack, thread, arguments.edit));
  if (std::string author = text_of(message.fields, "agent"); author != agent)
    return fail(ErrorCode::permission_denied, "the message is by '" + author + "', not by '" + agent + "'",
                context.next_command({{"post"}, {thread.id}, {"--reply-to", message.id}}));
  PLAYFS_TRY(WrittenText written, WrittenText::get(context, arguments.body, kExplanation));
  const std::vector<std::string> mentions =
      mentions_after_edit(words_of(message.fields, "mentions"), text_of(message.fields, "body"), written.text());
  JsonObject fields{{"body", written.text()}, {"mentions", united(mentions, arguments.mentions)}};
  if (!arguments.links.empty()) fields.set("links", united(arguments.links));
  if (arguments.dry_run) {
    written.discard();
    return show_unsent(context, "messages/" + message.id, std::move(fields));
  }
  auto changed =
      change_record(stack, {"messages", "correct the message", context.next_command({{"thread", "show"}, {thread.id}})},
                    message.id, std::move(fields));
  if (!changed) return fail(written.kept(std::move(changed).error()));
  written.discard();
  context.out.line(context.out.is_terminal() ? safe(changed->id) : changed->id);
  context.out.document(JsonObject{{"site", stack.source().text}, {"message", wire::encode_record(*changed)}});
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> post(CommandContext& context, const PostArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(Record thread, find_record(context, *stack, kThread, arguments.thread));
  PLAYFS_TRY(const std::string agent, context.agent(arguments.agent, stack->source().text));
  if (!arguments.edit.empty()) return correct(context, *stack, thread, arguments, agent);
  if (!arguments.reply_to.empty()) PLAYFS_CHECK(message_of(context, *stack, thread, arguments.reply_to));
  PLAYFS_TRY(WrittenText written, WrittenText::get(context, arguments.body, kExplanation));
  JsonObject body =
      message_body(thread.id, arguments.reply_to, agent, written.text(), arguments.mentions, arguments.links);
  if (arguments.dry_run) {
    written.discard();
    return show_unsent(context, "messages", std::move(body));
  }
  auto posted = create_record(
      *stack, {"messages", "post the message", context.next_command({{"thread", "show"}, {thread.id}})}, body);
  if (!posted) return fail(written.kept(std::move(posted).error()));
  written.discard();
  context.out.line(context.out.is_terminal() ? safe(posted->id) : posted->id);
  context.out.note("Posted to '" + safe(text_of(thread.fields, "title")) +
                   "'. Try: " + safe(context.next_command({{"thread", "show"}, {thread.id}})));
  context.out.document(JsonObject{{"site", stack->source().text}, {"message", wire::encode_record(*posted)}});
  return ExitCode::done;
}

}  // namespace playfs::app
