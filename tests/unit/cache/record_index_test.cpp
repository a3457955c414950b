#include "cache/record_index.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/sqlite.h"
#include "cache/record_database.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"

namespace playfs::cache {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kSite = "https://one.example/.site/data";

ListedRecord listed(const std::string& id, std::int64_t time = 1, const std::string& name = "") {
  return {id, WallTime{time}, name, ""};
}

class RecordIndexTest : public testing::Test {
 protected:
  void SetUp() override { index_ = fresh(); }
  std::unique_ptr<RecordIndex> fresh() {
    auto opened = RecordIndex::open(directory_.path());
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }
  std::string database() { return directory_ / "records.db"; }
  /// Changes rows behind the index's back, as a faulty disk would.
  void tamper(const std::string& sql) {
    auto opened = Database::open(database(), Database::Durability::none);
    ASSERT_TRUE(opened);
    ASSERT_TRUE(opened->execute(sql));
    ASSERT_GT(opened->rows_changed(), 0);
  }
  void store(const std::string& id, const std::string& text) {
    index_->store_record(kSite, "revisions", id, {text, "etag", WallTime{42}});
  }
  std::vector<ListedRecord> stored_list(const std::string& collection) {
    return index_->list(kSite, collection).value_or(std::vector<ListedRecord>());
  }
  std::string text_of(const std::string& id) {
    auto record = index_->record(kSite, "revisions", id);
    return record ? record->text : "absent";
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<RecordIndex> index_;
};

TEST_F(RecordIndexTest, KeepsRecordsAcrossOpening) {
  store("a", R"({"id":"a"})");
  index_ = fresh();
  auto record = index_->record(kSite, "revisions", "a");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->text, R"({"id":"a"})");
  EXPECT_EQ(record->etag, "etag");
  EXPECT_EQ(record->fetched_at, WallTime{42});
}

TEST_F(RecordIndexTest, OneSiteNeverSpeaksForAnother) {
  store("a", "one");
  EXPECT_FALSE(index_->record("https://two.example/.site/data", "revisions", "a"));
  EXPECT_FALSE(index_->record(kSite, "projects", "a"));
  index_->store_content_of(kSite, "key", ContentHash::of("x"));
  EXPECT_FALSE(index_->content_of("https://two.example/.site/data", "key"));
}

TEST_F(RecordIndexTest, ReplacesAndForgets) {
  store("a", "old");
  store("a", "new");
  EXPECT_EQ(text_of("a"), "new");
  index_->forget_record(kSite, "revisions", "a");
  EXPECT_EQ(text_of("a"), "absent");
}

TEST_F(RecordIndexTest, ContentsAreFoundByOrigin) {
  EXPECT_FALSE(index_->content_of(kSite, "key"));
  index_->store_content_of(kSite, "key", ContentHash::of("first"));
  index_->store_content_of(kSite, "key", ContentHash::of("second"));
  EXPECT_EQ(index_->content_of(kSite, "key"), ContentHash::of("second"));
}

TEST_F(RecordIndexTest, ARowWithAWrongChecksumIsForgotten) {
  store("a", "right");
  store("b", "right");
  tamper("UPDATE records SET text = 'wrong' WHERE id = 'a'");
  EXPECT_EQ(text_of("a"), "absent");
  EXPECT_EQ(text_of("b"), "right");

  index_->store_content_of(kSite, "key", ContentHash::of("right"));
  tamper("UPDATE contents SET hash = '" + ContentHash::of("wrong").hex() + "'");
  EXPECT_FALSE(index_->content_of(kSite, "key"));
}

TEST_F(RecordIndexTest, ARowUnderAnotherKeyIsForgotten) {
  store("a", "a's text");
  tamper("UPDATE records SET id = 'b'");
  EXPECT_EQ(text_of("b"), "absent");
}

TEST_F(RecordIndexTest, AnotherSchemaVersionIsRecreated) {
  store("a", "text");
  index_ = nullptr;
  {
    auto opened = Database::open(database(), Database::Durability::none);
    ASSERT_TRUE(opened && opened->execute("PRAGMA user_version = 99; DROP TABLE records"));
  }
  index_ = fresh();
  EXPECT_EQ(text_of("a"), "absent");
  store("a", "again");
  EXPECT_EQ(text_of("a"), "again");
}

TEST_F(RecordIndexTest, ADamagedDatabaseIsRecreated) {
  store("a", "text");
  index_ = nullptr;
  for (std::string damage : {"no database at all", ""}) {
    if (damage.empty()) damage = std::string(100'000, '\x5a');
    ASSERT_TRUE(write_file_atomically(database(), damage));
    index_ = fresh();
    EXPECT_EQ(text_of("a"), "absent");
    store("a", "again");
    EXPECT_EQ(text_of("a"), "again");
    index_ = nullptr;
  }
}

TEST_F(RecordIndexTest, DamageFoundWhileOpenIsForgotten) {
  for (int i = 0; i < 200; ++i) store("id" + std::to_string(i), std::string(2000, 'x'));
  index_ = nullptr;  // checkpoints the log into the database
  {
    UniqueFd fd(open(database().c_str(), O_RDWR));
    const auto size = fs::file_size(database());
    ASSERT_TRUE(write_all_at(fd.get(), std::string(size - 8192, '\x7f'), 8192));
  }
  index_ = fresh();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(text_of("id" + std::to_string(i)), "absent");
  store("a", "again");
  EXPECT_EQ(text_of("a"), "again");
}

TEST_F(RecordIndexTest, TheDirectoryMayBeDeletedUnderneath) {
  store("a", "text");
  fs::remove_all(directory_.path());
  EXPECT_EQ(text_of("a"), "absent");
  store("a", "again");
  index_ = fresh();
  EXPECT_EQ(text_of("a"), "again");
}

TEST_F(RecordIndexTest, WithoutADirectoryNothingIsKnownAndNothingFails) {
  fs::remove_all(directory_.path());
  std::ofstream(directory_.path()) << "in the way";
  store("a", "text");
  EXPECT_EQ(text_of("b"), "absent");
  EXPECT_FALSE(RecordIndex::open(directory_.path()));
  auto without = RecordIndex::open(directory_.path(), {.needs_directory = false});
  ASSERT_TRUE(without);
  (*without)->store_record(kSite, "revisions", "a", {"text", "", {}});
  EXPECT_EQ((*without)->record(kSite, "revisions", "a")->text, "text") << "in memory";
  EXPECT_TRUE((*without)->trouble());
}

TEST_F(RecordIndexTest, TwoProcessesShareIt) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Between fork and _exit, a child of a single-threaded process may safely open an index of its own.
    auto own = RecordIndex::open(directory_.path());
    for (int i = 0; own && i < 100; ++i)
      (*own)->store_record(kSite, "revisions", "child" + std::to_string(i), {"text", "", {}});
    _exit(own ? 0 : 1);
  }
  for (int i = 0; i < 100; ++i) store("parent" + std::to_string(i), "text");
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(text_of("child" + std::to_string(i)), "text");
    EXPECT_EQ(text_of("parent" + std::to_string(i)), "text");
  }
}

