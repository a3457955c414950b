#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "fixture.h"
#include "service/sqlite_maintenance.h"

namespace playfs::service {
namespace {

class StoreTest : public testing::Test {
 protected:
  Result<std::unique_ptr<SqliteStore>> open() {
    return SqliteStore::open(directory / "s.db", Database::Durability::normal, clock, random);
  }

  /// Runs `work` in `count` processes at once, each with a store that it opened, and its number.
  template <class Work>
  void in_processes(int count, Work work) {
    std::vector<pid_t> children;
    for (int i = 0; i < count; ++i) {
      pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        auto store = open();
        if (!store) fprintf(stderr, "open: %s\n", store.error().message.c_str());
        _exit(store && work(**store, i) ? 0 : 1);
      }
      children.push_back(child);
    }
    for (pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
  }

  static std::vector<StoredRecord> everything(Store& store, const std::string& collection) {
    std::vector<StoredRecord> all;
    for (Position before = kNewest;;) {
      auto page = store.list(collection, 7, before);
      EXPECT_TRUE(page);
      if (!page) return all;
      for (auto& record : page->records) all.push_back(std::move(record));
      if (!page->next) return all;
      before = *page->next;
    }
  }

  static void expect_in_order(const std::vector<StoredRecord>& newest_first) {
    for (std::size_t i = 1; i < newest_first.size(); ++i)
      EXPECT_GT(newest_first[i - 1].created_at, newest_first[i].created_at) << i;
  }

  test::TemporaryDirectory directory;
  SystemClock clock;
  SystemRandom random;
};

NewRecord message(std::string fields = "{}", std::string request_key = {}) {
  return {"messages", {std::move(fields), {}}, {}, std::move(request_key), std::nullopt};
}

TEST_F(StoreTest, ProcessesThatOpenAFreshStoreTogetherAllInsert) {
  in_processes(6, [](Store& store, int) {
    for (int i = 0; i < 20; ++i)
      if (!store.insert(message())) return false;
    return true;
  });
  auto store = open();
  ASSERT_TRUE(store);
  auto all = everything(**store, "messages");
  EXPECT_EQ(all.size(), 120u);
  expect_in_order(all);
}

TEST_F(StoreTest, ARequestKeyCreatesOneRecordHoweverManyRace) {
  ASSERT_TRUE(open());
  in_processes(3, [](Store& store, int) {
    std::atomic<bool> good = true;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 10; ++i)
          if (!store.insert(message("{}", "key" + std::to_string(i)))) good = false;
      });
    for (auto& thread : threads) thread.join();
    return good.load();
  });
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ(everything(**store, "messages").size(), 10u);
}

TEST_F(StoreTest, PagingWhileOthersInsertMissesAndDoublesNothing) {
  auto store = open();
  ASSERT_TRUE(store);
  std::set<std::string> at_start;
  for (int i = 0; i < 200; ++i) {
    auto inserted = (*store)->insert(message());
    ASSERT_TRUE(inserted);
    at_start.insert(inserted->id);
  }
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) ASSERT_TRUE((*store)->insert(message()));
  });
  for (int round = 0; round < 5; ++round) {
    auto all = everything(**store, "messages");
    expect_in_order(all);
    std::set<std::string> seen;
    for (const auto& record : all) EXPECT_TRUE(seen.insert(record.id).second);
    EXPECT_TRUE(std::includes(seen.begin(), seen.end(), at_start.begin(), at_start.end()));
  }
  stop = true;
  writer.join();
}

TEST_F(StoreTest, NoReaderEverSeesARecordAppearBehindANewerOne) {
  ASSERT_TRUE(open());
  auto store = open();
  ASSERT_TRUE(store);
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    std::vector<std::string> before;
    while (!stop) {
      std::vector<std::string> now;
      for (const auto& record : everything(**store, "messages")) now.push_back(record.id);
      std::reverse(now.begin(), now.end());  // oldest first: earlier records stay a prefix
      ASSERT_GE(now.size(), before.size());
      ASSERT_TRUE(std::equal(before.begin(), before.end(), now.begin()));
      before = std::move(now);
    }
  });
  std::vector<std::unique_ptr<SqliteStore>> stores;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    auto opened = open();
    ASSERT_TRUE(opened);
    stores.push_back(*std::move(opened));
  }
  for (auto& writing : stores)
    writers.emplace_back([&writing] {
      for (int i = 0; i < 50; ++i) ASSERT_TRUE(writing->insert(message()));
    });
  for (auto& thread : writers) thread.join();
  stop = true;
  reader.join();
}

