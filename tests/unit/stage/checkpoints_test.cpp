// Checkpoints: what is staged, kept and restored, whatever is written, published or lost in between.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "stage/at_once.h"
#include "stage/store/repair.h"
#include "stage/store/snapshots.h"
#include "stage/store/spool.h"
#include "support/workbench.h"

namespace playfs::stage {
namespace {

namespace fs = std::filesystem;
using test::handled;
using test::revision_of;
using test::Text;
using test::Texts;
using testing::HasSubstr;
using testing::SizeIs;
using Names = std::vector<std::string>;

class CheckpointsTest : public testing::Test {
 protected:
  void SetUp() override { bench.open(revision_of("r1", base)); }

  std::uint64_t keep(const std::string& message = "kept") {
    auto made = bench.stage->checkpoint(message);
    EXPECT_TRUE(made && *made) << (made ? "nothing is staged" : made.error().message);
    return made && *made ? (*made)->id : 0;
  }
  Restored restore(std::uint64_t id, const Names& paths = {}) {
    auto restored = bench.stage->restore(id, paths);
    EXPECT_TRUE(restored) << restored.error().message;
    return restored.value_or(Restored());
  }
  [[nodiscard]] std::string folder() const { return bench.options().directory + "/checkpoints"; }
  std::size_t folders() {
    std::error_code none;
    auto listing = fs::directory_iterator(folder(), none);
    return static_cast<std::size_t>(std::distance(begin(listing), end(listing)));
  }
  void expect_as_kept() { EXPECT_EQ(bench.files(), kept_files); }
  /// Stages something of every kind, and keeps it.
  std::uint64_t keep_everything() {
    EXPECT_TRUE(bench.put("a", "changed") && bench.put("new", "new") && bench.put("empty", ""));
    EXPECT_TRUE(bench.mkdir("deep") && bench.mkdir("deep/er") && bench.put("deep/er/f", "deep"));
    EXPECT_TRUE(bench.unlink("d/b") && bench.rename("d/e/c", "moved") && bench.symlink("a", "link"));
    EXPECT_TRUE(bench.chmod("run", 0644) && bench.chmod("new", 0755) && bench.stage->stage_state(R"({"x":1})"));
    kept_files = bench.files();
    kept_changes = bench.changes();
    return keep();
  }

