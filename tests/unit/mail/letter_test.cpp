#include "mail/letter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "mail/address.h"
#include "mail/header_text.h"
#include "mail/hostile_letters.h"
#include "mail/incoming.h"
#include "mail/mbox.h"

namespace playfs::mail {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', from)) {
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  EXPECT_EQ(from, text.size());
  return lines;
}

TEST(Letter, HasItsHeadersThenItsText) {
  Letter letter = plain_letter();
  letter.in_reply_to = "m0";
  letter.references = {"a", "m0"};
  letter.mentions = {"bob", "carol d"};
  EXPECT_EQ(to_rfc5322(letter),
            "From: ada <ada@example.org>\nTo: discussion@example.org\nSubject: A thread\n"
            "Date: Sun, 01 Nov 2026 10:00:00 +0000\nMessage-ID: <m1@example.org>\nIn-Reply-To: <m0@example.org>\n"
            "References: <a@example.org>\n <m0@example.org>\nX-Playfs-Collection: messages\nX-Playfs-Thread: t1\n"
            "X-Playfs-Kind: discussion\nX-Playfs-Mentions: bob,\n carol=20d\nMIME-Version: 1.0\n"
            "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nHello @bob.\n");
}

TEST(Letter, OfAMailHasTheAnswer) {
  Letter letter = plain_letter();
  letter.collection = "domain_mail";
  letter.kind = "question";
  letter.state = "answered";
  letter.owner_reply = "Yes.";
  letter.updated.nanoseconds += 1000;
  const std::string text = to_rfc5322(letter);
  for (const char* part :
       {"\nTo: steward@example.org\n", "\nX-Playfs-State: answered\n", "\nX-Playfs-Answered: yes\n",
        "\nX-Playfs-Updated: 2026-11-01T10:00:00.000001Z\n", "Hello @bob.\n\n---- The steward's answer ----\n\nYes.\n"})
    EXPECT_NE(text.find(part), text.npos) << part;
}

// Whatever strangers wrote: each header once, of ASCII, in lines that RFC 5322 and RFC 2047 allow; the text has nothing
// that a terminal would interpret.
TEST(Letter, IsWellFormedWhateverItHolds) {
  const std::set<std::string> known = {"From",
                                       "To",
                                       "Subject",
                                       "Date",
                                       "Message-ID",
                                       "In-Reply-To",
                                       "References",
                                       "X-Playfs-Collection",
                                       "X-Playfs-Thread",
                                       "X-Playfs-Kind",
                                       "X-Playfs-Mentions",
                                       "X-Playfs-State",
                                       "X-Playfs-Answered",
                                       "MIME-Version",
                                       "Content-Type",
                                       "Content-Transfer-Encoding"};
  for (const Letter& letter : hostile_letters()) {
    const std::string text = to_rfc5322(letter);
    EXPECT_EQ(text, to_rfc5322(letter));
    std::set<std::string> found;
    bool in_headers = true;
    for (const std::string& line : lines_of(text)) {
      ASSERT_LE(line.size(), 998u);
      if (line.empty()) in_headers = false;
      if (!in_headers) {
        ASSERT_EQ(escape_for_terminal(line), line);
        continue;
      }
      ASSERT_EQ(line.find_first_not_of(" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
                                       "abcdefghijklmnopqrstuvwxyz{|}~\t"),
                line.npos)
          << line;
      if (line.find("=?utf-8?Q?") != line.npos) {
        ASSERT_LE(line.size(), 76u) << line;
      }
      if (line[0] == ' ' || line[0] == '\t') continue;
      const std::string name = line.substr(0, line.find(':'));
      ASSERT_TRUE(known.contains(name)) << line;
      ASSERT_TRUE(found.insert(name).second) << line;
    }
    ASSERT_FALSE(in_headers);
    for (const char* name : {"From", "Subject", "Date", "Message-ID", "Content-Type"})
      ASSERT_TRUE(found.contains(name));
  }
}

