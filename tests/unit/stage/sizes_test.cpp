// Spool files that are removed or cut while the stage is not open: never silently wrong bytes, and everything else
// works.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sqlite.h"
#include "stage/store/repair.h"
#include "support/workbench.h"

namespace playfs::stage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace fs = std::filesystem;

class SizesTest : public testing::Test {
 protected:
  void SetUp() override { bench.open(base); }

  /// The only spool file with these bytes.
  fs::path spool_file(const std::string& bytes) {
    for (const auto& file : fs::directory_iterator(bench.spool())) {
      if (read_file(file.path(), 1 << 20).value() == bytes) return file.path();
    }
    ADD_FAILURE() << "no spool file holds " << bytes;
    return {};
  }
  /// Leaves the directory like kill -9; then makes `change` and opens the stage again.
  void killed(const std::function<void()>& change) {
    const std::string directory = bench.options().directory;
    fs::copy(directory, directory + "-copied", fs::copy_options::recursive);
    bench.stage.reset();
    fs::remove_all(directory);
    fs::rename(directory + "-copied", directory);
    change();
    bench.open(base);
  }
  void unmounted(const std::function<void()>& change) {
    bench.stage.reset();
    change();
    bench.open(base);
  }
  std::vector<std::string> lost() {
    std::vector<std::string> paths;
    for (const auto& file : bench.stage->lost_files()) paths.push_back(file.path);
    return paths;
  }
  Status sync(std::string_view path) { return bench.stage->sync(bench.find(path)); }

  const RevisionTreePtr base = test::revision_of("r1", {{"a", "published"}});
  test::Workbench bench;
};

TEST_F(SizesTest, AFileThatIsGoneOrCutCannotBeReadAndIsNamed) {
  ASSERT_TRUE(bench.put("gone", "one") && bench.put("d", "two") && bench.put("a", "twenty-one") && bench.put("e", ""));
  unmounted([&] {
    fs::remove(spool_file("one"));
    fs::resize_file(spool_file("twenty-one"), 9);
  });
  ASSERT_TRUE(bench.stage->found_lost()) << "what is missing altogether is said at once";
  EXPECT_THAT(bench.stage->found_lost()->message, HasSubstr("missing"));
  EXPECT_EQ(bench.read("gone").error().code, ErrorCode::corrupt);
  EXPECT_EQ(bench.read("a").error().code, ErrorCode::corrupt);
  EXPECT_EQ(bench.read("d"), "two");
  EXPECT_EQ(bench.read("e"), "");
  EXPECT_THAT(lost(), ElementsAre("a", "gone"));
  EXPECT_EQ(bench.stat("gone").size, 3U) << "who reads it has to ask";
  EXPECT_EQ(bench.changes().size(), 4U);
  EXPECT_FALSE(bench.write(bench.find("gone"), 0, "x")) << "the rest of it is not known";
  auto frozen = bench.stage->freeze("tx");
  ASSERT_FALSE(frozen);
  EXPECT_THAT(frozen.error().message, HasSubstr("a: "));
}

TEST_F(SizesTest, WritingItAnewHealsIt) {
  for (bool cut : {false, true}) {
    ASSERT_TRUE(bench.put("f", "four"));
    unmounted([&] { cut ? fs::resize_file(spool_file("four"), 1) : void(fs::remove(spool_file("four"))); });
    ASSERT_THAT(lost(), ElementsAre("f"));
    ASSERT_TRUE(bench.put("f", "fo"));
    EXPECT_EQ(bench.read("f"), "fo");
    EXPECT_TRUE(sync("f"));
    EXPECT_THAT(lost(), IsEmpty());
    bench.reopen();
    EXPECT_EQ(bench.read("f"), "fo");
    EXPECT_THAT(lost(), IsEmpty());
    ASSERT_TRUE(bench.unlink("f"));
  }
}

TEST_F(SizesTest, RemovingReplacingAndDiscardingItHealsIt) {
  ASSERT_TRUE(bench.put("removed", "one") && bench.put("replaced", "two") && bench.put("a", "three"));
  unmounted([&] {
    for (const char* bytes : {"one", "two", "three"}) fs::remove(spool_file(bytes));
  });
  ASSERT_EQ(lost().size(), 3U);
  ASSERT_TRUE(bench.unlink("removed"));
  ASSERT_TRUE(bench.put("new", "bytes") && bench.rename("new", "replaced"));
  ASSERT_TRUE(bench.stage->discard("a"));
  EXPECT_THAT(lost(), IsEmpty());
  EXPECT_EQ(bench.read("a"), "published");
  EXPECT_TRUE(bench.stage->freeze("tx"));
}

