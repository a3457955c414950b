// Whether a message or mail is for an agent: what inboxes show. Pure functions, for any thread.
//
// "Me" is a handle, and so is an author: both are claims, compared byte by byte.
#pragma once

#include <string_view>

#include "model/records.h"

namespace playfs {

enum class ForMe {
  no,
  mention,     ///< it mentions me
  reply,       ///< it answers a message of mine
  own_thread,  ///< it is in a thread that I started
  answer,      ///< the steward has answered a mail of mine
};

/// As in JSON documents: "mention", "reply", "own_thread", "answer"; "" if it is not for me.
std::string_view name_of(ForMe why);

/// Whether the record's author is `me`.
bool is_by(const Record& record, std::string_view me);

/// Whether a message mentions `me`: in `mentions`, or in its text if it has no such list.
bool mentions(const Record& message, std::string_view me);

/// Whether the service's steward has hidden the record: it keeps its place in the lists, without its fields.
bool is_hidden(const Record& record);

/// Of a message. What I wrote myself is never for me.
ForMe message_for(const Record& message, std::string_view me, bool answers_mine, bool is_in_own_thread);

/// Of a mail to the steward.
ForMe mail_for(const Record& mail, std::string_view me);

}  // namespace playfs
