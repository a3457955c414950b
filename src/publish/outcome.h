// The outcome and the progress of a commit. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/ids.h"

namespace playfs::publish {

enum class Outcome {
  published,
  merged,
  branched,
  pending,
  nothing,
  planned,    ///< a dry run: nothing was sent
  cancelled,  ///< returned to the stage before its revision was sent
};

struct CommitResult {
  Outcome outcome = Outcome::nothing;
  std::string tx;  ///< the commit's id, by which its outcome can be requested later; a dry run has its own
  RevisionId revision;
  RevisionId merged_revision;  ///< the automatic merge that became head, if any
  std::uint32_t files_changed = 0;
  std::uint32_t writes_used = 0;  ///< chunks and revisions that were stored, and PATCHes that were sent
  std::uint32_t chunks_done = 0;
  std::uint32_t chunks_total = 0;
  std::uint32_t retry_after_s = 0;  ///< pending on a rate limit: when it continues
  std::vector<std::string> conflicts;
};

enum class Phase { idle, freezing, planning, uploading, posting, verifying };

/// A commit that is queued or in progress.
struct QueuedCommit {
  std::string tx;
  std::string agent;
  std::string message;
};

/// Progress of reading the log of revisions, if that takes more than a moment.
struct LogReading {
  std::uint64_t records = 0;  ///< of all projects
  WallTime back_to;           ///< the time reached, going backwards from now
  WallTime down_to;           ///< where reading ends
};

struct Progress {
  Phase phase = Phase::idle;
  CommitResult so_far;
  std::uint64_t bytes_done = 0;  ///< of the chunks' text, during the upload
  std::uint64_t bytes_total = 0;
  std::optional<std::uint32_t> seconds_left;  ///< if it can be estimated
  std::optional<Error> last_error;            ///< why it waits, if it does
  std::optional<LogReading> reading;          ///< while the log is searched for this project's revisions
  std::string tx;
};

/// The result of a request to cancel.
struct Cancelled {
  std::uint32_t commits = 0;  ///< that will not be published; their frozen changes are staged again
  bool too_late = false;      ///< one had already been sent, and continues
};

}  // namespace playfs::publish
