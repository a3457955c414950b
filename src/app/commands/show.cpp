// playfs show: shows a revision (or a project's head): who, when, why, and what it changed.
#include <map>

#include "app/commands/commands.h"
#include "app/lookup.h"
#include "app/revisions.h"
#include "base/await.h"

namespace playfs::app {

namespace {

/// The paths in which a revision differs from its first parent.
Result<std::vector<PathChange>> changes_of(runtime::ClientStack& stack, const RevisionTreePtr& revision) {
  RevisionTreePtr parent;
  if (!revision->revision.parents.empty()) {
    PLAYFS_TRY(parent, await<RevisionTreePtr>([&](auto done) {
                 stack.site().revision(revision->revision.parents.front(), {}, std::move(done));
               }));
  }
  return compare(parent ? &parent->tree.manifest() : nullptr, revision->tree.manifest());
}

}  // namespace

Result<ExitCode> show(CommandContext& context, const ShowArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_client_stack());
  PLAYFS_TRY(RevisionTreePtr revision, find_revision(*stack, arguments.what));
  PLAYFS_TRY(auto changes, changes_of(*stack, revision));
  const ShownRevision shown = as_shown(revision->revision);
  JsonObject document = revision_document(shown);
  Json::Array items, refused;
  for (const std::string& line : revision_lines(context.out, shown)) context.out.line(line);
  for (const PathChange& change : changes) {
    items.push_back(JsonObject{{"path", change.path}, {"change", change.kind}});
    context.out.line("  " + std::string(change.kind) + "  " + safe(change.path));
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
