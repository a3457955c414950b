// Usage and eviction of an object directory that any number of processes share.
//
// An object's modification time is its last use, to within kUsedGranularity. The directory is the only bookkeeping, so
// nothing can disagree with it. Thread-safe; calls do local I/O, one stat(2) per object.
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
  std::uint64_t damaged = 0;  ///< set aside for diagnosis
};

/// A missing directory counts as empty.
Result<ObjectsUsage> measure_objects(const std::string& directory);

/// Calls `visit` for each object, in no order, until it returns false.
Status visit_objects(const std::string& directory, const std::function<bool(const ContentHash&)>& visit);

/// Evicts least recently used objects until at most `budget` bytes are left; open ones stay readable. Returns what is
/// left. Fails with `busy` if another process is evicting.
Result<ObjectsUsage> trim_objects(const std::string& directory, std::uint64_t budget);

/// Removes all objects, including damaged ones. Concurrent writes may survive.
Status clear_objects(const std::string& directory);

}  // namespace playfs::cache
