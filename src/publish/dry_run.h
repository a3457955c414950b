// What a commit would send, worked out without sending it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "publish/outcome.h"
#include "stage/stage.h"

namespace playfs::publish {

class Engine;

/// What a commit would send.
struct PlannedCommit {
  std::string id;  ///< of this dry run alone: what it found is read back by it
  /// A changed path and what it takes.
  struct Path {
    std::string path;
    bool deleted = false;
    std::uint64_t size = 0;    ///< bytes of its content
    std::uint32_t chunks = 0;  ///< new ones
    std::uint64_t sent = 0;    ///< bytes of text in them
  };
  std::uint32_t files_changed = 0;
  std::uint64_t revision_size = 0;  ///< bytes of JSON
  std::vector<Path> paths;          ///< in their order
};

/// Instead of a commit's, and as long.
inline constexpr const char* kDryRunTx = "00000000000000000000000000000000";

/// Gives back what a dry run has frozen. The disk may have been full when it ended: then whoever comes next does this.
Status end_dry_run(stage::Stage& stage);

/// Of what is staged now, by `agent`. Nothing is journalled or sent but reads. Waits. Fails with `busy` while something
/// is pending. REQUIRES: no publication is half done.
Result<PlannedCommit> dry_run(stage::Stage& stage, Engine& engine, const std::string& agent);

/// The same as a commit's result: what it would take.
CommitResult result_of(const PlannedCommit& planned);

}  // namespace playfs::publish