TEST_F(RecordIndexTest, ListsGrowOnTop) {
  EXPECT_THAT(stored_list("projects"), IsEmpty());
  const std::vector<ListedRecord> first{listed("b", 2), listed("a", 1)};
  index_->replace_list(kSite, "projects", first);
  const std::vector<ListedRecord> newer{listed("d", 4), listed("c", 3)};
  EXPECT_TRUE(index_->extend_list(kSite, "projects", "b", newer));
  index_ = fresh();
  EXPECT_THAT(stored_list("projects"), ElementsAre(listed("d", 4), listed("c", 3), listed("b", 2), listed("a", 1)));
  EXPECT_THAT(stored_list("threads"), IsEmpty());
}

TEST_F(RecordIndexTest, AListedRecordKeepsItsPlaceAndGetsItsNewName) {
  const std::vector<ListedRecord> first{listed("b", 2), listed("a", 1, "old")};
  index_->replace_list(kSite, "projects", first);
  const std::vector<ListedRecord> again{listed("c", 3), listed("a", 1, "new")};
  EXPECT_TRUE(index_->extend_list(kSite, "projects", "b", again));
  EXPECT_THAT(stored_list("projects"), ElementsAre(listed("c", 3), listed("b", 2), listed("a", 1, "new")));
}

TEST_F(RecordIndexTest, AListedRecordKeepsTheTimeOfItsName) {
  ListedRecord bob = listed("a", 1, "bob");
  bob.named_at = WallTime{7};
  index_->replace_list(kSite, "agents", std::vector{bob});
  index_ = fresh();
  ASSERT_EQ(stored_list("agents").size(), 1U);
  EXPECT_EQ(stored_list("agents")[0].named_at, WallTime{7});
  EXPECT_EQ(index_->named_at(kSite, "agents", "a", "bob"), WallTime{7});
  EXPECT_EQ(index_->named_at(kSite, "agents", "a", "eve"), std::nullopt);
  EXPECT_EQ(index_->named_at(kSite, "agents", "b", "bob"), std::nullopt);
  EXPECT_EQ(index_->named_at(kSite, "threads", "a", "bob"), std::nullopt);
}

