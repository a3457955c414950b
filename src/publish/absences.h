// Tracks which revisions the service does not show, and since when.
//
// A 404 for a revision that the service acknowledged or showed before has two possible causes. The service went back to
// an older state and the revision is gone, or the revision is just not shown: reads may lag behind writes, and one
// replica behind another. A single response does not tell which, and confusing the two moves head off what others
// published, or publishes again what they deleted. So a missing revision counts as gone only once every lookup has
// missed it for as long as reads may lag. Until then it is not shown yet: callers that need it write nothing and look
// again later.
//
// One per project, beside its publisher, so that all callers share one wait. In memory only: after a restart the wait
// starts over. Thread-safe; lookups wait for the service with no lock held.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "model/ids.h"
#include "model/records.h"
#include "publish/doubt.h"
#include "publish/upstream.h"

namespace playfs::publish {

class Absences {
 public:
  enum class Presence { there, not_shown, gone };

  /// References must outlive this object. `late_arrival`: how long reads may lag.
  Absences(Upstream& upstream, const Clock& clock, std::chrono::nanoseconds late_arrival)
      : upstream_(upstream), clock_(clock), late_arrival_(late_arrival) {}

  /// Sends a request of its own, bypassing the cache. A revision that we may not read (403) counts as there.
  Result<Presence> look(const RevisionId& revision) PLAYFS_EXCLUDES(mutex_);
  /// Like look(), for callers that cannot go on until it is decided: fails with `busy` while the revision is not shown.
  Result<bool> is_gone(const RevisionId& revision) PLAYFS_EXCLUDES(mutex_);
  /// The `busy` error of is_gone(), for callers that have looked already.
  [[nodiscard]] static tl::unexpected<Error> not_shown(const RevisionId& revision);
  /// Call this before moving head off the revision that `project` names. If this process has seen another head in a
  /// newer record, it fails with `busy` until every lookup for as long as reads may lag returned the older one. Each
  /// call counts as a lookup.
  Status check_head(const Project& project) PLAYFS_EXCLUDES(mutex_);
  /// Call this before choosing one of several revisions that hold the head of `project` and do not merge. Another
  /// client may have chosen a different one already, which only a newer record shows, and a second choice would move
  /// head off it. Like check_head(), fails with `busy` until every lookup for that long returned this head.
  Status check_choice(const Project& project) PLAYFS_EXCLUDES(mutex_);
  /// Ends the doubt about revisions that were seen elsewhere, for example in a list.
  void saw(const std::function<bool(const RevisionId&)>& is_seen) PLAYFS_EXCLUDES(mutex_);

 private:
  void forget_oldest() PLAYFS_REQUIRES(mutex_);

  Upstream& upstream_;
  const Clock& clock_;
  const std::chrono::nanoseconds late_arrival_;
  Mutex mutex_;
  std::map<RevisionId, Doubt> doubts_ PLAYFS_GUARDED_BY(mutex_);
  RevisionId head_ PLAYFS_GUARDED_BY(mutex_);  ///< according to the latest record
  /// A revision that head names and that is gone. Remembered, so that not every commit waits for it again: nobody looks
  /// in between, and a head that somebody set by mistake stays for days.
  std::optional<RevisionId> lost_head_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Doubt> head_doubt_ PLAYFS_GUARDED_BY(mutex_);
  RevisionId chosen_from_ PLAYFS_GUARDED_BY(mutex_);  ///< the head at every lookup since `choice_` began
  Doubt choice_ PLAYFS_GUARDED_BY(mutex_);            ///< whether head is still there
  /// Only records newer than this count; those up to it were lost when the service went back.
  std::optional<WallTime> lost_records_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::publish
