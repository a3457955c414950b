// file_chunks records: on disk or fetched, many at once, what somebody waits for before what is only fetched ahead, and
// each project in its turn. Thread-safe.
//
// A project whose chunks do not come must not hold up the others: each may have half of what they leave of twice the
// transport's width. So one alone has all of that width, and whoever comes after others that hang still finds room.
//
// The kernel asks twice for what it cannot have, ahead of a reader and for him: what took long to fail is not begun
// anew the second time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "content/context.h"
#include "content/single_flight.h"
#include "model/records.h"

namespace playfs::content {

enum class Urgency { demand, ahead };
using ChunkPtr = std::shared_ptr<const FileChunk>;

class Chunks {
 public:
  explicit Chunks(Context& context) : context_(context) {}

  /// Looks on the disk first. A request that nobody waits for any more when its turn comes is not sent. `project`: on
  /// whose account it goes.
  void get(const ChunkId& id, const ProjectId& project, Urgency urgency, const CancelToken& cancel,
           Callback<ChunkPtr> done);
  /// Somebody wants them now: those that still wait for their turn get it before all that is fetched ahead.
  void hurry(std::span<const ChunkId> ids);
  /// Forgets what is on disk, so that the service is asked again.
  void forget(std::span<const ChunkId> ids);
  void close() { flights_.close(); }

 private:
  /// What one project has under way and waiting; gone when that is nothing.
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
  /// The next request to send, or nothing. It counts as under way from then on.
  std::optional<Request> take_next() PLAYFS_EXCLUDES(mutex_);
  void ended(const Request& request) PLAYFS_EXCLUDES(mutex_);
  void note_failure(const Request& request, const Error& error) PLAYFS_EXCLUDES(mutex_);
  /// Why it has just failed, where that took long.
  [[nodiscard]] std::optional<Error> just_failed(const ChunkId& id) PLAYFS_EXCLUDES(mutex_);
  void arrived(const Request& request, Result<Record> answer);
  Result<ChunkPtr> decode(const ChunkId& id, Result<Record> answer);

  Context& context_;
  SingleFlight<ChunkId, ChunkPtr> flights_;
  Mutex mutex_;
  std::map<ProjectId, Account> accounts_ PLAYFS_GUARDED_BY(mutex_);
  ProjectId last_ PLAYFS_GUARDED_BY(mutex_);  ///< whose turn it was
  /// What still waits for its turn, and on whose account; an id in a queue that is not in here has had it.
  std::unordered_map<ChunkId, ProjectId> queued_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t under_way_ PLAYFS_GUARDED_BY(mutex_) = 0;  ///< of all
  std::unordered_map<ChunkId, Failure> failures_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