  const Texts base = {{"a", "one"}, {"d/b", "two"}, {"d/e/c", "three"}, {"run", {"#!", FileMode::executable}}};
  Texts kept_files;
  Names kept_changes;
  test::Workbench bench;
};

TEST_F(CheckpointsTest, NothingStagedIsNoCheckpoint) {
  EXPECT_EQ(bench.stage->checkpoint("none").value(), std::nullopt);
  EXPECT_THAT(bench.stage->checkpoints(), SizeIs(0));
  EXPECT_EQ(folders(), 0U);
}

TEST_F(CheckpointsTest, AllThatIsStagedComesBack) {
  const auto id = keep_everything();
  EXPECT_EQ(id, 1U);
  ASSERT_TRUE(bench.stage->discard(""));
  EXPECT_EQ(bench.files(), base);
  const Restored restored = restore(id);
  EXPECT_EQ(restored.before, 0U) << "nothing was staged";
  EXPECT_EQ(restored.paths.size(), kept_changes.size() + 1);
  EXPECT_EQ(restored.base_then, restored.base_now);
  expect_as_kept();
  EXPECT_EQ(bench.changes(), kept_changes);
  EXPECT_EQ(bench.stage->staged_state(), R"({"x":1})");
  bench.reopen();
  expect_as_kept();
  EXPECT_EQ(bench.changes(), kept_changes);
  EXPECT_EQ(bench.stage->staged_state(), R"({"x":1})");
  EXPECT_EQ(restore(id).paths.count("a"), 1U) << "restored files are copies, and count as other ones";
  expect_as_kept();
}

TEST_F(CheckpointsTest, WhatIsStagedSinceIsDroppedAndCanComeBack) {
  const auto id = keep_everything();
  ASSERT_TRUE(bench.put("later", "later") && bench.put("d/e/c", "again") && bench.unlink("new"));
  ASSERT_TRUE(bench.unlink("run") && bench.stage->stage_state("{}"));
  const Texts later = bench.files();
  const Restored restored = restore(id);
  expect_as_kept();
  EXPECT_EQ(restored.before, 2U);
  EXPECT_EQ(bench.stage->staged_state(), R"({"x":1})");
  restore(restored.before);
  EXPECT_EQ(bench.files(), later);
  EXPECT_EQ(bench.stage->staged_state(), "{}");
}

TEST_F(CheckpointsTest, WhatIsAsItWasIsLeftAlone) {
  ASSERT_TRUE(bench.put("f", "f") && bench.put("empty", "") && bench.symlink("f", "l") && bench.chmod("run", 0644));
  const auto id = keep();
  const auto file = bench.find("f");
  EXPECT_EQ(restore(id).paths, std::set<std::string>());
  EXPECT_THAT(bench.stage->checkpoints(), SizeIs(1));
  ASSERT_TRUE(bench.put("g", "g"));
  EXPECT_EQ(restore(id).paths, std::set<std::string>{"g"});
  EXPECT_EQ(bench.find("f"), file);
  ASSERT_TRUE(bench.write(file, 1, "!")) << "it was not replaced";
}

TEST_F(CheckpointsTest, OnlyTheNamedPathsChange) {
  const auto id = keep_everything();
  ASSERT_TRUE(bench.stage->discard(""));
  ASSERT_TRUE(bench.put("later", "later") && bench.put("d/later", "later"));
  EXPECT_EQ(restore(id, {"d", "deep/er"}).paths, (std::set<std::string>{"d/b", "d/e/c", "d/later", "deep/er/f"}));
  EXPECT_EQ(bench.changes(), (Names{"D d/b", "D d/e/c", "A deep/er/f", "A later"}));
  EXPECT_EQ(bench.stage->staged_state(), std::nullopt);
  EXPECT_EQ(restore(id, {"new"}).paths, std::set<std::string>{"new"});
  EXPECT_EQ(bench.read("new"), "new");
  EXPECT_EQ(bench.stage->restore(id, {"nowhere"}).error().code, ErrorCode::not_found);
  EXPECT_EQ(bench.stage->restore(id + 50, {}).error().code, ErrorCode::not_found);
}

TEST_F(CheckpointsTest, WritesNeverReachIt) {
  for (const char* name : {"w", "t", "z", "h", "e", "m", "r"}) ASSERT_TRUE(bench.put(name, "kept bytes"));
  std::map<std::string, InodePtr> open;
  for (const char* name : {"w", "t", "z", "h", "e", "m", "r"}) open[name] = bench.find(name);
  const auto id = keep();
  ASSERT_TRUE(bench.write(open["w"], 2, "WW"));  // also from a mapping: the kernel writes back pages
  ASSERT_TRUE(bench.truncate(open["t"], 4));
  ASSERT_TRUE(bench.truncate(open["z"], 0));
  ASSERT_TRUE(bench.stage->allocate(open["h"], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4));
  ASSERT_TRUE(bench.write(open["e"], 10, " and more"));
  AttributeChange times;
  times.mtime = WallTime{1'000'000'000};
  ASSERT_TRUE(bench.stage->set_attributes(open["m"], times));
  ASSERT_TRUE(bench.rename("w", "r"));
  ASSERT_TRUE(bench.unlink("t"));
  restore(id);
  for (const char* name : {"w", "t", "z", "h", "e", "m", "r"}) EXPECT_EQ(bench.read(name), "kept bytes") << name;
  EXPECT_EQ(bench.files().size(), base.size() + 7);
}

TEST_F(CheckpointsTest, AFileIsCopiedOnceForEachCheckpoint) {
  ASSERT_TRUE(bench.put("f", "0"));
  for (int i = 1; i < 4; ++i) {
    keep();
    const auto before = bench.spool_files();
    for (int j = 0; j < 3; ++j) ASSERT_TRUE(bench.write(bench.find("f"), 0, std::to_string(i)));
    EXPECT_EQ(bench.spool_files(), before) << "the old file goes, the copy stays";
  }
  for (int i = 1; i < 4; ++i) {
    restore(static_cast<std::uint64_t>(i));
    EXPECT_EQ(bench.read("f"), std::to_string(i - 1));
  }
}

TEST_F(CheckpointsTest, AThreadThatMustNotWaitDoesNotCopy) {
  ASSERT_TRUE(bench.put("f", "kept") && bench.put("g", "kept"));
  keep();
  {
    AtOnce at_once;
    EXPECT_FALSE(bench.write(bench.find("f"), 0, "WRIT"));
    EXPECT_TRUE(at_once.refused());
  }
  EXPECT_EQ(bench.read("f"), "kept");
  AtOnce at_once;
  EXPECT_TRUE(bench.truncate(bench.find("g"), 0));
  EXPECT_FALSE(at_once.refused());
}

TEST_F(CheckpointsTest, WritesAfterARestartDoNotReachItEither) {
  ASSERT_TRUE(bench.put("f", "kept bytes") && bench.put("g", "kept bytes"));
  const auto id = keep();
  bench.reopen();
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "WRITTEN"));
  ASSERT_TRUE(bench.truncate(bench.find("g"), 2));
  bench.reopen();
  EXPECT_EQ(bench.read("f"), "WRITTENtes");
  restore(id);
  EXPECT_EQ(bench.read("f"), "kept bytes");
  EXPECT_EQ(bench.read("g"), "kept bytes");
  bench.reopen();
  EXPECT_EQ(bench.stage->found_lost(), std::nullopt);
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "AGAIN"));
  restore(id);
  EXPECT_EQ(bench.read("f"), "kept bytes");
}

