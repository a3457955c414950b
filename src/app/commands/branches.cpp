// playfs branches: lists unmerged revisions beside head, and how to merge each.
#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/mounted.h"
#include "app/siblings.h"
#include "base/shell.h"

namespace playfs::app {

Result<ExitCode> branches(CommandContext& context, const BranchesArguments& arguments) {
  PLAYFS_TRY(MountedPlace place, find_project_at(context.io.absolute(arguments.path)));
  PLAYFS_CHECK(look_for_siblings(place));
  PLAYFS_TRY(JsonObject status, read_json_object(place.project_directory + "/status.json"));
  const std::string base = text_of(status, "base");
  Json::Array items;
  std::string first;
  if (const Json::Array* branches = array_of(status, "branches")) {
    for (const Json& each : *branches) {
      const JsonObject* fields = each.object();
      if (fields == nullptr) continue;
      JsonObject item = *fields;
      const std::string revision = text_of(*fields, "revision"), message = text_of(*fields, "message");
      const bool is_base = revision == base;
      item.set("is_base", is_base);
      const std::string take_in = is_base ? "playfs update" : "playfs merge " + shell_word(revision);
      item.set("take_in", take_in);
      items.push_back(std::move(item));
      context.out.line(safe(revision) + "  " + safe(text_of(*fields, "created_at")) + "  " +
                       safe(text_of(*fields, "agent")) + "  " + safe(message.substr(0, message.find('\n'))) +
                       (is_base ? "  (the work tree's base)" : ""));
      if (first.empty()) first = take_in;
    }
  }
  if (items.empty()) context.out.note("No branches: head contains everything that was published.");
  else context.out.note("Try: " + safe(first) + ", then playfs commit -m MESSAGE");
  context.out.document(JsonObject{
      {"project", place.project}, {"head", text_of(status, "head")}, {"base", base}, {"branches", std::move(items)}});
  return ExitCode::done;
}

}  // namespace playfs::app
