// What a thread that must not block can do at once, and what is refused without changing anything.
#include "stage/at_once.h"

#include <functional>

#include <gtest/gtest.h>

#include "support/workbench.h"

namespace playfs::stage {
namespace {

class AtOnceTest : public testing::Test {
 protected:
  void SetUp() override {
    bench.housekeeping.removals = 1000;
    bench.open(test::revision_of("r1", {{"below", "published"}}));
    ASSERT_TRUE(bench.put("synced", "synced") && bench.stage->sync(bench.find("synced")));
    ASSERT_TRUE(bench.put("unsynced", "unsynced"));
  }
  void expect_done(const std::function<Status()>& operation) {
    AtOnce at_once;
    auto done = operation();
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_FALSE(at_once.refused());
  }
  /// And that a thread that may wait can do it.
  void expect_refused(const std::function<Status()>& operation) {
    const test::Texts before = bench.files();
    {
      AtOnce at_once;
      EXPECT_FALSE(operation());
      EXPECT_TRUE(at_once.refused());
    }
    EXPECT_EQ(bench.files(), before);
    auto done = operation();
    EXPECT_TRUE(done) << done.error().message;
  }

  test::Workbench bench;
};

TEST_F(AtOnceTest, AFileIsEmptiedWithoutWaiting) {
  for (const char* path : {"synced", "unsynced", "below"}) {
    expect_done([&] { return bench.truncate(bench.find(path), 0); });
    EXPECT_EQ(bench.read(path), "") << path;
  }
}

TEST_F(AtOnceTest, AFileThatIsBeingPublishedIsEmptiedWithoutWaiting) {
  auto layer = bench.stage->freeze("tx");
  ASSERT_TRUE(layer && *layer);
  expect_done([&] { return bench.truncate(bench.find("unsynced"), 0); });
  EXPECT_EQ(bench.read("unsynced"), "");
  for (const auto& file : (*layer)->files) EXPECT_EQ(bench.stage->read_frozen(file), file.path);
}

TEST_F(AtOnceTest, UnsyncedBytesAreCutWithoutWaiting) {
  expect_done([&] { return bench.truncate(bench.find("unsynced"), 2); });
  EXPECT_EQ(bench.read("unsynced"), "un");
}

TEST_F(AtOnceTest, SyncedBytesAreNotCut) {
  expect_refused([&] { return bench.truncate(bench.find("synced"), 2); });
  EXPECT_EQ(bench.read("synced"), "sy");
}

TEST_F(AtOnceTest, BytesThatAreBeingPublishedAreNotCopied) {
  ASSERT_TRUE(bench.stage->freeze("tx"));
  expect_refused([&] { return bench.write(bench.find("synced"), 6, ", and more"); });
  EXPECT_EQ(bench.read("synced"), "synced, and more");
}

TEST_F(AtOnceTest, AFileTakesThePlaceOfAnotherWithoutWaiting) {
  expect_done([&] { return bench.rename("unsynced", "synced"); });
  EXPECT_EQ(bench.read("synced"), "unsynced");
}

TEST_F(AtOnceTest, WhatWasChangedSinceItsSyncTakesNoOthersPlace) {
  ASSERT_TRUE(bench.write(bench.find("synced"), 6, ", and more"));
  expect_refused([&] { return bench.rename("synced", "unsynced"); });
  EXPECT_EQ(bench.read("unsynced"), "synced, and more");
}

TEST_F(AtOnceTest, WhatTookThePlaceOfAnotherIsNotCut) {
  ASSERT_TRUE(bench.rename("unsynced", "synced"));
  expect_refused([&] { return bench.truncate(bench.find("synced"), 2); });
  EXPECT_EQ(bench.read("synced"), "un");
}

}  // namespace
}  // namespace playfs::stage
