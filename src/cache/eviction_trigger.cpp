#include "cache/eviction_trigger.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.h"

namespace playfs::cache {

namespace {

/// Backoff after a failed pass. Another process's pass takes about as long.
constexpr std::chrono::seconds kTryAgainAfter{1};
constexpr std::chrono::milliseconds kBetweenTurns{50};
constexpr int kTurnsAtTheEnd = 60;

}  // namespace

std::shared_ptr<EvictionTrigger> EvictionTrigger::make(std::uint64_t share, std::uint64_t written, Executor* executor,
                                                       Pass pass) {
  return std::shared_ptr<EvictionTrigger>(new EvictionTrigger(share, written, executor, std::move(pass)));
}

EvictionTrigger::EvictionTrigger(std::uint64_t share, std::uint64_t written, Executor* executor, Pass pass)
    : share_(std::max<std::uint64_t>(share, 1)), executor_(executor), pass_(std::move(pass)), written_(written) {}

void EvictionTrigger::wrote(std::uint64_t bytes) {
  {
    MutexLock lock(mutex_);
    written_ += bytes;
    if (written_ < share_ || asked_ || running_ || finished_) return;
    asked_ = executor_ != nullptr;
  }
  if (executor_) executor_->post([self = shared_from_this()] { self->run(); });
  else run();
}

void EvictionTrigger::run() {
  {
    MutexLock lock(mutex_);
    asked_ = false;
    if (running_ || finished_) return;  // the running pass rechecks written_ before it ends
    running_ = true;
  }
  for (;;) {
    std::uint64_t answered_for = 0;
    {
      MutexLock lock(mutex_);
      running_ = written_ >= share_ && !finished_;
      if (!running_) return;
      answered_for = std::exchange(written_, 0);
    }
    const Status made = pass_();
    tell(made);
    if (made) continue;
    MutexLock lock(mutex_);
    written_ += answered_for;
    running_ = false;
    asked_ = executor_ != nullptr && !finished_;
    break;
  }
  if (executor_) executor_->post_after(kTryAgainAfter, [self = shared_from_this()] { self->run(); });
}

void EvictionTrigger::finish() {
  {
    MutexLock lock(mutex_);
    finished_ = true;
    if (running_ || written_ < share_) return;
  }
  // A process evicting now may not have seen what was written here, so wait for a turn. But not forever: that process
  // may be stopped.
  Status made = pass_();
  for (int again = 0; again < kTurnsAtTheEnd && !made && made.error().code == ErrorCode::busy; ++again) {
    std::this_thread::sleep_for(kBetweenTurns);
    made = pass_();
  }
  tell(made);
}

/// Logs each failure once. Another process evicting is not a failure.
void EvictionTrigger::tell(const Status& made) {
  MutexLock lock(mutex_);
  const std::string message = made || made.error().code == ErrorCode::busy ? std::string() : made.error().message;
  if (!message.empty() && message != told_) log_warning("cache: " + message);
  told_ = message;
}

}  // namespace playfs::cache
