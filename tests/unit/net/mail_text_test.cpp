#include "net/mail_text.h"

#include <gtest/gtest.h>

namespace playfs::net {
namespace {

const MailMessage kMessage{"ada@example.org", "a subject", "one\ntwo\n", "id@example.org",
                           "Sun, 01 Nov 2026 10:00:00 +0000"};

TEST(MailText, HasItsHeadersThenItsLines) {
  EXPECT_EQ(mail_text("playfs@example.org", kMessage).value_or(""),
            "Date: Sun, 01 Nov 2026 10:00:00 +0000\r\nFrom: <playfs@example.org>\r\nTo: <ada@example.org>\r\n"
            "Subject: a subject\r\nMessage-ID: <id@example.org>\r\nAuto-Submitted: auto-generated\r\n"
            "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\none\r\ntwo\r\n");
}

TEST(MailText, NoValueOfAHeaderEndsIt) {
  for (std::string end :
       {std::string("\r"), std::string("\n"), std::string("\r\nBcc: eve@example.org"), std::string(1, '\0')}) {
    for (std::string MailMessage::*value :
         {&MailMessage::to, &MailMessage::subject, &MailMessage::message_id, &MailMessage::date}) {
      MailMessage message = kMessage;
      message.*value += end;
      EXPECT_FALSE(mail_text("playfs@example.org", message));
    }
    EXPECT_FALSE(mail_text("playfs@example.org" + end, kMessage));
  }
}

}  // namespace
}  // namespace playfs::net