TEST_F(CheckpointsTest, WithoutTheLinkBytesChangeInPlaceAgain) {
  ASSERT_TRUE(bench.put("f", "kept"));
  keep();
  fs::remove_all(folder());
  const auto before = fs::directory_iterator(bench.spool())->path();
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "W"));
  EXPECT_EQ(fs::directory_iterator(bench.spool())->path(), before);
}

TEST_F(CheckpointsTest, ACopiedStageHasItsOwnBytes) {
  ASSERT_TRUE(bench.put("f", "kept bytes"));
  const auto id = keep();
  const RevisionTreePtr on = bench.stage->base();
  bench.stage.reset();
  const std::string directory = bench.options().directory, copy = directory + "-copy";
  fs::copy(directory, copy, fs::copy_options::recursive);
  fs::remove_all(directory);
  fs::rename(copy, directory);
  bench.open(on);
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "WRITTEN"));
  EXPECT_EQ(bench.spool_files(), 1U) << "written in place";
  restore(id);
  EXPECT_EQ(bench.read("f"), "kept bytes");
}

TEST_F(CheckpointsTest, FrozenLayersAndCheckpointsShareBytes) {
  ASSERT_TRUE(bench.put("f", "first") && bench.put("g", "first"));
  const auto before = keep();
  auto layer = bench.stage->freeze("tx");
  ASSERT_TRUE(layer && *layer);
  const auto pending = keep();
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "FIRST") && bench.put("h", "second"));
  const auto after = keep();
  EXPECT_EQ(bench.stage->restore(before, {}).error().code, ErrorCode::busy);
  EXPECT_EQ(bench.published(**layer, base).at("f"), Text("first"));
  ASSERT_TRUE(bench.stage->thaw("tx"));
  ASSERT_TRUE(bench.write(bench.find("g"), 0, "GGG")) << "which is not frozen any more, but in a checkpoint";
  for (const auto id : {before, pending}) {
    restore(id);
    EXPECT_EQ(bench.read("f"), "first");
    EXPECT_EQ(bench.read("g"), "first");
    EXPECT_FALSE(bench.find("h"));
  }
  restore(after);
  EXPECT_EQ(bench.read("f"), "FIRST");
  EXPECT_EQ(bench.read("g"), "first");
  EXPECT_EQ(bench.read("h"), "second");
}

