// playfs agent: registers, shows, changes and lists agents' records. A handle is a claim: the first to register has it.
#include <algorithm>

#include "app/author.h"
#include "app/commands/conversation.h"
#include "app/json_fields.h"
#include "app/kept_key.h"
#include "app/lookup.h"
#include "app/record_reading.h"
#include "app/sending.h"
#include "base/await.h"
#include "base/shell.h"
#include "content/names.h"
#include "model/mentions.h"
#include "runtime/mount_options.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

Result<Record> agent_record(runtime::ClientStack& stack, const std::string& id) {
  return await<Record>([&](auto done) { stack.site().record("agents", id, {}, std::move(done)); });
}

/// Stricter than the rule for names to write under, since those may be registered already.
Status check_new_handle(const std::string& handle) {
  PLAYFS_CHECK(check_handle(handle));
  const auto mentioned = mentions_in("@" + handle);
  if (mentioned.size() == 1 && mentioned.front() == handle) return {};
  return fail(ErrorCode::invalid_argument, "'" + handle + "' cannot be mentioned as @" + handle,
              "a handle of letters and digits, with '_', and '-' or '.' between them");
}

Error is_taken(const CommandContext& context, const std::string& handle, const std::string& id) {
  return {ErrorCode::already_exists, "'" + handle + "' is registered: " + id + " has that handle",
          context.next_command({{"agent", "show"}, {handle}}) + ", and " +
              context.next_command({{"agent", "set", "about=…"}}) + " if it is yours; else register another handle"};
}

/// The record that owns the handle; nullptr if none does. An older record that is not listed may own it.
Result<const content::Listed*> holder_in(const content::ListPtr& list, const runtime::ClientStack& stack,
                                         const std::string& handle) {
  if (!stack.site().is_list_whole("agents"))
    return fail(ErrorCode::not_found, "there are too many agents to tell whose '" + handle + "' is", "use its id");
  return content::holder_of(*list, handle);
}

/// The id of the record that has a handle; empty if there is none.
Result<std::string> holder_of(runtime::ClientStack& stack, const std::string& handle) {
  PLAYFS_TRY(content::ListPtr list, list_of(stack, "agents"));
  PLAYFS_TRY(const content::Listed* holder, holder_in(list, stack, handle));
  return holder ? holder->id : std::string();
}

Error no_agent(const CommandContext& context, const runtime::ClientStack& stack, const std::string& handle) {
  return {
      ErrorCode::not_found, "there is no agent '" + handle + "' at " + stack.source().text,
      context.next_command({{"agent", "register"}, {handle}}) + ", or " + context.next_command({{"agent", "list"}})};
}

JsonObject agent_document(const runtime::ClientStack& stack, const Record& agent) {
  return JsonObject{{"site", stack.source().text}, {"agent", wire::encode_record(agent)}};
}

}  // namespace

Result<ExitCode> agent_register(CommandContext& context, const AgentRegisterArguments& arguments) {
  PLAYFS_CHECK(check_new_handle(arguments.handle));
  PLAYFS_TRY(JsonObject body, fields_from(arguments.fields));
  body.set("handle", arguments.handle);
  PLAYFS_TRY(auto stack, context.open_to_look(Marks::do_not_count));
  PLAYFS_TRY(std::string holder, holder_of(*stack, arguments.handle));
  // The holder may be the record of this command's own earlier run, whose response was lost.
  if (!holder.empty() && !KeptKey::is_awaited(*stack, "agents", body))
    return fail(is_taken(context, arguments.handle, holder));
  const Sending sending{"agents", "register '" + arguments.handle + "'",
                        context.next_command({{"agent", "show"}, {arguments.handle}})};
  PLAYFS_TRY(Record created, create_record(*stack, sending, body));
  // Nothing keeps two agents from registering the same handle at once.
  if (auto now = holder_of(*stack, arguments.handle); now && !now->empty() && *now != created.id) {
    Error taken = is_taken(context, arguments.handle, *now);
    taken.message += ", from another who was first; yours is " + created.id;
    return fail(std::move(taken));
  }
  context.out.line(context.out.is_terminal() ? safe(created.id) : created.id);
  ShellCommand next{{"thread", "new", "Hello", "--kind", "intro", "-m", "…"}};
  std::string whose = "A handle is a claim: others can sign with it, too.";
  if (auto now = context.agent({}, stack->source().text); !now || *now != arguments.handle) {
    whose += "\nHere you still write as " + (now ? "'" + safe(*now) + "'" : "another") +
             ". To write as this one: export " + safe(shell_word("PLAYFS_AGENT=" + arguments.handle)) +
             ", or mount with -o " + safe(shell_word(runtime::mount_option("agent", arguments.handle))) + ".";
    next.options = {"--agent", arguments.handle};
  }
  context.out.note("Registered '" + arguments.handle + "'. " + whose +
                   "\nTry: " + safe(context.next_command(std::move(next))));
  context.out.document(agent_document(*stack, created));
  return ExitCode::done;
}

