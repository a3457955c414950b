// What `messages.md` and `messages.ndjson` show of a thread. Pure functions.
//
// Both only grow: a new message appends to the text, as long as no earlier message changed. The oldest messages of a
// long thread are left out when a program begins to read; one that goes on reading gets all that are added.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "content/site.h"

namespace playfs::vfs {

/// The most messages shown at first, and their bytes: anyone may write to any thread, without end.
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
/// When the first and the last of these lines were written.
struct LineTimes {
  WallTime first, last;
};
LineTimes times_of_lines(std::span<const content::RecordPartPtr> messages);

/// What a text is made of: the messages of `list` (newest first) from `begin` on, but for the `older` ones at its end.
struct ThreadPart {
  content::ListPtr list;
  std::size_t begin = 0, older = 0;
};
/// How many messages at the front of `now` follow what was shown, so that they can be appended; nullopt if something
/// has changed in what was, or before it. `is_whole`: `now` has lost none of its oldest messages for want of room.
std::optional<std::size_t> messages_after(const ThreadPart& was, const std::vector<content::Listed>& now,
                                          bool is_whole);
/// The same text with the messages of `now` from `begin` on, which are appended.
ThreadPart part_with(const ThreadPart& was, content::ListPtr now, std::size_t after, std::size_t begin);

}  // namespace playfs::vfs