TEST_F(CheckpointsTest, APublishedCheckpointIsNoChange) {
  ASSERT_TRUE(bench.put("f", "first") && bench.unlink("a"));
  const auto id = keep();
  auto layer = bench.stage->freeze("tx");
  ASSERT_TRUE(layer && *layer);
  const Texts published = bench.published(**layer, base);
  ASSERT_TRUE(bench.stage->settle("tx", revision_of("r2", published)));
  ASSERT_TRUE(bench.put("f", "second"));
  const Restored restored = restore(id);
  EXPECT_EQ(restored.base_then, RevisionId("r1"));
  EXPECT_EQ(restored.base_now, RevisionId("r2"));
  EXPECT_EQ(bench.read("f"), "first");
  EXPECT_EQ(bench.changes(), Names()) << "it is what was published";
}

TEST_F(CheckpointsTest, OnAnotherBaseItIsStagedOverThat) {
  ASSERT_TRUE(bench.put("a", "mine") && bench.put("mine", "mine") && bench.unlink("d/b"));
  ASSERT_TRUE(bench.rename("d/e/c", "moved"));
  const auto id = keep();
  ASSERT_TRUE(bench.stage->discard(""));
  const Texts theirs = {{"a", "theirs"}, {"d/b", "theirs"}, {"run", {"#!", FileMode::executable}}, {"more", "more"}};
  ASSERT_TRUE(bench.move_base(revision_of("r2", theirs)));
  EXPECT_EQ(restore(id).base_now, RevisionId("r2"));
  const Texts expected = {
      {"a", "mine"}, {"mine", "mine"}, {"moved", "three"}, {"run", {"#!", FileMode::executable}}, {"more", "more"}};
  EXPECT_EQ(bench.files(), expected);
  EXPECT_EQ(bench.changes(), (Names{"M a", "D d/b", "A mine", "A moved"}));
  bench.reopen();
  EXPECT_EQ(bench.files(), expected) << "the bytes of the old base are still known";
}

TEST_F(CheckpointsTest, FilesAndDirectoriesChangePlaces) {
  ASSERT_TRUE(bench.unlink("d/b") && bench.unlink("d/e/c") && bench.rmdir("d/e") && bench.rmdir("d"));
  ASSERT_TRUE(bench.put("d", "a file") && bench.unlink("a") && bench.mkdir("a") && bench.put("a/in", "in"));
  kept_files = bench.files();
  const auto id = keep();
  const auto before = restore(id).before;
  EXPECT_EQ(before, 0U) << "nothing to do";
  ASSERT_TRUE(bench.stage->discard(""));
  EXPECT_EQ(bench.files(), base);
  restore(id);
  expect_as_kept();
  ASSERT_TRUE(bench.unlink("d") && bench.mkdir("d") && bench.put("d/mine", "mine"));
  restore(id);
  expect_as_kept();
}

TEST_F(CheckpointsTest, WhatWasDeletedBelowAFileStaysDeleted) {
  ASSERT_TRUE(bench.unlink("d/e/c"));
  kept_files = bench.files();
  const auto id = keep();
  ASSERT_TRUE(bench.unlink("d/b") && bench.rmdir("d/e") && bench.rmdir("d") && bench.put("d", "a file"));
  restore(id);
  expect_as_kept();
  EXPECT_EQ(bench.changes(), Names{"D d/e/c"});
}

TEST_F(CheckpointsTest, WhatTheBaseHasInItsPlaceIsNotDeletedUnasked) {
  ASSERT_TRUE(bench.put("x", "a file") && bench.mkdir("y") && bench.put("y/in", "in"));
  const auto id = keep();
  ASSERT_TRUE(bench.stage->discard(""));
  ASSERT_TRUE(bench.move_base(revision_of("r2", {{"x/theirs", "theirs"}, {"y", "theirs"}})));
  for (const bool is_deleted : {false, true}) {
    if (is_deleted) {
      ASSERT_TRUE(bench.unlink("x/theirs") && bench.rmdir("x") && bench.unlink("y"));
    }
    const Texts before = bench.files();
    for (const char* path : {"x", "y"}) {
      auto restored = bench.stage->restore(id, {path});
      ASSERT_FALSE(restored) << path;
      EXPECT_EQ(restored.error().code, ErrorCode::busy);
      EXPECT_THAT(restored.error().message, HasSubstr(path));
      EXPECT_EQ(bench.files(), before);
    }
  }
}

