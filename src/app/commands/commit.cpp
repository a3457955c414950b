// playfs commit: publishes what is staged in the work tree around a path.
#include <algorithm>
#include <chrono>
#include <csignal>

#include "app/author.h"
#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/json_fields.h"
#include "app/publication_words.h"
#include "app/shown_progress.h"
#include "app/work_tree_access.h"
#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {

/// Tells of a wait where no terminal shows it: once for each reason, and again if it ends much later than told.
class ToldWait {
 public:
  explicit ToldWait(const Clock& clock) : clock_(clock) {}

  std::string news(WorkTreeAccess& tree) {
    const auto status = tree.status();
    if (!status || status->retry_after_s < kWorthTelling) return {};
    const auto why = tree.why_it_waits();
    const std::chrono::seconds wait{status->retry_after_s};
    const SteadyTime end = clock_.steady() + wait;
    if (!why || (why_ == why->code && end < told_until_ + kMuchLater)) return {};
    why_ = why->code;
    told_until_ = end;
    const WallTime until{clock_.wall().nanoseconds + std::chrono::nanoseconds(wait).count()};
    return "Waiting: " + safe(why->message) + "; retrying in " + vfs::duration_words(status->retry_after_s) + ", at " +
           format_iso8601(until).substr(0, 16) + "Z. Ctrl-C ends the waiting, and the commit stays queued.";
  }

 private:
  static constexpr std::uint32_t kWorthTelling = 3;  // seconds
  static constexpr std::chrono::minutes kMuchLater{10};

  const Clock& clock_;
  std::optional<ErrorCode> why_;
  SteadyTime told_until_{};
};

/// While it lives, Ctrl-C ends the wait for a publication instead of the command, which can then report the outcome.
class InterruptibleWait {
 public:
  InterruptibleWait() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) { interrupted_ = 1; };  // without SA_RESTART: blocking calls return EINTR
    interrupted_ = 0;
    sigaction(SIGINT, &nothing, &before_);
  }
  ~InterruptibleWait() { sigaction(SIGINT, &before_, nullptr); }
  InterruptibleWait(const InterruptibleWait&) = delete;
  InterruptibleWait& operator=(const InterruptibleWait&) = delete;
  [[nodiscard]] static bool was_interrupted() { return interrupted_ != 0; }

 private:
  static inline volatile std::sig_atomic_t interrupted_ = 0;
  struct sigaction before_ {};
};

Result<publish::CommitResult> publish(CommandContext& context, WorkTreeAccess& tree,
                                      const publish::CommitRequest& request) {
  InterruptibleWait interruptible;
  auto words = [&tree] {
    auto status = tree.status();
    return status ? words_for_publication(*status) : std::string();
  };
  ToldWait told(context.io.clock);
  const ShownProgress progress(context.out, kShowPublicationEvery, words, [&] { return told.news(tree); });
  return tree.commit(request, InterruptibleWait::was_interrupted);
}

Result<ExitCode> cancel(CommandContext& context, WorkTreeAccess& tree) {
  PLAYFS_TRY(const publish::Cancelled result, tree.cancel());
  if (result.commits > 0)
    context.out.note("Cancelled " + std::to_string(result.commits) + (result.commits == 1 ? " commit" : " commits") +
                     "; the changes are staged again.");
  if (result.too_late)
    context.out.note(
        "Too late to cancel the commit in progress: its revision has been sent, or may have been.\nTry: playfs status");
  if (result.commits == 0 && !result.too_late) context.out.note("Nothing is being published.");
  context.out.document(JsonObject{
      {"project", tree.place().project}, {"cancelled", std::uint64_t{result.commits}}, {"too_late", result.too_late}});
  return result.too_late ? ExitCode::pending : ExitCode::done;
}

publish::CommitRequest request_of(const CommandContext& context, const WorkTreeAccess& tree,
                                  const CommitArguments& arguments) {
  publish::CommitRequest request;
  request.message = arguments.message;
  request.agent = arguments.agent ? *arguments.agent : author_of(context, tree.place());
  request.wait = arguments.wait;
  request.allow_merge = arguments.merge;
  request.resolved = arguments.resolved;
  request.dry_run = arguments.dry_run;
  return request;
}

