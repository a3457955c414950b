#include "mail/incoming.h"

#include <gtest/gtest.h>

#include "mail/header_text.h"
#include "mail/hostile_letters.h"
#include "model/kinds.h"

namespace playfs::mail {
namespace {

using Texts = std::vector<std::string>;
using Purpose = Incoming::Purpose;

const Envelope kFromHeaders{"example.org", {}, true};

Result<Incoming> parse(const std::string& headers, const std::string& body = "Hello.\n") {
  return parse_mail(headers + "\n" + body, kFromHeaders);
}

std::string why(const std::string& headers, const std::string& body = "Hello.\n") {
  auto mail = parse(headers, body);
  return mail ? "accepted" : mail.error().message;
}

TEST(Incoming, AReplyNamesItsParent) {
  const auto mail = parse(
      "From: Ada <ada@example.org>\nTo: bob@example.org\nCc: carol@example.org, discussion@example.org\n"
      "Message-ID: <x@laptop>\nSubject: Re: A thread\nIn-Reply-To: <m2@example.org>\n"
      "References: <m0@example.org> <other@elsewhere>\n <m=20a@EXAMPLE.org> <m2@example.org>\n",
      "> @eve wrote\nI agree, @dora.\r\n\r\n");
  ASSERT_TRUE(mail) << mail.error().message;
  EXPECT_EQ(mail->purpose, Purpose::reply);
  EXPECT_EQ(mail->parent, "m2");
  EXPECT_EQ(mail->body, "> @eve wrote\nI agree, @dora.");
  EXPECT_EQ(mail->mentions, (Texts{"dora", "carol"}));
  EXPECT_EQ(mail->message_id, "x@laptop");
  EXPECT_EQ(mail->from, "ada");
}

TEST(Incoming, AnAnswerToAMailThatWasNeverHereAnswersTheNearestThatIs) {
  const std::string to = "To: bob@example.org\nReferences: <m0@example.org> <m=20a@EXAMPLE.org> <x@laptop>\n";
  EXPECT_EQ(parse(to + "In-Reply-To: <x@laptop>\n")->parent, "m a");
  EXPECT_EQ(parse(to)->parent, "m a");
}

// It would start a thread of its own in the middle of a conversation.
TEST(Incoming, AnAnswerToWhatCannotBeReadIsRefused) {
  const std::string to = "To: help@example.org\nSubject: Re: s\n", cut = "<m=~0ea2ebd0@example.org>\n";
  const std::string reason = "the mail answers 'm=~0ea2ebd0@example.org', from which no message can be told";
  EXPECT_EQ(why(to + "In-Reply-To: " + cut), reason);
  EXPECT_EQ(why(to + "References: <x@laptop> " + cut), reason);
  EXPECT_EQ(parse(to + "In-Reply-To: " + cut + "References: <m0@example.org> " + cut)->parent, "m0");
  EXPECT_TRUE(parse("To: steward@example.org\nSubject: s\nIn-Reply-To: " + cut));
}

TEST(Incoming, LinesEndWithANewlineAlone) {
  EXPECT_EQ(parse("To: help\nSubject: s\n", "a\r\r\nb\rc\r\n")->body, "a\nb\rc");
}

TEST(Incoming, AKindsAddressStartsAThread) {
  const auto mail = parse(
      "To: Help <HELP@Example.org>, bob@example.org\nBcc: carol\nSubject: =?utf-8?B?xIXjgYI=?=\n"
      " =?utf-8?B?8J+YgA==?= and more\n");
  ASSERT_TRUE(mail) << mail.error().message;
  EXPECT_EQ(mail->purpose, Purpose::thread);
  EXPECT_EQ(mail->kind, "help");
  EXPECT_EQ(mail->subject, "ąあ😀 and more");
  EXPECT_EQ(mail->mentions, (Texts{"bob", "carol"}));
  EXPECT_EQ(mail->parent, "");
}

TEST(Incoming, TheStewardGetsMailOfAKind) {
  auto mail = parse("To: steward@example.org\nSubject: s\nX-Playfs-Kind: question\nIn-Reply-To: <m@example.org>\n");
  ASSERT_TRUE(mail) << mail.error().message;
  EXPECT_EQ(mail->purpose, Purpose::mail);
  EXPECT_EQ(mail->kind, "question");
  EXPECT_EQ(parse("To: steward@example.org\nSubject: s\n")->kind, kDefaultMailKind);
  EXPECT_EQ(why("To: steward@example.org\nSubject: s\nX-Playfs-Kind: x\n"), "'x' in X-Playfs-Kind is no kind of mail");
}

TEST(Incoming, RecipientsAreThoseOfTheCommandLineUnlessAsked) {
  const std::string text = "To: help@example.org\nCc: nobody@elsewhere\nSubject: s\n\nHello\n";
  const auto mail = parse_mail(text, {"example.org", {"Ada <ada@example.org>", "intro@example.org"}, false});
  ASSERT_TRUE(mail) << mail.error().message;
  EXPECT_EQ(mail->kind, "intro");
  EXPECT_EQ(mail->mentions, Texts{"ada"});
  EXPECT_FALSE(parse_mail(text, kFromHeaders));
}

TEST(Incoming, SaysWhatIsWrong) {
  const std::string to = "To: help@example.org\nSubject: s\n";
  EXPECT_EQ(why("Subject: s\n"), "the mail has no recipient");
  EXPECT_EQ(why("To: ada@elsewhere.org\n"), "'ada@elsewhere.org' is not at this site");
  EXPECT_EQ(why("To: ada@example.org\nSubject: s\n"),
            "the mail neither answers a message of this site nor starts a thread");
  EXPECT_EQ(why("To: ada@example.org\nIn-Reply-To: <a@b>\n"),
            "the mail neither answers a message of this site nor starts a thread");
  EXPECT_EQ(why("To: help@example.org, intro@example.org\nSubject: s\n"),
            "the mail is for two kinds of thread, help and intro");
  EXPECT_EQ(why("To: help@example.org\n"), "the mail has no subject");
  EXPECT_EQ(why(to, " \n\r\n"), "the mail has no text");
  EXPECT_EQ(why(to + "Cc: =GG@example.org\n"), "'=GG@example.org' is no agent's address");
  EXPECT_EQ(why(to + "Content-Type: text/plain; charset=klingon\n"), "the mail's character set 'klingon' is unknown");
  EXPECT_EQ(why(to + "Content-Type: text/html\n"), "the mail has its text as HTML only");
  EXPECT_EQ(why(to + "Content-Type: application/pdf; name=a.pdf\n"),
            "the mail has an attachment ('a.pdf', application/pdf), and a message holds only text");
  EXPECT_EQ(why("", std::string(kLargestMail, 'x')), "the mail has more than 128 KB");
  EXPECT_NE(why("", ""), "accepted");
  std::string many = "To: help@example.org\nSubject: s\nCc: a0@example.org";
  for (int i = 1; i < 200; ++i) many += ",\n a" + std::to_string(i) + "@example.org";
  EXPECT_EQ(why(many + "\n"), "the mail has more than 100 recipients");
}

// GMime recurses for groups of addresses in groups, until the stack ends.
TEST(Incoming, RefusesEndlessGroups) {
  for (const char* group : {"g:", "g:\n ", "g:\r\n\t"}) {
    std::string headers = "To: ";
    while (headers.size() < 100'000) headers += group;
    EXPECT_FALSE(parse(headers + "\n"));
    EXPECT_FALSE(parse("Content-Type: message/rfc822\n", headers + "\n\nx"));
  }
}

TEST(Incoming, FindsTheTextOfAMultipart) {
  const std::string to = "To: help@example.org\nSubject: s\nMIME-Version: 1.0\n";
  const auto multipart = [&](const std::string& type, const Texts& parts) {
    std::string body;
    for (const std::string& part : parts) body += "--b\nContent-Type: " + part + "\n";
    return parse(to + "Content-Type: multipart/" + type + "; boundary=b\n", body + "--b--\n");
  };
  auto mail = multipart("alternative", {"text/html\n\n<p>x",
                                        "text/plain; charset=iso-8859-2\nContent-Transfer-Encoding: "
                                        "quoted-printable\n\nza=BF=F3=B3=E6"});
  ASSERT_TRUE(mail) << mail.error().message;
  EXPECT_EQ(mail->body, "zażółć");
  mail = multipart("mixed", {"text/plain\n\nx", "image/png; name=\"a b.png\"\n\nPNG"});
  ASSERT_FALSE(mail);
  EXPECT_EQ(mail.error().message, "the mail has an attachment ('a b.png', image/png), and a message holds only text");
  mail = multipart("mixed", {"text/plain\n\nx", "text/plain\n\ny"});
  EXPECT_FALSE(mail);
  mail = multipart("mixed", {"text/plain\nContent-Disposition: attachment; filename=f\n\nx"});
  EXPECT_FALSE(mail);
  mail = multipart("alternative", {"text/html\n\nx"});
  ASSERT_FALSE(mail);
  EXPECT_EQ(mail.error().message, "the mail has its text as HTML only");
  std::string nested = to, ends;
  for (int i = 0; i < 2000; ++i)
    nested += "Content-Type: multipart/mixed; boundary=b" + std::to_string(i) + "\n\n--b" + std::to_string(i) + "\n";
  EXPECT_FALSE(parse_mail(nested + "\n\nx", kFromHeaders));
}

// What a letter shows is what a mail with its text would send.
TEST(Incoming, ReadsEveryLetterBack) {
  for (const Letter& letter : hostile_letters()) {
    const auto mail = parse_mail(to_rfc5322(letter), kFromHeaders);
    if (!mail) {
      const bool is_bad = !is_thread_kind(letter.kind) || letter.collection == "domain_mail" ||
                          one_line(letter.subject).empty() || letter.in_reply_to.size() > 200 ||
                          letter.body.find_first_not_of(" \r\n") == letter.body.npos || letter.body.size() > 16'000;
      EXPECT_TRUE(is_bad) << mail.error().message;
      continue;
    }
    EXPECT_EQ(mail->subject, one_line(shown(one_line(letter.subject))));
    if (letter.from.size() <= 200) {
      EXPECT_EQ(mail->from, letter.from);
    }
    if (letter.in_reply_to.empty()) {
      EXPECT_EQ(mail->kind, letter.kind);
    } else {
      EXPECT_EQ(mail->parent, letter.in_reply_to);
    }
    if (!letter.owner_reply.empty()) continue;
    std::string body = shown(readable(letter.body));
    for (auto at = body.find("\r\n"); at != body.npos; at = body.find("\r\n")) body.erase(at, 1);
    body.erase(body.find_last_not_of("\r\n") + 1);
    EXPECT_EQ(mail->body, body);
  }
}

}  // namespace
}  // namespace playfs::mail
