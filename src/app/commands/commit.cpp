// playfs commit: publishes what is staged in the work tree around a path.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include "app/author.h"
#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/json_fields.h"
#include "app/mounted.h"
#include "app/mounted_work_tree.h"
#include "app/shown_progress.h"
#include "vfs/control/control_text.h"

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
    case PLAYFS_PLANNED: return publish::Outcome::planned;
    case PLAYFS_CANCELLED: return publish::Outcome::cancelled;
  }
  return publish::Outcome::pending;  // from a newer mount: only that it is journalled is certain
}

constexpr std::size_t kBarWidth = 12;  // leaves room for the words on a terminal of 80 columns

std::string bar(std::uint64_t done, std::uint64_t total) {
  const std::size_t filled = total == 0 ? 0 : static_cast<std::size_t>(std::min(done, total) * kBarWidth / total);
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, ' ') + "] ";
}

std::string words_for(const playfs_status& status) {
  std::string left;
  if (status.chunks_total > 0) {
    left = std::to_string(status.chunks_done) + "/" + std::to_string(status.chunks_total) + " chunks";
    if (status.bytes_total > 0)
      left += ", " + vfs::size_words(status.bytes_done) + " of " + vfs::size_words(status.bytes_total);
    // During a backoff the next attempt matters more, and the line has no room for both.
    if (status.seconds_left > 0 && status.retry_after_s == 0)
      left += ", " + vfs::duration_words(status.seconds_left) + " left";
  }
  const std::string behind = status.queued > 0 ? " (+" + std::to_string(status.queued) + " queued)" : "";
  const std::string shown = bar(status.chunks_done, status.chunks_total);
  if (status.retry_after_s > 0)
    return "Waiting   " + shown + "retrying in " + vfs::duration_words(status.retry_after_s) +
           (left.empty() ? "" : "; " + left) + behind;
  switch (static_cast<playfs_phase>(status.phase)) {
    case PLAYFS_PHASE_IDLE: return "";
    case PLAYFS_PHASE_FREEZING:
    case PLAYFS_PHASE_PLANNING: return "Planning" + behind;
    case PLAYFS_PHASE_UPLOADING: return "Uploading " + shown + left + behind;
    case PLAYFS_PHASE_POSTING: return "Publishing" + behind;
    case PLAYFS_PHASE_VERIFYING: return "Verifying" + behind;
  }
  return "";
}

constexpr std::chrono::milliseconds kShowEvery{250};

/// While it lives, Ctrl-C ends the waiting for a publication rather than the command, which can then report it.
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

/// If the kernel limits the duration of a call, it answers `pending` early, and the outcome is requested again by the
/// commit's id, since others may have committed meanwhile. After an interrupt the outcome stays `pending`.
Status wait_for_outcome(const MountedWorkTree& tree, playfs_commit& request) {
  while (request.outcome == PLAYFS_PENDING) {
    // An interrupted call may have answered `pending` as well.
    timespec pause{0, 500'000'000};
    if (InterruptibleWait::was_interrupted() || nanosleep(&pause, nullptr) != 0) return {};
    if (*request.tx == '\0') return {};  // an older mount, which cannot be asked
    playfs_commit again = request;
    again.flags |= PLAYFS_COMMIT_AGAIN;
    Status asked = tree.commit(again);
    if (!asked && asked.error().code == ErrorCode::interrupted) return {};
    if (!asked && *again.error.code == '\0') return {};  // the mount ended; the publication goes on at the next one
    if (is_out_of_time(asked)) continue;
    PLAYFS_CHECK(asked);
    request = again;
  }
  return {};
}

Status publish(CommandContext& context, const MountedWorkTree& tree, playfs_commit& request) {
  InterruptibleWait interruptible;
  const ShownProgress progress(context.out, kShowEvery, [&tree] {
    auto status = tree.status();
    return status ? words_for(*status) : std::string();
  });
  auto committed = tree.commit(request);
  if (committed && request.outcome == PLAYFS_PENDING && (request.flags & PLAYFS_COMMIT_NOWAIT) == 0)
    return wait_for_outcome(tree, request);
  if (committed || committed.error().code != ErrorCode::interrupted) return committed;
  // Frozen and journalled before any waiting: it goes on without us.
  request.outcome = PLAYFS_PENDING;
  return {};
}

Result<ExitCode> cancel(CommandContext& context, const MountedWorkTree& tree) {
  PLAYFS_TRY(playfs_cancel result, tree.cancel());
  if (result.cancelled > 0)
    context.out.note("Cancelled " + std::to_string(result.cancelled) +
                     (result.cancelled == 1 ? " commit" : " commits") + "; the changes are staged again.");
  if (result.too_late != 0)
    context.out.note(
        "Too late to cancel the commit in progress: its revision has been sent, or may have been.\nTry: playfs status");
  if (result.cancelled == 0 && result.too_late == 0) context.out.note("Nothing is being published.");
  context.out.document(JsonObject{{"project", tree.place().project},
                                  {"cancelled", std::uint64_t{result.cancelled}},
                                  {"too_late", result.too_late != 0}});
  return result.too_late != 0 ? ExitCode::pending : ExitCode::done;
}

