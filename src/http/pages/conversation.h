// Arranges the messages of a thread as a conversation. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/records.h"

namespace playfs::http {

struct Reply {
  const Record* message = nullptr;
  std::size_t depth = 0;       ///< indentation; at most kDeepest
  std::string parent;          ///< the message that it claims to answer; empty for none
  bool shows_parent = false;   ///< the indentation tells which message that is
  std::size_t branch_end = 0;  ///< in the result: past the last of the replies to it, and to those
};

/// Deeper replies are not indented further.
inline constexpr std::size_t kDeepest = 6;

/// Oldest first, each reply below its parent. A parent that is not among the messages, or is younger than its reply (a
/// message can be edited later, and so close a cycle), counts as none. `newest_first` must outlive the result.
std::vector<Reply> arrange(const std::vector<Record>& newest_first);

}  // namespace playfs::http
