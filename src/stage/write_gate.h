// Where calls that change bytes without the stage's mutex are counted, and wait while the gate is closed: for a freeze,
// for the last step of a merge, or while what is staged is kept and dropped. Calls that change names wait there, too,
// but need not be counted. Also the signal for other waits with that mutex.
//
// Guarded by the stage's mutex, which the functions that wait release meanwhile.
#pragma once

#include "base/mutex.h"

namespace playfs::stage {

class WriteGate {
 public:
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  /// From now on no write begins; waits for those in progress.
  void close(Mutex& mutex) PLAYFS_REQUIRES(mutex) {
    while (is_closed_) moved_on_.wait(mutex);
    is_closed_ = true;
    while (writers_ > 0) moved_on_.wait(mutex);
  }
  void open() {
    is_closed_ = false;
    wake();
  }

  /// REQUIRES: the gate is open.
  void enter() { ++writers_; }
  void leave() {
    --writers_;
    if (is_closed_) wake();
  }

  /// Until anything changes: a writer left, a copy was made, the gate opened.
  void wait(Mutex& mutex) PLAYFS_REQUIRES(mutex) { moved_on_.wait(mutex); }
  void wake() { moved_on_.notify_all(); }

 private:
  bool is_closed_ = false;
  unsigned writers_ = 0;
  Condition moved_on_;
};

}  // namespace playfs::stage
