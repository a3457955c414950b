#include "model/path.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

using namespace std::string_view_literals;

TEST(Component, RefusesWhatCannotBeAName) {
  for (auto name : {""sv, "."sv, ".."sv, "a/b"sv, "a\0b"sv, "\xff"sv, "\xed\xa0\x80"sv, ".Git"sv, ".playfs"sv})
    EXPECT_TRUE(why_not_a_component(name).has_value()) << name;
  EXPECT_TRUE(why_not_a_component(std::string(256, 'a')));
  for (auto name : {"..."sv, ".a"sv, " "sv, "a\nb"sv, "\\"sv, "\u202e"sv, "CON"sv, "a:b"sv, ".playfsignore"sv})
    EXPECT_FALSE(why_not_a_component(name).has_value()) << name;
  EXPECT_FALSE(why_not_a_component(std::string(255, 'a')));
}

TEST(TreePath, RefusesWithAReason) {
  for (auto text : {""sv, "/"sv, "/a"sv, "a/"sv, "a//b"sv, "./a"sv, "a/.."sv, "a/.GIT/config"sv, "a\0"sv}) {
    std::string why;
    EXPECT_FALSE(TreePath::parse(text, &why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
  std::string deep = "a";
  while (deep.size() + 2 <= kMaxPathLength) deep += "/a";
  EXPECT_EQ(deep.size(), kMaxPathLength);
  EXPECT_TRUE(TreePath::parse(deep));
  EXPECT_FALSE(TreePath::parse(deep + "a"));
}

TEST(TreePath, IsNamedAfterItsLastComponent) {
  EXPECT_EQ(TreePath::parse("src/a b/ü.c")->name(), "ü.c");
  EXPECT_EQ(TreePath::parse("x")->name(), "x");
}

}  // namespace
}  // namespace playfs
