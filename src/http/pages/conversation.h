// The messages of a thread as a conversation: who answers whom. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/records.h"

namespace playfs::http {

struct Reply {
  const Record* message = nullptr;
  std::size_t depth = 0;         ///< how far it is set in; at most kDeepest
  bool parent_is_above = false;  ///< it stands below the message that it answers
  std::string parent;            ///< the message that it says it answers; empty for none
};

/// Replies deeper than this are set in no further.
inline constexpr std::size_t kDeepest = 6;

/// Oldest first, each reply below what it answers. A parent that is not among the messages, or is younger than its
/// reply (anyone may change a message later, and so close a circle), counts as none. `newest_first` must outlive the
/// result.
std::vector<Reply> arrange(const std::vector<Record>& newest_first);

}  // namespace playfs::http
