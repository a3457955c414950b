// A thread with its messages: read with as few requests as possible, put in order of conversation, and printed.
//
// Blocking, for one thread. Messages come from strangers: a parent may be missing, in another thread, or lead in a
// circle. No message is hidden by that, and memory is bounded.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/command_context.h"
#include "app/lookup.h"
#include "base/result.h"
#include "model/records.h"
#include "runtime/client_stack.h"

namespace playfs::app {

inline constexpr Noun kThread{"threads", "thread"};

struct Conversation {
  Record thread;
  std::vector<Record> messages;       ///< oldest first
  std::vector<std::string> left_out;  ///< ids of older ones that were too many to show
  std::size_t missing = 0;            ///< not stored here, while the service is away
  bool is_whole = true;               ///< false: the list of all messages is cut, so older ones may exist
};

/// The newest messages of a thread, up to 5,000 of them or 16 MiB.
Result<Conversation> read_conversation(runtime::ClientStack& stack, Record thread);

/// A message of this thread.
Result<Record> message_of(const CommandContext& context, runtime::ClientStack& stack, const Record& thread,
                          const std::string& id);

/// The ids of a thread's messages, newest first, from the current list.
Result<std::vector<std::string>> message_ids(runtime::ClientStack& stack, const std::string& thread);

/// A message's place in a conversation.
struct Placed {
  std::size_t index = 0;        ///< in `messages`
  std::size_t depth = 0;        ///< of replies
  bool follows_parent = false;  ///< printed below the message that it answers
};
/// Each message once: replies below what they answer, else by time. Those whose parents lead in a circle begin with the
/// oldest. REQUIRES: oldest first. Linear in their number.
std::vector<Placed> in_order(const std::vector<Record>& messages);

/// The words of both lists, each once.
Json united(const std::vector<std::string>& words, const std::vector<std::string>& more = {});
/// A message to send. Its mentions are those in the text, and `mentions`.
JsonObject message_body(const std::string& thread, const std::string& parent, const std::string& agent,
                        const std::string& text, const std::vector<std::string>& mentions = {},
                        const std::vector<std::string>& links = {});

void print_thread_heading(Output& out, const Conversation& conversation);
/// One message with its author, time, id, text, mentions and links.
void print_message(Output& out, const Record& message, const Placed& placed);
/// The steward's answer to a mail.
void print_answer(Output& out, const Record& mail);

}  // namespace playfs::app
