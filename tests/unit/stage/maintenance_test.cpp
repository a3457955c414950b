// Checking and repairing a stage that no mount has open: each damage is detected, checking changes nothing, and
// repairing loses nothing.
#include "stage/store/begun.h"
#include "stage/store/repair.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "base/fd.h"
#include "base/sqlite.h"
#include "stage/store/begun.h"
#include "support/workbench.h"

namespace playfs::stage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CareTest : public testing::Test {
 protected:
  void SetUp() override {
    bench.open(base);
    ASSERT_TRUE(bench.mkdir("d"));
    ASSERT_TRUE(bench.put("d/f", "kept"));
    bench.stage.reset();
  }
  [[nodiscard]] std::string directory() const { return bench.options().directory; }
  void execute(const std::string& sql) {
    auto database = Database::open(directory() + "/stage.db", Database::Durability::normal);
    ASSERT_TRUE(database);
    auto done = database->execute(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  static std::string text_of(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  }
  /// Path, mode and content of everything in the stage's directory.
  std::map<std::string, std::string> everything() {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(directory())) {
      auto mode = std::to_string(static_cast<unsigned>(entry.status().permissions()));
      all[entry.path()] = mode + (entry.is_regular_file() ? text_of(entry.path()) : "/");
    }
    return all;
  }
  std::string spool_file() { return fs::directory_iterator(bench.spool())->path().string(); }
  /// Overwrites the root page of `table`, so that its rows cannot be read.
  void damage_page_of(const std::string& table) {
    std::int64_t page = 0, size = 0;
    {
      auto database = Database::open(directory() + "/stage.db", Database::Durability::normal);
      auto select = database->prepare("SELECT rootpage FROM sqlite_schema WHERE name = '" + table + "'");
      ASSERT_TRUE(select && select->step().value());
      page = select->integer(0);
      auto pragma = database->prepare("PRAGMA page_size");
      ASSERT_TRUE(pragma && pragma->step().value());
      size = pragma->integer(0);
    }
    std::fstream file(directory() + "/stage.db", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp((page - 1) * size);
    file << std::string(static_cast<std::size_t>(size), 'x');
  }

  RevisionTreePtr base = revision_of_one();
  test::Workbench bench;

 private:
  static RevisionTreePtr revision_of_one() { return test::revision_of("r1", {{"a", "one"}}); }
};

TEST_F(CareTest, ASoundStageIsSoundAndLookingChangesNothing) {
  auto before = everything();
  auto health = examine(directory());
  ASSERT_TRUE(health) << health.error().message;
  EXPECT_TRUE(health->is_sound());
  EXPECT_FALSE(health->in_use);
  EXPECT_EQ(health->files, 1U);
  EXPECT_EQ(everything(), before);
  EXPECT_EQ(repair(directory(), "now").value(), "");
  EXPECT_EQ(everything(), before);
}

TEST_F(CareTest, WithoutALockFileNobodyHasItAndLookingMakesNone) {
  fs::remove(directory() + "/lock");
  const auto before = everything();
  auto health = examine(directory());
  ASSERT_TRUE(health) << health.error().message;
  EXPECT_TRUE(health->is_sound());
  EXPECT_EQ(everything(), before);
  fs::create_symlink("elsewhere", directory() + "/lock");
  EXPECT_FALSE(examine(directory())) << "whoever has it would not be seen";
}

TEST_F(CareTest, AStageOfAnOlderFormatIsSoundAndStaysOfThatFormat) {
  execute(
      "ALTER TABLE inode DROP COLUMN device; DROP TABLE operations_log; DROP TABLE given_up; DROP TABLE replacement; "
      "DROP TABLE spool_size; PRAGMA user_version = 1");
  std::filesystem::remove(directory() + kBegun);
  auto before = everything();
  EXPECT_TRUE(examine(directory()).value().is_sound());
  EXPECT_EQ(everything(), before);
}

TEST_F(CareTest, WhatIsInUseIsNeitherLookedIntoNorMended) {
  write(bench.spool() + "/4711", "orphan");
  bench.open(base);
  write(bench.spool() + "/4712", "being written");
  auto health = examine(directory());
  ASSERT_TRUE(health) << health.error().message;
  EXPECT_TRUE(health->in_use);
  EXPECT_EQ(health->holder, std::to_string(getpid()));
  EXPECT_THAT(health->orphans, IsEmpty());
  auto mended = repair(directory(), "now");
  ASSERT_FALSE(mended);
  EXPECT_EQ(mended.error().code, ErrorCode::busy);
  EXPECT_TRUE(fs::exists(bench.spool() + "/4712"));
}

TEST_F(CareTest, WhileAnotherLooksAtItNothingIsMended) {
  write(bench.spool() + "/4711", "orphan");
  const UniqueFd looking(open((directory() + "/lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(looking.get(), LOCK_SH | LOCK_NB), 0);
  EXPECT_THAT(examine(directory()).value().orphans, ElementsAre(4711U)) << "looking hinders nobody who looks";
  auto mended = repair(directory(), "now");
  ASSERT_FALSE(mended);
  EXPECT_EQ(mended.error().code, ErrorCode::busy);
  EXPECT_TRUE(fs::exists(bench.spool() + "/4711"));
}

TEST_F(CareTest, OrphansAreNamedInOrder) {
  for (int number : {50, 20, 70, 10, 40, 80, 30, 60}) write(bench.spool() + "/47" + std::to_string(number), "orphan");
  EXPECT_THAT(examine(directory()).value().orphans,
              ElementsAre(4710U, 4720U, 4730U, 4740U, 4750U, 4760U, 4770U, 4780U));
}

TEST_F(CareTest, OrphansAreSetAsideBeforeAMountSweepsThem) {
  write(bench.spool() + "/4711", "orphan");
  write(bench.spool() + "/notes", "not ours");
  auto before = everything();
  EXPECT_THAT(examine(directory()).value().orphans, ElementsAre(4711U));
  EXPECT_EQ(everything(), before);

  EXPECT_EQ(repair(directory(), "now").value(), directory() + "/lost+found/now");
  EXPECT_EQ(text_of(directory() + "/lost+found/now/4711"), "orphan");
  EXPECT_TRUE(fs::exists(bench.spool() + "/notes"));
  EXPECT_TRUE(examine(directory()).value().is_sound());
  // The same number again, at the same moment: nothing is overwritten.
  write(bench.spool() + "/4711", "another");
  EXPECT_EQ(repair(directory(), "now").value(), directory() + "/lost+found/now-2");
  EXPECT_EQ(text_of(directory() + "/lost+found/now/4711"), "orphan");
  EXPECT_EQ(text_of(directory() + "/lost+found/now-2/4711"), "another");
  bench.open(base);
  EXPECT_EQ(bench.read("d/f"), "kept");
}

TEST_F(CareTest, SpoolFilesOthersCanReadAreMadePrivate) {
  const std::string path = spool_file();
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(examine(directory()).value().bad.size(), 1U);
  ASSERT_TRUE(repair(directory(), "now"));
  EXPECT_TRUE(examine(directory()).value().is_sound());
  // A link in its place is not followed.
  fs::remove(path);
  write(directory() + "/elsewhere", "not to be touched");
  ASSERT_EQ(chmod((directory() + "/elsewhere").c_str(), 0644), 0);
  fs::create_symlink(directory() + "/elsewhere", path);
  ASSERT_TRUE(repair(directory(), "now"));
  EXPECT_EQ(examine(directory()).value().bad.size(), 1U);
  EXPECT_EQ(static_cast<unsigned>(fs::status(directory() + "/elsewhere").permissions()), 0644U);
}

TEST_F(CareTest, PendingBytesThatAreGoneOrCutAreNamed) {
  bench.open(base);
  ASSERT_TRUE(bench.stage->freeze("00000000000000000000000000000002").value());
  bench.stage.reset();
  EXPECT_TRUE(examine(directory()).value().is_sound());
  const std::string path = spool_file();
  fs::resize_file(path, 3);
  EXPECT_THAT(examine(directory()).value().lost, ElementsAre("d/f"));
  fs::remove(path);
  EXPECT_THAT(examine(directory()).value().lost, ElementsAre("d/f"));
}

TEST_F(CareTest, ANewerFormatIsLeftAlone) {
  execute("PRAGMA user_version = 1000");
  write(bench.spool() + "/4711", "perhaps an orphan");
  auto health = examine(directory());
  ASSERT_TRUE(health && health->database);
  EXPECT_EQ(health->database->code, ErrorCode::not_supported);
  auto before = everything();
  EXPECT_EQ(repair(directory(), "now").value(), "");
  EXPECT_EQ(everything(), before);
}

TEST_F(CareTest, RowsThatMakeNoSenseAreDamage) {
  const char* damages[] = {
      "DELETE FROM value WHERE key = 'root'",
      "INSERT INTO entry VALUES (999, 'x', NULL)",
      "INSERT INTO entry SELECT parent, 'twice', 12345 FROM entry LIMIT 1",
      "UPDATE inode SET kind = 9",
      "UPDATE inode SET spool = NULL",
      "DROP TABLE path_time",
  };
  for (const char* damage : damages) {
    test::Workbench other;
    other.open(base);
    ASSERT_TRUE(other.put("f", "text"));
    other.stage.reset();
    {
      auto database = Database::open(other.options().directory + "/stage.db", Database::Durability::normal);
      ASSERT_TRUE(database && database->execute(damage)) << damage;
    }
    auto health = examine(other.options().directory);
    ASSERT_TRUE(health) << damage;
    ASSERT_TRUE(health->database) << damage;
    EXPECT_EQ(health->database->code, ErrorCode::corrupt) << damage;
  }
}

TEST_F(CareTest, ADamagedDatabaseIsSetAsideWithBytesAndReadableNames) {
  damage_page_of("path_time");
  fs::create_directory(directory() + "/publication");
  write(directory() + "/publication/publish.db", "a journal");
  const std::string number = fs::path(spool_file()).filename();
  auto before = everything();
  auto health = examine(directory());
  ASSERT_TRUE(health && health->database);
  EXPECT_EQ(health->database->code, ErrorCode::corrupt);
  EXPECT_EQ(everything(), before);

  const std::string folder = repair(directory(), "now").value();
  EXPECT_EQ(text_of(folder + "/names"), "spool/" + number + "\td/f\n");
  EXPECT_EQ(text_of(folder + "/spool/" + number), "kept");
  EXPECT_EQ(text_of(folder + "/publication/publish.db"), "a journal");
  EXPECT_TRUE(fs::exists(folder + "/stage.db"));
  EXPECT_FALSE(is_stage(directory()));
  bench.open(base);
  EXPECT_THAT(bench.changes(), IsEmpty());
  EXPECT_EQ(text_of(folder + "/spool/" + number), "kept") << "the next mount sweeps it not";
}

/// What kill -9 leaves: the directory as it is while the stage is open.
TEST_F(CareTest, OperationsOfALogAreCountedAndATornEndIsKept) {
  bench.housekeeping.log_bytes = 1 << 20;
  bench.open(base);
  ASSERT_TRUE(bench.mkdir("new") && bench.put("new/g", "in the log"));
  fs::copy(directory(), directory() + "-copied", fs::copy_options::recursive);
  bench.stage.reset();
  fs::remove_all(directory());
  fs::rename(directory() + "-copied", directory());
  auto before = everything();
  auto health = examine(directory()).value();
  EXPECT_TRUE(health.is_sound());
  EXPECT_EQ(health.operations, 3U) << "a directory, a file, and how long that is";
  EXPECT_EQ(health.files, 2U);
  EXPECT_EQ(everything(), before);

  std::string log = directory() + "/operations.0";
  if (fs::file_size(log) == 0) log = directory() + "/operations.1";
  std::ofstream(log, std::ios::app) << "torn";
  const std::string whole = text_of(log);
  before = everything();
  EXPECT_EQ(examine(directory()).value().torn, 4U);
  EXPECT_FALSE(examine(directory()).value().is_sound());
  EXPECT_EQ(everything(), before);
  const std::string folder = repair(directory(), "now").value();
  EXPECT_EQ(text_of(folder + "/" + fs::path(log).filename().string()), whole);
  EXPECT_TRUE(examine(directory()).value().is_sound());
  bench.open(base);
  EXPECT_EQ(bench.read("new/g"), "in the log");
}

TEST_F(CareTest, NamesOfALogAreReadWhereTheDatabaseCannotBe) {
  bench.housekeeping.log_bytes = 1 << 20;
  bench.open(base);
  ASSERT_TRUE(bench.put("d/g", "in the log") && bench.rename("d/g", "d/h"));
  fs::copy(directory(), directory() + "-copied", fs::copy_options::recursive);
  bench.stage.reset();
  fs::remove_all(directory());
  fs::rename(directory() + "-copied", directory());
  fs::remove(directory() + "/stage.db-wal");
  write(directory() + "/stage.db", "this is no database, whatever its name says it is");
  const std::string folder = repair(directory(), "now").value();
  EXPECT_THAT(text_of(folder + "/names"), HasSubstr("h\n"));
  bench.open(base);
  EXPECT_THAT(bench.changes(), IsEmpty()) << "a log is of its database alone";
}

TEST_F(CareTest, NoDatabaseAtAllKeepsTheBytesToo) {
  write(directory() + "/stage.db", "this is no database, whatever its name says it is");
  fs::remove(directory() + "/stage.db-wal");
  const std::string folder = repair(directory(), "now").value();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder + "/spool"), {}), 1);
  // A missing database is not a new one.
  bench.open(base);
  ASSERT_TRUE(bench.put("g", "bytes"));
  bench.stage.reset();
  fs::remove(directory() + "/stage.db");
  EXPECT_TRUE(examine(directory()).value().database);
  EXPECT_NE(repair(directory(), "now").value(), "");
  EXPECT_TRUE(examine(directory()).value().is_sound());
}

}  // namespace
}  // namespace playfs::stage
