// Inodes whose last name the stage itself removed: acknowledged changes are staged, all others are refused.
#include <fcntl.h>

#include <thread>

#include "support/workbench.h"

namespace playfs {
namespace {

using stage::InodePtr;
using test::revision_of;
using test::Texts;

template <class T>
ErrorCode code_of(const Result<T>& result) {
  return result ? ErrorCode::internal : result.error().code;
}

class SupersededTest : public testing::Test {
 protected:
  void SetUp() override { bench.open(revision_of("r1", base)); }

  void move_to(const std::string& id, const Texts& files) {
    auto moved = bench.move_base(revision_of(id, files, bench.clock.wall()));
    ASSERT_TRUE(moved) << moved.error().message;
  }
  void expect_refused(const InodePtr& inode) {
    stage::AttributeChange mode, time;
    mode.permissions = 0600;
    time.mtime = bench.clock.wall();
    EXPECT_EQ(code_of(bench.write(inode, 0, "lost")), ErrorCode::stale);
    EXPECT_EQ(code_of(bench.truncate(inode, 0)), ErrorCode::stale);
    EXPECT_EQ(code_of(bench.truncate(inode, 2)), ErrorCode::stale);
    EXPECT_EQ(code_of(bench.stage->set_attributes(inode, mode)), ErrorCode::stale);
    EXPECT_EQ(code_of(bench.stage->set_attributes(inode, time)), ErrorCode::stale);
    EXPECT_EQ(code_of(bench.stage->link(inode, bench.stage->root(), "linked")), ErrorCode::stale);
  }