TEST_F(CheckpointsTest, NamesOfOneFileAreRestoredAsFiles) {
  ASSERT_TRUE(bench.put("f", "one") && bench.link("f", "g"));
  const auto id = keep();
  ASSERT_TRUE(bench.stage->discard(""));
  restore(id);
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "two"));
  EXPECT_EQ(bench.read("g"), "one");
}

TEST_F(CheckpointsTest, LocalOnlyFilesAreNeitherKeptNorTouched) {
  ASSERT_TRUE(bench.put(".gitignore", "*.log\n") && bench.put("f", "f") && bench.put("a.log", "log"));
  ASSERT_TRUE(bench.stage->make_special(bench.find(""), "pipe", Kind::fifo, {}));
  const auto id = keep();
  ASSERT_TRUE(bench.put("a.log", "later") && bench.put("b.log", "later") && bench.put("f", "later"));
  restore(id);
  EXPECT_EQ(bench.read("f"), "f");
  EXPECT_EQ(bench.read("a.log"), "later");
  EXPECT_EQ(bench.read("b.log"), "later");
  EXPECT_TRUE(bench.find("pipe"));
  // In the way of what the checkpoint has.
  ASSERT_TRUE(bench.unlink("f"));
  ASSERT_TRUE(bench.stage->make_special(bench.find(""), "f", Kind::fifo, {}));
  EXPECT_EQ(bench.stage->restore(id, {}).error().code, ErrorCode::busy);
  EXPECT_TRUE(bench.find("f"));
  // In the way of a published file that was not deleted then.
  ASSERT_TRUE(bench.unlink("f") && bench.unlink("a"));
  ASSERT_TRUE(bench.stage->make_special(bench.find(""), "a", Kind::fifo, {}));
  EXPECT_EQ(bench.stage->restore(id, {}).error().code, ErrorCode::busy);
  EXPECT_FALSE(bench.find("f")) << "nothing was changed";
}

TEST_F(CheckpointsTest, OtherIgnoreRulesPublishNothingUnasked) {
  ASSERT_TRUE(bench.put("f", "f"));
  const auto id = keep();
  ASSERT_TRUE(bench.put(".gitignore", "*.log\n") && bench.put("secret.log", "secret"));
  restore(id);
  EXPECT_FALSE(bench.find(".gitignore"));
  EXPECT_EQ(bench.read("secret.log"), "secret");
  const auto conflicted = bench.stage->conflicted();
  ASSERT_THAT(conflicted, SizeIs(1));
  EXPECT_EQ(conflicted[0].path, "secret.log");
  EXPECT_TRUE(conflicted[0].is_kept_here);
}

TEST_F(CheckpointsTest, AMergeComesBackWithItsConflicts) {
  Merged merged = handled({});
  merged.tracked = {{"theirs", TrackedAs::taken_in}};
  ASSERT_TRUE(bench.stage->integrate(bench.stage->base(), merged, {RevisionId("b1")}));
  ASSERT_TRUE(bench.put("a", "<<<<<<< markers"));
  Conflicted marked{.path = "a", .reason = "both", .has_markers = true, .left = ContentHash::of("<<<<<<< markers")};
  marked.ino = bench.stat("a").ino;
  ASSERT_TRUE(bench.stage->record_conflicted({marked}));
  const auto changes = bench.changes();
  const auto id = keep();
  ASSERT_TRUE(bench.stage->discard(""));
  EXPECT_THAT(bench.stage->merge_parents(), SizeIs(0));
  restore(id);
  EXPECT_EQ(bench.stage->merge_parents(), std::vector<RevisionId>{RevisionId("b1")});
  EXPECT_EQ(bench.changes(), changes) << "theirs is deleted";
  ASSERT_THAT(bench.stage->conflicted(), SizeIs(1));
  EXPECT_EQ(bench.stage->conflicted()[0].ino, bench.stat("a").ino) << "of the file that was put";
  // On another base only the files and their conflicts do.
  ASSERT_TRUE(bench.stage->discard(""));
  ASSERT_TRUE(bench.move_base(revision_of("r2", {{"a", "r2"}})));
  restore(id);
  EXPECT_THAT(bench.stage->merge_parents(), SizeIs(0));
  EXPECT_THAT(bench.stage->conflicted(), SizeIs(1));
  EXPECT_EQ(bench.read("a"), "<<<<<<< markers");
}

