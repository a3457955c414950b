#include "net/mail_text.h"

namespace playfs::net {

namespace {
constexpr std::string_view kEndOfLine("\r\n\0", 3);
}  // namespace

Result<std::string> mail_text(std::string_view from, const MailMessage& message) {
  for (std::string_view value : {from, std::string_view(message.to), std::string_view(message.subject),
                                 std::string_view(message.message_id), std::string_view(message.date)})
    if (value.find_first_of(kEndOfLine) != std::string_view::npos)
      return fail(ErrorCode::invalid_argument, "a mail header contains a line break");
  std::string mail = "Date: " + message.date + "\r\nFrom: <" + std::string(from) + ">\r\nTo: <" + message.to +
                     ">\r\nSubject: " + message.subject + "\r\nMessage-ID: <" + message.message_id +
                     ">\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                     "Content-Type: text/plain; charset=utf-8\r\n\r\n";
  for (char c : message.text) {
    if (c == '\n') mail += '\r';
    mail += c;
  }
  return mail;
}

}  // namespace playfs::net
