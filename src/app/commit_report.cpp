#include "app/commit_report.h"

#include <algorithm>

#include "app/json_fields.h"
#include "vfs/control/control_text.h"

namespace playfs::app {

namespace {

std::string_view name_of(publish::Outcome outcome) {
  switch (outcome) {
    case publish::Outcome::published: return "published";
    case publish::Outcome::merged: return "merged";
    case publish::Outcome::branched: return "branched";
    case publish::Outcome::pending: return "pending";
    case publish::Outcome::nothing: return "nothing";
    case publish::Outcome::planned: return "planned";
    case publish::Outcome::cancelled: return "cancelled";
  }
  return "nothing";
}

std::string count_of(std::uint32_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string words_for(std::uint64_t hours) {
  return hours == 0 ? "at once" : "in about " + count_of(static_cast<std::uint32_t>(hours), "hour");
}

}  // namespace

std::uint64_t hours_under_limits(std::uint32_t chunks, std::uint64_t written) {
  constexpr std::uint64_t kChunksInAnHour = 240;
  // However many there were, the next hour takes as many as any.
  return chunks == 0 ? 0 : (std::min(written, kChunksInAnHour) + chunks - 1) / kChunksInAnHour;
}

void print_plan(Output& out, const JsonObject& plan) {
  const Json::Array* paths = array_of(plan, "paths");
  if (paths == nullptr) return;
  for (const Json& each : *paths) {
    const JsonObject* path = each.object();
    if (path == nullptr) continue;
    const Json* deleted = path->find("deleted");
    const std::uint64_t chunks = number_of(*path, "chunks");
    std::string costs = deleted && deleted->boolean().value_or(false) ? "deleted"
                        : chunks > 0 ? count_of(static_cast<std::uint32_t>(chunks), "chunk") + ", " +
                                           vfs::size_words(number_of(*path, "chunk_bytes")) + " to send"
                                     : "no chunk to send";
    costs.resize(std::max<std::size_t>(costs.size(), 28), ' ');
    out.line("  " + costs + "  " + safe(text_of(*path, "path")));
  }
  out.line("  the revision itself: " + std::to_string(number_of(plan, "revision_bytes")) + " of " +
           std::to_string(number_of(plan, "revision_bytes_limit")) + " bytes allowed in a record");
}

JsonObject commit_document(const publish::CommitResult& result) {
  Json::Array conflicts;
  for (const std::string& path : result.conflicts) conflicts.push_back(path);
  auto number = [](std::uint32_t value) { return Json(static_cast<std::uint64_t>(value)); };
  return JsonObject{{"outcome", name_of(result.outcome)},
                    {"revision", result.revision.text()},
                    {"merged_revision", result.merged_revision.text()},
                    {"files_changed", number(result.files_changed)},
                    {"writes_used", number(result.writes_used)},
                    {"chunks_done", number(result.chunks_done)},
                    {"chunks_total", number(result.chunks_total)},
                    {"retry_after_s", number(result.retry_after_s)},
                    {"conflicts", std::move(conflicts)}};
}

void tell_commit(Output& out, const publish::CommitResult& result, std::string_view after_branch, bool in_background,
                 std::uint64_t hours) {
  std::string revision = safe(result.revision.text());
  switch (result.outcome) {
    case publish::Outcome::published:
      out.note("Published " + revision + ": " + count_of(result.files_changed, "file") + " changed, " +
               count_of(result.writes_used, "write") + " used.");
      return;
    case publish::Outcome::merged:
      out.note("Published " + revision + "; head had moved, and " + safe(result.merged_revision.text()) +
               " merges both.");
      return;
    case publish::Outcome::branched:
      out.note("Published " + revision + " as a branch: head had moved, and the two were not merged. Nothing is lost.");
      for (const std::string& path : result.conflicts) out.note("  conflict  " + safe(path));
      out.note("Try: " + std::string(after_branch));
      return;
    case publish::Outcome::pending:
      out.note(std::string("Not published yet: the commit is safe on disk, and ") +
               (in_background ? "is published in the background." : "goes on with the next command here."));
      if (result.retry_after_s > 0)
        out.note("Waiting for the service; retrying in " + std::to_string(result.retry_after_s) + " s (" +
                 std::to_string(result.chunks_done) + " of " + count_of(result.chunks_total, "chunk") + " uploaded).");
      out.note(std::string("Try: playfs ") + (in_background ? "status" : "update") +
               ", or playfs commit --cancel to take it back");
      return;
    case publish::Outcome::planned:
      out.note("Would publish " + count_of(result.files_changed, "changed file") + " with " +
               count_of(result.writes_used, "write") + " (" + count_of(result.chunks_total, "new chunk") + "), " +
               words_for(hours) + ". Nothing was sent.");
      return;
    case publish::Outcome::cancelled:
      out.note("Cancelled before it was sent: the changes are staged again.");
      out.note("Try: playfs status");
      return;
    case publish::Outcome::nothing: out.note("Nothing to commit: no changes are staged."); return;
  }
}

ExitCode tell_conflicts(Output& out, std::uint32_t conflicts) {
  if (conflicts == 0) return ExitCode::done;
  out.note(count_of(conflicts, "path") + (conflicts == 1 ? " is" : " are") +
           " in conflict. Try: playfs status, edit the files it lists, then playfs commit -m MESSAGE");
  return ExitCode::branched;
}

ExitCode exit_code_for(publish::Outcome outcome) {
  switch (outcome) {
    case publish::Outcome::published:
    case publish::Outcome::merged:
    case publish::Outcome::nothing:
    case publish::Outcome::planned: return ExitCode::done;
    case publish::Outcome::branched: return ExitCode::branched;
    case publish::Outcome::pending: return ExitCode::pending;
    case publish::Outcome::cancelled: return ExitCode::failed;
  }
  return ExitCode::failed;
}

}  // namespace playfs::app