TEST_F(CheckpointsTest, OpenFilesOfWhatItReplacedAreStale) {
  ASSERT_TRUE(bench.put("f", "f"));
  const auto id = keep();
  ASSERT_TRUE(bench.put("f", "later"));
  const auto open = bench.find("f");
  restore(id);
  auto written = bench.stage->write(open, 0, "lost");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::stale);
  EXPECT_THAT(written.error().message, HasSubstr("checkpoint 1"));
}

TEST_F(CheckpointsTest, TheyAreListedNewestFirstAndPruned) {
  ASSERT_TRUE(bench.put("f", "0"));
  for (int i = 1; i <= 103; ++i) {
    ASSERT_TRUE(bench.write(bench.find("f"), 0, std::to_string(i)));
    ASSERT_EQ(keep("message " + std::to_string(i)), static_cast<std::uint64_t>(i));
  }
  auto listed = bench.stage->checkpoints();
  ASSERT_THAT(listed, SizeIs(100));
  EXPECT_EQ(listed.front().id, 103U);
  EXPECT_EQ(listed.front().message, "message 103");
  EXPECT_EQ(listed.front().paths, 1U);
  EXPECT_EQ(listed.front().base, RevisionId("r1"));
  EXPECT_EQ(listed.front().made, bench.clock.wall());
  EXPECT_EQ(listed.back().id, 4U);
  EXPECT_EQ(folders(), 100U) << "nothing is left of the old ones";
  EXPECT_EQ(bench.spool_files(), 1U);
  EXPECT_EQ(bench.stage->restore(3, {}).error().code, ErrorCode::not_found);
  bench.clock.advance(std::chrono::hours(29 * 24));
  EXPECT_EQ(keep(), 104U);
  EXPECT_THAT(bench.stage->checkpoints(), SizeIs(100));
  bench.clock.advance(std::chrono::hours(2 * 24));
  bench.reopen();
  EXPECT_EQ(keep(), 105U) << "no id is used again";
  EXPECT_THAT(bench.stage->checkpoints(), SizeIs(2));
  EXPECT_EQ(folders(), 2U);
}

TEST_F(CheckpointsTest, WhatACrashLeavesDoesNotCount) {
  ASSERT_TRUE(bench.put("f", "f"));
  keep();
  const RevisionTreePtr on = bench.stage->base();
  bench.stage.reset();
  fs::copy(folder() + "/1", folder() + "/new", fs::copy_options::recursive);
  fs::copy(folder() + "/1", folder() + "/2~", fs::copy_options::recursive);
  bench.open(on);
  EXPECT_THAT(bench.stage->checkpoints(), SizeIs(1));
  EXPECT_EQ(keep(), 3U);
  bench.reopen();
  EXPECT_EQ(folders(), 2U);
}

