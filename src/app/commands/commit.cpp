// playfs commit: what is staged in the work tree around a path, published.
#include <cstring>

#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/work_tree.h"

namespace playfs::app {

namespace {

template <std::size_t Size>
Status put(char (&field)[Size], const std::string& text, const char* what) {
  if (text.size() >= Size)
    return fail(ErrorCode::invalid_argument,
                std::string(what) + " is longer than " + std::to_string(Size - 1) + " bytes");
  if (!is_valid_utf8(text) || text.find('\0') != std::string::npos)
    return fail(ErrorCode::invalid_argument, std::string(what) + " is not valid UTF-8 text");
  std::memcpy(field, text.data(), text.size());
  return {};
}

publish::Outcome outcome_of(__u32 outcome) {
  switch (static_cast<playfs_outcome>(outcome)) {
    case PLAYFS_PUBLISHED: return publish::Outcome::published;
    case PLAYFS_MERGED: return publish::Outcome::merged;
    case PLAYFS_BRANCHED: return publish::Outcome::branched;
    case PLAYFS_PENDING: return publish::Outcome::pending;
    case PLAYFS_NOTHING: return publish::Outcome::nothing;
  }
  return publish::Outcome::pending;  // of a newer mount: journalled is all that is certain
}

}  // namespace

Result<ExitCode> commit(Context& context, const CommitArguments& arguments) {
  PLAYFS_TRY(WorkTree tree, WorkTree::open(context.io.absolute(arguments.path)));
  playfs_commit request{};
  PLAYFS_CHECK(put(request.message, arguments.message, "the message"));
  // Without an author of this user's own choosing it is the mount's.
  std::string agent = arguments.agent.value_or(context.settings.text("agent", tree.place().source).value_or(""));
  PLAYFS_CHECK(put(request.agent, agent, "the agent's handle"));
  request.flags = (arguments.wait ? 0 : PLAYFS_COMMIT_NOWAIT) | (arguments.merge ? 0 : PLAYFS_COMMIT_NO_MERGE);
  PLAYFS_CHECK(tree.commit(request));

  publish::CommitResult result;
  result.outcome = outcome_of(request.outcome);
  result.revision = RevisionId(request.revision);
  result.merged_revision = RevisionId(request.merged_revision);
  result.files_changed = request.files_changed;
  result.writes_used = request.writes_used;
  result.chunks_done = request.chunks_done;
  result.chunks_total = request.chunks_total;
  result.retry_after_s = request.retry_after_s;
  if (!result.revision.empty()) context.out.line(result.revision.text());
  tell_commit(context.out, result);
  JsonObject document{{"project", tree.place().project}};
  for (const auto& [name, value] : commit_document(result)) document.append(name, value);
  context.out.document(std::move(document));
  return exit_code_for(result.outcome);
}

}  // namespace playfs::app
