// What a commit came to, and how far one is. Plain values.
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
  cancelled,  ///< given back before its revision was sent
};

struct CommitResult {
  Outcome outcome = Outcome::nothing;
  std::string tx;  ///< the commit's id, by which its outcome can be asked for later; of a dry run its own
  RevisionId revision;
  RevisionId merged_revision;  ///< the automatic merge that became head, where there was one
  std::uint32_t files_changed = 0;
  std::uint32_t writes_used = 0;  ///< chunks and revisions that were stored, and PATCHes that were sent
  std::uint32_t chunks_done = 0;
  std::uint32_t chunks_total = 0;
  std::uint32_t retry_after_s = 0;  ///< pending on a rate limit: when it goes on
  std::vector<std::string> conflicts;
};

enum class Phase { idle, freezing, planning, uploading, posting, verifying };

/// The code that name_of gave that name, as it is written down; `internal` where there is none.
ErrorCode code_named(std::string_view name);

/// A commit that waits for its turn, or is under way.
struct QueuedCommit {
  std::string tx;
  std::string agent;
  std::string message;
};

/// How far the log of revisions was read, where that takes more than a moment.
struct LogReading {
  std::uint64_t records = 0;  ///< of all projects
  WallTime back_to;           ///< from now
  WallTime down_to;           ///< where it ends
};

struct Progress {
  Phase phase = Phase::idle;
  CommitResult so_far;
  std::uint64_t bytes_done = 0;  ///< of the chunks' text, while it is uploaded
  std::uint64_t bytes_total = 0;
  std::optional<std::uint32_t> seconds_left;  ///< as far as it can be judged
  std::optional<Error> last_error;            ///< why it is waiting, if it is
  std::optional<LogReading> reading;          ///< where others' revisions are read through for this project's
  std::string tx;
};

/// What became of a request to cancel whatever is under way.
struct Cancelled {
  std::uint32_t commits = 0;  ///< that will not be published; what was frozen for them is staged again
  bool too_late = false;      ///< one had been sent already, and goes on
};

}  // namespace playfs::publish