TEST_F(CheckpointsTest, DamageIsSaidAndHarmsNothingElse) {
  ASSERT_TRUE(bench.put("f", "bytes of f") && bench.put("g", "bytes of g"));
  keep();
  ASSERT_TRUE(bench.put("f", "second") && bench.put("g", "second"));
  keep();
  keep();
  const std::string list = folder() + "/1/list";
  fs::resize_file(list, fs::file_size(list) - 1);
  for (const auto& item : fs::directory_iterator(folder() + "/2"))
    if (item.path().filename() != "list") fs::remove(item.path());
  std::ofstream(folder() + "/3/list") << "no list";
  EXPECT_EQ(bench.stage->restore(1, {}).error().code, ErrorCode::corrupt);
  ASSERT_TRUE(bench.put("f", "third"));
  auto restored = bench.stage->restore(2, {});
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::corrupt);
  EXPECT_THAT(restored.error().message, HasSubstr("checkpoint 2 is damaged: the bytes of f"));
  EXPECT_EQ(bench.read("f"), "third");
  const auto listed = bench.stage->checkpoints();
  ASSERT_THAT(listed, SizeIs(3));
  EXPECT_TRUE(listed[0].damage);
  EXPECT_FALSE(listed[1].damage);
  EXPECT_EQ(keep(), 4U);
  bench.stage.reset();
  auto health = examine(bench.options().directory);
  ASSERT_TRUE(health);
  EXPECT_TRUE(health->is_sound());
  EXPECT_EQ(health->checkpoints, 1U);
  EXPECT_THAT(health->damaged_checkpoints, SizeIs(3));
  EXPECT_EQ(repair(bench.options().directory, "test").value(), "");
  bench.open(revision_of("r1", base));
  EXPECT_EQ(bench.stage->found_lost(), std::nullopt);
  restore(4, {"f"});
}

TEST_F(CheckpointsTest, ARepairedStageStillHasThem) {
  keep_everything();
  bench.stage.reset();
  std::ofstream(bench.options().directory + "/stage.db") << "not a database";
  ASSERT_NE(repair(bench.options().directory, "test").value(), "");
  bench.open(revision_of("r1", base));
  EXPECT_EQ(bench.files(), base);
  restore(1);
  expect_as_kept();
}

TEST_F(CheckpointsTest, AStrangersFolderIsNotTrusted) {
  ASSERT_TRUE(bench.put("f", "bytes"));
  keep();
  ASSERT_TRUE(bench.stage->discard(""));
  const std::string list = folder() + "/1/list";
  fs::path bytes;
  for (const auto& item : fs::directory_iterator(folder() + "/1"))
    if (item.path() != list) bytes = item.path();
  fs::remove(bytes);
  ASSERT_EQ(mkfifo(bytes.c_str(), 0600), 0);
  EXPECT_EQ(bench.stage->restore(1, {}).error().code, ErrorCode::corrupt);
  fs::remove(bytes);
  fs::create_symlink("/etc/passwd", bytes);
  EXPECT_EQ(bench.stage->restore(1, {}).error().code, ErrorCode::corrupt);
  fs::remove(list);
  ASSERT_EQ(mkfifo(list.c_str(), 0600), 0);
  EXPECT_EQ(bench.stage->restore(1, {}).error().code, ErrorCode::corrupt);
  EXPECT_TRUE(bench.stage->checkpoints()[0].damage);
  EXPECT_EQ(bench.files(), base);
}

TEST(Snapshots, PathsThatNoTreeCanHaveAreRefused) {
  const test::TemporaryDirectory directory;
  const Snapshots snapshots(directory / "stage");
  fs::create_directory(directory / "stage");
  for (const char* path : {"../up", "/etc/passwd", "a//b", ".git/config", "a/.playfs/x", ""}) {
    for (const bool is_deleted : {false, true}) {
      Snapshot snapshot;
      snapshot.head.message = "theirs";
      FrozenFile file;
      file.path = path;
      if (is_deleted) snapshot.deletions.insert(path);
      else snapshot.files.emplace(path, file);
      auto folder = snapshots.begin();
      ASSERT_TRUE(folder);
      auto made = snapshots.finish(*folder, snapshot);
      ASSERT_TRUE(made) << made.error().message;
      EXPECT_EQ(snapshots.read(made->id).error().code, ErrorCode::corrupt) << path;
    }
  }
}

