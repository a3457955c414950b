// What a plan may refer to instead of uploading it: chunks that were uploaded from here, and those that files had
// before they changed. For one thread; waits.
#pragma once

#include <cstddef>
#include <string>

#include "model/plan.h"
#include "publish/journal.h"
#include "publish/upstream.h"

namespace playfs::publish {

/// All chunks that were ever uploaded from here.
Status add_known(Journal& journal, KnownPieces& pieces);

/// Reads the chunks that files had, so that what they are now can be cut around them.
class NearChunks {
 public:
  NearChunks(Upstream& upstream, Stored& stored) : upstream_(upstream), stored_(stored) {}

  /// Those of `entry`, for what stands at `path` now. Left out where nobody can read them, and where all together
  /// would be too many.
  Status add(const std::string& path, const FileEntry& entry);

 private:
  Upstream& upstream_;
  Stored& stored_;
  std::size_t read_ = 0;
};

}  // namespace playfs::publish
