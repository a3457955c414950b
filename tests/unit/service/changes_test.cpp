// What a store says has changed, and how that is printed.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "changes_fixture.h"
#include "service/change_feed.h"
#include "service/sqlite_maintenance.h"
#include "support/manual_time.h"

namespace playfs::service {
namespace {

TEST_F(ChangesTest, EachRecordIsThereOnceAtItsLatestChange) {
  EXPECT_EQ(store->newest_change(), Position(0));
  const auto a = add(*store), b = add(*store, "threads"), c = add(*store, "messages", b.id);
  EXPECT_EQ(ids(*store), (Ids{a.id, b.id, c.id}));
  const Position before = *store->newest_change();
  const auto changed = touch(*store, a);
  EXPECT_EQ(ids(*store), (Ids{b.id, c.id, a.id}));
  EXPECT_EQ(ids(*store, before), Ids{a.id});
  EXPECT_EQ(ids(*store, 0, 2), (Ids{b.id, c.id}));
  const auto last = store->changes(before, 1)->front();
  EXPECT_EQ(last.updated_at, changed.updated_at);
  EXPECT_EQ(last.number, store->newest_change());
  EXPECT_EQ(last.belongs_to, "");
  const auto middle = store->changes(0, 2)->back();
  EXPECT_EQ(middle.collection, "messages");
  EXPECT_EQ(middle.belongs_to, b.id);
}

TEST_F(ChangesTest, NumbersGrowAndAreNotGivenTwice) {
  std::set<Position> given;
  auto record = add(*store);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(given.insert(*store->newest_change()).second);
    EXPECT_EQ(*given.rbegin(), *store->newest_change());
    record = touch(*store, record);  // the record with the highest number loses it
    if (i % 5 == 0) store = open();
  }
}

TEST_F(ChangesTest, ChunksAreLeftOut) {
  add(*store);
  const Position before = *store->newest_change();
  const auto chunk = add(*store, "file_chunks");
  touch(*store, chunk, "file_chunks");
  EXPECT_EQ(store->newest_change(), before);
  EXPECT_EQ(ids(*store, before), Ids{});
}

TEST_F(ChangesTest, AFailedWriteTakesNoNumber) {
  Charge none{"b", 0, std::chrono::hours(1), "nothing"};
  EXPECT_FALSE(store->insert({"messages", {"{}", {}}, {}, {}, none}));
  EXPECT_EQ(store->newest_change(), Position(0));
  const auto a = add(*store);
  EXPECT_FALSE(store->replace("messages", a, {"{}", {}}, none));
  EXPECT_EQ(store->newest_change(), Position(1));
}

/// Whoever follows by number misses nothing, however many write: no change appears behind one that was seen.
TEST_F(ChangesTest, NoChangeAppearsBehindANewerOne) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  std::mutex mutex;
  std::set<std::string> written;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, own = std::shared_ptr<SqliteStore>(open())] {
      for (int i = 0; i < 50; ++i) {
        auto record = add(*own);
        if (i % 3 == 0) touch(*own, record);
        std::lock_guard lock(mutex);
        written.insert(record.id);
      }
    });
  std::thread follower([&] {
    std::set<std::string> seen;
    Position at = 0;
    for (bool last = false; !last;) {
      last = stop;
      for (auto changes = store->changes(at, 7); changes && !changes->empty(); changes = store->changes(at, 7))
        for (const Change& each : *changes) at = each.number, seen.insert(each.id);
    }
    EXPECT_EQ(seen, written);
  });
  for (auto& writer : writers) writer.join();
  stop = true;
  follower.join();
}

TEST_F(ChangesTest, AStoreOfVersion5IsBroughtUpToDate) {
  const auto a = add(*store), b = add(*store, "threads");
  add(*store, "file_chunks");
  const auto c = add(*store);
  store.reset();
  {
    auto database = Database::open(directory / "s.db", Database::Durability::normal);
    ASSERT_TRUE(database);
    ASSERT_TRUE(
        database->execute("ALTER TABLE site DROP COLUMN closed; DROP INDEX records_by_change;"
                          "ALTER TABLE records DROP COLUMN changed; PRAGMA user_version = 5"));
  }
  EXPECT_EQ(check_store(directory / "s.db").error().code, ErrorCode::not_supported);
  store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ(ids(*store), (Ids{a.id, b.id, c.id}));
  const auto d = add(*store);
  EXPECT_EQ(ids(*store), (Ids{a.id, b.id, c.id, d.id}));
  touch(*store, a);
  EXPECT_EQ(ids(*store), (Ids{b.id, c.id, d.id, a.id}));
  EXPECT_EQ(check_store(directory / "s.db"), 5u);
}