TEST_F(RecordIndexTest, ADamagedListIsForgottenWhole) {
  const std::vector<ListedRecord> first{listed("b", 2), listed("a", 1)};
  index_->replace_list(kSite, "projects", first);
  tamper("UPDATE listed SET name = 'wrong' WHERE id = 'a'");
  EXPECT_THAT(stored_list("projects"), IsEmpty());
  index_->replace_list(kSite, "projects", first);
  EXPECT_THAT(stored_list("projects"), ElementsAre(listed("b", 2), listed("a", 1)));
}

TEST_F(RecordIndexTest, NothingIsAddedToAListThatIsNotThereAsAWhole) {
  const std::vector<ListedRecord> first{listed("b", 2), listed("a", 1)}, newer{listed("c", 3)};
  EXPECT_FALSE(index_->extend_list(kSite, "projects", "b", newer)) << "never stored";
  index_->replace_list(kSite, "projects", first);
  RecordIndex::clear(directory_.path());
  EXPECT_FALSE(index_->extend_list(kSite, "projects", "b", newer)) << "cleared";
  EXPECT_THAT(stored_list("projects"), IsEmpty());

  index_->replace_list(kSite, "projects", first);
  EXPECT_FALSE(index_->extend_list(kSite, "projects", "elsewhere", newer)) << "what is between is not known";
  EXPECT_THAT(stored_list("projects"), ElementsAre(listed("b", 2), listed("a", 1)));

  // As an earlier version, or a faulty disk, leaves it.
  tamper("DELETE FROM listed WHERE id = 'a'");
  EXPECT_THAT(stored_list("projects"), IsEmpty());
  EXPECT_FALSE(index_->extend_list(kSite, "projects", "b", newer));
  EXPECT_THAT(stored_list("projects"), IsEmpty());
}

