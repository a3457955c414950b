#include "vfs/control/growing_text.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_directory.h"

namespace playfs::vfs {
namespace {

TEST(GrowingText, ALongOneIsInAFileWithoutAName) {
  playfs::test::TemporaryDirectory home;
  GrowingText text(home / "state", "begin ");
  const std::string piece(1 << 20, 'x');
  std::string all = "begin ";
  for (int i = 0; i < 6; ++i) {
    const std::string more = std::to_string(i) + piece;
    ASSERT_TRUE(text.append(more));
    all += more;
    EXPECT_EQ(text.in_memory() != nullptr, all.size() <= GrowingText::kInMemory);
    EXPECT_EQ(text.size(), all.size());
    EXPECT_TRUE(text.read(0, all.size() + 10).value() == all);
  }
  EXPECT_EQ(text.read(all.size() - 3, 100).value(), "xxx");
  EXPECT_EQ(text.read(all.size() + 3, 100).value(), "");
  EXPECT_TRUE(std::filesystem::is_empty(home / "state"));
}

TEST(GrowingText, WhatCannotBeKeptIsNotThere) {
  playfs::test::TemporaryDirectory home;
  std::filesystem::create_symlink("nowhere", home / "state");
  GrowingText text(home / "state", "begin");
  EXPECT_FALSE(text.append(std::string(GrowingText::kInMemory, 'x')));
  EXPECT_EQ(text.size(), 5U);
  ASSERT_TRUE(text.append(" end"));
  EXPECT_EQ(text.read(0, 100).value(), "begin end");
}

}  // namespace
}  // namespace playfs::vfs
