#include "compare/text_diff.h"

#include <gtest/gtest.h>

namespace playfs::compare {
namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string printed(const TextDiff& diff) {
  std::string text;
  for (const auto& hunk : diff.hunks)
    for (const auto& line : hunk.lines) text += line.sign + line.text + (line.ends_in_break ? "\n" : "|");
  return text;
}

TEST(TextDiff, ShowsLinesWithNumbers) {
  auto diff = diff_texts("a\nb\nc\n", "a\nB\nc\nd", {});
  ASSERT_TRUE(diff);
  EXPECT_EQ(printed(*diff), " a\n-b\n+B\n c\n+d|");
  EXPECT_EQ(diff->added, 2u);
  EXPECT_EQ(diff->removed, 1u);
  const auto& lines = diff->hunks.at(0).lines;
  EXPECT_EQ(lines[1].old_number, 2);
  EXPECT_EQ(lines[1].new_number, 0);
  EXPECT_EQ(lines[4].old_number, 0);
  EXPECT_EQ(lines[4].new_number, 4);
}

TEST(TextDiff, StopsAtTheLimit) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += std::to_string(i) + "\n";
  auto diff = diff_texts("", many, {.shown = 10});
  ASSERT_TRUE(diff);
  EXPECT_TRUE(diff->cut);
  EXPECT_EQ(diff->hunks.at(0).lines.size(), 10u);
  EXPECT_EQ(diff->added, 100u);
}

TEST(TextDiff, OfEqualTextsIsEmpty) {
  auto diff = diff_texts("x\n", "x\n", {});
  ASSERT_TRUE(diff);
  EXPECT_TRUE(diff->hunks.empty());
}

TEST(DiffLimits, LinesAreCountedBeforeTheyAreCompared) {
  const std::string before = repeated("a\n", 50), after = repeated("b\n", 49) + "b";
  auto diff = diff_texts(before, after, {.compared = 100});
  ASSERT_TRUE(diff);
  EXPECT_EQ(diff->compared, 100u);
  auto refused = diff_texts(before, after, {.compared = 99});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::file_too_big);
}

TEST(DiffLimits, AChangeIsPlacedByIndentation) {
  const std::string before = "for x {\n  a\n}\n", after = "for x {\n  b\n}\nfor x {\n  a\n}\n";
  auto diff = diff_texts(before, after, {});
  ASSERT_TRUE(diff);
  std::string added;
  for (const auto& line : diff->hunks.at(0).lines)
    if (line.sign == '+') added += line.text + '\n';
  EXPECT_EQ(added, "for x {\n  b\n}\n");
}

TEST(TextDiff, AHunkNamesTheFunctionAboveIt) {
  std::string before = "void f() { \n" + repeated("  a\n", 5) + "  x\n" + repeated("  b\n", 9) + "int g() {\n  c\n";
  std::string after = before;
  after.replace(after.find('x'), 1, "y");
  after.replace(after.find("  c"), 3, "  d");
  auto diff = diff_texts(before, after);
  ASSERT_TRUE(diff);
  ASSERT_EQ(diff->hunks.size(), 2u);
  EXPECT_EQ(diff->hunks[0].header, "@@ -4,7 +4,7 @@ void f() {");
  EXPECT_EQ(diff->hunks[1].header, "@@ -15,4 +15,4 @@ void f() {");
  EXPECT_EQ(diff_texts("", "a")->hunks.at(0).header, "@@ -0,0 +1 @@");
}

}  // namespace
}  // namespace playfs::compare