TEST_F(ChangesTest, ACursorIsKnownUntilTheStoreIsPutBackToACopy) {
  const std::string path = directory / "p.db", copy = directory / "copy.db";
  test::ManualClock time;
  auto begin = [&] { store = *SqliteStore::open(path, Database::Durability::normal, time, random); };
  auto known = [&](const ChangeCursor& cursor) { return *is_known(*store, cursor); };
  auto change_of = [&](Position number) { return store->changes(number - 1, 1)->front(); };
  begin();
  const auto a = add(*store), b = add(*store);
  touch(*store, a);
  const auto before = *newest_cursor(*store);
  EXPECT_EQ(before.number, 3);
  EXPECT_TRUE(known(before));
  EXPECT_TRUE(known({store->site_id(), 1}));
  EXPECT_FALSE(known({store->site_id(), 4}));
  EXPECT_FALSE(known({"another", 1}));
  touch(*store, *store->get("messages", a.id));
  EXPECT_TRUE(known(before)) << "its record has changed again";

  store.reset();
  std::filesystem::copy_file(path, copy);
  begin();
  for (int i = 0; i < 3; ++i) add(*store);
  const auto last = *newest_cursor(*store);
  EXPECT_EQ(last.number, 7);
  store.reset();
  std::filesystem::rename(copy, path);
  begin();
  EXPECT_FALSE(known(last));
  time.advance(std::chrono::minutes(10));
  for (int i = 0; i < 5; ++i) add(*store);
  EXPECT_FALSE(known(last)) << "its number was given again";
  touch(*store, *store->get("messages", change_of(7).id));
  ASSERT_NE(change_of(7).number, 7);
  EXPECT_FALSE(known(last)) << "and is gone";
  EXPECT_TRUE(known(before)) << "from before the copy";
  EXPECT_TRUE(known(*newest_cursor(*store)));
}

TEST(ChangeCursor, OnlyWhatWasPrintedIsParsed) {
  for (const std::optional<WallTime> time :
       {std::optional<WallTime>(), std::optional(WallTime{1'700'000'000'000'001'000})}) {
    const auto parsed = parse_change_cursor(print_change_cursor({"0f-9z", 17, time}));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->site_id, "0f-9z");
    EXPECT_EQ(parsed->number, 17);
    EXPECT_EQ(parsed->changed_at, time);
  }
  for (std::string bad : {"",
                          ".",
                          "a",
                          "a.",
                          ".1",
                          "a.-1",
                          "a.+1",
                          "a.01",
                          "a.1 ",
                          "a.1.",
                          "a.1.x",
                          "a.1.-1",
                          "a.1.01",
                          "a.1.1.1",
                          "a.1.9223372036854775807",
                          "A.1",
                          "a/b.1",
                          "a\n.1",
                          "a.99999999999999999999",
                          "p1f"})
    EXPECT_FALSE(parse_change_cursor(bad)) << bad;
  EXPECT_FALSE(parse_change_cursor(std::string(65, 'a') + ".1"));
}

TEST(PrintedChange, IsOneEventWhateverTheRecordBelongsTo) {
  EXPECT_EQ(print_change("s", {7, "messages", "m1", WallTime{0}, "t1"}),
            "id: s.7.0\nevent: change\ndata: {\"collection\":\"messages\",\"id\":\"m1\","
            "\"updated_at\":\"1970-01-01T00:00:00.000000Z\",\"thread\":\"t1\"}\n\n");
  EXPECT_NE(print_change("s", {7, "revisions", "r", WallTime{0}, "p"}).find("\"project\":\"p\""), std::string::npos);
  EXPECT_EQ(print_change("s", {7, "threads", "t", WallTime{0}, ""}).find("thread\":"), std::string::npos);
  const std::string hostile = print_change("s", {7, "messages", "m", WallTime{0}, "x\"\n\r\n\nid: s.9\nevent: reset"});
  EXPECT_EQ(std::count(hostile.begin(), hostile.end(), '\n'), 4);
  EXPECT_EQ(std::count(hostile.begin(), hostile.end(), '\r'), 0);
}

}  // namespace
}  // namespace playfs::service
