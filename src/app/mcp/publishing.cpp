#include "app/mcp/publishing.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "app/author.h"
#include "app/commit_report.h"
#include "app/json_fields.h"
#include "app/mcp/answers.h"
#include "app/repeated.h"
#include "base/shell.h"
#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookEvery{500};
/// How often to report progress, so that the client does not give up.
constexpr std::chrono::seconds kSaySomethingEvery{5};
constexpr std::uint32_t kWaitByDefault = 50;    // seconds; clients often give up after 60
constexpr std::uint32_t kLongestWait = 86'400;  // those that see progress may wait longer
constexpr std::size_t kMostPaths = 200;

std::string words_for(const vfs::WorkStatus& status) {
  std::string words;
  switch (status.phase) {
    case publish::Phase::idle: words = "Starting"; break;
    case publish::Phase::freezing:
    case publish::Phase::planning: words = "Planning"; break;
    case publish::Phase::uploading:
      words =
          "Uploading, " + std::to_string(status.chunks_done) + " of " + std::to_string(status.chunks_total) + " chunks";
      break;
    case publish::Phase::posting: words = "Publishing"; break;
    case publish::Phase::verifying: words = "Verifying"; break;
  }
  if (status.retry_after_s > 0) words += "; waits, retrying in " + vfs::duration_words(status.retry_after_s);
  return words;
}

/// Tells the client how far a publication is, while it lives.
class ProgressReports {
 public:
  ProgressReports(const mcp::Call& call, WorkTreeAccess& tree) : call_(call), tree_(tree) {
    if (!call.wants_progress()) return;
    reports_.emplace(kLookEvery, kLookEvery, [this] {
      if (auto status = tree_.status()) report(*status);
    });
  }

 private:
  /// Each report must be greater than the last one, even if nothing moves.
  void report(const vfs::WorkStatus& status) {
    const auto now = std::chrono::steady_clock::now();
    const int steps = status.phase == publish::Phase::posting ? 1 : status.phase == publish::Phase::verifying ? 2 : 0;
    const double done = status.chunks_done + steps;
    if (done <= last_ && now - said_ < kSaySomethingEvery) return;
    last_ = std::max(done, last_ + 0.001);
    said_ = now;
    call_.report(last_, status.chunks_total > 0 ? std::max(last_, status.chunks_total + 2.0) : 0, words_for(status));
  }

  const mcp::Call& call_;
  WorkTreeAccess& tree_;
  double last_ = -1;
  std::chrono::steady_clock::time_point said_{};
  std::optional<Repeated> reports_;  // last: uses the above
};

std::string lines_of(const std::vector<std::string>& paths) {
  std::string lines;
  for (std::size_t i = 0; i < std::min(paths.size(), kMostPaths); ++i) lines += "\n  " + safe(paths[i]);
  if (paths.size() > kMostPaths) lines += "\n  and " + std::to_string(paths.size() - kMostPaths) + " more";
  return lines;
}

std::vector<std::string> paths_in(const JsonObject& status, const char* list) {
  std::vector<std::string> paths;
  if (const Json::Array* items = array_of(status, list))
    for (const Json& each : *items)
      if (each.object()) paths.push_back(text_of(*each.object(), "path"));
  return paths;
}

constexpr const char* kResolve =
    "read each file in conflict, write it without the markers, then publish again (resolved=true if a file is right as "
    "it is)";

mcp::Answer in_conflict(const std::string& before, const std::vector<std::string>& conflicts) {
  return answered({before + "\nIn conflict:" + lines_of(conflicts)}, kResolve);
}

std::string staged_lines(const JsonObject& status) {
  const Json::Array* staged = array_of(status, "staged");
  if (!staged || staged->empty()) return "Nothing is changed.";
  std::string text = count_words(staged->size(), "path") + " changed, not published:";
  for (std::size_t i = 0; i < std::min(staged->size(), kMostPaths); ++i)
    if (const JsonObject* each = (*staged)[i].object())
      text += "\n  " + text_of(*each, "change") + "  " + safe(text_of(*each, "path"));
  if (staged->size() > kMostPaths) text += "\n  and " + std::to_string(staged->size() - kMostPaths) + " more";
  return text;
}

std::string place_of(const JsonObject& status) {
  const std::string base = text_of(status, "base"), head = text_of(status, "head");
  if (base.empty() && head.empty()) return "Nothing has been published yet.";
  if (base == head) return "At revision " + safe(head) + ", the latest known.";
  return "Based on " + (base.empty() ? "nothing" : safe(base)) + "; the latest known is " + safe(head) + ".";
}

/// What a client would otherwise look for, or believe to be published.
std::string left_out_lines(const JsonObject& status) {
  std::string text;
  if (const auto unread = paths_in(status, "unread"); !unread.empty())
    text += "\nNot read, so not published, because they are hidden or may not be read:" + lines_of(unread);
  const Json::Array* hidden = array_of(status, "hidden");
  if (hidden && !hidden->empty())
    text += "\nHidden, since agents would obey: " + count_words(hidden->size(), "published file") +
            ". A person lists them with: playfs status.";
  return text;
}

