// Which revisions the service does not show, and since when.
//
// What a service has acknowledged or shown and answers 404 for now may be gone, because it went back to an older state;
// or it is only not shown: reads may lag behind writes, and one replica behind another. One answer does not tell which,
// and whoever takes the one for the other moves head off what others published, or publishes again what they deleted.
// So what is missing is gone once every look for as long as reads may lag has missed it. Until then it is not shown
// yet: whoever needs it writes nothing, and looks again later.
//
// One for each project, beside its publisher, so that all who ask wait together. In memory alone: after a restart the
// wait begins anew. Thread-safe; looking waits for the service, with no lock held.
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

  /// All that is passed by reference must outlive it. `late_arrival`: how long reads may lag.
  Absences(Upstream& upstream, const Clock& clock, std::chrono::nanoseconds late_arrival)
      : upstream_(upstream), clock_(clock), late_arrival_(late_arrival) {}

  /// By a request of its own, whatever is in the cache. What is refused to us is there.
  Result<Presence> look(const RevisionId& revision) PLAYFS_EXCLUDES(mutex_);
  /// Likewise, for who cannot go on before that is decided: fails with `busy` while it is not shown.
  Result<bool> is_gone(const RevisionId& revision) PLAYFS_EXCLUDES(mutex_);
  /// What is_gone() fails with then, for who has looked already.
  [[nodiscard]] static tl::unexpected<Error> not_shown(const RevisionId& revision);
  /// For who is about to move head off where `project` has it: fails with `busy` where this process has seen it
  /// elsewhere in a newer record, until every look for as long as reads may lag gave the older one. Each call counts as
  /// a look.
  Status check_head(const Project& project) PLAYFS_EXCLUDES(mutex_);
  /// For who is about to choose, for a head that stands where `project` has it, one of several revisions that hold it
  /// and do not merge. Somebody may have chosen another of them, which only a newer record shows, and whoever chose
  /// anew would take head off it. Likewise fails with `busy` until every look for so long gave that head.
  Status check_choice(const Project& project) PLAYFS_EXCLUDES(mutex_);
  /// Ends the doubt about what was seen elsewhere, in a list say.
  void saw(const std::function<bool(const RevisionId&)>& is_seen) PLAYFS_EXCLUDES(mutex_);

 private:
  void forget_oldest() PLAYFS_REQUIRES(mutex_);

  Upstream& upstream_;
  const Clock& clock_;
  const std::chrono::nanoseconds late_arrival_;
  Mutex mutex_;
  std::map<RevisionId, Doubt> doubts_ PLAYFS_GUARDED_BY(mutex_);
  RevisionId head_ PLAYFS_GUARDED_BY(mutex_);  ///< as the last record had it
  /// Head names it, and it is gone. That is found out once, and not by each commit that comes along: nobody looks in
  /// between, and what somebody set head to by mistake stays where it is for days.
  std::optional<RevisionId> lost_head_ PLAYFS_GUARDED_BY(mutex_);
  std::optional<Doubt> head_doubt_ PLAYFS_GUARDED_BY(mutex_);
  RevisionId chosen_from_ PLAYFS_GUARDED_BY(mutex_);  ///< where head was, each time that it was looked at
  Doubt choice_ PLAYFS_GUARDED_BY(mutex_);            ///< whether it still is
  /// Newer records than this one count; those up to it were lost when the service went back.
  std::optional<WallTime> lost_records_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::publish
