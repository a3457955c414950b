// Makes calls fail instead of blocking: on a sync, for space on a full disk, on bytes that are being frozen or copied
// for a commit.
//
// While an AtOnce lives, its thread's calls of a stage fail where they would have to wait. By then such a call has
// changed nothing that a repeated call does not redo; so the caller checks refused() and repeats it on a thread that
// may block. Neither copied nor nested; belongs to one thread.
#pragma once

#include "base/result.h"

namespace playfs::stage {

class AtOnce {
 public:
  AtOnce() { current() = this; }
  ~AtOnce() { current() = nullptr; }
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;

  /// Whether a call failed because it would have blocked.
  [[nodiscard]] bool refused() const { return refused_; }

  /// The stage calls this before it blocks.
  [[nodiscard]] static Status may_wait() {
    if (!current()) return {};
    current()->refused_ = true;
    return fail(ErrorCode::busy, "waiting for the disk");
  }

 private:
  static AtOnce*& current() {
    static thread_local AtOnce* at_once = nullptr;
    return at_once;
  }
  bool refused_ = false;
};

}  // namespace playfs::stage