/// A user who names a folder means its contents only, but a commit takes all that is staged.
Status check_takes_all(WorkTreeAccess& tree, const std::string& given) {
  const std::string within = tree.place().in_work.value_or("");
  if (given == "." || within.empty()) return {};
  PLAYFS_TRY(JsonObject status, tree.status_document());
  const Json::Array* staged = array_of(status, "staged");
  if (!staged) return {};
  for (const Json& each : *staged) {
    const std::string path = each.object() ? text_of(*each.object(), "path") : "";
    if (path == within || path.starts_with(within + '/')) continue;
    return fail(ErrorCode::invalid_argument,
                "a commit publishes everything that is staged, including " + escape_for_terminal(path) + ", not " +
                    given + " alone",
                "playfs status, then playfs commit without PATH to publish everything");
  }
  return {};
}

/// How long a planned commit will take. A mount knows what was written in the last hour; the playground on this disk
/// has no limits.
std::uint64_t hours_of(const MountedPlace& place, const publish::CommitResult& result) {
  if (place.source.starts_with("local:")) return 0;
  std::uint64_t written = 0;
  if (!place.clone) {
    const auto limits = read_json_object(place.mount_point + "/.playfs/limits.json");
    const JsonObject* observed = limits ? object_of(*limits, "observed") : nullptr;
    const JsonObject* chunks = observed ? object_of(*observed, "file_chunks") : nullptr;
    if (chunks) written = number_of(*chunks, "writes_last_hour");
  }
  return hours_under_limits(result.chunks_total, written);
}

std::uint32_t conflicts_left(WorkTreeAccess& tree) {
  auto status = tree.status();
  return status ? status->conflicts : 0;
}

/// For files that were edited while their commit was merged with other people's changes to them.
ExitCode tell_new_conflicts(Output& out, WorkTreeAccess& tree, publish::Outcome outcome) {
  const bool is_on_head = outcome == publish::Outcome::published || outcome == publish::Outcome::merged;
  return is_on_head ? tell_conflicts(out, conflicts_left(tree)) : exit_code_for(outcome);
}

}  // namespace

Result<ExitCode> commit_after_run(CommandContext& context, const CommitArguments& arguments,
                                  std::string_view after_branch, JsonObject& document) {
  PLAYFS_TRY(auto tree, open_work_tree(context, context.io.absolute(arguments.path), "commit"));
  const auto result = publish(context, *tree, request_of(context, *tree, arguments));
  if (!result) {
    document.append("error", vfs::error_json(result.error()));
    if (!context.out.json()) context.out.error(result.error());
    return exit_code_for(result.error().code);
  }
  tell_commit(context.out, *result, after_branch, false);
  document = commit_document(*result);
  return tell_new_conflicts(context.out, *tree, result->outcome);
}

Result<ExitCode> commit(CommandContext& context, const CommitArguments& arguments) {
  PLAYFS_TRY(auto opened, open_work_tree(context, context.io.absolute(arguments.path), "commit"));
  WorkTreeAccess& tree = *opened;
  if (arguments.cancel) return cancel(context, tree);
  PLAYFS_CHECK(check_takes_all(tree, arguments.path));
  auto published = publish(context, tree, request_of(context, tree, arguments));
  if (!published) return fail(published.error());
  const publish::CommitResult& result = *published;
  const JsonObject full = result.outcome == publish::Outcome::planned ? tree.details(result) : JsonObject();
  if (const std::string& id = result.revision.text(); !id.empty())
    context.out.line(context.out.is_terminal() ? safe(id) : id);
  if (const JsonObject* plan = object_of(full, "plan")) print_plan(context.out, *plan);
  const std::uint64_t hours = hours_of(tree.place(), result);
  tell_commit(context.out, result, kAfterBranch, tree.publishes_in_background(), hours);
  if (result.outcome == publish::Outcome::pending) {
    auto status = tree.status();
    if (status && status->queued > 0)
      context.out.note("It is one of " + std::to_string(status->queued) +
                       " queued behind another commit; each publishes what is staged when its turn comes.");
  }
  const ExitCode code = tell_new_conflicts(context.out, tree, result.outcome);
  JsonObject document{{"project", tree.place().project}, {"tx", result.tx}};
  for (const auto& [name, value] : commit_document(result)) document.append(name, value);
  if (const Json* plan = full.find("plan")) {
    document.append("hours_under_limits", hours);
    document.append("plan", *plan);
  }
  context.out.document(std::move(document));
  return code;
}

}  // namespace playfs::app
