// playfs branches: lists unmerged revisions beside head, and how to merge each.
#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/work_tree_access.h"
#include "base/shell.h"

namespace playfs::app {

Result<ExitCode> branches(CommandContext& context, const BranchesArguments& arguments) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "branches"));
  PLAYFS_CHECK(tree->look_for_branches());
  PLAYFS_TRY(JsonObject status, tree->status_document());
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
      const std::string take_in = is_base ? "playfs update" : "playfs merge " + shell_operand(revision);
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
  context.out.document(JsonObject{{"project", tree->place().project},
                                  {"head", text_of(status, "head")},
                                  {"base", base},
                                  {"branches", std::move(items)}});
  return ExitCode::done;
}

}  // namespace playfs::app
