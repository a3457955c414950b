#include "publish/waiters.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace playfs::publish {

void Waiters::begin(const std::string& tx) {
  MutexLock lock(mutex_);
  under_way_.try_emplace(tx, false);
}

void Waiters::is_journalled(const std::string& tx) {
  MutexLock lock(mutex_);
  if (auto found = under_way_.find(tx); found != under_way_.end()) found->second = true;
}

bool Waiters::is_under_way(const std::string& tx) const {
  MutexLock lock(mutex_);
  return under_way_.contains(tx);
}

std::optional<Result<CommitResult>> Waiters::outcome_of(const std::string& tx) const {
  MutexLock lock(mutex_);
  auto found = std::find_if(ended_.begin(), ended_.end(), [&](const Ended& each) { return each.tx == tx; });
  return found == ended_.end() ? std::nullopt : std::optional(found->result);
}

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
  {
    MutexLock lock(mutex_);
    under_way_.erase(tx);
    ended_.push_back({tx, result});
    if (ended_.size() > kMostEnded) ended_.pop_front();
  }
  answer_where([&](const Waiter& waiter) { return waiter.tx == tx; }, result);
}

void Waiters::answer_hasty(const std::string& tx, const CommitResult& so_far) {
  answer_where([&](const Waiter& waiter) { return waiter.tx == tx && !waiter.waits; }, so_far);
}

void Waiters::refuse_journalled(const std::function<Error(const std::string& tx)>& error_of) {
  std::map<std::string, bool> all;
  {
    MutexLock lock(mutex_);
    all = under_way_;
  }
  for (const auto& [tx, is_journalled] : all) {
    if (!is_journalled) continue;
    answer_where([&, &tx = tx](const Waiter& waiter) { return waiter.tx == tx; }, fail(error_of(tx)));
  }
}

void Waiters::answer_rest() {
  std::map<std::string, bool> left;
  {
    MutexLock lock(mutex_);
    left = under_way_;
  }
  for (const auto& [tx, is_journalled] : left) {
    CommitResult pending;
    pending.outcome = Outcome::pending;
    pending.tx = tx;
    answer_where([&, &tx = tx](const Waiter& waiter) { return waiter.tx == tx; },
                 is_journalled ? Result<CommitResult>(pending)
                               : Result<CommitResult>(fail(ErrorCode::interrupted, "the commit was not started")));
  }
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
