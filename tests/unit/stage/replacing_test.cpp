// Files that replace others: which bytes count when the process or the system ends.
#include <fstream>

#include <gtest/gtest.h>

#include "stage/store/repair.h"
#include "support/eventually.h"
#include "support/workbench.h"

namespace playfs::stage {
namespace {

namespace fs = std::filesystem;

class ReplacingTest : public testing::Test {
 protected:
  void SetUp() override {
    bench.housekeeping.removals = 1000;
    bench.open(base);
    ASSERT_TRUE(bench.put("f", "old"));
    ASSERT_TRUE(bench.stage->sync(bench.find("f")));
  }
  [[nodiscard]] std::string directory() const { return bench.options().directory; }
  void replace(const std::string& path, const std::string& text) {
    ASSERT_TRUE(bench.put("tmp", text) && bench.rename("tmp", path));
  }
  /// Ends like kill -9; with `power_loss`, unsynced bytes, which the tests simulate, are gone.
  void end(bool power_loss, const std::string& without = {}, std::uintmax_t left = 0) {
    fs::copy(directory(), directory() + "-copied", fs::copy_options::recursive);
    bench.stage.reset();
    fs::remove_all(directory());
    fs::rename(directory() + "-copied", directory());
    if (power_loss) ++bench.boot;
    if (!without.empty()) fs::resize_file(bench.spool() + "/" + without, left);
    bench.open(base);
  }
  std::string newest() {
    std::uint64_t most = 0;
    for (const auto& file : fs::directory_iterator(bench.spool()))
      most = std::max<std::uint64_t>(most, std::stoull(file.path().filename()));
    return std::to_string(most);
  }

  RevisionTreePtr base = test::revision_of("r1", {{"below", "published"}});
  test::Workbench bench;
};

TEST_F(ReplacingTest, AfterACrashOfTheProcessTheNewBytesAreThere) {
  replace("f", "new");
  replace("below", "new");
  end(false);
  EXPECT_EQ(bench.read("f"), "new");
  EXPECT_EQ(bench.read("below"), "new");
  EXPECT_FALSE(bench.stage->found_lost());
  // They are still not synced: a later power cut goes back.
  end(true, newest());
  EXPECT_EQ(bench.read("f"), "old");
  EXPECT_EQ(bench.read("below"), "published");
  EXPECT_TRUE(bench.stage->lower_content(bench.find("below")));
  EXPECT_TRUE(bench.stage->found_lost());
  bench.reopen();
  EXPECT_EQ(bench.read("f"), "old");
  EXPECT_FALSE(bench.stage->found_lost());
  EXPECT_TRUE(examine(directory()).has_value());
}

TEST_F(ReplacingTest, NewBytesThatAreNotAllThereGiveWayToTheOldOnes) {
  ASSERT_TRUE(bench.put("tmp", "new") && bench.write(bench.find("tmp"), 3, "er") && bench.rename("tmp", "f"));
  end(false, newest(), 4);
  EXPECT_EQ(bench.read("f"), "old");
  EXPECT_TRUE(bench.stage->found_lost()) << "and it is said";
}

TEST_F(ReplacingTest, WhatWasSyncedSinceIsNotTakenBack) {
  replace("f", "new");
  ASSERT_TRUE(bench.stage->sync(bench.find("f")));
  replace("below", "new");
  ASSERT_TRUE(bench.stage->sync(bench.stage->root())) << "the rename, with what was renamed";
  end(true);
  EXPECT_EQ(bench.read("f"), "new");
  EXPECT_EQ(bench.read("below"), "new");
}

TEST_F(ReplacingTest, WhatReplacesUnsyncedBytesStandsForTheOldOnes) {
  replace("f", "newer");
  replace("f", "newest");
  end(true, newest());
  EXPECT_EQ(bench.read("f"), "old");
}

TEST_F(ReplacingTest, BytesThatAreCutOffAfterwardsAreNotTakenForLost) {
  replace("f", "new");
  ASSERT_TRUE(bench.truncate(bench.find("f"), 1));
  end(false);
  EXPECT_EQ(bench.read("f"), "n");
}

TEST_F(ReplacingTest, ASyncedFileThatWasChangedSinceIsSyncedBeforeItReplaces) {
  ASSERT_TRUE(bench.put("tmp", "synced"));
  ASSERT_TRUE(bench.stage->sync(bench.find("tmp")));
  ASSERT_TRUE(bench.write(bench.find("tmp"), 6, ", and more") && bench.rename("tmp", "f"));
  end(true);
  EXPECT_EQ(bench.read("f"), "synced, and more");
}

TEST_F(ReplacingTest, TheOldBytesAreGivenUpInTheEnd) {
  replace("f", "new");
  replace("f", "newer");
  EXPECT_GE(bench.spool_files(), 2U);
  bench.reopen();
  EXPECT_EQ(bench.spool_files(), 1U);
  EXPECT_EQ(bench.read("f"), "newer");
  replace("f", "newest");
  ASSERT_TRUE(bench.unlink("f"));
  bench.reopen();
  EXPECT_EQ(bench.spool_files(), 0U);
}

TEST_F(ReplacingTest, TheOldBytesAreGivenUpWithoutAnotherOperation) {
  bench.housekeeping.own_thread = true;
  bench.housekeeping.patience = std::chrono::milliseconds(1);
  bench.reopen();
  replace("f", "new");
  EXPECT_TRUE(test::eventually([&] { return bench.spool_files() == 1; }));
  EXPECT_EQ(bench.read("f"), "new");
}

TEST_F(ReplacingTest, AFrozenFileMayBeReplacedAndSettled) {
  ASSERT_TRUE(bench.stage->freeze("tx").value());
  replace("f", "new");
  auto next = test::revision_of("r2", {{"below", "published"}, {"f", "old"}});
  ASSERT_TRUE(bench.stage->settle("tx", next));
  base = next;
  end(true);
  EXPECT_EQ(bench.read("f"), "new");
}

}  // namespace
}  // namespace playfs::stage
