// Care of a directory of objects, beside any number of processes that use it: what lies there, and making room.
//
// An object's modification time is when it was last used, to within ObjectStore's kUsedGranularity; the directory
// itself is the only bookkeeping, so nothing can disagree with it. Thread-safe; calls do local I/O, one stat(2) an
// object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "model/content_hash.h"

namespace playfs::cache {

struct ObjectsUsage {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;    ///< of their files
  std::uint64_t damaged = 0;  ///< set aside, still there for whoever wants to know why
};

/// No directory is an empty one.
Result<ObjectsUsage> measure_objects(const std::string& directory);

/// Calls `visit` for each object, in no order; false ends it.
Status visit_objects(const std::string& directory, const std::function<bool(const ContentHash&)>& visit);

/// Removes what was used longest ago until at most `budget` bytes are left; whoever has one of them open reads on.
/// Answers what is left. `busy` where another process is at it.
Result<ObjectsUsage> trim_objects(const std::string& directory, std::uint64_t budget);

/// Removes all objects, damaged ones too. What others write meanwhile may stay.
Status clear_objects(const std::string& directory);

}  // namespace playfs::cache
