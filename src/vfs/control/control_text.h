// Contents of control files: JSON documents with stable keys, and text for people. Pure functions.
//
// Text from strangers (names, paths, messages, errors) is escaped in output for people, since it ends up on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "content/revision_summary.h"
#include "content/site.h"
#include "model/records.h"
#include "model/tree.h"
#include "publish/publisher.h"
#include "stage/stage.h"
#include "vfs/file_system.h"

namespace playfs::vfs {

inline constexpr int kSchemaVersion = 1;

std::string_view name_of(Outcome outcome);
std::string_view name_of(Phase phase);
std::string_view name_of(stage::ChangeKind kind);

/// {code, message, hint, retryable, retry_after_s}, the last one only if it is known.
JsonObject error_json(const Error& error);
/// {"error": …}.
std::string error_document(const Error& error);
/// Shown when a process reads a request that it is still writing itself.
std::string unfinished_document();
/// The fields of a commit's result.
JsonObject commit_members(const CommitResult& result);
/// The result of a dry run: {revision_bytes, revision_bytes_limit, paths: [{path, deleted, bytes, chunks,
/// chunk_bytes}]}.
Json plan_json(const publish::PlannedCommit& plan);
/// The result of a commit, as read back from `commit`.
Json commit_json(const CommitResult& result);
std::string commit_document(const CommitResult& result);

/// Everything that `status` and `status.json` show about a project.
struct ProjectStatus {
  ProjectId project;
  std::string name;
  bool gone = false;                             ///< the service does not have it; only the local data is left
  RevisionId base;                               ///< of the work tree; empty: none
  RevisionId head;                               ///< the revision shown as head
  std::optional<Error> head_refused;             ///< why the project's latest revision is not shown
  std::optional<std::chrono::seconds> head_age;  ///< set if the service has not confirmed head for too long
  std::optional<RevisionId> lost;  ///< a base lost when the service was rolled back; its content is staged
  bool branch = false;             ///< the work tree is on a branch that its own commit created
  std::vector<stage::Change> changes;
  std::vector<stage::LostFile> lost_files;  ///< staged files whose bytes are gone
  std::vector<std::string> unpublished;
  std::vector<RefusedEntry> refused;                ///< of the base
  std::vector<std::string> hidden;                  ///< files that are hidden: they give instructions to agents
  std::vector<std::string> instructions_of_others;  ///< files that do, are shown, and were not published from here
  bool state_staged = false;
  std::vector<stage::Conflicted> conflicts;    ///< left by an update or merge and still unresolved
  std::vector<RevisionId> merging;             ///< merged revisions: extra parents of the next commit
  std::vector<stage::Checkpoint> checkpoints;  ///< newest first
  std::optional<publish::Progress> progress;
  std::vector<publish::QueuedCommit> queue;   ///< the running commit first
  content::SummaryPtr latest;                 ///< of head, if known locally; else nullptr
  std::vector<RevisionId> left_out;           ///< siblings that the publisher saw but did not merge
  std::vector<content::SummaryPtr> branches;  ///< those known locally, newest first
  std::optional<Result<CommitResult>> last;
  std::optional<Error> no_work_tree;  ///< why the work tree is not writable
  remote::Health health;
};
Json status_json(const ProjectStatus& status);
std::string status_text(const ProjectStatus& status);

/// `line` is newest first.
std::string log_text(const std::vector<content::SummaryPtr>& line);
std::string log_ndjson(const std::vector<content::SummaryPtr>& line);

/// "45 s", "12 min", "2 h 5 min", "3 days".
std::string duration_words(std::uint64_t seconds);
/// "512 B", "40 KB", "12 MB".
std::string size_words(std::uint64_t bytes);

Json health_json(const remote::Health& health);
/// What files show of a record.
content::Reduced text_of_record(Record record);
/// What `state.json` shows of a revision's record.
content::Reduced text_of_state(Record record);
/// What messages_text() shows of the record of a thread or a message.
content::Reduced shown_of_message(Record record);
/// Oldest message first. `older`: how many before them are left out; `is_whole`: false where the service has messages
/// that no list shows.
std::string messages_text(const Record& thread, std::span<const content::RecordPartPtr> messages, std::size_t older,
                          bool is_whole);
/// The same of the messages alone.
std::string messages_text(std::span<const content::RecordPartPtr> messages);

/// A string field of a record; "" if absent.
std::string text_field(const JsonObject& fields, std::string_view name);

}  // namespace playfs::vfs