// Not all mail readers escape what they decode.
TEST(Letter, ShowsWhatATerminalWouldObey) {
  Letter letter = plain_letter();
  letter.from = "e\u009bve";
  letter.subject = "\u202egnp.exe";
  letter.body = "\x1b[2J \u009b31m \u202e \u2028 lone\r \x7f\nends\r\n\tof a patch\f \ufeff\n";
  const std::string text = to_rfc5322(letter);
  EXPECT_NE(text.find("\nSubject: \\u202egnp.exe\n"), text.npos) << text;
  EXPECT_TRUE(text.starts_with("From: e ve <")) << text;
  EXPECT_EQ(shown(letter.body), "\\x1b[2J \\u009b31m \\u202e \\u2028 lone\\x0d \\x7f\nends\r\n\tof a patch\f \ufeff\n");
  letter.from = "=?utf-8?q?=1B]0;x=07?=";
  EXPECT_TRUE(to_rfc5322(letter).starts_with("From: \"\\\\x3d?utf-8?q?=1B]0;x=07?=\""));
  letter.body = shown(letter.body) + "\x1b";
  EXPECT_TRUE(to_rfc5322(letter).find("Encoding: base64\n") != text.npos);
  letter.body = "\x1b[2J";
  EXPECT_NE(to_rfc5322(letter).find("\n\n\\x1b[2J\n"), text.npos);
  EXPECT_EQ(shown("\r\r\n"), "\\x0d\r\n");
  for (const std::string& hostile : hostile_texts()) {
    const std::string clean = shown(readable(hostile));
    for (std::string_view rest = clean; !rest.empty();) {
      const CodePoint code = first_code_point(rest);
      EXPECT_TRUE(code.length > 0 &&
                  (code.value == '\f' || rest.starts_with("\r\n") || !is_obeyed_by_terminals(code.value)))
          << hostile.substr(0, 40);
      rest.remove_prefix(std::max<std::size_t>(code.length, 1));
    }
  }
}

TEST(Letter, NamesTheFirstAndTheLatestAncestors) {
  Letter letter = plain_letter();
  for (int i = 0; i < 10'000; ++i) letter.references.push_back("m" + std::to_string(i));
  const std::string text = to_rfc5322(letter);
  EXPECT_NE(text.find("References: <m0@example.org>\n <m9980@example.org>\n"), text.npos);
  EXPECT_NE(text.find(" <m9999@example.org>\nX-"), text.npos);
  EXPECT_LT(text.size(), 2000u);
}

TEST(HeaderWords, LookAlikesAreEncodedAndPlainWordsAreNot) {
  EXPECT_EQ(header_words("a plain (title), \"quoted\""), "a plain (title), \"quoted\"");
  EXPECT_EQ(header_words("=?utf-8?q?x?="), "=?utf-8?Q?=3D=3Futf=2D8=3Fq=3Fx=3F=3D?=");
  EXPECT_EQ(header_words("a  b"), "=?utf-8?Q?a__b?=");
  EXPECT_EQ(one_line(std::string(" a\r\nb\x01\0c\xff ", 9)), "a  b \uFFFDc\uFFFD");
}

TEST(Mbox, QuotesWhatLooksLikeAnEntry) {
  Letter letter = plain_letter();
  letter.body = "From eve\n>From bob\n >From x\nFrom\n";
  const std::string text = to_mboxrd(to_rfc5322(letter), address_of(letter), letter.date);
  EXPECT_TRUE(text.starts_with("From ada@example.org Sun Nov  1 10:00:00 2026\nFrom: ada <"));
  EXPECT_TRUE(text.ends_with("\n\n>From eve\n>>From bob\n >From x\nFrom\n\n"));
  EXPECT_TRUE(to_mboxrd("", "a b\nc", letter.date).starts_with("From a?b?c Sun"));
}

}  // namespace
}  // namespace playfs::mail
