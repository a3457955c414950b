// What a list costs those who want one thread's messages: rows read, requests, and whom a change concerns.
#include <gmock/gmock.h>

#include "base/sqlite.h"
#include "fixture.h"

namespace playfs::content {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr int kThreads = 200, kEach = 20;

class OwnedListsTest : public SiteTest {
 protected:
  OwnedListsTest() {
    record_options_.executor = &executor_;  // a transaction for each page, not for each record
    restart();
  }
  void put(const std::string& id, const std::string& thread) { service_.put("messages", id, {{"thread", thread}}); }
  void put_all() {
    for (int i = 0; i < kThreads * kEach; ++i) put("m" + std::to_string(i), "t" + std::to_string(i % kThreads));
  }
  void update() {
    bool is_done = false;
    site_->update_list("messages", {}, [&](const Result<void>& updated) { is_done = updated.has_value(); });
    run();
    ASSERT_TRUE(is_done);
  }
  /// A process that finds a filled cache.
  void begin() {
    put_all();
    update();
    begin_again();
  }
  void begin_again() {
    restart();
    site_->on_list_changed([this](const std::string&, const ListChange& change) { changes_.push_back(change); });
    update();
    changes_.clear();
    service_.forget_requests();
  }
  static std::vector<std::string> ids(const ListPtr& list) {
    std::vector<std::string> ids;
    if (list)
      for (const Listed& item : *list) ids.push_back(item.id);
    return ids;
  }
  std::vector<std::string> of(const std::string& thread) { return ids(site_->try_list_of("messages", thread)); }
  std::vector<std::string> as_if_whole(const std::string& thread) {
    std::vector<std::string> ids;
    const ListPtr all = site_->try_list("messages");
    for (const Listed& item : *all)
      if (item.project == thread) ids.push_back(item.id);
    return ids;
  }
  /// Another process's connection.
  Database database() { return std::move(*Database::open(directory_ / "records.db", Database::Durability::none)); }
  /// As on a full disk: lists can be read, but not written.
  void refuse_writes() {
    ASSERT_TRUE(database().execute(
        "CREATE TRIGGER listed_full BEFORE INSERT ON listed BEGIN SELECT RAISE(FAIL, 'full'); END;"
        "CREATE TRIGGER whole_full BEFORE INSERT ON whole_lists BEGIN SELECT RAISE(FAIL, 'full'); END"));
  }
  std::uint64_t rows_of(const std::function<void()>& work) {
    const std::uint64_t before = records_->list_rows_read();
    work();
    return records_->list_rows_read() - before;
  }

