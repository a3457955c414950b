// What `messages.md` and `messages.ndjson` show of a thread. Pure functions.
//
// Both grow: of a longer thread the text is the one of the shorter thread and more, as long as no message changed. So
// what is left out of a long thread is left out in steps.
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
/// One record a line, in the order in which they were written. A message that was changed later is there again in the
/// place of that change, so the newest line of an id is right.
std::string messages_ndjson(std::span<const content::RecordPartPtr> messages);

}  // namespace playfs::vfs
