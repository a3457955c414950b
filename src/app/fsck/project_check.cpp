#include "app/fsck/project_check.h"

#include <set>
#include <utility>

#include <fmt/format.h>

#include "app/fsck/other_clients.h"
#include "app/json_fields.h"
#include "app/record_reading.h"
#include "base/parallel.h"
#include "base/shell.h"
#include "model/continuation.h"
#include "wire/ancestry.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::app {

namespace {

constexpr const char* kRevisionsList = "revisions";
/// A node of the service whose clock lags may have dated a revision before the project.
constexpr std::chrono::minutes kClocksDiffer{10};
/// A longer list counts as endless.
constexpr std::size_t kMostListPages = 100'000;
/// How many revisions that the list lacks are asked for: anybody can name any number.
constexpr std::size_t kMostOthers = 1000;
constexpr const char* kNoRevision =
    "nothing to do: revisions are never changed; if it is head, PATCH the project's latest_revision (playfs api)";
constexpr const char* kNothingToDo = "nothing to do: revisions are never changed; log and merges stop there";

}  // namespace

ProjectCheck::ProjectCheck(runtime::ClientStack& stack, Project project, Options options, const CancelToken& cancel)
    : stack_(stack),
      project_(std::move(project)),
      options_(std::move(options)),
      cancel_(cancel),
      faults_(project_.latest_revision),
      content_(stack, faults_, {project_.id, options_.uses_cache}, cancel) {}

Status ProjectCheck::run() {
  PLAYFS_CHECK(read_list());
  PLAYFS_CHECK(look_for_others());
  PLAYFS_CHECK(content_.finish());
  check_links();
  check_head();
  return {};
}

Status ProjectCheck::read_list() {
  WallTime floor = project_.created_at;
  floor.nanoseconds -= std::chrono::nanoseconds(kClocksDiffer).count();
  Status taken;
  bool is_past = false;
  auto take_one = [&](const Record& record) {
    const auto created_at = parse_iso8601(record.created_at);
    is_past = created_at && *created_at < floor;
    if (!is_past && text_of(record.fields, "project") == project_.id.text()) taken = take(record);
    return !is_past && taken;
  };
  PLAYFS_TRY(const LookedAt looked, read_newest(stack_, kRevisionsList, kMostListPages, take_one, cancel_));
  PLAYFS_CHECK(std::move(taken));
  if (!looked.everything && !is_past) return fail(ErrorCode::protocol, "the list of revisions does not end");
  if (looked.unreadable > 0)
    faults_.add({}, "",
                {Severity::notice, "unreadable_records",
                 fmt::format("{} entries of the list of revisions are no records", looked.unreadable),
                 "tell whoever runs the service; they may be of any project"});
  return {};
}

Status ProjectCheck::take(const Record& record) {
  if (graph_.has(RevisionId(record.id))) return {};
  if (options_.progress) options_.progress(*this);
  Revision revision = wire::decode_revision_but_files(record);
  graph_.add(revision.id, revision.parents);
  for (const Fault& fault : record_forms(record, revision)) faults_.add(revision.id, "", fault);
  const Json* manifest = record.fields.find("manifest");
  auto decoded = manifest ? wire::decode_manifest(*manifest)
                          : Result<Manifest>(fail(ErrorCode::refused_input, "the record has no manifest"));
  if (!decoded) {
    faults_.add(revision.id, "", {Severity::damage, "unreadable_revision", decoded.error().message, kNoRevision});
    return {};
  }
  revision.manifest = *std::move(decoded);
  PLAYFS_CHECK(add_continuation(revision));
  PLAYFS_CHECK(check_refused(revision));
  return check_files(revision);
}

Status ProjectCheck::add_continuation(Revision& revision) {
  Manifest& manifest = revision.manifest;
  if (!manifest.continuation) return {};
  const FileEntry entry = manifest.continuation->entry;
  PLAYFS_TRY(auto text, content_.read(revision.id, kContinuationPath, entry));
  if (text && wire::read_continuation(manifest, *text))
    faults_.add(revision.id, kContinuationPath, continuation_form());
  else if (text) show_continuation(manifest);  // a plain file of that name
  return {};
}

Status ProjectCheck::check_refused(const Revision& revision) {
  for (const RefusedEntry& refused : revision.manifest.refused) {
    auto entry = wire::decode_file_entry(refused.entry);
    faults_.add(revision.id, refused.path,
                entry ? refused_name(refused.reason) : Fault{Severity::damage, "unreadable_entry", refused.reason});
    if (entry) PLAYFS_CHECK(content_.check(revision.id, refused.path, *entry));
  }
  return {};
}

