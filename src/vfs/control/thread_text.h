// What `messages.md` and `messages.ndjson` show of a thread. Pure functions.
//
// Both only grow: a new message appends to the text, as long as no earlier message changed. So the oldest messages of a
// long thread are left out in large steps, not one by one.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "content/site.h"

namespace playfs::vfs {

/// The most messages shown, and their bytes: anyone may write to any thread, without end.
inline constexpr std::size_t kMostMessages = 1'000;
inline constexpr std::size_t kMostMessageBytes = 1 << 20;

/// How many of the oldest of `count` messages are left out, if `fit` of the newest fit.
std::size_t left_out(std::size_t count, std::size_t fit);
/// The memory that counts against kMostMessageBytes.
std::size_t size_of_message(const Record& message);

/// What messages_ndjson() shows of a message.
content::Reduced line_of_message(Record record);
/// One record per line, in the order of writing. A message that was changed later appears again, at the time of the
/// change, so the last line of an id is the current one.
std::string messages_ndjson(std::span<const content::RecordPartPtr> messages);

}  // namespace playfs::vfs