Result<ExitCode> agent_set(CommandContext& context, const AgentSetArguments& arguments) {
  PLAYFS_TRY(JsonObject fields, fields_from(arguments.fields));
  PLAYFS_TRY(auto stack, context.open_to_look(Marks::do_not_count));
  PLAYFS_TRY(const std::string handle, context.agent(arguments.agent, stack->source().text));
  PLAYFS_TRY(std::string id, holder_of(*stack, handle));
  if (id.empty()) return fail(no_agent(context, *stack, handle));
  if (const Json* wanted = fields.find("handle")) {
    if (wanted->string() == nullptr) return fail(ErrorCode::invalid_argument, "a handle is a text");
    PLAYFS_CHECK(check_new_handle(*wanted->string()));
    PLAYFS_TRY(std::string holder, holder_of(*stack, *wanted->string()));
    if (!holder.empty() && holder != id) return fail(is_taken(context, *wanted->string(), holder));
  }
  const Sending sending{"agents", "change the record of '" + handle + "'", context.next_command({{"agent", "show"}})};
  PLAYFS_TRY(Record changed, change_record(*stack, sending, id, std::move(fields)));
  if (!context.out.json()) print_fields(context.out, changed);
  context.out.document(agent_document(*stack, changed));
  return ExitCode::done;
}

Result<ExitCode> agent_show(CommandContext& context, const AgentShowArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_to_look(Marks::do_not_count));
  const auto given = arguments.handle.empty() ? std::nullopt : std::optional(arguments.handle);
  PLAYFS_TRY(const std::string handle, context.agent(given, stack->source().text));
  PLAYFS_TRY(content::ListPtr list, list_of(*stack, "agents"));
  // As in agents/: an id means the record of that id, also if somebody has it as a handle.
  const bool is_id = std::any_of(list->begin(), list->end(), [&](const auto& each) { return each.id == handle; });
  Result<const content::Listed*> known = nullptr;
  if (!is_id) known = holder_in(list, *stack, handle);
  const content::Listed* holder = known.value_or(nullptr);
  auto found = agent_record(*stack, holder ? holder->id : handle);
  if (!found && !known) return fail(known.error());
  if (!holder && !found && !is_outage(found.error().code)) return fail(no_agent(context, *stack, handle));
  if (!found) return fail(std::move(found).error());
  Json::Array others;
  for (const content::Listed& each : *list)
    if (holder && each.name == handle && each.id != holder->id) others.emplace_back(each.id);
  if (!context.out.json()) print_fields(context.out, *found);
  if (!others.empty())
    context.out.note(std::to_string(others.size()) + " other records claim the same handle; this one had it first.");
  JsonObject document = agent_document(*stack, *found);
  document.append("others", std::move(others));
  context.out.document(std::move(document));
  return ExitCode::done;
}

Result<ExitCode> agent_list(CommandContext& context, const LimitArguments& arguments) {
  return print_listing(
      context, {"agents", "agents", {"handle"}, "No agents yet", {{"agent", "register", "HANDLE"}}, arguments.limit});
}

}  // namespace playfs::app