TEST_F(RecordIndexTest, ALongListIsWholeOnlyOnceAllOfItIsStored) {
  std::vector<ListedRecord> list;
  for (int i = 5'000; i > 0; --i) list.push_back(listed("id" + std::to_string(i), i));
  index_->replace_list(kSite, "projects", list);
  EXPECT_EQ(stored_list("projects"), list);
  tamper("DELETE FROM whole_lists");  // as if the process had died earlier
  EXPECT_THAT(stored_list("projects"), IsEmpty());
}

TEST_F(RecordIndexTest, OneOwnersRecordsAreReadWithoutThoseOfOthers) {
  std::vector<ListedRecord> list;
  for (int i = 1'000; i > 0; --i)
    list.push_back({"m" + std::to_string(i), WallTime{i}, "", "t" + std::to_string(i % 50)});
  EXPECT_TRUE(index_->replace_list(kSite, "messages", list));
  const std::uint64_t before = index_->list_rows_read();
  const auto of = index_->list_of(kSite, "messages", "m1000", "t7");
  EXPECT_EQ(index_->list_rows_read() - before, 20U);
  ASSERT_TRUE(of);
  ASSERT_EQ(of->size(), 20U);
  EXPECT_EQ(of->front(), list[1'000 - 957]);
  EXPECT_EQ(of->back(), list[1'000 - 7]);
  EXPECT_EQ(index_->list_of(kSite, "messages", "m1000", "t7", 0)->size(), 1U) << "the one that exceeds it";
  EXPECT_THAT(*index_->list_of(kSite, "messages", "m1000", "none"), IsEmpty());
  EXPECT_FALSE(index_->list_of(kSite, "messages", "m1001", "t7")) << "the caller knows what is not here";
  EXPECT_FALSE(index_->list_of(kSite, "threads", "m1000", "t7"));

  const std::vector<ListedRecord> moved{{"m1001", WallTime{1'001}, "", "t8"}, {"m957", WallTime{957}, "", "t8"}};
  EXPECT_TRUE(index_->extend_list(kSite, "messages", "m1000", moved));
  EXPECT_EQ(index_->list_of(kSite, "messages", "m1001", "t7")->size(), 19U);
  EXPECT_EQ(index_->list_of(kSite, "messages", "m1001", "t8")->size(), 22U);
  const std::vector<std::string> wanted{"m957", "nowhere"};
  EXPECT_THAT(*index_->listed(kSite, "messages", "m1001", wanted), ElementsAre(moved[1]));

  tamper("UPDATE listed SET name = 'wrong' WHERE id = 'm7'");
  EXPECT_EQ(index_->list_of(kSite, "messages", "m1001", "t8")->size(), 22U);
  EXPECT_FALSE(index_->list_of(kSite, "messages", "m1001", "t7"));
  EXPECT_THAT(stored_list("messages"), IsEmpty()) << "forgotten whole";
}

TEST_F(RecordIndexTest, OneOwnersRecordsAreFoundByTheirIndex) {
  auto opened = RecordDatabase::open(database());
  ASSERT_TRUE(opened);
  auto plan = opened->database.prepare("EXPLAIN QUERY PLAN " + RecordDatabase::owned_query());
  ASSERT_TRUE(plan);
  ASSERT_TRUE(*plan->step());
  EXPECT_THAT(std::string(plan->text(3)), HasSubstr("listed_by_owner (site=? AND collection=? AND project=?)"));
  EXPECT_FALSE(*plan->step()) << "it is sorted already";
}

TEST_F(RecordIndexTest, ADamagedIndexGivesNobodyTheRecordsOfOthers) {
  std::vector<ListedRecord> list;
  for (int i = 1'000; i > 0; --i)
    list.push_back({"m" + std::to_string(i), WallTime{i}, "", "t" + std::to_string(i % 10)});
  for (const bool verifies : {false, true}) {
    RecordIndex::clear(directory_.path());
    ASSERT_TRUE(index_->replace_list(kSite, "messages", list));
    index_.reset();
    {
      std::fstream file(database(), std::ios::in | std::ios::out | std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      // The entry of m7, the first of t7, becomes the last of t6.
      const auto at = bytes.find("messagest7\x07");
      ASSERT_NE(at, std::string::npos);
      file.clear();
      file.seekp(static_cast<std::streamoff>(at + std::string("messagest").size()));
      file << '6';
    }
    index_ = fresh();
    EXPECT_FALSE(verifies ? index_->verify().sound : index_->list_of(kSite, "messages", "m1000", "t6").has_value());
    EXPECT_FALSE(index_->list_of(kSite, "messages", "m1000", "t7")) << "forgotten whole";
  }
}

TEST_F(RecordIndexTest, AListThatGoesOnSaysSo) {
  index_->replace_list(kSite, "messages", std::vector{listed("a")}, true);
  EXPECT_TRUE(index_->extend_list(kSite, "messages", "a", std::vector{listed("b", 2)}));
  index_ = fresh();
  EXPECT_TRUE(index_->list_goes_on(kSite, "messages"));
  index_->replace_list(kSite, "messages", std::vector{listed("a")});
  EXPECT_FALSE(index_->list_goes_on(kSite, "messages"));
}

TEST_F(RecordIndexTest, TwoThatReplaceAListAtOnceLeaveOneOfTheirs) {
  std::vector<ListedRecord> list;
  for (int i = 9'000; i > 0; --i) list.push_back(listed("id" + std::to_string(i), i));
  const auto other = fresh();
  std::thread same([&] { other->replace_list(kSite, "projects", list); });
  index_->replace_list(kSite, "projects", list);
  same.join();
  EXPECT_TRUE(stored_list("projects") == list) << "in order, and without a hole";
}

TEST_F(RecordIndexTest, TruncatedFilesAreRecreated) {
  store("a", "text");
  EXPECT_FALSE(fs::exists(database() + "-shm")) << "what is mapped into memory ends the process when it is cut off";
  fs::resize_file(database(), 0);
  EXPECT_EQ(text_of("a"), "absent");
  store("a", "again");
  EXPECT_EQ(text_of("a"), "again");
  EXPECT_EQ(text_of("a"), "again");
  EXPECT_FALSE(index_->trouble());
  index_ = fresh();
  EXPECT_EQ(text_of("a"), "again");
}

TEST_F(RecordIndexTest, ADatabaseLockedByAnotherProcessIsDoneWithout) {
  store("a", "text");
  auto other = Database::open(database(), Database::Durability::none);
  ASSERT_TRUE(other);
  ASSERT_TRUE(other->execute("BEGIN EXCLUSIVE"));
  EXPECT_EQ(text_of("a"), "absent");
  ASSERT_TRUE(index_->trouble());
  EXPECT_EQ(index_->trouble()->code, ErrorCode::busy);
  store("b", "kept in memory");
  EXPECT_EQ(text_of("b"), "kept in memory");
  EXPECT_FALSE(index_->content_of(kSite, "key"));
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(text_of("a"), "absent");
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5)) << "nobody waits for each of them";

  ASSERT_TRUE(other->execute("COMMIT"));
  EXPECT_EQ(text_of("a"), "text");
  store("c", "text");
  EXPECT_FALSE(index_->trouble());
  index_ = fresh();
  EXPECT_EQ(text_of("b"), "kept in memory") << "written down later";
}

TEST_F(RecordIndexTest, RecordsOfAnEarlierVersionStayButNotItsLists) {
  for (const char* version : {"2", "3", "4"}) {
    store("a", "text");
    index_->pin("owner", kSite, "revisions", "a");
    index_->replace_list(kSite, "projects", std::vector{listed("b", 2)});
    index_ = nullptr;
    {
      auto opened = Database::open(database(), Database::Durability::normal);
      ASSERT_TRUE(
          opened->execute("DROP TABLE whole_lists; DROP INDEX listed_by_owner; "
                          "CREATE TABLE whole_lists (site TEXT NOT NULL, collection TEXT NOT NULL, "
                          "records INTEGER NOT NULL, PRIMARY KEY (site, collection)) WITHOUT ROWID; "
                          "INSERT INTO whole_lists SELECT site, collection, 1 FROM listed; "
                          "PRAGMA user_version = " +
                          std::string(version)));
    }
    index_ = fresh();
    EXPECT_EQ(text_of("a"), "text") << version;
    EXPECT_THAT(stored_list("projects"), IsEmpty()) << version;
    EXPECT_TRUE(index_->replace_list(kSite, "projects", std::vector{listed("b", 2)}));
    EXPECT_THAT(stored_list("projects"), ElementsAre(listed("b", 2))) << version;
    EXPECT_FALSE(index_->trouble());
    EXPECT_FALSE(fs::exists(database() + "-shm"));
  }
}

class LateWriting : public testing::Test {
 protected:
  std::unique_ptr<RecordIndex> open() {
    return std::move(*RecordIndex::open(directory_.path(), {.executor = &executor_}));
  }
  static void store(RecordIndex& index, const std::string& id, const std::string& text) {
    index.store_record(kSite, "revisions", id, {text, "etag", WallTime{42}});
  }
  static std::string text_of(RecordIndex& index, const std::string& id) {
    auto record = index.record(kSite, "revisions", id);
    return record ? record->text : "absent";
  }

  test::TemporaryDirectory directory_;
  test::ManualClock clock_;
  test::ManualExecutor executor_{clock_};
};

TEST_F(LateWriting, TroubleIsOverOnceTheDatabaseCanBeUsedAgainWhoeverAsks) {
  auto index = open();
  store(*index, "a", "text");
  executor_.run_due();
  auto other = Database::open(directory_ / "records.db", Database::Durability::none);
  ASSERT_TRUE(other);
  for (bool writes : {false, true}) {
    ASSERT_TRUE(other->execute("BEGIN EXCLUSIVE"));
    if (writes) index->replace_list(kSite, "projects", {});
    else EXPECT_EQ(text_of(*index, "b"), "absent");
    ASSERT_TRUE(index->trouble());
    executor_.advance(std::chrono::seconds(3));
    EXPECT_TRUE(index->trouble()) << "it is still locked";
    ASSERT_TRUE(other->execute("COMMIT"));
    executor_.advance(std::chrono::seconds(1));
    EXPECT_FALSE(index->trouble());
  }
  EXPECT_FALSE(executor_.until_next()) << "nothing is left to look for";
}

TEST_F(LateWriting, PendingWritesAreVisibleAtOnce) {
  auto index = open(), other = open();
  store(*index, "a", "first");
  store(*index, "b", "b");
  EXPECT_EQ(text_of(*index, "a"), "first");
  EXPECT_EQ(text_of(*other, "a"), "absent");
  store(*index, "a", "second");
  index->forget_record(kSite, "revisions", "b");
  EXPECT_EQ(text_of(*index, "a"), "second");
  EXPECT_EQ(text_of(*index, "b"), "absent");
  executor_.run_due();
  EXPECT_EQ(text_of(*other, "a"), "second");
  EXPECT_EQ(text_of(*other, "b"), "absent");
  EXPECT_EQ(text_of(*index, "a"), "second");
}

TEST_F(LateWriting, ForgettingIsNotOvertakenByAnEarlierStore) {
  auto index = open(), other = open();
  store(*index, "a", "first");
  executor_.run_due();
  ASSERT_EQ(text_of(*other, "a"), "first");
  store(*index, "a", "second");
  index->forget_record(kSite, "revisions", "a");
  executor_.run_due();
  EXPECT_EQ(text_of(*other, "a"), "absent");
}

TEST_F(LateWriting, ClosingWritesWhatIsPending) {
  auto index = open();
  store(*index, "a", "text");
  executor_.drop_all();
  index.reset();
  EXPECT_EQ(text_of(*open(), "a"), "text");
}

TEST_F(LateWriting, PendingWritesAreBounded) {
  auto index = open(), other = open();
  for (int i = 0; i < 500; ++i) store(*index, std::to_string(i), std::string(12'000, 't'));
  EXPECT_NE(text_of(*other, "0"), "absent") << "nobody has run the executor";
}

}  // namespace
}  // namespace playfs::cache
