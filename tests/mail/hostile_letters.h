// Letters with what strangers may write into them, for tests that read them back.
#pragma once

#include <string>
#include <vector>

#include "mail/letter.h"

namespace playfs::mail {

/// Texts for any field.
inline std::vector<std::string> hostile_texts() {
  using namespace std::string_literals;
  std::string words, many;
  while (words.size() < 16 * 1024) words += "sixteen kilobytes of words ";
  while (many.size() < 16 * 1024) many += "ąあ😀";
  return {""s,
          "plain words"s,
          "a\nBcc: eve@example.org"s,
          "a\r\n\r\nanother body"s,
          "a\0b"s,
          "\xff\xed\xa0\x80 bad bytes"s,
          "=?utf-8?q?evil=0ABcc:_eve?="s,
          "=?utf-8?B?ZXZpbA==?= =?bad"s,
          "a\"b\\c <x@y>, (comment) ; :"s,
          "\"<@>"s,
          "\u202egnp.exe\u202c \u2066x\u2069 \u200b"s,
          "\x1b]0;title\x07\x1b[2J\x9b"s,
          "zażółć gęślą jaźń 日本語 🎉"s,
          "  blanks  between and around  "s,
          "From eve\n>From bob\n.\n"s,
          "steward"s,
          "help"s,
          "..a..b."s,
          "a/b:c,d_e.f"s,
          "=20 =~ ="s,
          "trailing \t \nblanks \n\n\n"s,
          "\r lone \r returns\r"s,
          std::string(16 * 1024, 'x'),
          std::string(16 * 1024, '"'),
          std::string(16 * 1024, '\n'),
          std::string(997, 'y') + "\n" + std::string(999, 'z'),
          words,
          many};
}

inline Letter plain_letter() {
  Letter letter;
  letter.id = "m1";
  letter.domain = "example.org";
  letter.from = "ada";
  letter.subject = "A thread";
  letter.date = letter.updated = WallTime{1'793'527'200'000'000'000};
  letter.body = "Hello @bob.";
  letter.collection = "messages";
  letter.kind = "discussion";
  letter.thread = "t1";
  return letter;
}

/// Each text in each field, then in all of them.
inline std::vector<Letter> hostile_letters() {
  std::vector<Letter> letters{plain_letter()};
  for (const std::string& text : hostile_texts()) {
    for (std::string Letter::*field :
         {&Letter::id, &Letter::from, &Letter::subject, &Letter::body, &Letter::in_reply_to, &Letter::collection,
          &Letter::kind, &Letter::thread, &Letter::state, &Letter::owner_reply}) {
      letters.push_back(plain_letter());
      letters.back().*field = text;
    }
    Letter all = plain_letter();
    all.id = all.from = all.subject = all.body = all.in_reply_to = all.kind = all.thread = all.state = text;
    all.owner_reply = text;
    all.references = std::vector<std::string>(100, text);
    all.mentions = std::vector<std::string>(100, text);
    letters.push_back(all);
  }
  return letters;
}

}  // namespace playfs::mail