  std::vector<ListChange> changes_;
};

TEST_F(OwnedListsTest, AThreadCostsItsOwnRows) {
  begin();
  EXPECT_EQ(rows_of([&] { EXPECT_EQ(of("t7").size(), std::size_t{kEach}); }), kEach);
  EXPECT_EQ(rows_of([&] { EXPECT_EQ(of("t7").size(), std::size_t{kEach}); }), 0U) << "they are kept";
  EXPECT_EQ(rows_of([&] { EXPECT_THAT(of("none"), IsEmpty()); }), 0U);
  put("new", "t7");
  EXPECT_EQ(rows_of([&] {
              update();
              EXPECT_EQ(of("t7").front(), "new");
            }),
            kEach + 1);
  EXPECT_EQ(service_.requests(), 1);
  EXPECT_EQ(of("t7"), as_if_whole("t7"));
}

TEST_F(OwnedListsTest, AnUpdateAfterARestartLoadsAPartOfTheList) {
  begin();
  restart();
  EXPECT_EQ(records_->list_rows_read(), 0U);
  const std::uint64_t rows = rows_of([&] { update(); });
  EXPECT_LT(rows, std::uint64_t{kThreads * kEach * 3 / 4});
  EXPECT_EQ(service_.requests(), 1);
  EXPECT_EQ(site_->try_list("messages")->size(), std::size_t{kThreads * kEach}) << "all of it is there if wanted";
  EXPECT_EQ(ids(site_->try_list("messages")).back(), "m0");
}

TEST_F(OwnedListsTest, AChangeConcernsItsThreadsOnly) {
  begin();
  const ListPtr other = site_->try_list_of("messages", "t8");
  EXPECT_THAT(of("t7"), Not(IsEmpty()));
  put("new", "t7");
  update();
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_FALSE(changes_[0].is_any);
  EXPECT_THAT(changes_[0].owners, ElementsAre("t7"));
  EXPECT_EQ(of("t7").front(), "new");
  EXPECT_EQ(site_->try_list_of("messages", "t8"), other) << "not even looked up again";
  update();
  EXPECT_EQ(changes_.size(), 1U) << "nothing is new";
}

TEST_F(OwnedListsTest, AMessageMovesBetweenThreads) {
  begin();
  put("new", "t7");
  update();
  EXPECT_THAT(of("t8"), Not(IsEmpty()));
  changes_.clear();
  put("new", "t8");
  update();
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_FALSE(changes_[0].is_any);
  EXPECT_THAT(changes_[0].owners, ElementsAre("t7", "t8"));
  EXPECT_EQ(of("t8").front(), "new");
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  begin_again();
  EXPECT_EQ(of("t8").front(), "new");
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
}

TEST_F(OwnedListsTest, AnOldMessageMovesThoughOnlyAPartIsLoaded) {
  begin();
  EXPECT_EQ(of("t0").back(), "m0");
  EXPECT_THAT(of("t1"), Not(IsEmpty()));
  EXPECT_LE(rows_of([&] {
              site_->relearn(
                  "messages",
                  Record{"m0", "2023-11-14T22:13:21Z", "2026-01-01T00:00:00Z", "active", {{"thread", "t1"}}});
            }),
            1U);
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_THAT(changes_[0].owners, ElementsAre("t0", "t1"));
  EXPECT_EQ(of("t0").back(), "m200");
  EXPECT_EQ(of("t1").back(), "m0") << "in its place";
  EXPECT_EQ(of("t1"), as_if_whole("t1"));
}

TEST_F(OwnedListsTest, AnOldMessageMovesThoughAnotherProcessStoredThatFirst) {
  const Record moved{"m0", "2023-11-14T22:13:21Z", "2026-01-01T00:00:00Z", "active", {{"thread", "t1"}}};
  const std::vector<Listed> stored{
      {"m0", *parse_iso8601(moved.created_at), "", "t1", "", *parse_iso8601(moved.updated_at)}};
  for (const bool old_is_known : {true, false}) {
    begin();
    begin_again();  // what the first one has stored
    const auto other = std::move(*cache::RecordIndex::open(directory_.path()));
    if (old_is_known) {
      EXPECT_EQ(of("t0").back(), "m0");
    }
    EXPECT_EQ(of("t1").back(), "m1");
    ASSERT_TRUE(other->extend_list(client_->site(), "messages", "m1", stored));
    site_->relearn("messages", moved);
    ASSERT_EQ(changes_.size(), 1U);
    EXPECT_TRUE(changes_[0].touches("t1"));
    EXPECT_EQ(changes_[0].touches("t0"), old_is_known);
    EXPECT_EQ(of("t0").back(), "m200");
    EXPECT_EQ(of("t1").back(), "m0");
    site_->relearn("messages", moved);
    EXPECT_EQ(changes_.size(), 1U) << "nothing is new";
    cache::RecordIndex::clear(directory_.path());
  }
}

TEST_F(OwnedListsTest, WhatAnotherProcessHasMovedIsToldWhenTheRestIsLoaded) {
  const Record moved{"m0", "2023-11-14T22:13:21Z", "2026-01-01T00:00:00Z", "active", {{"thread", "t1"}}};
  const std::vector<Listed> stored{
      {"m0", *parse_iso8601(moved.created_at), "", "t1", "", *parse_iso8601(moved.updated_at)}};
  begin();
  EXPECT_EQ(of("t0").back(), "m0");
  EXPECT_EQ(of("t1").back(), "m1");
  EXPECT_THAT(of("t7"), Not(IsEmpty()));
  const auto other = std::move(*cache::RecordIndex::open(directory_.path()));
  ASSERT_TRUE(other->extend_list(client_->site(), "messages", "m1", stored));
  ASSERT_TRUE(site_->try_list("messages"));
  run();
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_FALSE(changes_[0].is_any);
  EXPECT_THAT(changes_[0].owners, ElementsAre("t0", "t1"));
  EXPECT_EQ(of("t0").back(), "m200");
  EXPECT_EQ(of("t1").back(), "m0");
  site_->relearn("messages", moved);
  EXPECT_EQ(changes_.size(), 1U) << "nothing is new";
}

TEST_F(OwnedListsTest, AThreadThatWasReadLongAgoIsToldThoughAnotherProcessStoredItsChangeFirst) {
  // More than is kept of what was given out.
  constexpr int kMany = 300, kOfEach = 100;
  std::vector<Listed> all;
  for (int i = 0; i < kMany * kOfEach; ++i)
    all.push_back({"m" + std::to_string(i) + std::string(120, '-'), WallTime{(1'800'000'000LL - i) * 1'000'000'000}, "",
                   "t" + std::to_string(i / kOfEach), std::string(60, 'k')});
  ASSERT_TRUE(records_->replace_list(client_->site(), "messages", all));
  service_.put("messages", all.front().id, {{"thread", "t0"}});
  begin_again();
  const std::string oldest = "t" + std::to_string(kMany - 1);
  EXPECT_EQ(of(oldest).back(), all.back().id);
  EXPECT_THAT(of("t1"), Not(IsEmpty()));
  for (int i = 2; i < kMany - 1; ++i) EXPECT_THAT(of("t" + std::to_string(i)), Not(IsEmpty()));
  EXPECT_EQ(rows_of([&] { EXPECT_EQ(of("t290").size(), std::size_t{kOfEach}); }), 0U);

  Listed moved = all.back();
  moved.project = "t290";
  moved.updated_at = *parse_iso8601("2026-01-01T00:00:00Z");
  const auto other = std::move(*cache::RecordIndex::open(directory_.path()));
  ASSERT_TRUE(other->extend_list(client_->site(), "messages", all[1].id, std::span(&moved, 1)));
  site_->relearn("messages", Record{moved.id,
                                    format_iso8601(moved.created_at),
                                    "2026-01-01T00:00:00Z",
                                    "active",
                                    {{"thread", "t290"}, {"kind", moved.kind}}});
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_FALSE(changes_[0].is_any);
  EXPECT_TRUE(changes_[0].touches(oldest));
  EXPECT_TRUE(changes_[0].touches("t290"));
  EXPECT_FALSE(changes_[0].touches("t280")) << "what is known not to have changed";
  EXPECT_EQ(of(oldest).size(), std::size_t{kOfEach - 1});
}

TEST_F(OwnedListsTest, OlderPagesAreComparedWithWhatIsOnDisk) {
  begin();
  put("m0", "t1");
  for (int i = 0; i <= kThreads * kEach / 100; ++i) {
    site_->names_were_shown("messages");
    run();
    advance(std::chrono::minutes(1));
  }
  EXPECT_EQ(of("t1").back(), "m0");
  EXPECT_EQ(of("t0").back(), "m200");
}

TEST_F(OwnedListsTest, WhatWeCreatedIsThereAtOnceButHasNoPlaceYet) {
  begin();
  put("own", "t7");
  site_->learn("messages", Record{"own", "2026-01-01T00:00:00Z", "", "active", {{"thread", "t7"}}});
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_THAT(changes_[0].owners, ElementsAre("t7"));
  EXPECT_EQ(of("t7").front(), "own");
  EXPECT_EQ(ids(site_->try_list_of_as_read("messages", "t7")).size(), std::size_t{kEach});
  EXPECT_EQ(of("t8").size(), std::size_t{kEach});
  update();
  EXPECT_EQ(of("t7").size(), std::size_t{kEach + 1}) << "once";
  EXPECT_EQ(of("t7"), ids(site_->try_list_of_as_read("messages", "t7")));
}

TEST_F(OwnedListsTest, WhatAnotherProcessStoredFirstIsNewsAllTheSame) {
  begin();
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  put("new", "t7");
  const auto other = std::move(*cache::RecordIndex::open(directory_.path()));
  const Listed newer{"new", WallTime{1'700'000'000'000'000'000 + (kThreads * kEach + 1) * 1'000'000'000LL}, "", "t7"};
  ASSERT_TRUE(other->extend_list(client_->site(), "messages", "m" + std::to_string(kThreads * kEach - 1),
                                 std::span(&newer, 1)));
  EXPECT_EQ(of("t7").size(), std::size_t{kEach}) << "what we know";
  update();
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_THAT(changes_[0].owners, ElementsAre("t7"));
  EXPECT_EQ(of("t7").size(), std::size_t{kEach + 1});
  EXPECT_EQ(of("t7").front(), "new");
}

TEST_F(OwnedListsTest, APartWhoseRestIsLostIsReadAnew) {
  begin();
  cache::RecordIndex::clear(directory_.path());
  EXPECT_FALSE(site_->try_list_of("messages", "t7")) << "a thread with a hole is not shown";
  update();
  EXPECT_EQ(service_.requests(), kThreads * kEach / 100);
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});

  begin_again();
  cache::RecordIndex::clear(directory_.path());
  put("new", "t7");
  update();
  EXPECT_EQ(of("t7").size(), std::size_t{kEach + 1});

  begin_again();
  cache::RecordIndex::clear(directory_.path());
  Answer<ListPtr> all;
  site_->list("messages", {}, all.callback());
  run();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((*all)->size(), std::size_t{kThreads * kEach + 1});
}

TEST_F(OwnedListsTest, WithoutTheDiskItIsInMemory) {
  begin();
  ASSERT_TRUE(site_->try_list("messages"));
  auto locked = Database::open(directory_ / "records.db", Database::Durability::none);
  ASSERT_TRUE(locked && locked->execute("BEGIN EXCLUSIVE"));
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  put("new", "t7");
  update();
  EXPECT_EQ(of("t7").front(), "new");
  EXPECT_EQ(of("t7").size(), std::size_t{kEach + 1});
  ASSERT_TRUE(locked->execute("COMMIT"));
  put("newer", "t8");
  update();
  EXPECT_EQ(of("t8").front(), "newer");
  EXPECT_EQ(of("t7").front(), "new") << "what was not stored then is stored now";
  begin_again();
  EXPECT_EQ(of("t7").front(), "new");
}

TEST_F(OwnedListsTest, APartGoesOnInMemoryIfNothingCanBeStored) {
  begin();
  refuse_writes();
  for (std::size_t news = 1; news <= 2; ++news) {
    put("new" + std::to_string(news), "t7");
    update();
    EXPECT_EQ(of("t7").front(), "new" + std::to_string(news));
    EXPECT_EQ(of("t7").size(), kEach + news);
    EXPECT_EQ(of("t8").size(), std::size_t{kEach});
    EXPECT_EQ(site_->try_list("messages")->size(), kThreads * kEach + news);
  }
  EXPECT_EQ(service_.requests(), 2) << "the rest comes from the disk";
}

TEST_F(OwnedListsTest, AnOldMessageMovesThoughNothingCanBeStored) {
  begin();
  refuse_writes();
  EXPECT_EQ(of("t0").back(), "m0");
  site_->relearn("messages",
                 Record{"m0", "2023-11-14T22:13:21Z", "2026-01-01T00:00:00Z", "active", {{"thread", "t1"}}});
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_THAT(changes_[0].owners, ElementsAre("t0", "t1"));
  EXPECT_EQ(of("t0").back(), "m200");
  EXPECT_EQ(of("t1").back(), "m0");
  EXPECT_EQ(service_.requests(), 0);
}

TEST_F(OwnedListsTest, APartWhoseRestIsDamagedIsReadAnewThoughNothingCanBeStored) {
  begin();
  refuse_writes();
  ASSERT_TRUE(database().execute("DELETE FROM listed WHERE id = 'm1'"));
  put("new", "t7");
  update();
  EXPECT_EQ(of("t7").front(), "new");
  EXPECT_EQ(ids(site_->try_list("messages")), [&] {
    std::vector<std::string> all{"new"};
    for (int i = kThreads * kEach; i > 0; --i) all.push_back("m" + std::to_string(i - 1));
    return all;
  }());
  service_.forget_requests();
  put("newer", "t7");
  update();
  EXPECT_EQ(of("t7").front(), "newer");
  EXPECT_EQ(service_.requests(), 1);
}

TEST_F(OwnedListsTest, AListThatIsReadAgainConcernsEverybody) {
  begin();
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  cache::RecordIndex::clear(directory_.path());
  put("new", "t7");
  update();
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_TRUE(changes_[0].is_any);
  EXPECT_EQ(of("t7").front(), "new");
}

TEST_F(OwnedListsTest, AListThatAnotherProcessHasReadAgainConcernsEverybody) {
  begin();
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  cache::RecordIndex::clear(directory_.path());
  EXPECT_FALSE(site_->try_list_of("messages", "t8"));
  const auto other = std::move(*cache::RecordIndex::open(directory_.path()));
  const std::vector<Listed> now{{"other", WallTime{1}, "", "t7"}};
  ASSERT_TRUE(other->replace_list(client_->site(), "messages", now));
  EXPECT_THAT(of("t7"), ElementsAre("other"));
  run();
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_TRUE(changes_[0].is_any);
}

TEST_F(OwnedListsTest, WhatIsLockedIsNotLost) {
  begin();
  auto locked = database();
  ASSERT_TRUE(locked.execute("BEGIN EXCLUSIVE"));
  EXPECT_FALSE(site_->try_list_of("messages", "t7"));
  EXPECT_FALSE(site_->try_list("messages"));
  ASSERT_TRUE(locked.execute("COMMIT"));
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  update();
  EXPECT_EQ(service_.requests(), 1);
  EXPECT_THAT(changes_, IsEmpty());

  restart();
  service_.forget_requests();
  ASSERT_TRUE(locked.execute("BEGIN EXCLUSIVE"));
  site_->update_list("messages", {}, [](const Result<void>&) {});
  run();
  EXPECT_EQ(service_.requests(), 0) << "it waits rather than read all";
  ASSERT_TRUE(locked.execute("COMMIT"));
  advance(std::chrono::seconds(1));
  EXPECT_EQ(service_.requests(), 1);
}

TEST_F(OwnedListsTest, WhatIsLockedIsWaitedForAndThenReadWithoutTheDisk) {
  begin();
  auto locked = database();
  ASSERT_TRUE(locked.execute("BEGIN EXCLUSIVE"));
  EXPECT_FALSE(site_->try_list_of("messages", "t7"));
  bool is_done = false;
  site_->update_list("messages", {}, [&](const Result<void>& updated) { is_done = updated.has_value(); });
  run();
  advance(std::chrono::milliseconds(300));
  EXPECT_EQ(service_.requests(), 0) << "whoever asks for what is locked does not ask the service instead";
  ASSERT_TRUE(locked.execute("COMMIT"));
  advance(std::chrono::milliseconds(100));
  EXPECT_TRUE(is_done);
  EXPECT_EQ(service_.requests(), 1);
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  EXPECT_THAT(changes_, IsEmpty());

  begin_again();
  ASSERT_TRUE(locked.execute("BEGIN EXCLUSIVE"));
  EXPECT_FALSE(site_->try_list_of("messages", "t7"));
  site_->update_list("messages", {}, [](const Result<void>&) {});
  for (int i = 0; i < 40; ++i) advance(std::chrono::milliseconds(50));
  EXPECT_EQ(of("t7").size(), std::size_t{kEach}) << "locked for longer: it is read anew";
  EXPECT_EQ(service_.requests(), kThreads * kEach / 100);
  ASSERT_TRUE(locked.execute("COMMIT"));
}

TEST_F(OwnedListsTest, AServiceWithOtherRecordsConcernsEverybody) {
  begin();
  EXPECT_EQ(of("t7").size(), std::size_t{kEach});
  for (int i = 0; i < kThreads * kEach; ++i) service_.remove("messages", "m" + std::to_string(i));
  put("restored", "t7");
  update();
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_TRUE(changes_[0].is_any);
  EXPECT_THAT(of("t7"), ElementsAre("restored"));
  EXPECT_THAT(of("t8"), IsEmpty());
}

TEST_F(OwnedListsTest, AListThatIsCutSaysSoAfterARestart) {
  SiteOptions options;
  options.list_bytes = 450 << 10;
  restart(options);
  put_all();
  update();
  EXPECT_FALSE(site_->is_list_whole("messages"));
  restart(options);
  update();
  EXPECT_FALSE(site_->is_list_whole("messages"));
  EXPECT_LT(of("t7").size(), std::size_t{kEach});
  EXPECT_EQ(of("t7"), as_if_whole("t7"));
}

}  // namespace
}  // namespace playfs::content
