// Turns concurrent calls into groups: group commit without a thread of its own.
//
// The first thread to arrive leads: it takes all items that queued up while the previous group was worked on, works on
// them together, hands over to the next leader, and wakes the others. Costs a single caller nothing. Everybody waits
// for a lock of its own: with one for all, those who are woken would wait again, for each other. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
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
    const auto self = std::make_shared<Waiting>(item);
    if (!join(self) && self->wait() == Turn::done) return;

    const auto led = take_group();
    Group group;
    for (const auto& waiting : led) group.push_back(&waiting->item);
    together_(group);
    if (const auto next = next_leader()) next->call(Turn::leads);
    for (const auto& waiting : led)
      if (waiting != self) waiting->call(Turn::done);
  }

 private:
  enum class Turn { waits, leads, done };

  /// Shared, so that it outlives the caller whom it wakes.
  class Waiting {
   public:
    explicit Waiting(Item& of) : item(of) {}
    Turn wait() {
      MutexLock lock(mutex_);
      while (turn_ == Turn::waits) changed_.wait(mutex_);
      return turn_;
    }
    void call(Turn turn) {
      {
        MutexLock lock(mutex_);
        turn_ = turn;
      }
      changed_.notify_one();
    }
    Item& item;

   private:
    Mutex mutex_;
    Condition changed_;
    Turn turn_ PLAYFS_GUARDED_BY(mutex_) = Turn::waits;
  };
  using WaitingPtr = std::shared_ptr<Waiting>;

  /// Whether it leads, since nobody else does.
  bool join(const WaitingPtr& self) {
    MutexLock lock(mutex_);
    queue_.push_back(self);
    return !std::exchange(led_, true);
  }

  /// The leader's is the first in the queue.
  std::vector<WaitingPtr> take_group() {
    MutexLock lock(mutex_);
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), largest_));
    std::vector<WaitingPtr> led(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
    queue_.erase(queue_.begin(), end);
    return led;
  }

  WaitingPtr next_leader() {
    MutexLock lock(mutex_);
    led_ = !queue_.empty();
    return led_ ? queue_.front() : nullptr;
  }

  const std::size_t largest_;
  UniqueFunction<void(const Group&)> together_;  // called by the leader alone
  Mutex mutex_;
  std::deque<WaitingPtr> queue_ PLAYFS_GUARDED_BY(mutex_);
  bool led_ PLAYFS_GUARDED_BY(mutex_) = false;
};

}  // namespace playfs::service
