// Which chunks are on the service now, as opposed to: were once.
//
// A service can go back to an older state: it is restored from a backup, or a site that nobody claimed expires. Chunks
// that were uploaded after that state are gone then, though the journal remembers their ids. So a plan refers to a
// chunk only if it was seen: acknowledged a moment ago, read by a request, or named by a revision that the service has
// (a state that holds a revision holds what is older). Reading is cheap; a commit whose chunks are all of those kinds
// costs no request more. For one thread; waits.
#pragma once

#include <chrono>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "model/manifest.h"
#include "publish/upstream.h"

namespace playfs::publish {

using ChunkIds = std::unordered_set<ChunkId>;

class StoredChunks {
 public:
  StoredChunks(Upstream& upstream, const Clock& clock) : upstream_(upstream), clock_(clock) {}

  /// The service has just acknowledged it, or given it.
  void saw(const ChunkId& chunk) { seen_[chunk] = clock_.steady(); }
  /// What was seen says nothing any more: the service was away, or has gone back.
  void forget_all() { seen_.clear(); }

  /// Those of `chunks` that the service does not have. Asks for each that was not seen lately, many at once.
  Result<ChunkIds> find_missing(const ChunkIds& chunks);

 private:
  /// How long a chunk counts as seen. An upload that takes longer is looked at once more before it is referred to.
  static constexpr std::chrono::minutes kLately{2};

  Upstream& upstream_;
  const Clock& clock_;
  std::unordered_map<ChunkId, SteadyTime> seen_;
};

/// A planned manifest with the files that went into its continuation, whose text that is; "" where it has none.
Result<Manifest> with_continuation(Manifest planned, std::string_view continuation);

/// The chunks that a manifest names, those of its continuation too.
ChunkIds chunks_of(const Manifest& manifest);

}  // namespace playfs::publish
