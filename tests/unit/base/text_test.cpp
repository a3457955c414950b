#include "base/text.h"

#include <string>

#include <gtest/gtest.h>

#include "base/text_check.h"

namespace playfs {
namespace {

TEST(Utf8, AcceptsAllAndOnlyUnicode) {
  EXPECT_TRUE(is_valid_utf8("aä€😀"));
  for (std::string_view bad :
       {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x9f\x98", "a\xff"})
    EXPECT_FALSE(is_valid_utf8(bad));
  EXPECT_EQ(count_code_points("aä€😀"), 4u);
  EXPECT_EQ(count_utf16_units("aä€😀"), 5u);
}

TEST(TextCheck, TellsTextWhereverItIsCut) {
  const std::string text = "aä€😀";
  auto is_text = [](std::string_view first, std::string_view second) {
    TextCheck check;
    check.update(first);
    check.update(second);
    return check.is_text();
  };
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_TRUE(is_text(text.substr(0, cut), text.substr(cut))) << cut;
  EXPECT_FALSE(is_text(text, std::string_view("\0", 1)));
  EXPECT_FALSE(is_text(text, "\xf0\x9f\x98")) << "a character that does not end";
  EXPECT_FALSE(is_text("\xe2\x82", "a")) << "a character that another follows";
  EXPECT_FALSE(is_text("\xff", text));
}

TEST(Base64, RoundTripsEveryLengthAndRefusesRubbish) {
  for (std::size_t length = 0; length < 50; ++length) {
    std::string bytes;
    for (std::size_t i = 0; i < length; ++i) bytes += static_cast<char>(i * 37 + length);
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
  EXPECT_EQ(to_base64("any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
  EXPECT_EQ(from_base64("YW5\n5"), "any");
  for (const char* bad : {"A", "AA", "AAA", "A===", "AA=A", "====", "A A=", "*AAA", "AAAA    ", "AAAA----", "    AAAA",
                          "AA==AAAA", "AAA=AAA=", "=AAA"})
    EXPECT_FALSE(from_base64(bad)) << bad;
}

TEST(Percent, EncodesAnyIdIntoOneSegment) {
  EXPECT_EQ(percent_encode("a/b?c#%\xc3\xa4"), "a%2Fb%3Fc%23%25%C3%A4");
  EXPECT_EQ(percent_decode("a%2Fb%3fc"), "a/b?c");
  EXPECT_FALSE(percent_decode("a%2"));
  EXPECT_FALSE(percent_decode("%zz"));
}

TEST(Terminal, ShowsWhatWouldAct) {
  EXPECT_EQ(escape_for_terminal("a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
  EXPECT_EQ(escape_for_terminal("a\nb", true), "a\nb");
  EXPECT_EQ(escape_for_terminal("x\xe2\x80\xaey"), "x\\u202ey");
  EXPECT_EQ(escape_for_terminal("\xff"), "\\xff");
  EXPECT_EQ(escape_for_terminal("a\u200bb\U000E0041c\ufeff"), "a\\u200bb\\udb40\\udc41c\\ufeff");
  EXPECT_EQ(escape_for_terminal("naïve"), "naïve");
  EXPECT_EQ(escape_for_terminal("\u2764\ufe0f"), "\u2764\ufe0f") << "emoji are left as they are";
}

}  // namespace
}  // namespace playfs