Status ProjectCheck::check_files(const Revision& revision) {
  Forms forms;
  for (const auto& [path, entry] : revision.manifest.files) {
    forms.add(path, entry);
    PLAYFS_CHECK(content_.check(revision.id, path, entry));
  }
  for (const auto& [fault, path, files] : forms.found()) faults_.add_group(revision.id, path, files, fault);
  return {};
}

Status ProjectCheck::look_for_others() {
  for (;;) {
    std::set<RevisionId> others;
    auto note = [&](const RevisionId& id) {
      if (!graph_.has(id) && !absent_.contains(id) && asked_ + others.size() < kMostOthers) others.insert(id);
    };
    if (!project_.latest_revision.empty()) note(project_.latest_revision);
    for (const auto& [child, parent] : graph_.to_unknown()) note(parent);
    if (others.empty()) return {};
    asked_ += others.size();
    PLAYFS_CHECK(look_for({others.begin(), others.end()}));
  }
}

Status ProjectCheck::look_for(const std::vector<RevisionId>& others) {
  return run_parallel<Record>(
      others.size(), stack_.client().width(),
      [&](std::size_t index, Callback<Record> done) {
        stack_.client().get_record(kRevisionsList, others[index].text(), cancel_, std::move(done), project_.id.text());
      },
      [&](auto answers) -> Status {
        for (const auto& [index, answer] : answers) {
          // One that the list lacked, as a lagging replica's may.
          if (answer && text_of(answer->fields, "project") == project_.id.text()) {
            PLAYFS_CHECK(take(*answer));
            continue;
          }
          PLAYFS_TRY(Absence absence, absence_of(answer));
          absent_.emplace(others[index], std::move(absence));
        }
        return {};
      });
}

Result<ProjectCheck::Absence> ProjectCheck::absence_of(const Result<Record>& answer) const {
  if (answer) return Absence{Severity::damage, "foreign", "belongs to project " + text_of(answer->fields, "project")};
  const Error& error = answer.error();
  switch (error.code) {
    case ErrorCode::not_found: return Absence{Severity::damage, "missing", "does not exist"};
    case ErrorCode::permission_denied:
      return Absence{Severity::notice, "withheld", "is not shown by the service: " + error.message};
    case ErrorCode::protocol:
    case ErrorCode::refused_input: return Absence{Severity::damage, "unreadable", "cannot be read: " + error.message};
    default: return fail(error);
  }
}

void ProjectCheck::check_links() {
  std::size_t unasked = 0;
  for (const auto& [child, parent] : graph_.to_unknown()) {
    auto found = absent_.find(parent);
    if (found == absent_.end()) {
      ++unasked;
      continue;
    }
    const Absence& absence = found->second;
    faults_.add(child, "",
                {absence.severity, absence.kind + "_parent", "its parent " + parent.text() + " " + absence.words,
                 kNothingToDo});
  }
  if (unasked > 0)
    faults_.add({}, "",
                {Severity::notice, "unchecked_parents",
                 fmt::format("{} more parents are in no list and were not asked for", unasked), kNothingToDo});
  for (const auto& [first, length] : graph_.cycles())
    faults_.add(first, "",
                {Severity::damage, "cycle", fmt::format("its parents lead back to it, through {} revisions", length),
                 kNothingToDo});
}

std::string ProjectCheck::head_repair(const RevisionId& newest) const {
  if (newest.empty()) return "publish a revision: playfs import DIR --project " + shell_word(project_.id.text());
  JsonObject change;
  change.append("latest_revision", newest.text());
  return "playfs api PATCH " + shell_word("/projects/" + project_.id.text()) + " -d " +
         shell_word(wire::to_text(Json(std::move(change))));
}

void ProjectCheck::check_head() {
  const RevisionId& head = project_.latest_revision;
  const auto branches = graph_.beside(head);
  const std::string repair = head_repair(branches.empty() ? RevisionId() : branches.front().tip);
  if (head.empty() && graph_.size() > 0)
    faults_.add({}, "",
                {Severity::damage, "missing_head", "the project has revisions, but names none as its latest", repair});
  if (auto found = absent_.find(head); found != absent_.end())
    faults_.add(head, "",
                {Severity::damage, found->second.kind + "_head",
                 "the project names it as its latest revision, but it " + found->second.words, repair});
  for (const auto& [tip, revisions] : branches)
    faults_.add(
        tip, "",
        {Severity::branch, "branch", fmt::format("head does not reach it, nor {} of its ancestors", revisions - 1),
         "in a work tree: playfs merge " + shell_operand(tip.text())});
}

}  // namespace playfs::app
