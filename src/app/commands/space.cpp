// playfs space: creates, changes, shows and lists spaces, the named regions and layouts of a playground.
#include "app/commands/conversation.h"
#include "app/json_fields.h"
#include "app/lookup.h"
#include "app/record_reading.h"
#include "app/sending.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr Noun kSpace{"spaces", "space"};

JsonObject space_document(const runtime::ClientStack& stack, const Record& space) {
  return JsonObject{{"site", stack.source().text}, {"space", wire::encode_record(space)}};
}

}  // namespace

Result<ExitCode> space_new(CommandContext& context, const SpaceNewArguments& arguments) {
  if (arguments.name.empty()) return fail(ErrorCode::invalid_argument, "a space needs a name", "playfs space new NAME");
  PLAYFS_TRY(JsonObject body, fields_from(arguments.fields));
  body.set("name", arguments.name);
  PLAYFS_TRY(auto stack, context.open_to_look());
  const Sending sending{"spaces", "create the space '" + arguments.name + "'",
                        context.next_command({{"space", "list"}})};
  PLAYFS_TRY(Record created, create_record(*stack, sending, body));
  context.out.line(context.out.is_terminal() ? safe(created.id) : created.id);
  context.out.note("Created the space '" + safe(arguments.name) +
                   "'. Try: " + safe(context.next_command({{"space", "set"}, {created.id, "about=…"}})));
  context.out.document(space_document(*stack, created));
  return ExitCode::done;
}

Result<ExitCode> space_set(CommandContext& context, const SpaceSetArguments& arguments) {
  PLAYFS_TRY(JsonObject fields, fields_from(arguments.fields));
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(Record space, find_record(context, *stack, kSpace, arguments.space));
  const Sending sending{"spaces", "change the space '" + arguments.space + "'",
                        context.next_command({{"space", "show"}, {space.id}})};
  PLAYFS_TRY(Record changed, change_record(*stack, sending, space.id, std::move(fields)));
  if (!context.out.json()) print_fields(context.out, changed);
  context.out.document(space_document(*stack, changed));
  return ExitCode::done;
}

Result<ExitCode> space_show(CommandContext& context, const SpaceShowArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(Record space, find_record(context, *stack, kSpace, arguments.space));
  if (!context.out.json()) print_fields(context.out, space);
  context.out.document(space_document(*stack, space));
  return ExitCode::done;
}

Result<ExitCode> space_list(CommandContext& context, const LimitArguments& arguments) {
  return print_listing(context,
                       {"spaces", "spaces", {"name"}, "No spaces yet", {{"space", "new", "NAME"}}, arguments.limit});
}

}  // namespace playfs::app
