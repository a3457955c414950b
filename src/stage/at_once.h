// Calls that must not wait: for a sync, for room on a full disk, for bytes that are being fixed or copied for a commit.
//
// While an AtOnce lives, its thread's calls of a stage fail where they would have to wait. They have changed nothing by
// then that the same call does not do again; so whoever made it asks whether that was the reason, and calls again on a
// thread that may wait. Not copied, not nested; a thread's own.
#pragma once

#include "base/result.h"

namespace playfs::stage {

class AtOnce {
 public:
  AtOnce() { current() = this; }
  ~AtOnce() { current() = nullptr; }
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;

  /// Whether a call failed because it would have had to wait.
  [[nodiscard]] bool refused() const { return refused_; }

  /// For the stage, before it waits.
  [[nodiscard]] static Status may_wait() {
    if (!current()) return {};
    current()->refused_ = true;
    return fail(ErrorCode::busy, "the disk has to be waited for");
  }

 private:
  static AtOnce*& current() {
    static thread_local AtOnce* at_once = nullptr;
    return at_once;
  }
  bool refused_ = false;
};

}  // namespace playfs::stage