TEST_F(StoreTest, AFailedWriteLeavesOthersInItsGroupAlone) {
  auto store = open();
  ASSERT_TRUE(store);
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        if (t % 2 == 0) {
          EXPECT_TRUE((*store)->insert(message()));
        } else {
          auto replaced = (*store)->replace("messages", {"none", {}, {}, {}, {}, {}}, {"{}", {}}, std::nullopt);
          refused += !replaced && replaced.error().code == ErrorCode::not_found;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(refused, 80);
  EXPECT_EQ(everything(**store, "messages").size(), 80u);
}

TEST_F(StoreTest, ReplaceRefusesAStaleRead) {
  auto store = open();
  ASSERT_TRUE(store);
  auto first = (*store)->insert(message(R"({"a":1})"));
  ASSERT_TRUE(first);
  auto second = (*store)->replace("messages", *first, {R"({"a":2})", {}}, std::nullopt);
  ASSERT_TRUE(second && *second);
  EXPECT_GT((*second)->updated_at, first->updated_at);
  auto stale = (*store)->replace("messages", *first, {R"({"a":3})", {}}, std::nullopt);
  ASSERT_TRUE(stale);
  EXPECT_FALSE(*stale);
  EXPECT_EQ((*store)->get("messages", first->id)->fields, R"({"a":2})");
}

TEST_F(StoreTest, TheIndexOfWhatBelongsTogetherFollowsEveryChange) {
  auto store = open();
  ASSERT_TRUE(store);
  auto add = [&](const std::string& whole) {
    return *(*store)->insert({"messages", {"{}", whole}, {}, {}, std::nullopt});
  };
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    expected.insert(expected.begin(), add("a").id);
    add("b");
    add("");
  }
  ASSERT_TRUE((*store)->insert({"revisions", {"{}", "a"}, {}, {}, std::nullopt}));
  auto arrived = add("b"), left = add("a");
  ASSERT_TRUE((*store)->replace("messages", arrived, {"{}", "a"}, std::nullopt));
  ASSERT_TRUE((*store)->replace("messages", left, {"{}", ""}, std::nullopt));
  expected.insert(expected.begin(), arrived.id);

  std::vector<std::string> seen;
  for (Position before = kNewest;;) {
    auto page = (*store)->list_parts("messages", "a", 6, before);
    ASSERT_TRUE(page);
    for (const auto& record : page->records) seen.push_back(record.id);
    if (!page->next) break;
    EXPECT_EQ(page->records.size(), 6u);
    before = *page->next;
  }
  EXPECT_EQ(seen, expected);
}

TEST_F(StoreTest, AStoreOfTheVersionBeforeIsBroughtUpToDate) {
  const std::string long_id(300, 'x');
  {
    auto store = open();
    ASSERT_TRUE(store);
    for (std::string fields : {std::string(R"({"thread":"t"})"), std::string(R"({"thread":7})"), std::string("{}"),
                               std::string(R"({"thread":"","project":"p"})"), R"({"thread":")" + long_id + R"("})"})
      ASSERT_TRUE((*store)->insert(message(fields)));
    ASSERT_TRUE((*store)->insert({"revisions", {R"({"project":"p","thread":"t"})", {}}, {}, {}, std::nullopt}));
  }
  auto database = Database::open(directory / "s.db", Database::Durability::normal);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(
      "ALTER TABLE site DROP COLUMN closed; DROP INDEX records_of_whole; ALTER TABLE records DROP COLUMN belongs_to;"
      "DROP INDEX records_by_change; ALTER TABLE records DROP COLUMN changed;"
      "PRAGMA user_version = 3"));
  EXPECT_EQ(check_store(directory / "s.db").error().code, ErrorCode::not_supported);
  auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->list_parts("messages", "t", 10, kNewest)->records.size(), 1u);
  EXPECT_EQ((*store)->list_parts("revisions", "p", 10, kNewest)->records.size(), 1u);
  EXPECT_EQ((*store)->list_parts("messages", "7", 10, kNewest)->records.size(), 0u);
  EXPECT_EQ(check_store(directory / "s.db"), 6u);
}

TEST_F(StoreTest, WhatWasAcknowledgedSurvivesAKillAndRetriesDoNotDouble) {
  constexpr int kWriters = 16;
  int acknowledged[2];
  ASSERT_EQ(pipe(acknowledged), 0);
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto store = open();
    if (!store) _exit(1);
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w)
      writers.emplace_back([&, w] {
        for (int i = 0;; ++i) {
          std::string key = std::to_string(w) + "." + std::to_string(i);
          auto created = (*store)->insert(message("{}", key));
          std::string line = key + " " + (created ? created->id : "failed") + "\n";
          if (write(acknowledged[1], line.data(), line.size()) < 0) return;
        }
      });
    for (auto& writer : writers) writer.join();
    _exit(0);
  }
  close(acknowledged[1]);
  FILE* lines = fdopen(acknowledged[0], "r");
  std::map<std::string, std::string> ids;
  char key[32], id[32];
  while (fscanf(lines, "%31s %31s", key, id) == 2) {
    ids[key] = id;
    if (ids.size() == 400) kill(child, SIGKILL);  // what was acknowledged before it dies is still in the pipe
  }
  fclose(lines);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);

  auto store = open();
  ASSERT_TRUE(store);
  for (const auto& [key, id] : ids) {
    EXPECT_TRUE((*store)->get("messages", id)) << key;
    EXPECT_EQ((*store)->insert(message("{}", key))->id, id);
  }
  // Writes under way are there once or not at all; sending them again makes it once.
  std::size_t before = everything(**store, "messages").size();
  EXPECT_LE(before, ids.size() + kWriters);
  for (int w = 0; w < kWriters; ++w)
    for (int i = 0;; ++i) {
      std::string key = std::to_string(w) + "." + std::to_string(i);
      bool known = ids.count(key) > 0;
      ids.emplace(key, (*store)->insert(message("{}", key))->id);
      if (!known) break;
    }
  EXPECT_EQ(everything(**store, "messages").size(), ids.size());
}

TEST_F(StoreTest, KeepsItsNameAndItsRecordsWhenReopened) {
  std::string name, id;
  {
    auto store = open();
    ASSERT_TRUE(store);
    name = (*store)->site_id();
    id = (*store)->insert(message(R"({"body":"hello"})", "key"))->id;
  }
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->site_id(), name);
  EXPECT_EQ((*store)->insert(message("{}", "key"))->id, id);
  EXPECT_EQ((*store)->get("messages", id)->fields, R"({"body":"hello"})");
}

}  // namespace
}  // namespace playfs::service
