// What a commit came to, and how far one is. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/ids.h"

namespace playfs::publish {

enum class Outcome {
  published,
  merged,
  branched,
  pending,
  nothing,
  planned,  ///< a dry run: nothing was sent
};

struct CommitResult {
  Outcome outcome = Outcome::nothing;
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

struct Progress {
  Phase phase = Phase::idle;
  CommitResult so_far;
  std::optional<Error> last_error;  ///< why it is waiting, if it is
  std::string tx;
};

}  // namespace playfs::publish
