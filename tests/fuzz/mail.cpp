// A mail as it is sent: five fields that it is made of, then its text. No value becomes another header or part of the
// text.
#include <vector>

#include "fuzz.h"
#include "net/mail_text.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::string from(input.field());
  net::MailMessage message;
  for (std::string* value : {&message.to, &message.subject, &message.message_id, &message.date}) *value = input.field();
  message.text = input.rest();
  auto mail = net::mail_text(from, message);
  FUZZ_CHECK(mail || mail.error().code == ErrorCode::invalid_argument);
  if (!mail) return 0;
  std::string_view rest = *mail;
  std::vector<std::string> headers;
  while (!rest.starts_with("\r\n")) {
    const auto end = rest.find("\r\n");
    FUZZ_CHECK(end != std::string_view::npos);
    headers.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 2);
    FUZZ_CHECK(headers.back().find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  }
  const std::vector<std::string> expected = {"Date: " + message.date,
                                             "From: <" + from + ">",
                                             "To: <" + message.to + ">",
                                             "Subject: " + message.subject,
                                             "Message-ID: <" + message.message_id + ">",
                                             "Auto-Submitted: auto-generated",
                                             "MIME-Version: 1.0",
                                             "Content-Type: text/plain; charset=utf-8"};
  FUZZ_CHECK(headers == expected);
  std::string text;
  rest.remove_prefix(2);
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '\n') FUZZ_CHECK(i > 0 && rest[i - 1] == '\r');
    if (rest[i] != '\r' || i + 1 == rest.size() || rest[i + 1] != '\n') text += rest[i];
  }
  FUZZ_CHECK(text == message.text);
  return 0;
}
