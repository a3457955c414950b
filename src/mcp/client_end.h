// The client's end of the connection: sends lines to it, whole and one at a time.
//
// A client that does not read holds up those who send, so that nothing piles up here; one that has gone is noticed even
// then. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include "base/mutex.h"

namespace playfs::mcp {

class ClientEnd {
 public:
  /// `in`: where the client's messages come from; if it has closed that, it is not waited for much longer. The
  /// descriptors stay the caller's. REQUIRES: SIGPIPE is ignored.
  ClientEnd(int in, int out) : in_(in), out_(out) {}

  /// Adds the line's end. Waits until the client has room. Does nothing once it is gone.
  void send(std::string line) PLAYFS_EXCLUDES(mutex_);
  [[nodiscard]] bool is_gone() const { return is_gone_; }

 private:
  void write_all(std::string_view line);
  [[nodiscard]] bool wait_for_room() const;
  /// How many bytes were taken; negative: see errno.
  [[nodiscard]] long write_some(std::string_view data) const;

  const int in_, out_;
  std::atomic<bool> is_gone_ = false;
  Mutex mutex_;
  Condition sent_;
  bool is_sending_ PLAYFS_GUARDED_BY(mutex_) = false;  ///< whose turn it is: no lock is held while the client is slow
};

}  // namespace playfs::mcp
