// A message or a mail of the playground as RFC 5322. Plain values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace playfs::mail {

/// What a mail shows. Every text is a stranger's: of any length, with any bytes.
struct Letter {
  std::string id;
  std::string domain;   ///< of the site: domain_of()
  std::string from;     ///< the author's handle
  std::string subject;  ///< a message's: the title of its thread
  WallTime date;        ///< when it was created
  WallTime updated;     ///< when it was changed; the same if never
  std::string body;
  std::string in_reply_to;              ///< the parent's id; empty: none
  std::vector<std::string> references;  ///< ids of the ancestors, oldest first
  std::string collection;               ///< "messages" or "domain_mail"
  std::string kind;                     ///< of the thread or the mail
  std::string thread;                   ///< the thread's id; empty: none
  std::vector<std::string> mentions;    ///< handles
  std::string state;                    ///< a mail's; empty: none
  std::string owner_reply;              ///< the steward's answer; empty: none
};

/// The whole text, with lines that end in "\n" and have at most 998 bytes. The same letter always gives the same bytes.
/// README.md says what becomes of texts that a mail cannot hold.
std::string to_rfc5322(const Letter& letter);

/// Loads the library that this module uses. REQUIRES: it succeeded before the first letter, which ends the process if
/// there is no library. It may be installed later, so a failure is not final.
Status load_library();

/// The author's address.
std::string address_of(const Letter& letter);

/// What stands above the steward's answer.
inline constexpr std::string_view kAnswerMark = "---- The steward's answer ----";

}  // namespace playfs::mail
