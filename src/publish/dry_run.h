// Determines what a commit would send, without sending it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "publish/outcome.h"
#include "stage/stage.h"

namespace playfs::publish {

class PublicationEngine;

/// What a commit would send.
struct PlannedCommit {
  std::string id;  ///< of this dry run alone; its result is read back by it
  /// A changed path and its cost.
  struct Path {
    std::string path;
    bool deleted = false;
    std::uint64_t size = 0;    ///< of its content, in bytes
    std::uint32_t chunks = 0;  ///< new chunks
    std::uint64_t sent = 0;    ///< bytes of text in these
  };
  std::uint32_t files_changed = 0;
  std::uint64_t revision_size = 0;  ///< bytes of JSON
  std::vector<Path> paths;          ///< sorted
};

/// A dry run's id in place of a commit's, of the same length.
inline constexpr const char* kDryRunTx = "00000000000000000000000000000000";

/// Thaws what a dry run froze. If the dry run could not because the disk was full, the next caller does it.
Status end_dry_run(stage::Stage& stage);

/// Plans a commit of what is staged now, by `agent`. Journals nothing and sends only reads. Blocking. Fails with `busy`
/// while something is pending. REQUIRES: no publication is half done.
Result<PlannedCommit> dry_run(stage::Stage& stage, PublicationEngine& engine, const std::string& agent);

/// The cost as a commit's result.
CommitResult result_of(const PlannedCommit& planned);

}  // namespace playfs::publish