mcp::Answer changes_in(WorkTreeAccess& tree, const JsonObject& status) {
  std::string text = place_of(status) + "\n" + staged_lines(status) + left_out_lines(status);
  const JsonObject* publication = object_of(status, "publication");
  const JsonObject* last = publication ? object_of(*publication, "last") : nullptr;
  if (const JsonObject* error = last ? object_of(*last, "error") : nullptr)
    text += "\nThe last publication failed: " + safe(text_of(*error, "message")) + ".";
  const auto conflicts = paths_in(status, "conflicts");
  if (!conflicts.empty()) return in_conflict(text, conflicts);
  auto now = tree.status();
  if (now && (now->phase != publish::Phase::idle || now->queued > 0))
    return answered({text + "\nA publication is under way: " + words_for(*now) + "."}, "publish with action=wait");
  const Json::Array* staged = array_of(status, "staged");
  if (text_of(status, "base") != text_of(status, "head")) return answered({text}, "publish with action=update");
  return answered({text}, staged && !staged->empty() ? "publish with a message" : "list, read and write files");
}

mcp::Answer planned(const publish::CommitResult& result, const JsonObject& details) {
  std::string text = "Would publish " + count_words(result.files_changed, "changed file") + " with " +
                     count_words(result.writes_used, "write") + ". Nothing was sent.";
  std::vector<std::string> paths;
  if (const JsonObject* plan = object_of(details, "plan")) paths = paths_in(*plan, "paths");
  return answered({text + lines_of(paths)}, "publish without action, to publish this");
}

mcp::Answer answer_for(const publish::CommitResult& result) {
  const std::string id = safe(result.revision.text());
  switch (result.outcome) {
    case publish::Outcome::published:
      return answered({"Published revision " + id + ": " + count_words(result.files_changed, "file") + " changed."},
                      "go on editing, or talk to tell others");
    case publish::Outcome::merged:
      return answered({"Published revision " + id +
                       ". Others had published meanwhile: " + safe(result.merged_revision.text()) + " merges both."},
                      "read what they changed, or go on editing");
    case publish::Outcome::branched:
      return answered(
          {"Published revision " + id + " as a branch: others have changed the same places. Nothing is lost." +
           lines_of(result.conflicts)},
          "publish with action=update, which merges their revision into your files");
    case publish::Outcome::pending: {
      const std::string when = result.retry_after_s > 0
                                   ? " The service asks to wait " + vfs::duration_words(result.retry_after_s) + "."
                                   : "";
      return answered({"Not published yet: it is kept on disk and goes on." + when},
                      "publish with action=wait; action=cancel takes it back");
    }
    case publish::Outcome::cancelled:
      return answered({"Cancelled before it was sent: the changes are there, unpublished."}, "list with what=changes");
    case publish::Outcome::nothing:
    case publish::Outcome::planned: break;
  }
  return answered({"Nothing to publish: no file has changed."}, "write files first");
}

}  // namespace

struct Publishing::Wanted {
  std::string action = "publish", message;
  std::vector<std::string> paths;
  bool resolved = false;
  std::uint32_t wait_seconds = kWaitByDefault;

  static Result<Wanted> from(const JsonObject& arguments, bool sees_progress) {
    PLAYFS_CHECK(check_arguments(arguments, {"message", "action", "paths", "resolved", "wait_seconds"}));
    Wanted wanted;
    PLAYFS_TRY(const auto message, text_argument(arguments, "message"));
    PLAYFS_TRY(const auto action, text_argument(arguments, "action"));
    PLAYFS_TRY(const auto paths, texts_argument(arguments, "paths"));
    PLAYFS_TRY(wanted.resolved, flag_argument(arguments, "resolved"));
    PLAYFS_TRY(const auto wait, number_argument(arguments, "wait_seconds"));
    for (const std::string& given : paths) {
      PLAYFS_TRY(std::string path, path_in_project(given));
      wanted.paths.push_back(std::move(path));
    }
    wanted.message = message.value_or("");
    wanted.action = action.value_or(wanted.action);
    wanted.wait_seconds = std::min(wait.value_or(sees_progress ? kLongestWait : kWaitByDefault), kLongestWait);
    return wanted;
  }
};

Result<std::unique_ptr<WorkTreeAccess>> Publishing::open() {
  PLAYFS_TRY(const FoundWork* found, workplace_.enter(lane_));
  return open_work_tree(lane_.context(), found->place, "mcp");
}

mcp::Answer Publishing::changes() {
  auto tree = open();
  if (!tree) return failed(tree.error());
  auto status = (*tree)->status_document();
  return status ? changes_in(**tree, *status) : failed(status.error());
}

mcp::Answer Publishing::publish(const JsonObject& arguments, mcp::Call& call) {
  auto wanted = Wanted::from(arguments, call.wants_progress());
  auto answer = wanted ? act(*wanted, call) : fail(wanted.error());
  std::string notes = lane_.take_notes();
  if (!answer) return failed(answer.error());
  if (!notes.empty()) answer->texts.insert(answer->texts.begin() + 1, std::move(notes));
  return std::move(*answer);
}

