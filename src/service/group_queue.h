// Turns concurrent calls into groups: group commit without a thread of its own.
//
// The first thread to arrive leads: it takes all items that queued up while the previous group was worked on, works on
// them together, and wakes the others. Costs a single caller nothing. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "base/callback.h"
#include "base/mutex.h"

namespace playfs::service {

template <class Item>
class GroupQueue {
 public:
  using Group = std::vector<Item*>;

  /// `together` works on a group of up to `largest` items, in the order of their arrival. One call at a time, on some
  /// caller's thread, with no lock of the queue held.
  GroupQueue(std::size_t largest, UniqueFunction<void(const Group&)> together)
      : largest_(largest), together_(std::move(together)) {}

  /// Returns when `together` has worked on the item.
  void run(Item& item) {
    Waiting self{&item, false, {}};
    std::vector<Waiting*> led;
    {
      MutexLock lock(mutex_);
      queue_.push_back(&self);
      while (!self.done && (led_ || queue_.front() != &self)) self.changed.wait(mutex_);
      if (self.done) return;
      led_ = true;
      const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), largest_));
      led.assign(queue_.begin(), end);
      queue_.erase(queue_.begin(), end);
    }

    Group group;
    for (Waiting* waiting : led) group.push_back(waiting->item);
    together_(group);

    MutexLock lock(mutex_);
    led_ = false;
    for (Waiting* waiting : led) {
      waiting->done = true;
      if (waiting != &self) waiting->changed.notify_one();  // it lives at least until this lock is released
    }
    if (!queue_.empty()) queue_.front()->changed.notify_one();
  }

 private:
  struct Waiting {
    Item* item;
    bool done;
    Condition changed;
  };

  const std::size_t largest_;
  UniqueFunction<void(const Group&)> together_;  // called by the leader alone
  Mutex mutex_;
  std::deque<Waiting*> queue_ PLAYFS_GUARDED_BY(mutex_);
  bool led_ PLAYFS_GUARDED_BY(mutex_) = false;
};

}  // namespace playfs::service
