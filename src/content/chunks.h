// file_chunks records: on disk or fetched, many at once, what somebody waits for before what is only fetched ahead.
// Thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <unordered_set>

#include "content/context.h"
#include "content/single_flight.h"
#include "model/records.h"

namespace playfs::content {

enum class Urgency { demand, ahead };
using ChunkPtr = std::shared_ptr<const FileChunk>;

class Chunks {
 public:
  explicit Chunks(Context& context) : context_(context) {}

  /// Looks on the disk first. A request that nobody waits for any more when its turn comes is not sent.
  void get(const ChunkId& id, Urgency urgency, const CancelToken& cancel, Callback<ChunkPtr> done);
  /// Somebody waits now: those of them that still wait for their turn get it before all that is fetched ahead.
  void hurry(std::span<const ChunkId> ids);
  /// Forgets what is on disk, so that the service is asked again.
  void forget(std::span<const ChunkId> ids);
  void close() { flights_.close(); }

 private:
  [[nodiscard]] ChunkPtr known(const ChunkId& id) const;
  void send_next();
  /// The next request to send, or nothing. It counts as under way from then on.
  std::optional<ChunkId> take_next();
  void arrived(const ChunkId& id, Result<Record> answer);
  Result<ChunkPtr> decode(const ChunkId& id, Result<Record> answer);

  Context& context_;
  SingleFlight<ChunkId, ChunkPtr> flights_;
  Mutex mutex_;
  std::deque<ChunkId> demanded_ PLAYFS_GUARDED_BY(mutex_);
  std::deque<ChunkId> ahead_ PLAYFS_GUARDED_BY(mutex_);
  /// What still waits for its turn; an id in a queue that is not in here has had it.
  std::unordered_set<ChunkId> queued_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t under_way_ PLAYFS_GUARDED_BY(mutex_) = 0;
};

}  // namespace playfs::content
