// Shares one fetch among all concurrent callers that want the same thing. Thread-safe.
//
// The caller that finds no flight leads: it starts the fetch, and land() answers everyone. A cancelled waiter is
// answered `interrupted` at once, on the cancelling thread, and the flight continues for the others. Once its request
// is sent, it continues even without waiters: the result is kept for the next caller, it uses only its own project's
// turn (turns.h), and it lasts no longer than a request may. T is copied to each waiter: use pointers.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/callback.h"
#include "base/cancel.h"
#include "base/mutex.h"

namespace playfs::content {

template <class Key, class T>
class SingleFlight {
 public:
  /// Waits for the key's flight. Returns true if there was none: the caller must then ensure that land() or abandon()
  /// is called for the key.
  [[nodiscard]] bool join(const Key& key, const CancelToken& cancel, Callback<T> done) {
    auto waiter = std::make_shared<Waiter>(std::move(done));
    bool leads = false;
    {
      MutexLock lock(mutex_);
      if (!closed_) {
        auto [flight, started] = flights_.try_emplace(key);
        flight->second.push_back(waiter);
        leads = started;
      }
    }
    if (is_closed()) {
      waiter->answer(closed_error());
      return false;
    }
    // Registered after joining: an already cancelled token answers here, and the flight is still led. Weak, because the
    // waiter owns the registration and the registration the hook.
    waiter->registration = cancel.on_cancel([weak = std::weak_ptr<Waiter>(waiter)] {
      if (auto cancelled = weak.lock()) cancelled->answer(fail(ErrorCode::interrupted, "the wait was cancelled"));
    });
    return leads;
  }

  /// Ends the flight and answers its waiters.
  void land(const Key& key, const Result<T>& result) {
    for (auto& waiter : take(key)) waiter->answer(result);
  }

  /// Ends the flight if nobody waits for it. Returns true if it did, or if there was none.
  [[nodiscard]] bool abandon(const Key& key) {
    Waiters cancelled;  // destroyed after the lock is released
    MutexLock lock(mutex_);
    auto flight = flights_.find(key);
    if (flight == flights_.end()) return true;
    const Waiters& waiters = flight->second;
    if (!std::all_of(waiters.begin(), waiters.end(), [](const auto& waiter) { return waiter->answered.load(); }))
      return false;
    cancelled = std::move(flight->second);
    flights_.erase(flight);
    return true;
  }

  /// Answers all present and future waiters `interrupted`.
  void close() {
    std::unordered_map<Key, Waiters> flights;
    {
      MutexLock lock(mutex_);
      closed_ = true;
      flights.swap(flights_);
    }
    for (auto& [key, waiters] : flights)
      for (auto& waiter : waiters) waiter->answer(closed_error());
  }

 private:
  struct Waiter {
    explicit Waiter(Callback<T> callback) : done(std::move(callback)) {}
    void answer(Result<T> result) {
      if (answered.exchange(true)) return;
      auto callback = std::move(done);
      callback(std::move(result));
    }
    std::atomic<bool> answered = false;
    Callback<T> done;  // touched only by the thread that set `answered`
    CancelToken::Registration registration;
  };
  using Waiters = std::vector<std::shared_ptr<Waiter>>;

  static Result<T> closed_error() { return fail(ErrorCode::interrupted, "the site is closing"); }

  bool is_closed() {
    MutexLock lock(mutex_);
    return closed_;
  }

  Waiters take(const Key& key) {
    MutexLock lock(mutex_);
    auto flight = flights_.find(key);
    if (flight == flights_.end()) return {};
    Waiters waiters = std::move(flight->second);
    flights_.erase(flight);
    return waiters;
  }

  Mutex mutex_;
  bool closed_ PLAYFS_GUARDED_BY(mutex_) = false;
  std::unordered_map<Key, Waiters> flights_ PLAYFS_GUARDED_BY(mutex_);
};

}  // namespace playfs::content
