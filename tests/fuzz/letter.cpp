// Mail in both directions: any bytes as a mail that comes in; any texts as a letter, which reads back the same.
#include "mail/letter.h"
#include "fuzz.h"
#include "mail/header_text.h"
#include "mail/incoming.h"
#include "mail/mbox.h"
#include "model/kinds.h"
#include "model/mentions.h"

using namespace playfs;

namespace {

const mail::Envelope kEnvelope{"example.org", {}, true};

void check_incoming(std::string_view text) {
  const auto mail = mail::parse_mail(text, kEnvelope);
  if (!mail) {
    FUZZ_CHECK(!mail.error().message.empty() && !mail.error().hint.empty());
    return;
  }
  FUZZ_CHECK(!mail->body.empty() && mail->body == mail::readable(mail->body));
  FUZZ_CHECK(mail->subject == mail::one_line(mail->subject));
  FUZZ_CHECK(mail->mentions.size() <= kMaxMentions + 100);
  using Purpose = mail::Incoming::Purpose;
  FUZZ_CHECK((mail->purpose == Purpose::reply) == mail->kind.empty());
  FUZZ_CHECK(mail->purpose != Purpose::reply || !mail->parent.empty());
  FUZZ_CHECK(mail->purpose != Purpose::thread || is_thread_kind(mail->kind));
  FUZZ_CHECK(mail->purpose != Purpose::mail || is_mail_kind(mail->kind));
}

/// Lines are short, and headers end where the text begins.
void check_form(std::string_view text) {
  FUZZ_CHECK(text.ends_with('\n'));
  bool in_headers = true;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    FUZZ_CHECK(line.size() <= 998 && line.find('\r') == line.npos && line.find('\0') == line.npos);
    if (line.empty()) in_headers = false;
    if (in_headers) FUZZ_CHECK(line[0] == ' ' || line[0] == '\t' || line.find(':') != line.npos);
    text.remove_prefix(line.size() + 1);
  }
  FUZZ_CHECK(!in_headers);
}

void check_letter(Input& input) {
  mail::Letter letter;
  letter.domain = kEnvelope.domain;
  letter.kind = kThreadKinds[input.below(kThreadKinds.size())];
  letter.collection = "messages";
  for (std::string* text :
       {&letter.id, &letter.from, &letter.subject, &letter.in_reply_to, &letter.thread, &letter.state})
    *text = input.field();
  letter.mentions = {letter.from, letter.state};
  letter.body = input.rest();
  const std::string text = mail::to_rfc5322(letter);
  FUZZ_CHECK(text == mail::to_rfc5322(letter));
  check_form(text);
  FUZZ_CHECK(mail::to_mboxrd(text, mail::address_of(letter), letter.date).find("\nFrom ") == std::string::npos);

  std::string body = mail::shown(mail::readable(letter.body));
  for (auto at = body.find("\r\n"); at != body.npos; at = body.find("\r\n")) body.erase(at, 1);
  body.erase(body.find_last_not_of("\r\n") + 1);
  const auto mail = mail::parse_mail(text, kEnvelope);
  const bool has_long_parent = letter.in_reply_to.size() > 200;
  if (!mail) {
    FUZZ_CHECK(text.size() > mail::kLargestMail || body.find_first_not_of(" \t\r\n") == body.npos ||
               (letter.in_reply_to.empty() && mail::one_line(letter.subject).empty()) || has_long_parent);
    return;
  }
  FUZZ_CHECK(mail->body == body);
  FUZZ_CHECK(mail->subject == mail::one_line(mail::shown(mail::one_line(letter.subject))));
  if (letter.from.size() <= 200) FUZZ_CHECK(mail->from == letter.from);
  if (!has_long_parent) FUZZ_CHECK(mail->parent == letter.in_reply_to);
  FUZZ_CHECK(letter.in_reply_to.empty() == mail->parent.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  if (input.byte() % 2 == 0) check_incoming(input.rest());
  else check_letter(input);
  return 0;
}