  const Texts base = {{"a", "one"}, {"b", "two"}, {"d/e/c", "three"}};
  test::Workbench bench;
};

TEST_F(SupersededTest, AFileThatAnotherBaseReplacedTakesNoChange) {
  InodePtr below = bench.find("a");
  move_to("r2", {{"a", "ONE"}, {"b", "two"}});
  expect_refused(below);
  EXPECT_EQ(bench.read(below), "one");
  EXPECT_EQ(bench.read("a"), "ONE");
  EXPECT_TRUE(bench.changes().empty());
  auto refused = bench.truncate(below, 0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("revision r2"), std::string::npos) << refused.error().message;
  // Its path leads to another file, which can be changed like any other.
  EXPECT_TRUE(bench.put("a", "mine"));
  EXPECT_EQ(bench.changes(), std::vector<std::string>{"M a"});
}

TEST_F(SupersededTest, AReplacedFileWithStagedBytesTakesNoChange) {
  ASSERT_TRUE(bench.put("a", "mine"));
  ASSERT_TRUE(bench.put("b", "two"));  // as published, but in a spool file
  InodePtr frozen = bench.find("a"), own = bench.find("b");
  auto layer = bench.stage->freeze("tx");
  ASSERT_TRUE(layer && *layer);
  auto settled = bench.stage->settle("tx", revision_of("r2", {{"a", "merged"}, {"b", "TWO"}, {"d/e/c", "three"}}));
  ASSERT_TRUE(settled) << settled.error().message;
  expect_refused(frozen);
  expect_refused(own);
  EXPECT_EQ(code_of(bench.stage->allocate(own, 0, 0, 100)), ErrorCode::stale);
  EXPECT_EQ(bench.read(frozen), "mine");
  EXPECT_EQ(bench.read(own), "two");
}

TEST_F(SupersededTest, ADiscardedFileTakesNoChange) {
  ASSERT_TRUE(bench.put("a", "mine"));
  ASSERT_TRUE(bench.put("new", "mine"));
  InodePtr changed = bench.find("a"), added = bench.find("new");
  ASSERT_TRUE(bench.stage->discard(""));
  expect_refused(changed);
  expect_refused(added);
  EXPECT_EQ(bench.read(added), "mine");
  EXPECT_TRUE(bench.changes().empty());
}

TEST_F(SupersededTest, ADirectoryThatAnotherBaseRemovedTakesNoNames) {
  InodePtr directory = bench.find("d/e");
  ASSERT_TRUE(bench.find("d/e/c"));
  move_to("r2", {{"a", "one"}, {"b", "two"}});
  EXPECT_EQ(code_of(bench.stage->make_file(directory, "new", {})), ErrorCode::stale);
  EXPECT_EQ(code_of(bench.stage->make_directory(directory, "new", {})), ErrorCode::stale);
  EXPECT_EQ(code_of(bench.stage->make_symlink(directory, "new", "a", {})), ErrorCode::stale);
  EXPECT_EQ(code_of(bench.stage->link(bench.find("a"), directory, "new")), ErrorCode::stale);
  EXPECT_EQ(code_of(bench.stage->rename(bench.stage->root(), "a", directory, "new", stage::RenameMode::replace)),
            ErrorCode::stale);
  EXPECT_TRUE(bench.changes().empty());
}

TEST_F(SupersededTest, ACopyThatWasUnderWayIsRefused) {
  InodePtr below = bench.find("a");
  auto lower = bench.stage->lower_content(below);
  ASSERT_TRUE(lower);
  Status copied = bench.stage->copy_up(below, *lower, 3, [&](int fd) {
    move_to("r2", {{"a", "ONE"}, {"b", "two"}});
    return write_all_at(fd, "one", 0);
  });
  EXPECT_EQ(code_of(copied), ErrorCode::stale);
  EXPECT_EQ(bench.read("a"), "ONE");
}

TEST_F(SupersededTest, AFileThatItsUserRemovedStaysWritable) {
  InodePtr removed = bench.find("a"), renamed_over = bench.find("b");
  ASSERT_TRUE(bench.unlink("a"));
  ASSERT_TRUE(bench.rename("d/e/c", "b"));
  ASSERT_TRUE(bench.stage->discard(""));
  move_to("r2", {{"a", "ONE"}, {"b", "TWO"}});
  ASSERT_TRUE(bench.write(removed, 0, "ONCE"));
  ASSERT_TRUE(bench.write(renamed_over, 0, "TWICE"));
  EXPECT_EQ(bench.read(removed), "ONCE");
  EXPECT_EQ(bench.read(renamed_over), "TWICE");
  EXPECT_TRUE(bench.changes().empty());
}

TEST_F(SupersededTest, AFileThatKeepsANameIsWrittenUnderThatName) {
  ASSERT_TRUE(bench.link("a", "other"));
  ASSERT_TRUE(bench.stage->freeze("tx"));
  ASSERT_TRUE(bench.stage->settle("tx", revision_of("r2", {{"a", "one"}, {"b", "two"}, {"other", "one"}})));
  InodePtr file = bench.find("a");
  move_to("r3", {{"a", "ONE"}, {"b", "two"}, {"other", "one"}});
  ASSERT_TRUE(bench.write(file, 0, "two"));
  EXPECT_EQ(bench.read("other"), "two");
  EXPECT_EQ(bench.changes(), std::vector<std::string>{"M other"});
}

TEST_F(SupersededTest, WhatIsAcknowledgedWhileTheBaseMovesIsStaged) {
  constexpr int kRounds = 400;
  int acknowledged = 0, refused = 0;
  for (int round = 0; round < kRounds; ++round) {
    InodePtr file = bench.find("a");
    const std::string text = "written in round " + std::to_string(round);
    auto next = revision_of("r" + std::to_string(round + 2), {{"a", "base " + std::to_string(round)}, {"b", "two"}});
    Status written;
    std::thread writer([&] { written = bench.write(file, 0, text); });
    auto moved = bench.move_base(next);
    writer.join();
    if (written) {
      ++acknowledged;
      EXPECT_EQ(bench.read("a").value_or("").substr(0, text.size()), text) << "round " << round;
      EXPECT_FALSE(bench.stage->is_clean());
    } else {
      ++refused;
      EXPECT_TRUE(written.error().code == ErrorCode::stale || written.error().code == ErrorCode::busy)
          << written.error().message;
    }
    if (!moved) {
      EXPECT_EQ(moved.error().code, ErrorCode::busy);
    }
    ASSERT_TRUE(bench.stage->discard(""));
    if (round % 3 == 0) {  // the next round's file has bytes of its own: nothing has to be copied first
      ASSERT_TRUE(bench.put("a", bench.read("a").value_or("")));
    }
  }
  EXPECT_EQ(acknowledged + refused, kRounds);
}

}  // namespace
}  // namespace playfs
