#include "publish/waiters.h"

#include <utility>
#include <vector>

namespace playfs::publish {

Waiters::Id Waiters::add(std::string tx, bool waits, Callback<CommitResult> done) {
  Waiter waiter;
  waiter.tx = std::move(tx);
  waiter.done = std::move(done);
  waiter.waits = waits;
  MutexLock lock(mutex_);
  waiters_.emplace(next_, std::move(waiter));
  return next_++;
}

void Waiters::keep(Id id, CancelToken::Registration on_cancel) {
  MutexLock lock(mutex_);
  if (auto found = waiters_.find(id); found != waiters_.end()) found->second.on_cancel = std::move(on_cancel);
}

void Waiters::is_journalled(Id id) {
  MutexLock lock(mutex_);
  if (auto found = waiters_.find(id); found != waiters_.end()) found->second.is_journalled = true;
}

void Waiters::answer(Id id, Result<CommitResult> result) {
  Waiter taken;
  {
    MutexLock lock(mutex_);
    auto found = waiters_.find(id);
    if (found == waiters_.end()) return;
    taken = std::move(found->second);
    waiters_.erase(found);
  }
  taken.done(std::move(result));
}

void Waiters::answer_all(const std::string& tx, const Result<CommitResult>& result) {
  answer_where([&](const Waiter& waiter) { return waiter.tx == tx; }, result);
}

void Waiters::answer_hasty(const std::string& tx, const CommitResult& so_far) {
  answer_where([&](const Waiter& waiter) { return waiter.tx == tx && !waiter.waits; }, so_far);
}

void Waiters::answer_rest() {
  answer_where([](const Waiter& waiter) { return !waiter.is_journalled; },
               fail(ErrorCode::interrupted, "the commit was not begun"));
  CommitResult pending;
  pending.outcome = Outcome::pending;
  answer_where([](const Waiter&) { return true; }, pending);
}

void Waiters::answer_where(const std::function<bool(const Waiter&)>& wanted, const Result<CommitResult>& result) {
  std::vector<Id> chosen;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, waiter] : waiters_)
      if (wanted(waiter)) chosen.push_back(id);
  }
  for (auto id : chosen) answer(id, result);
}

}  // namespace playfs::publish
