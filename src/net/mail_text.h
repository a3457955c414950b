// Formats one mail for submission. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace playfs::net {

struct MailMessage {
  std::string to;
  std::string subject;
  std::string text;        ///< lines end with '\n'
  std::string message_id;  ///< without angle brackets
  std::string date;        ///< as in the Date header
};

/// The RFC 5322 form. Fails with invalid_argument if a header value contains a line break, or a NUL, where some readers
/// would end it.
Result<std::string> mail_text(std::string_view from, const MailMessage& message);

}  // namespace playfs::net
