// Handles the service's events (remote/event_stream.h): marks what has changed as outdated, requests what is being
// shown, and notifies listeners and the event log. Thread-safe.
//
// Events are handled in order, on the executor, in batches: a burst costs one request per list and head in use, and one
// more if further events arrived meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "content/heads.h"
#include "content/lists.h"
#include "content/records.h"
#include "content/revisions.h"
#include "content/site_context.h"
#include "remote/event_stream.h"

namespace playfs::content {

class News {
 public:
  using RecordChanged =
      std::function<void(const std::string& collection, const std::string& id, const std::string& belongs_to)>;

  News(SiteContext& context, Revisions& revisions, Lists& lists, Heads& heads, Records& records)
      : context_(context), revisions_(revisions), lists_(lists), heads_(heads), records_(records) {}

  /// Without this call, the service is polled as if it had no events. REQUIRES: called once, before any other use.
  void use(Random& random);
  /// Call at each use of the service: the first one connects. Cheap.
  void begin() {
    if (stream_) stream_->begin();
  }
  void on_record_changed(RecordChanged changed) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] remote::EventStream::State state() const;
  /// REQUIRES: the context's gate is closed.
  void close() { stream_.reset(); }

 private:
  /// If more changes than this wait, they count as a reset.
  static constexpr std::size_t kMostWaiting = 10'000;

  void heard(std::vector<wire::Change> changes) PLAYFS_EXCLUDES(mutex_);
  void reset(remote::Reset why) PLAYFS_EXCLUDES(mutex_);
  void up(bool is_up) PLAYFS_EXCLUDES(mutex_);
  void handle_soon();
  void handle() PLAYFS_EXCLUDES(mutex_);
  void handle(const wire::Change& change, std::set<ProjectId>& projects);
  void tell(const std::string& collection, const std::string& id, const std::string& belongs_to)
      PLAYFS_EXCLUDES(mutex_);
  void log(const wire::Change& change);

  SiteContext& context_;
  Revisions& revisions_;
  Lists& lists_;
  Heads& heads_;
  Records& records_;
  std::unique_ptr<remote::EventStream> stream_;
  Mutex mutex_;
  std::vector<wire::Change> waiting_ PLAYFS_GUARDED_BY(mutex_);
  bool is_reset_ PLAYFS_GUARDED_BY(mutex_) = false;    ///< before those that are waiting
  bool is_another_ PLAYFS_GUARDED_BY(mutex_) = false;  ///< the service is another one
  bool is_up_ PLAYFS_GUARDED_BY(mutex_) = false;       ///< a connection has begun
  bool is_handling_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<const RecordChanged>> listeners_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
