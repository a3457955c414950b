// A lock of flock(2) that ends when its owner gives it up, even if a child process has the descriptor. No shared state.
#pragma once

#include <sys/file.h>

#include <utility>

#include "base/fd.h"

namespace playfs {

/// Closing the file would not be enough: a child that another thread has just forked shares the lock until it executes
/// or closes its descriptors, and whoever takes the lock next would find it taken. If the process dies, the kernel
/// releases the lock, once such children have closed theirs.
class HeldLock {
 public:
  HeldLock() = default;
  /// REQUIRES: the file is locked by flock(2).
  explicit HeldLock(UniqueFd locked) : file_(std::move(locked)) {}
  HeldLock(HeldLock&&) noexcept = default;
  HeldLock& operator=(HeldLock&&) noexcept = default;
  ~HeldLock() {
    if (file_) flock(file_.get(), LOCK_UN);
  }

 private:
  UniqueFd file_;
};

}  // namespace playfs
