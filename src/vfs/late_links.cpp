#include "vfs/late_links.h"

#include "vfs/attempt_driver.h"
#include "vfs/attempt_fetches.h"
#include "vfs/mount.h"

namespace playfs::vfs {
namespace {

/// How long a lookup waits. Bounded because, if the kernel forgot the name meanwhile, it holds the directory's lock.
/// Also how long a reader waits that cannot be sent back: others that read the same link meanwhile cannot be killed.
constexpr std::chrono::seconds kPatience{30};
/// How long readlink waits if no lookup came in between: the link itself is held open and has no path.
constexpr std::chrono::seconds kPatienceInReading{3};
/// How long the request continues after that, for later callers.
constexpr std::chrono::minutes kTargetGoesOn{1};
constexpr std::chrono::minutes kRemembered{2};
constexpr const char* kWaited = "waited for a target";
constexpr const char* kWaitsHere = "waits for a target where it reads";

Error not_yet() {
  return {ErrorCode::timed_out, "the link's target has not arrived yet", "try again: it is still being fetched"};
}

}  // namespace

Attempt<std::string> LateLinks::read(const OperationPtr& op, NodeId link, Attempt<std::string> target) {
  const Key key{link, op->caller.pid};
  const bool is_here = target || !target.error().fetch;
  const auto now = SteadyClock::now();
  // A second `stale` in one path lookup would reach the program as an error.
  const bool waits_here =
      op->noted(kWaitsHere) || (op->may_be_second && mount_.sent_back().has_found(op->caller.pid, link));
  std::chrono::milliseconds patience = kPatienceInReading;
  {
    MutexLock lock(mutex_);
    auto reader = readers_.find(key);
    if (is_here) {
      if (reader != readers_.end()) readers_.erase(reader);
      return target;
    }
    if (reader == readers_.end() && waits_here) {
      op->note(kWaitsHere);
      patience = kPatience;
    } else if (reader == readers_.end()) {
      std::erase_if(readers_, [&](const auto& each) { return each.second.until < now; });
      readers_.emplace(key, Reader{now + kRemembered, std::nullopt});
      mount_.sent_back().note(op->caller.pid);
      op->note(kRecorded);
      return fail(ErrorCode::stale, "the link's target is not available: try again");
    } else if (auto failed = std::move(reader->second.failed)) {
      readers_.erase(reader);
      return fail(std::move(*failed));
    }
  }
  if (op->noted(kWaited)) return fail(not_yet());
  return missing(fetch_for_a_while(mount_, op, patience, kTargetGoesOn, kWaited, std::move(target.error().fetch)));
}

bool LateLinks::is_awaited(const OperationPtr& op, NodeId link) const {
  MutexLock lock(mutex_);
  return readers_.contains({link, op->caller.pid});
}

void LateLinks::set_failed(const Key& reader, Error error) {
  MutexLock lock(mutex_);
  if (auto found = readers_.find(reader); found != readers_.end()) found->second.failed = std::move(error);
}

Attempt<void> LateLinks::wait(const OperationPtr& op, NodeId link, Attempt<std::string> target) {
  if (target || !target.error().fetch) return {};
  const Key key{link, op->caller.pid};
  if (op->noted(kWaited)) {
    if (!op->outcome<Error>()) set_failed(key, not_yet());
    return {};
  }
  auto or_not = [this, op, key, fetch = std::move(target.error().fetch)](CancelToken cancel,
                                                                         Callback<void> done) mutable {
    fetch(std::move(cancel), [this, op, key, done = std::move(done)](Status came) mutable {
      if (!came && came.error().code != ErrorCode::interrupted) {
        set_failed(key, came.error());
        op->set_outcome(std::move(came).error());
        op->note(kWaited);
        came = {};
      }
      done(std::move(came));
    });
  };
  return missing(fetch_for_a_while(mount_, op, kPatience, kTargetGoesOn, kWaited, std::move(or_not)));
}

}  // namespace playfs::vfs