/// The author to commit under. Empty: the mount's default, if the mount does not say what that is.
std::string author_of(const CommandContext& context, const MountedPlace& place) {
  const Author own = author_at(context, place.source);
  if (own.is_configured()) return own.handle;
  auto of_mount = author_of_mount(place);
  return of_mount ? author_in(context, place, *of_mount).handle : "";
}

Result<playfs_commit> request_of(const CommandContext& context, const MountedWorkTree& tree,
                                 const CommitArguments& arguments) {
  playfs_commit request{};
  PLAYFS_CHECK(put(request.message, arguments.message, "the message"));
  PLAYFS_CHECK(
      put(request.agent, arguments.agent ? *arguments.agent : author_of(context, tree.place()), "the agent's handle"));
  request.flags = (arguments.wait ? 0 : PLAYFS_COMMIT_NOWAIT) | (arguments.merge ? 0 : PLAYFS_COMMIT_NO_MERGE) |
                  (arguments.resolved ? PLAYFS_COMMIT_RESOLVED : 0) | (arguments.dry_run ? PLAYFS_COMMIT_DRY_RUN : 0);
  return request;
}

publish::CommitResult result_of(const playfs_commit& answer) {
  publish::CommitResult result;
  result.outcome = outcome_of(answer.outcome);
  result.tx = answer.tx;
  result.revision = RevisionId(answer.revision);
  result.merged_revision = RevisionId(answer.merged_revision);
  result.files_changed = answer.files_changed;
  result.writes_used = answer.writes_used;
  result.chunks_done = answer.chunks_done;
  result.chunks_total = answer.chunks_total;
  result.retry_after_s = answer.retry_after_s;
  return result;
}

/// A user who names a folder means its contents only, but a commit takes all that is staged.
Status check_takes_all(const MountedWorkTree& tree, const std::string& given) {
  const std::string within = tree.place().in_work.value_or("");
  if (given == "." || within.empty()) return {};
  PLAYFS_TRY(JsonObject status, read_json_object(tree.place().project_directory + "/status.json"));
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

std::uint32_t conflicts_left(const MountedWorkTree& tree) {
  auto status = tree.status();
  return status ? status->conflicts : 0;
}

}  // namespace

Result<ExitCode> commit(CommandContext& context, const CommitArguments& arguments) {
  PLAYFS_TRY(MountedWorkTree tree, MountedWorkTree::open(context.io.absolute(arguments.path)));
  if (arguments.cancel) return cancel(context, tree);
  PLAYFS_CHECK(check_takes_all(tree, arguments.path));
  PLAYFS_TRY(playfs_commit request, request_of(context, tree, arguments));
  if (Status published = publish(context, tree, request); !published) {
    ExitCode code = context.out.error(published.error());
    return published.error().code == ErrorCode::busy && conflicts_left(tree) > 0 ? ExitCode::branched : code;
  }
  publish::CommitResult result = result_of(request);
  // Reads what the fixed-size struct cannot hold, unless the file is about another commit by now.
  JsonObject full;
  if (result.outcome == publish::Outcome::branched || result.outcome == publish::Outcome::planned) {
    auto read = read_json_object(tree.place().project_directory + "/commit");
    if (read && text_of(*read, "tx") == result.tx) full = *std::move(read);
  }
  if (const Json::Array* paths = array_of(full, "conflicts"))
    for (const Json& path : *paths)
      if (path.string()) result.conflicts.push_back(*path.string());
  if (const std::string& id = result.revision.text(); !id.empty())
    context.out.line(context.out.is_terminal() ? safe(id) : id);
  if (const JsonObject* plan = object_of(full, "plan")) print_plan(context.out, *plan);
  tell_commit(context.out, result);
  if (result.outcome == publish::Outcome::pending) {
    auto status = tree.status();
    if (status && status->queued > 0)
      context.out.note("It is one of " + std::to_string(status->queued) +
                       " queued behind another commit; each publishes what is staged when its turn comes.");
  }
  ExitCode code = exit_code_for(result.outcome);
  if (result.outcome == publish::Outcome::published || result.outcome == publish::Outcome::merged) {
    // For files that were edited while their commit was merged with other people's changes to them.
    code = tell_conflicts(context.out, conflicts_left(tree));
  }
  JsonObject document{{"project", tree.place().project}, {"tx", result.tx}};
  for (const auto& [name, value] : commit_document(result)) document.append(name, value);
  if (const Json* plan = full.find("plan")) {
    document.append("hours_under_limits", hours_under_limits(result.chunks_total));
    document.append("plan", *plan);
  }
  context.out.document(std::move(document));
  return code;
}

}  // namespace playfs::app