TEST_F(SizesTest, PuttingTheBytesBackHealsIt) {
  ASSERT_TRUE(bench.put("f", "four"));
  fs::path file;
  unmounted([&] { fs::rename(file = spool_file("four"), bench.options().directory + "/away"); });
  EXPECT_FALSE(bench.read("f"));
  fs::rename(bench.options().directory + "/away", file);
  EXPECT_EQ(bench.read("f"), "four");
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(SizesTest, AfterAKillWhatIsLessThanHalfOfItIsNotTheFile) {
  ASSERT_TRUE(bench.put("f", "four") && bench.write(bench.find("f"), 4, "eight"));
  killed([&] { fs::resize_file(spool_file("foureight"), 3); });
  EXPECT_FALSE(bench.read("f"));
  EXPECT_THAT(lost(), ElementsAre("f"));
}

TEST_F(SizesTest, RoomIsMissedWhereItBelongsToTheFileAndOnlyThere) {
  ASSERT_TRUE(bench.put("longer", "a") && bench.put("same", "b"));
  ASSERT_TRUE(bench.stage->allocate(bench.find("longer"), 0, 0, 100));
  ASSERT_TRUE(bench.stage->allocate(bench.find("same"), FALLOC_FL_KEEP_SIZE, 0, 100));
  const fs::path longer = spool_file("a" + std::string(99, '\0'));
  killed([&] { fs::resize_file(longer, 1); });
  EXPECT_EQ(bench.read("longer").error().code, ErrorCode::corrupt);
  EXPECT_EQ(bench.read("same"), "b");
  EXPECT_THAT(lost(), ElementsAre("longer"));
}

TEST_F(SizesTest, WhatIsCutWhileTheStageIsOpenIsMissedAtTheNextStart) {
  ASSERT_TRUE(bench.put("f", "four"));
  bench.reopen();
  EXPECT_EQ(bench.read("f"), "four");
  fs::resize_file(spool_file("four"), 1);
  bench.reopen();
  EXPECT_THAT(lost(), ElementsAre("f"));
}

TEST_F(SizesTest, WhatWasAppendedLastIsMissedToo) {
  ASSERT_TRUE(bench.put("f", "four") && bench.write(bench.find("f"), 4, "56"));
  unmounted([&] { fs::resize_file(spool_file("four56"), 5); });
  EXPECT_EQ(bench.read("f").error().code, ErrorCode::corrupt);
  EXPECT_THAT(lost(), ElementsAre("f"));
}

TEST_F(SizesTest, WhatTheUserCutIsNotMissed) {
  ASSERT_TRUE(bench.put("f", "four") && bench.put("g", "four") && sync("f"));
  ASSERT_TRUE(bench.truncate(bench.find("f"), 2) && bench.truncate(bench.find("g"), 2));
  killed([] {});
  EXPECT_EQ(bench.read("f"), "fo");
  EXPECT_EQ(bench.read("g"), "fo");
  ASSERT_TRUE(bench.truncate(bench.find("f"), 0) && bench.truncate(bench.find("g"), 0));
  killed([] {});
  EXPECT_EQ(bench.read("f"), "");
  EXPECT_EQ(bench.read("g"), "");
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(SizesTest, APowerLossTakesWhatWasNotSyncedAndOnlyThat) {
  ASSERT_TRUE(bench.put("unsynced", "one") && bench.put("synced", "two") && sync("synced"));
  unmounted([&] {
    fs::remove(spool_file("one"));
    fs::remove(spool_file("two"));
    ++bench.boot;
  });
  EXPECT_EQ(bench.read("unsynced"), "");
  EXPECT_FALSE(bench.read("synced"));
  EXPECT_THAT(lost(), ElementsAre("synced"));
}

TEST_F(SizesTest, WhatIsPendingHasToBeThereAfterAnyPowerLoss) {
  ASSERT_TRUE(bench.put("f", "frozen"));
  auto layer = bench.stage->freeze("tx");
  ASSERT_TRUE(layer && *layer);
  ASSERT_TRUE(bench.put("f", "since"));
  unmounted([&] {
    fs::resize_file(spool_file("frozen"), 3);
    ++bench.boot;
  });
  EXPECT_FALSE(bench.stage->read_frozen((*layer)->files.front()));
  EXPECT_THAT(lost(), ElementsAre("f"));
  EXPECT_EQ(bench.read("f"), "since");
}

TEST_F(SizesTest, NotesOfFilesThatAreNoMoreGoWithThem) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(bench.put("f", "some bytes") && sync("f") && bench.unlink("f"));
  }
  bench.reopen();
  bench.stage.reset();
  auto database = Database::open(bench.options().directory + "/stage.db", Database::Durability::normal);
  ASSERT_TRUE(database);
  auto count = database->prepare("SELECT count(*) FROM spool_size");
  ASSERT_TRUE(count && count->step());
  EXPECT_EQ(count->integer(0), 0);
}

TEST_F(SizesTest, DoctorNamesThem) {
  ASSERT_TRUE(bench.mkdir("d") && bench.put("d/gone", "one") && bench.put("kept", "two") && sync("d/gone"));
  bench.stage.reset();
  EXPECT_TRUE(examine(bench.options().directory).value().is_sound());
  fs::remove(spool_file("one"));
  auto health = examine(bench.options().directory).value();
  EXPECT_THAT(health.gone, ElementsAre("d/gone"));
  EXPECT_FALSE(health.is_sound());
}

}  // namespace
}  // namespace playfs::stage
