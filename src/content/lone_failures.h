// Reading many files: whether the service fails for some of them, or altogether. A plain value.
#pragma once

#include "base/result.h"

namespace playfs::content {

/// A service may answer 500 for one record for ever, while it has all others: such a file is left out. A service that
/// fails for one file after another is down, and one that does not answer, or whose proxy says so (502 to 504), is not
/// asked for every file in turn: each would take as long as its retries.
class LoneFailures {
 public:
  /// Call with the outcome of each file. True if it is a failure of the service beside which others may succeed.
  bool is_lone(const Status& outcome) {
    const bool is_one = !outcome && outcome.error().http_status == 500;
    in_a_row_ = is_one ? in_a_row_ + 1 : 0;
    return is_one && in_a_row_ <= kMostInARow;
  }

 private:
  static constexpr int kMostInARow = 3;
  int in_a_row_ = 0;
};

}  // namespace playfs::content
