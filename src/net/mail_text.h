// One mail as it goes to a mail server. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace playfs::net {

struct MailMessage {
  std::string to;
  std::string subject;
  std::string text;        ///< lines end in '\n'
  std::string message_id;  ///< without angle brackets
  std::string date;        ///< as in the Date header
};

/// The form of RFC 5322. Errors: invalid_argument where a header's value is more than one line, or ends before its end
/// for some reader.
Result<std::string> mail_text(std::string_view from, const MailMessage& message);

}  // namespace playfs::net
