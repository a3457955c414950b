#include "base/sqlite.h"

#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "support/temporary_directory.h"

namespace playfs {
namespace {

class SqliteTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Database::open(directory_ / "a.db", Database::Durability::normal);
    ASSERT_TRUE(opened) << opened.error().message;
    database_.emplace(std::move(*opened));
    ASSERT_TRUE(database_->execute("CREATE TABLE t (k TEXT PRIMARY KEY, v INTEGER)"));
  }
  std::int64_t count(Database& database) {
    auto select = database.prepare("SELECT count(*) FROM t");
    EXPECT_TRUE(select && select->step().value_or(false));
    return select->integer(0);
  }
  test::TemporaryDirectory directory_;
  std::optional<Database> database_;
};

TEST_F(SqliteTest, TransactionRollsBackUnlessCommitted) {
  auto insert = database_->prepare("INSERT INTO t VALUES (?, ?)");
  ASSERT_TRUE(insert);
  {
    auto transaction = Transaction::begin(*database_);
    ASSERT_TRUE(insert->bind(1, "a").bind(2, 1).run());
  }
  EXPECT_EQ(count(*database_), 0);
  {
    auto transaction = Transaction::begin(*database_);
    ASSERT_TRUE(insert->bind(1, "a").bind(2, 1).run());
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(count(*database_), 1);
  auto again = insert->bind(1, "a").bind(2, 2).run();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::already_exists);
}

TEST_F(SqliteTest, BackupIsAWholeDatabase) {
  ASSERT_TRUE(database_->execute("INSERT INTO t VALUES ('x', 7)"));
  ASSERT_TRUE(database_->backup_to(directory_ / "copy.db"));
  auto copy = Database::open(directory_ / "copy.db", Database::Durability::full);
  ASSERT_TRUE(copy);
  EXPECT_EQ(count(*copy), 1);
  EXPECT_TRUE(copy->check_integrity());
  EXPECT_FALSE(database_->backup_to(directory_ / "copy.db"));
}

// POSIX locks are lost when any descriptor of the file is closed. Opening another connection must not cost earlier ones
// their locks, or another process that leaves believes it is the last one and removes the WAL they write to.
TEST_F(SqliteTest, OpeningAnotherConnectionKeepsTheLocksOfTheFirst) {
  // The other process starts before this one has a connection, so it inherits nothing of SQLite's state for the file.
  database_.reset();
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  pid_t child = fork();
  if (child == 0) {
    char word = 0;
    bool told = read(go[0], &word, 1) == 1;
    bool written = false;
    if (auto other = Database::open(directory_ / "a.db", Database::Durability::normal))
      written = other->execute("INSERT INTO t VALUES ('other', 2)").has_value();
    _exit(told && written ? 0 : 1);
  }
  auto first = Database::open(directory_ / "a.db", Database::Durability::normal);
  ASSERT_TRUE(first && first->execute("INSERT INTO t VALUES ('first', 1)"));
  { auto second = Database::open(directory_ / "a.db", Database::Durability::normal); }
  ASSERT_EQ(write(go[1], "!", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(go[0]);
  close(go[1]);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(directory_ / "a.db-wal"));
  EXPECT_TRUE(first->execute("INSERT INTO t VALUES ('again', 3)"));
  EXPECT_EQ(count(*first), 3);
}

TEST_F(SqliteTest, NoJournalOfAnotherUserIsRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give a file away";
  database_.reset();
  for (const char* part : {"-wal", "-shm", "-journal"}) {
    const std::string journal = directory_ / "a.db" + part;
    ASSERT_TRUE(write_file_atomically(journal, "x", 0644));
    ASSERT_EQ(chown(journal.c_str(), 65534, 65534), 0);
    auto opened = Database::open(directory_ / "a.db", Database::Durability::normal);
    ASSERT_FALSE(opened) << part;
    EXPECT_EQ(opened.error().code, ErrorCode::permission_denied);
    std::filesystem::remove(journal);
    EXPECT_TRUE(Database::open(directory_ / "a.db", Database::Durability::normal));
  }
}

TEST_F(SqliteTest, ManyMayBeginTheSameDatabaseAtOnce) {
  for (int round = 0; round < 40; ++round) {
    const std::string path = directory_ / "fresh" + std::to_string(round) + ".db";
    std::barrier start(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        start.arrive_and_wait();
        auto opened = Database::open(path, Database::Durability::normal);
        EXPECT_TRUE(opened) << opened.error().message;
      });
    for (auto& thread : threads) thread.join();
  }
}

TEST_F(SqliteTest, ALinkInPlaceOfTheDatabaseIsRefused) {
  std::filesystem::create_symlink(directory_ / "a.db", directory_ / "link.db");
  EXPECT_FALSE(Database::open(directory_ / "link.db", Database::Durability::normal));
}

TEST_F(SqliteTest, ADatabaseOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make one";
  ASSERT_EQ(chown((directory_ / "a.db").c_str(), 65534, 65534), 0);
  auto opened = Database::open(directory_ / "a.db", Database::Durability::normal);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::permission_denied);
}

TEST_F(SqliteTest, NothingRunsSinceASchemaSaysSo) {
  // The way an attacker might have prepared the file.
  auto is_trusted = database_->prepare("PRAGMA trusted_schema");
  ASSERT_TRUE(is_trusted && is_trusted->step().value_or(false));
  EXPECT_EQ(is_trusted->integer(0), 0);
  EXPECT_FALSE(database_->execute("PRAGMA writable_schema=ON; UPDATE sqlite_schema SET sql = ''"));
}

TEST_F(SqliteTest, ADatabaseThatIsNoneSaysSo) {
  std::string path = directory_ / "junk.db";
  FILE* file = fopen(path.c_str(), "w");
  fputs(std::string(4096, 'j').c_str(), file);
  fclose(file);
  auto opened = Database::open(path, Database::Durability::full);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace playfs
