// What is dropped has been kept: nothing changes in between, and checkpoints in use stay.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "stage/at_once.h"
#include "support/workbench.h"

namespace playfs::stage {
namespace {

namespace fs = std::filesystem;
using test::revision_of;
using test::Texts;
using testing::SizeIs;

class KeepingTest : public testing::Test {
 protected:
  void SetUp() override { bench.open(revision_of("r1", base)); }
  std::uint64_t keep() {
    auto made = bench.stage->checkpoint("kept");
    EXPECT_TRUE(made && *made);
    return made && *made ? (*made)->id : 0;
  }
  std::vector<std::uint64_t> listed() {
    std::vector<std::uint64_t> ids;
    for (const Checkpoint& each : bench.stage->checkpoints()) ids.push_back(each.id);
    return ids;
  }

  const Texts base = {{"a", "one"}, {"b", "two"}};
  test::Workbench bench;
};

TEST_F(KeepingTest, NamesChangeOnlyOnceWritersAreNotHeldAnyMore) {
  ASSERT_TRUE(bench.put("from", "from") && bench.put("gone", "gone") && bench.mkdir("empty"));
  const std::vector<std::function<bool()>> changes = {
      [&] { return bench.rename("from", "to").has_value(); }, [&] { return bench.unlink("gone").has_value(); },
      [&] { return bench.rmdir("empty").has_value(); },       [&] { return bench.symlink("a", "link").has_value(); },
      [&] { return bench.chmod("a", 0755).has_value(); },     [&] { return bench.link("b", "c").has_value(); },
  };
  auto hold = bench.stage->hold_writers();
  for (const auto& change : changes) {
    AtOnce at_once;
    EXPECT_FALSE(change());
    EXPECT_TRUE(at_once.refused());
  }
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (const auto& change : changes) threads.emplace_back([&] { done += change() ? 1 : 0; });
  auto kept = bench.stage->checkpoint("kept", *hold);
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->paths, 2U);
  EXPECT_EQ(done, 0);
  EXPECT_TRUE(bench.find("from"));
  hold.reset();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(done, 6);
}

TEST_F(KeepingTest, ACheckpointHasWhatIsStagedUntilThatChanges) {
  ASSERT_TRUE(bench.put("a", "changed") && bench.unlink("b") && bench.put("new", "new") && bench.put("cut", "cut"));
  ASSERT_TRUE(bench.truncate(bench.find("cut"), 0) && bench.put("empty", "") && bench.symlink("a", "link"));
  const auto id = keep();
  auto has_kept = [&](std::uint64_t in, const std::string& path) {
    const auto hold = bench.stage->hold_writers();
    return bench.stage->has_kept(in, {path}, *hold);
  };
  for (const char* path : {"", "a", "b", "new", "cut", "empty", "link", "nothing"})
    EXPECT_TRUE(has_kept(id, path)) << path;
  EXPECT_FALSE(has_kept(id + 1, "a")) << "there is none";
  ASSERT_TRUE(bench.stage->discard("a")) << "less is staged";
  EXPECT_TRUE(has_kept(id, ""));
  ASSERT_TRUE(bench.write(bench.find("new"), 0, "NEW") && bench.put("cut", "longer") && bench.put("b", "again"));
  ASSERT_TRUE(bench.unlink("link") && bench.symlink("b", "link") && bench.chmod("empty", 0755));
  for (const char* path : {"", "new", "cut", "b", "link", "empty"}) EXPECT_FALSE(has_kept(id, path)) << path;
  EXPECT_TRUE(has_kept(id, "a"));
  {
    const auto hold = bench.stage->hold_writers();
    EXPECT_TRUE(bench.stage->has_kept(id, {"a", "nothing"}, *hold));
    EXPECT_FALSE(bench.stage->has_kept(id, {"a", "new"}, *hold));
    EXPECT_FALSE(bench.stage->has_kept(id, {}, *hold));
  }
  EXPECT_TRUE(has_kept(keep(), ""));
  ASSERT_TRUE(bench.stage->stage_state("{}"));
  EXPECT_FALSE(has_kept(2, ""));
  EXPECT_TRUE(has_kept(2, "new"));
}

TEST_F(KeepingTest, OneThatIsRestoredPathByPathStaysHoweverOldItIs) {
  ASSERT_TRUE(bench.put("a", "kept") && bench.put("b", "kept"));
  const auto old = keep();
  ASSERT_TRUE(bench.stage->discard(""));
  bench.clock.advance(std::chrono::hours(40 * 24));
  ASSERT_TRUE(bench.put("other", "staged"));
  for (const char* path : {"a", "b"}) {
    auto restored = bench.stage->restore(old, {path});
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_NE(restored->before, 0U);
    EXPECT_EQ(bench.read(path), "kept");
  }
  EXPECT_EQ(listed(), (std::vector<std::uint64_t>{3, 2, 1}));
  keep();
  EXPECT_EQ(listed(), (std::vector<std::uint64_t>{4, 3, 2})) << "the next one drops it";
}

TEST_F(KeepingTest, AnAttemptThatFailsLeavesNoCheckpoint) {
  ASSERT_TRUE(bench.put("x", "kept"));
  const auto id = keep();
  ASSERT_TRUE(bench.unlink("x") && bench.mkdir("x") && bench.put("other", "staged"));
  ASSERT_TRUE(bench.stage->make_special(bench.find("x"), "pipe", Kind::fifo, {}));
  for (int i = 0; i < 3; ++i) {
    auto restored = bench.stage->restore(id, {});
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code, ErrorCode::busy);
    EXPECT_EQ(listed(), std::vector<std::uint64_t>{1});
  }
}

TEST_F(KeepingTest, ALinkInPlaceOfTheFolderIsNotFollowed) {
  ASSERT_TRUE(bench.put("a", "kept"));
  keep();
  const RevisionTreePtr on = bench.stage->base();
  bench.stage.reset();
  const test::TemporaryDirectory victim;
  for (const char* folder : {"new", "3~", "1"}) {
    fs::create_directory(victim / folder);
    std::ofstream(victim / (std::string(folder) + "/file")) << "mine";
  }
  const std::string folder = bench.options().directory + "/checkpoints";
  fs::remove_all(folder);
  fs::create_directory_symlink(victim / "", folder);
  bench.open(on);
  EXPECT_THAT(bench.stage->checkpoints(), SizeIs(0));
  EXPECT_FALSE(bench.stage->checkpoint("through the link"));
  EXPECT_EQ(bench.stage->restore(1, {}).error().code, ErrorCode::not_found);
  bench.stage.reset();
  for (const char* each : {"new/file", "3~/file", "1/file"}) EXPECT_TRUE(fs::exists(victim / each)) << each;
}

}  // namespace
}  // namespace playfs::stage
