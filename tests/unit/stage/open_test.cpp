// Opening: the lock, the format's version, what crashes leave behind.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/sqlite.h"
#include "stage/store/begun.h"
#include "support/workbench.h"

namespace playfs::stage {
namespace {

using test::revision_of;
using test::Texts;

class OpenTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Stage>> open(RevisionTreePtr base) {
    return Stage::open(bench.options(), bench.clock, std::move(base));
  }
  void execute(const std::string& sql) {
    auto database = Database::open(bench.options().directory + "/stage.db", Database::Durability::normal);
    ASSERT_TRUE(database);
    auto done = database->execute(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  RevisionTreePtr base = revision_of("r1", {{"a", "one"}});
  test::Workbench bench;
};

TEST_F(OpenTest, MissingBytesAreNotAnEmptyFile) {
  bench.open(base);
  ASSERT_TRUE(bench.put("b", "two"));
  ASSERT_TRUE(bench.put("empty", ""));
  bench.reopen();
  auto empty = bench.read("empty");
  ASSERT_TRUE(empty);
  EXPECT_EQ(*empty, "");
  for (const auto& file : std::filesystem::directory_iterator(bench.spool())) std::filesystem::remove(file.path());
  EXPECT_EQ(bench.read("b").error().code, ErrorCode::corrupt);
  EXPECT_FALSE(bench.stage->freeze("tx")) << "published as an empty file";
}

TEST_F(OpenTest, AChildThatHasTheDescriptorsDoesNotKeepTheLock) {
  bench.open(base);
  const pid_t child = fork();  // as another thread may at any time, to probe a mount
  if (child == 0) {
    for (;;) pause();
  }
  ASSERT_GT(child, 0);
  bench.stage.reset();
  auto recorded = Stage::recorded_base(bench.options().directory);
  auto again = open(base);
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(recorded) << recorded.error().message;
  EXPECT_TRUE(again) << again.error().message;
}

TEST_F(OpenTest, RemovingAStageHoldsItsLockToTheEnd) {
  const std::string directory = bench.options().directory;
  bench.open(base);
  ASSERT_TRUE(bench.put("b", "two"));
  std::atomic<bool> removed = false;
  std::thread other([&] {
    // Until it opens a new one there, which the removal does not reach.
    for (int tries = 0; !removed || tries < 2; tries += removed ? 1 : 0) {
      auto begun = Stage::recorded_base(directory);
      if (begun) EXPECT_EQ(*begun, std::nullopt) << "a stage that is half removed was opened";
      else EXPECT_EQ(begun.error().code, ErrorCode::busy) << begun.error().message;
    }
  });
  auto gone = Stage::remove(std::move(bench.stage));
  removed = true;
  other.join();
  EXPECT_TRUE(gone);
  EXPECT_FALSE(std::filesystem::exists(directory));
  bench.open(base);
  EXPECT_EQ(bench.files(), (Texts{{"a", "one"}}));
}

TEST_F(OpenTest, TheBaseIsOnRecordBeforeItIsOpened) {
  EXPECT_EQ(Stage::recorded_base(bench.options().directory).value(), std::nullopt);
  bench.open(base);
  bench.stage.reset();
  EXPECT_EQ(Stage::recorded_base(bench.options().directory).value(), RevisionId("r1"));
  test::Workbench empty;
  empty.open(nullptr);
  empty.stage.reset();
  EXPECT_EQ(Stage::recorded_base(empty.options().directory).value(), RevisionId(""));
}

TEST_F(OpenTest, AnotherBaseIsRefused) {
  bench.open(base);
  bench.stage.reset();
  auto opened = open(revision_of("r2", {}));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(open(nullptr).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(open(base));
}

TEST_F(OpenTest, OnlyOneMayHaveItOpen) {
  bench.open(base);
  auto second = open(base);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::busy);
  EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos);
  EXPECT_EQ(Stage::recorded_base(bench.options().directory).error().code, ErrorCode::busy);
  pid_t child = fork();
  if (child == 0) {
    auto there = open(base);
    _exit(!there && there.error().code == ErrorCode::busy ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  bench.stage.reset();
  EXPECT_TRUE(open(base));
}

TEST_F(OpenTest, ANewerFormatIsRefusedWithAHint) {
  bench.open(base);
  bench.stage.reset();
  execute("PRAGMA user_version = 1000");
  auto opened = open(base);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::not_supported);
  EXPECT_FALSE(opened.error().hint.empty());
}

TEST_F(OpenTest, AnOlderFormatIsBroughtUpToDate) {
  bench.open(base);
  ASSERT_TRUE(bench.put("f", "kept"));
  bench.stage.reset();
  execute(
      "ALTER TABLE inode DROP COLUMN device; DROP TABLE operations_log; DROP TABLE given_up; DROP TABLE replacement; "
      "DROP TABLE spool_size; PRAGMA user_version = 1");
  std::filesystem::remove(bench.options().directory + kBegun);
  bench.open(base);
  EXPECT_EQ(bench.read("f"), "kept");
  ASSERT_TRUE(bench.stage->make_special(bench.stage->root(), "null", Kind::block_device, {}, 77));
  bench.reopen();
  EXPECT_EQ(bench.stat("null").device, 77U);
}

TEST_F(OpenTest, OrphansAreMovedOutOfTheSpoolAndNothingElse) {
  bench.open(base);
  ASSERT_TRUE(bench.put("f", "kept"));
  std::string spool = bench.spool();
  bench.stage.reset();
  std::ofstream(spool + "/4711") << "orphan";
  std::ofstream(spool + "/notes") << "not ours";
  bench.open(base);
  EXPECT_EQ(bench.read("f"), "kept");
  EXPECT_FALSE(std::filesystem::exists(spool + "/4711"));
  EXPECT_TRUE(std::filesystem::exists(spool + "/notes"));
  // Numbers continue above all existing ones: no file gets another's number.
  ASSERT_TRUE(bench.put("g", "new"));
  EXPECT_TRUE(std::filesystem::exists(spool + "/4712"));
}

TEST_F(OpenTest, RemovedFilesAreForgottenEventually) {
  bench.open(base);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(bench.put("f", "text") && bench.unlink("f"));
  bench.stage.reset();
  auto database = Database::open(bench.options().directory + "/stage.db", Database::Durability::normal);
  ASSERT_TRUE(database);
  auto given_up = database->prepare("SELECT count(*) FROM given_up");
  ASSERT_TRUE(given_up && given_up->step());
  EXPECT_LT(given_up->integer(0), 10);
}

TEST_F(OpenTest, DamageIsFoundNotGuessedAt) {
  const char* damages[] = {
      "DELETE FROM value WHERE key = 'root'",
      "UPDATE value SET value = 'x' WHERE key = 'salt'",
      "INSERT INTO entry VALUES (999, 'x', NULL)",
      "INSERT INTO entry SELECT parent, 'twice', 12345 FROM entry LIMIT 1",
      "UPDATE inode SET kind = 9",
      "UPDATE inode SET spool = NULL",
      "UPDATE inode SET lower_path = 'nothing'",
      "INSERT INTO entry SELECT parent, 'twice', ino FROM entry WHERE ino IN (SELECT ino FROM inode WHERE kind = 1)",
  };
  for (const char* damage : damages) {
    test::Workbench other;
    other.open(base);
    ASSERT_TRUE(other.put("f", "text"));
    ASSERT_TRUE(other.mkdir("d"));
    other.stage.reset();
    {
      auto database = Database::open(other.options().directory + "/stage.db", Database::Durability::normal);
      ASSERT_TRUE(database && database->execute(damage)) << damage;
    }
    auto opened = Stage::open(other.options(), other.clock, base);
    ASSERT_FALSE(opened) << damage;
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << damage;
  }
}

TEST_F(OpenTest, FilesArePrivate) {
  bench.open(base);
  ASSERT_TRUE(bench.put("f", "text"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bench.options().directory)) {
    auto permissions = std::filesystem::status(entry).permissions();
    EXPECT_EQ(static_cast<unsigned>(permissions) & 077U, 0U) << entry.path();
  }
}

}  // namespace
}  // namespace playfs::stage
