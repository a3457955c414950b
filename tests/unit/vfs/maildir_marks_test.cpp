#include "vfs/control/maildir_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.h"

namespace playfs::vfs {
namespace {

using Place = MaildirMark::Place;

class MaildirMarksTest : public ::testing::Test {
 protected:
  [[nodiscard]] MaildirMarks open() const { return {home.path() + "/marks", "ann"}; }
  [[nodiscard]] std::string journal() const { return home.path() + "/marks/ann"; }
  [[nodiscard]] std::size_t lines() const {
    std::ifstream file(journal());
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }
  static void put(MaildirMarks& marks, const std::string& letter, const MaildirMark& to) {
    const Status status = marks.mark(letter, marks.of(letter), to);
    ASSERT_TRUE(status) << status.error().message;
  }

  playfs::test::TemporaryDirectory home;
  const MaildirMark seen{5, Place::current, ":2,S"}, flagged{5, Place::current, ":2,FS"}, removed{6, Place::hidden, ""};
};

TEST_F(MaildirMarksTest, AreThereAgain) {
  auto marks = open();
  ASSERT_TRUE(marks.catch_up()) << "nothing is there yet";
  EXPECT_FALSE(std::filesystem::exists(home.path() + "/marks"));
  put(marks, "m:a", seen);
  put(marks, "m:b", removed);
  ASSERT_TRUE(marks.sync());
  auto again = open();
  EXPECT_FALSE(again.is_read());
  ASSERT_TRUE(again.catch_up());
  EXPECT_EQ(again.of("m:a"), seen);
  EXPECT_EQ(again.of("m:b"), removed);
  EXPECT_EQ(again.of("d:a"), std::nullopt);
  struct stat status {};
  ASSERT_EQ(::stat(journal().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(MaildirMarksTest, OfAnotherMountAreReadAndNotOverwritten) {
  auto one = open(), other = open();
  ASSERT_TRUE(one.catch_up());
  ASSERT_TRUE(other.catch_up());
  put(one, "m:a", seen);
  EXPECT_EQ(other.mark("m:a", std::nullopt, flagged).error().code, ErrorCode::not_found) << "it has been moved";
  EXPECT_EQ(other.of("m:a"), seen);
  EXPECT_EQ(other.take_changes(), (MaildirMarks::Changes{{"m:a", std::nullopt}}));
  put(other, "m:a", flagged);
  ASSERT_TRUE(one.catch_up());
  EXPECT_EQ(one.take_changes(), (MaildirMarks::Changes{{"m:a", seen}}));
  EXPECT_EQ(one.take_changes(), MaildirMarks::Changes()) << "told once";
}

TEST_F(MaildirMarksTest, WhatWasNotWrittenToItsEndCountsAsNotWritten) {
  auto marks = open();
  put(marks, "m:a", seen);
  std::ofstream(journal(), std::ios::app) << "not a line\n\nm:x y cS\nm:y 1 q\nm:b 5 c:2";
  auto again = open();
  ASSERT_TRUE(again.catch_up());
  EXPECT_EQ(again.of("m:b"), std::nullopt);
  EXPECT_EQ(again.of("m:x"), std::nullopt);
  EXPECT_EQ(again.of("m:y"), std::nullopt);
  put(again, "m:c", flagged);
  ASSERT_TRUE(marks.catch_up());
  EXPECT_EQ(marks.of("m:c"), flagged);
  EXPECT_EQ(marks.of("m:a"), seen);
}

TEST_F(MaildirMarksTest, AJournalOfOutdatedLinesIsReplacedUnderOtherMounts) {
  auto one = open(), other = open();
  put(one, "m:kept", removed);
  ASSERT_TRUE(other.catch_up());
  for (int i = 0; i < 1'500; ++i) put(one, "m:a", i % 2 == 0 ? seen : flagged);
  EXPECT_LT(lines(), 1'005U);
  put(other, "m:b", seen);
  EXPECT_EQ(other.of("m:a"), flagged);
  ASSERT_TRUE(one.catch_up());
  EXPECT_EQ(one.of("m:b"), seen);
  auto again = open();
  ASSERT_TRUE(again.catch_up());
  EXPECT_EQ(again.of("m:kept"), removed);
  EXPECT_EQ(again.of("m:a"), flagged);
}

TEST_F(MaildirMarksTest, AMountThatIsStoppedKeepsNobodyForever) {
  auto marks = open();
  put(marks, "m:a", seen);
  std::FILE* held = std::fopen((journal() + ".lock").c_str(), "r+");
  ASSERT_TRUE(held);
  ASSERT_EQ(::flock(fileno(held), LOCK_EX), 0);
  EXPECT_EQ(marks.mark("m:a", seen, flagged).error().code, ErrorCode::busy);
  EXPECT_EQ(marks.of("m:a"), seen);
  std::fclose(held);
  put(marks, "m:a", flagged);
}

}  // namespace
}  // namespace playfs::vfs
