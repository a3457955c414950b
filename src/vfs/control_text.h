// What control files say: documents as JSON text, with stable keys, and text for people. Pure functions.
//
// Text of strangers (names, paths, messages, errors) is escaped where it goes to a person, since it ends on a terminal.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
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

/// {"error": {code, message, hint, retryable}}.
Json error_json(const Error& error);
std::string error_document(const Error& error);
/// For whoever reads a request that the same process is still writing.
std::string unfinished_document();
/// What a commit came to, field by field.
JsonObject commit_members(const CommitResult& result);
/// What a dry run found: {revision_bytes, revision_bytes_limit, paths: [{path, deleted, bytes, chunks, chunk_bytes}]}.
Json plan_json(const publish::PlannedCommit& plan);
/// The result of a commit, for reading `commit` back.
Json commit_json(const CommitResult& result);
std::string commit_document(const CommitResult& result);

/// Everything that `status` and `status.json` say of a project.
struct ProjectStatus {
  ProjectId project;
  std::string name;
  bool gone = false;                             ///< the service does not have it, and what is here is all of it
  RevisionId base;                               ///< of the work tree; empty: none
  RevisionId head;                               ///< as it is shown
  std::optional<Error> head_refused;             ///< why that is not the project's latest revision
  std::optional<std::chrono::seconds> head_age;  ///< where the service has not said for too long where head is
  std::optional<RevisionId> lost;  ///< a base that the service lost when it went back; what it held is staged
  bool branch = false;             ///< the work tree sits on a branch that its own commit made
  std::vector<stage::Change> changes;
  std::vector<stage::LostFile> lost_files;  ///< staged, and their bytes are gone
  std::vector<std::string> unpublished;
  std::vector<RefusedEntry> refused;  ///< of the base
  bool state_staged = false;
  std::vector<stage::Conflicted> conflicts;  ///< left by an update or a merge, and not resolved yet
  std::vector<RevisionId> merging;           ///< taken in: further parents of the next commit
  std::optional<publish::Progress> progress;
  std::vector<publish::QueuedCommit> queue;  ///< the one under way first
  std::optional<Revision> latest;            ///< head's record, where it is known here
  std::vector<RevisionId> left_out;          ///< siblings that the publisher saw and did not merge
  std::vector<Revision> branches;            ///< as far as they are known here, newest first
  std::optional<Result<CommitResult>> last;
  std::optional<Error> no_work_tree;  ///< why there is none to write in
  remote::Health health;
};
Json status_json(const ProjectStatus& status);
std::string status_text(const ProjectStatus& status);

/// `line`: newest first.
std::string log_text(const std::vector<RevisionTreePtr>& line);
std::string log_ndjson(const std::vector<RevisionTreePtr>& line);

/// "45 s", "12 min", "2 h 5 min", "3 days".
std::string duration_words(std::uint64_t seconds);
/// "512 B", "40 KB", "12 MB".
std::string size_words(std::uint64_t bytes);

Json health_json(const remote::Health& health);
/// What messages_text() shows of the record of a thread or a message.
Record shown_of_message(const Record& record);
/// Oldest message first. `older`: how many before them are left out; `is_whole`: false where the service has messages
/// that no list shows.
std::string messages_text(const Record& thread, std::span<const Record> messages, std::size_t older, bool is_whole);

/// A string field of a record; "" where there is none.
std::string text_field(const JsonObject& fields, std::string_view name);

}  // namespace playfs::vfs