TEST_F(CheckpointsTest, EveryByteOfTheListCounts) {
  keep_everything();
  const std::string path = folder() + "/1/list";
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string whole = text.str();
  ASSERT_TRUE(bench.stage->discard(""));
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    std::ofstream(path, std::ios::binary) << bytes;
    auto restored = bench.stage->restore(1, {});
    ASSERT_FALSE(restored) << at;
    ASSERT_EQ(restored.error().code, ErrorCode::corrupt) << at;
  }
  std::ofstream(path, std::ios::binary) << whole;
  restore(1);
  expect_as_kept();
}

TEST_F(CheckpointsTest, AFileWhoseBytesAreLostIsLeftOut) {
  ASSERT_TRUE(bench.put("f", "bytes") && bench.put("g", "bytes"));
  bench.reopen();
  for (const auto& item : fs::directory_iterator(bench.spool())) {
    fs::remove(item.path());
    break;
  }
  const auto id = keep();
  EXPECT_EQ(bench.stage->checkpoints()[0].paths, 1U);
  ASSERT_TRUE(bench.stage->discard(""));
  restore(id);
  EXPECT_THAT(bench.changes(), SizeIs(1));
}

TEST(Spool, WithoutHardLinksBytesAreCopied) {
  // A folder on another file system stands for one without links.
  const test::TemporaryDirectory directory;
  auto spool = Spool::open(directory / "spool", 4);
  ASSERT_TRUE(spool);
  SpoolFile file(*spool, 7, true);
  file.is_made = false;
  ASSERT_TRUE(write_all_at((*(*spool)->descriptor(file, true))->get(), "kept bytes", 0));
  const std::string elsewhere = "/dev/shm/playfs-checkpoints-" + std::to_string(getpid());
  struct stat here {
  }, there{};
  if (stat((directory / "spool").c_str(), &here) != 0 || stat("/dev/shm", &there) != 0 || here.st_dev == there.st_dev)
    GTEST_SKIP() << "there is no other file system";
  fs::create_directory(elsewhere);
  const UniqueFd folder(open(elsewhere.c_str(), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ((*spool)->share(file, folder.get()).value(), 10U);
  EXPECT_FALSE((*spool)->is_shared(file)) << "it may change in place";
  EXPECT_FALSE((*spool)->has_same(7, folder.get()));
  EXPECT_EQ(read_file(elsewhere + "/7", 100).value(), "kept bytes");
  fs::remove_all(elsewhere);
}

TEST_F(CheckpointsTest, NothingWrittenIsLostBetweenACheckpointAndADiscard) {
  ASSERT_TRUE(bench.put("f", std::string(8, '0')));
  std::atomic<bool> stops = false;
  std::atomic<std::uint64_t> acknowledged = 0;
  std::thread writer([&] {
    const auto file = bench.find("f");
    for (std::uint64_t i = 1; !stops; ++i) {
      auto written = bench.stage->write(file, 0, std::string_view(reinterpret_cast<const char*>(&i), sizeof i));
      if (!written) return;  // stale from now on
      acknowledged = i;
    }
  });
  while (acknowledged < 100) std::this_thread::yield();
  std::uint64_t id = 0;
  {
    const auto hold = bench.stage->hold_writers();
    auto made = bench.stage->checkpoint("before", *hold);
    ASSERT_TRUE(made && *made);
    id = (*made)->id;
    ASSERT_TRUE(bench.stage->discard("f"));
  }
  writer.join();
  stops = true;
  restore(id);
  std::uint64_t kept = 0;
  memcpy(&kept, bench.read("f").value().data(), sizeof kept);
  EXPECT_EQ(kept, acknowledged);
}

TEST_F(CheckpointsTest, MessagesAreBounded) {
  ASSERT_TRUE(bench.put("f", "f"));
  EXPECT_EQ(bench.stage->checkpoint(std::string(5000, 'm')).error().code, ErrorCode::invalid_argument);
  keep(std::string(4095, 'm'));
  EXPECT_EQ(bench.stage->checkpoints()[0].message.size(), 4095U);
}

}  // namespace
}  // namespace playfs::stage