Result<mcp::Answer> Publishing::act(const Wanted& wanted, mcp::Call& call) {
  static constexpr std::string_view kActions[] = {"publish", "preview", "update", "discard", "wait", "cancel"};
  if (std::find(std::begin(kActions), std::end(kActions), wanted.action) == std::end(kActions))
    return fail(ErrorCode::invalid_argument, "action is publish, preview, update, discard, wait or cancel");
  PLAYFS_TRY(auto tree, open());
  if (wanted.action == "update") return update(*tree);
  if (wanted.action == "discard") return discard(*tree, wanted);
  if (wanted.action != "cancel") call.limit(std::chrono::seconds(wanted.wait_seconds));
  if (wanted.action == "wait") return wait(*tree, call);
  if (wanted.action != "cancel") return commit(*tree, wanted, call);
  PLAYFS_TRY(const publish::Cancelled cancelled, tree->cancel());
  if (cancelled.too_late)
    return answered({"Too late: its revision has been sent, or may have been."}, "publish with action=wait");
  return answered(
      {cancelled.commits > 0 ? "Cancelled: the changes are there, unpublished." : "Nothing is being published."},
      "list with what=changes");
}

Result<mcp::Answer> Publishing::commit(WorkTreeAccess& tree, const Wanted& wanted, mcp::Call& call) {
  publish::CommitRequest request;
  request.message = wanted.message;
  request.agent = author_of(lane_.context(), tree.place());
  request.resolved = wanted.resolved;
  request.dry_run = wanted.action == "preview";
  if (request.message.empty() && !request.dry_run)
    return fail(ErrorCode::invalid_argument, "publish needs a message: what changed, and why");
  auto result = [&] {
    const ProgressReports progress(call, tree);
    const mcp::Call::Wait wait(call);
    return tree.commit(request, [&] { return call.is_over(); });
  }();
  // Whoever cancels does not want it published later.
  if (call.is_cancelled() && result && result->outcome == publish::Outcome::pending) {
    PLAYFS_TRY([[maybe_unused]] const auto cancelled, tree.cancel());
  }
  PLAYFS_TRY(const JsonObject status, tree.status_document());
  const auto conflicts = paths_in(status, "conflicts");
  if (!result && !conflicts.empty()) {
    mcp::Answer answer = failed(result.error(), kResolve);
    answer.texts.front() += "\nIn conflict:" + lines_of(conflicts);
    return answer;
  }
  if (!result) return fail(result.error());
  if (result->outcome == publish::Outcome::planned) return planned(*result, tree.details(*result));
  mcp::Answer answer = answer_for(*result);
  return conflicts.empty() ? answer : in_conflict(answer.texts.front(), conflicts);
}

Result<mcp::Answer> Publishing::update(WorkTreeAccess& tree) {
  PLAYFS_TRY(const vfs::WorkStatus before, tree.status());
  PLAYFS_TRY(const vfs::UpdateResult result, tree.update());
  const std::string text = result.base == before.base ? "Up to date at revision " + safe(result.base) + "."
                                                      : "Updated to revision " + safe(result.base) + ".";
  PLAYFS_TRY(const JsonObject status, tree.status_document());
  const auto conflicts = paths_in(status, "conflicts");
  if (!conflicts.empty()) return in_conflict(text, conflicts);
  return answered({text + "\n" + staged_lines(status)}, "read what is new, go on editing, or publish with a message");
}

Result<mcp::Answer> Publishing::discard(WorkTreeAccess& tree, const Wanted& wanted) {
  if (wanted.paths.empty())
    return fail(ErrorCode::invalid_argument, "discard needs paths: files or directories, or [\"/\"] for all changes");
  PLAYFS_CHECK(tree.discard(wanted.paths, true));
  PLAYFS_TRY(const DroppedChanges dropped, tree.discard(wanted.paths, false));
  std::string text = "Discarded the changes to " + count_words(dropped.paths, "path") + ".";
  auto word = [](const std::string& path) { return shell_operand(path.empty() ? "." : path); };
  for (const KeptChanges::Kept& each : dropped.kept.all())
    text += " In a shell there, playfs checkpoint restore " + std::to_string(each.checkpoint) + each.words(word) +
            " brings them back.";
  return answered({std::move(text)}, "list with what=changes");
}

Result<mcp::Answer> Publishing::wait(WorkTreeAccess& tree, mcp::Call& call) {
  const ProgressReports progress(call, tree);
  for (;;) {
    PLAYFS_TRY(const vfs::WorkStatus status, tree.status());
    const bool is_done = status.phase == publish::Phase::idle && status.queued == 0 && status.pending == 0;
    if (is_done || call.is_over()) break;
    std::this_thread::sleep_for(kLookEvery);
  }
  PLAYFS_TRY(const JsonObject status, tree.status_document());
  return changes_in(tree, status);
}

}  // namespace playfs::app
