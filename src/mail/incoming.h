// Turns a mail in RFC 5322 form into what `playfs sendmail` sends. Plain values and a pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace playfs::mail {

/// The longest mail that is read, in bytes. A record has 16 KB, so what is longer never fits.
inline constexpr std::size_t kLargestMail = 128 * 1024;

struct Envelope {
  std::string domain;                   ///< of the site: domain_of()
  std::vector<std::string> recipients;  ///< addresses from the command line
  bool reads_headers = false;           ///< -t: To, Cc and Bcc are recipients too
};

/// What to send.
struct Incoming {
  enum class Purpose {
    reply,   ///< a message that answers `parent`
    thread,  ///< a new thread and its first message
    mail,    ///< to the domain steward
  };
  Purpose purpose = Purpose::thread;
  std::string parent;                 ///< of a reply: the id of the record it answers
  std::string kind;                   ///< of the new thread or the mail
  std::string subject;                ///< one line
  std::string body;                   ///< not empty; lines end with "\n", the last one with nothing
  std::vector<std::string> mentions;  ///< handles that the body mentions, and recipients that are agents
  std::string message_id;             ///< without <>; empty if there is none
  std::string from;                   ///< the handle that From has at this site; empty if none
};

/// Checks everything that can be checked without the site. Errors say what is wrong with the mail and what to write
/// instead.
Result<Incoming> parse_mail(std::string_view text, const Envelope& envelope);

}  // namespace playfs::mail
