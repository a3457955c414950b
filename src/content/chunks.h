// file_chunks records, from disk or fetched many at once: demand before prefetch, projects in turn. Thread-safe.
//
// A project whose chunks hang must not hold up others: each may have half of what the others leave of twice the
// transport's width. So a single project gets the whole width, and one that comes after hanging ones still finds room.
//
// The kernel asks twice for data it cannot get, by readahead and for the reader. A request that took long to fail is
// not repeated for the second.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "content/single_flight.h"
#include "content/site_context.h"
#include "model/records.h"

namespace playfs::content {

enum class Urgency { demand, ahead };
using ChunkPtr = std::shared_ptr<const FileChunk>;

class Chunks {
 public:
  explicit Chunks(SiteContext& context) : context_(context) {}

  /// Checks the disk first. A request that nobody waits for when its turn comes is not sent. `project`: whose share it
  /// uses.
  void get(const ChunkId& id, const ProjectId& project, Urgency urgency, const CancelToken& cancel,
           Callback<ChunkPtr> done);
  /// Promotes chunks that are still queued ahead of all prefetching, because a reader needs them now.
  void hurry(std::span<const ChunkId> ids);
  /// Drops them from disk, so that they are requested again.
  void forget(std::span<const ChunkId> ids);
  void close() { flights_.close(); }
  /// Bytes of contents that have arrived from the service since the start.
  [[nodiscard]] std::uint64_t bytes_arrived() const { return bytes_arrived_; }

 private:
  /// A project's requests in flight and queued; removed when there are none.
  struct Account {
    std::deque<ChunkId> demanded;
    std::deque<ChunkId> ahead;
    std::size_t under_way = 0;
  };
  struct Request {
    ChunkId id;
    ProjectId project;
    SteadyTime sent_at;
  };
  struct Failure {
    Error error;
    SteadyTime at;
  };

  [[nodiscard]] ChunkPtr known(const ChunkId& id) const;
  void send_next();
  /// The next request to send, if any. Counts as in flight from then on.
  std::optional<Request> take_next() PLAYFS_EXCLUDES(mutex_);
  void ended(const Request& request) PLAYFS_EXCLUDES(mutex_);
  void note_failure(const Request& request, const Error& error) PLAYFS_EXCLUDES(mutex_);
  /// Why it has just failed, if that took long.
  [[nodiscard]] std::optional<Error> just_failed(const ChunkId& id) PLAYFS_EXCLUDES(mutex_);
  void arrived(const Request& request, Result<Record> answer);
  Result<ChunkPtr> decode(const ChunkId& id, Result<Record> answer);

  SiteContext& context_;
  std::atomic<std::uint64_t> bytes_arrived_ = 0;
  SingleFlight<ChunkId, ChunkPtr> flights_;
  Mutex mutex_;
  std::map<ProjectId, Account> accounts_ PLAYFS_GUARDED_BY(mutex_);
  ProjectId last_ PLAYFS_GUARDED_BY(mutex_);  ///< whose turn it was
  /// Chunks still waiting for their turn, with their project. An id in a queue but not in here has had its turn.
  std::unordered_map<ChunkId, ProjectId> queued_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t under_way_ PLAYFS_GUARDED_BY(mutex_) = 0;  ///< in total
  std::unordered_map<ChunkId, Failure> failures_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
