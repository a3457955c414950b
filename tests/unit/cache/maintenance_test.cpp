// Size limits, checking and repairing the cache.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/sqlite.h"
#include "cache/object_eviction.h"
#include "cache/object_store.h"
#include "cache/record_index.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"

namespace playfs::cache {
namespace {

namespace fs = std::filesystem;

std::string content(int number) { return std::string(10'000, 'x') + std::to_string(number); }

class ObjectMaintenance : public testing::Test {
 protected:
  std::unique_ptr<ObjectStore> open(ObjectStoreOptions options = {}) {
    return std::move(*ObjectStore::open(path_, options));
  }
  std::string file_of(int number) const {
    const std::string hex = ContentHash::of(content(number)).hex();
    return path_ + "/" + hex.substr(0, 2) + "/" + hex.substr(2);
  }
  bool exists(int number) const { return fs::exists(file_of(number)); }
  void set_used(int number, std::chrono::hours ago) {
    fs::last_write_time(file_of(number), fs::file_time_type::clock::now() - ago);
  }
  std::uint64_t bytes() const { return measure_objects(path_)->bytes; }
  void flip_bit(int number) {
    UniqueFd fd(::open(file_of(number).c_str(), O_RDWR));
    ASSERT_TRUE(write_all_at(fd.get(), "y", 5'000));
  }

  test::TemporaryDirectory directory_;
  const std::string path_ = directory_ / "objects";
};

TEST_F(ObjectMaintenance, LeastRecentlyUsedGoesFirst) {
  auto store = open();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store->put(content(i)));
    set_used(i, std::chrono::hours(i < 5 ? 20 + i : 10 - i));  // 4 is the oldest
  }
  const std::uint64_t one = bytes() / 10;
  auto left = trim_objects(path_, 7 * one);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->objects, 7U);
  EXPECT_LE(left->bytes, 7 * one);
  for (int gone : {2, 3, 4}) EXPECT_FALSE(exists(gone)) << gone;
  for (int kept : {0, 1, 5, 6, 7, 8, 9}) EXPECT_TRUE(exists(kept)) << kept;
}

TEST_F(ObjectMaintenance, BeingReadIsAUse) {
  {
    auto store = open();
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(store->put(content(i)));
  }
  for (int i = 0; i < 4; ++i) set_used(i, std::chrono::hours(40 - i));
  ASSERT_TRUE(*open()->find(ContentHash::of(content(0))));
  ASSERT_TRUE(trim_objects(path_, bytes() / 2));
  EXPECT_TRUE(exists(0));
  EXPECT_FALSE(exists(1));
}

TEST_F(ObjectMaintenance, AnOpenObjectStaysReadable) {
  auto store = open();
  auto object = store->put(content(1));
  ASSERT_TRUE(object);
  ASSERT_TRUE(trim_objects(path_, 0));
  EXPECT_FALSE(exists(1));
  EXPECT_EQ((*object)->read(0, 100'000).value(), content(1));
}

TEST_F(ObjectMaintenance, AStoreKeepsItselfWithinItsBudget) {
  constexpr std::uint64_t budget = 200'000;
  auto store = open({.budget = budget});
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(store->put(content(i)));
    EXPECT_LE(bytes(), budget + budget / kShareBetweenTrims + 11'000);
  }
  EXPECT_TRUE(exists(199));
  EXPECT_GT(bytes(), budget / 2) << "no more goes than has to";
}

TEST_F(ObjectMaintenance, WhatAnotherProcessWroteCounts) {
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(open()->put(content(i)));
  // Starts as if it had written enough already.
  ASSERT_TRUE(open({.budget = 100'000, .written_before = 100'000})->put(content(40)));
  EXPECT_LE(bytes(), 100'000U);
}

TEST_F(ObjectMaintenance, EvictionHappensOnceAnotherProcessIsDoneWithIt) {
  constexpr std::uint64_t budget = 100'000;
  test::ManualClock clock;
  test::ManualExecutor executor(clock);
  auto store = open({.budget = budget, .executor = &executor});
  {
    UniqueFd other(::open(path_.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(store->put(content(i)));
    executor.run_due();
    EXPECT_GT(bytes(), 400'000U) << "the other one is at it";
  }
  // Nothing more is written, so deferred work must be remembered.
  executor.advance(std::chrono::minutes(1));
  EXPECT_LE(bytes(), budget);
  EXPECT_FALSE(executor.until_next()) << "and then there is nothing left to do";
}

TEST_F(ObjectMaintenance, AStoreEvictsBeforeItEnds) {
  test::ManualClock clock;
  test::ManualExecutor executor(clock);
  auto store = open({.budget = 100'000, .executor = &executor});
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(store->put(content(i)));
  executor.drop_all();  // like a command that ends
  store.reset();
  EXPECT_LE(bytes(), 100'000U);
}

TEST_F(ObjectMaintenance, SmallObjectsCountWithWhatTheyTakeOnDisk) {
  constexpr std::uint64_t budget = 20'000;
  auto store = open({.budget = budget});
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(store->put(std::to_string(i)));
    ASSERT_LE(bytes(), budget + budget / kShareBetweenTrims + 200) << i;
  }
}

TEST_F(ObjectMaintenance, AnUnreadableDirectoryIsNotEmpty) {
  auto store = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->put(content(i)));
  // No descriptor is left, as under load.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd next(::open("/", O_RDONLY | O_DIRECTORY));
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next.get()) + 2;  // one for the directory, none for a folder in it
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  auto measured = measure_objects(path_);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(measured) << measured->objects;
}

TEST_F(ObjectMaintenance, VerifyFindsDamageAndIsNoUse) {
  auto store = open();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store->put(content(i)));
    set_used(i, std::chrono::hours(30));
  }
  const auto used = fs::last_write_time(file_of(2));
  flip_bit(1);
  set_used(1, std::chrono::hours(30));
  EXPECT_TRUE(*open()->verify(ContentHash::of(content(0))));
  EXPECT_FALSE(*open()->verify(ContentHash::of(content(1))));
  EXPECT_TRUE(*open()->verify(ContentHash::of(content(2))));
  EXPECT_EQ(fs::last_write_time(file_of(2)), used);
  EXPECT_FALSE(exists(1));
  EXPECT_EQ(measure_objects(path_)->damaged, 1U);
  EXPECT_TRUE(*store->verify(ContentHash::of("never there"))) << "what is not there is not damaged";
}

TEST_F(ObjectMaintenance, ClearLeavesNothing) {
  auto store = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->put(content(i)));
  flip_bit(1);
  ASSERT_FALSE(*open()->verify(ContentHash::of(content(1))));
  ASSERT_TRUE(clear_objects(path_));
  EXPECT_EQ(measure_objects(path_)->objects, 0U);
  EXPECT_EQ(measure_objects(path_)->damaged, 0U);
  ASSERT_TRUE(store->put(content(1))) << "the store goes on";
  EXPECT_TRUE(exists(1));
}

TEST_F(ObjectMaintenance, ADirectoryThatIsNotThereIsEmpty) {
  EXPECT_EQ(measure_objects(path_)->objects, 0U);
  EXPECT_TRUE(clear_objects(path_));
}

class RecordMaintenance : public testing::Test {
 protected:
  std::unique_ptr<RecordIndex> open(std::uint64_t budget = UINT64_MAX) {
    return std::move(*RecordIndex::open(directory_.path(), {.budget = budget, .clock = &clock_}));
  }
  static void store(RecordIndex& index, int number) {
    index.store_record("site", "revisions", std::to_string(number), {std::string(12'000, 'r'), "", WallTime{1}});
  }
  static bool has(RecordIndex& index, int number) {
    return index.record("site", "revisions", std::to_string(number)).has_value();
  }

  test::TemporaryDirectory directory_;
  test::ManualClock clock_;
};

constexpr std::uint64_t kBudget = 1'000'000;

TEST_F(RecordMaintenance, RecordsStayWithinTheirBudget) {
  auto index = open(kBudget);
  for (int i = 0; i < 400; ++i) {
    clock_.advance(std::chrono::seconds(1));
    store(*index, i);
    EXPECT_LE(index->usage().bytes, kBudget + kBudget / kShareBetweenTrims + 20'000);
  }
  EXPECT_FALSE(has(*index, 0));
  EXPECT_TRUE(has(*index, 399));
  EXPECT_GT(index->usage().bytes, kBudget / 2);
}

TEST_F(RecordMaintenance, DelayedWritesCountWhenWritten) {
  test::ManualExecutor executor(clock_);
  constexpr std::uint64_t budget = 400'000;
  auto index =
      std::move(*RecordIndex::open(directory_.path(), {.budget = budget, .clock = &clock_, .executor = &executor}));
  for (int i = 0; i < 100; ++i) store(*index, i);
  executor.run_due();
  EXPECT_LE(index->usage().bytes, budget + budget / kShareBetweenTrims + 20'000);
  for (int i = 100; i < 200; ++i) store(*index, i);
  executor.drop_all();
  index.reset();
  EXPECT_LE(open()->usage().bytes, budget + budget / kShareBetweenTrims + 20'000);
}

TEST_F(RecordMaintenance, WhatIsReadOrPinnedStays) {
  auto index = open(kBudget);
  for (int i = 0; i < 10; ++i) store(*index, i);
  index->pin("another", "site", "revisions", "2");
  index->pin("owner", "site", "revisions", "3");
  index->pin("owner", "site", "revisions", "4");
  for (int i = 10; i < 400; ++i) {
    clock_.advance(std::chrono::minutes(1));
    store(*index, i);
    if (i % 12 == 0) {
      EXPECT_TRUE(has(*index, 1)) << i;
    }
  }
  EXPECT_TRUE(has(*index, 2));
  EXPECT_TRUE(has(*index, 4));
  EXPECT_FALSE(has(*index, 3)) << "4 took its place";
  EXPECT_FALSE(has(*index, 0));
}

TEST_F(RecordMaintenance, ListsGoLast) {
  auto index = open(kBudget);
  std::vector<ListedRecord> list;
  for (int i = 0; i < 20'000; ++i) list.push_back({"id-" + std::to_string(i), WallTime{i}, "a name", ""});
  index->replace_list("site", "projects", list);
  for (int i = 0; i < 20; ++i) store(*index, i);
  EXPECT_LE(index->usage().bytes, kBudget + kBudget / kShareBetweenTrims + 20'000);
  EXPECT_FALSE(index->list("site", "projects"));
}

TEST_F(RecordMaintenance, UsageAndVerify) {
  auto index = open();
  for (int i = 0; i < 5; ++i) store(*index, i);
  const RecordsUsage usage = index->usage();
  ASSERT_EQ(usage.records.size(), 1U);
  EXPECT_EQ(usage.records[0].collection, "revisions");
  EXPECT_EQ(usage.records[0].records, 5U);
  EXPECT_GT(usage.bytes, 60'000U);
  {
    auto opened = Database::open(directory_ / "records.db", Database::Durability::none);
    ASSERT_TRUE(opened->execute("UPDATE records SET text = 'other' WHERE id = '3'"));
  }
  const RecordsVerified verified = index->verify();
  EXPECT_TRUE(verified.sound);
  EXPECT_EQ(verified.checked, 5U);
  EXPECT_EQ(verified.damaged, 1U);
  EXPECT_FALSE(has(*index, 3));
  EXPECT_EQ(index->verify().damaged, 0U);
}

TEST_F(RecordMaintenance, ClearingUnderAnIndexThatIsOpen) {
  auto index = open();
  store(*index, 1);
  RecordIndex::clear(directory_.path());
  EXPECT_FALSE(has(*index, 1));
  store(*index, 2);
  EXPECT_TRUE(has(*open(), 2));
}

}  // namespace
}  // namespace playfs::cache
