// playfs show: shows a revision (or a project's head): who, when, why, and what it changed.
#include "app/commands/commands.h"
#include "app/lookup.h"
#include "app/patch.h"
#include "app/revisions.h"
#include "base/await.h"

namespace playfs::app {

namespace {

/// nullptr if it has none.
Result<RevisionTreePtr> first_parent_of(runtime::ClientStack& stack, const Revision& revision) {
  if (revision.parents.empty()) return RevisionTreePtr();
  return await<RevisionTreePtr>(
      [&](auto done) { stack.site().revision(revision.parents.front(), {}, std::move(done)); });
}

}  // namespace

Result<ExitCode> show(CommandContext& context, const ShowArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  PLAYFS_TRY(RevisionTreePtr revision, find_revision(context, *stack, arguments.what));
  PLAYFS_TRY(RevisionTreePtr parent, first_parent_of(*stack, revision->revision));
  const ShownRevision shown = as_shown(revision->revision);
  JsonObject document = revision_document(shown);
  Json::Array items, refused;
  for (const std::string& line : revision_lines(context.out, shown)) context.out.line(line);
  const Manifest nothing;
  for (const auto& change :
       compare::changes_between(parent ? parent->tree.manifest() : nothing, revision->tree.manifest())) {
    items.push_back(JsonObject{{"path", change.path}, {"change", word_of(change)}});
    context.out.line("  " + word_of(change) + "  " + safe(change.path));
  }
  for (const RefusedEntry& entry : revision->tree.manifest().refused) {
    refused.push_back(JsonObject{{"path", entry.path}, {"reason", entry.reason}});
    context.out.line("  not shown  " + safe(entry.path) + " (" + safe(entry.reason) + ")");
  }
  document.append("files", static_cast<std::uint64_t>(revision->tree.manifest().files.size()));
  document.append("changes", std::move(items));
  document.append("refused", std::move(refused));
  context.out.document(std::move(document));
  return ExitCode::done;
}

}  // namespace playfs::app
