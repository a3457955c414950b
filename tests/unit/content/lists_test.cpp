// Lists through a Site: what is read, how many requests that takes, and failures.
#include <thread>

#include <gmock/gmock.h>

#include "base/sqlite.h"
#include "fixture.h"

namespace playfs::content {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ListsTest : public SiteTest {
 protected:
  void put_projects(int from, int to) {
    for (int i = from; i < to; ++i) put_project("p" + std::to_string(i), "");
  }
  Answer<ListPtr> list(const std::string& collection = "projects") {
    Answer<ListPtr> answer;
    site_->list(collection, {}, answer.callback());
    run();
    return answer;
  }
  std::vector<std::string> ids(const Answer<ListPtr>& answer) {
    std::vector<std::string> ids;
    if (answer.ok())
      for (const auto& item : **answer) ids.push_back(item.id);
    return ids;
  }
  std::ptrdiff_t requests_of(const std::function<void()>& work) {
    service_.forget_requests();
    work();
    return service_.requests();
  }
};

TEST_F(ListsTest, ReadsAllPagesOnceAndThenOnlyWhatIsNew) {
  put_projects(0, 1000);
  EXPECT_FALSE(site_->try_list("projects"));
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(ids(list()).size(), 1000U); }), 10);
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(ids(list()).size(), 1000U); }), 1) << "nothing new: one request";
  put_projects(1000, 1003);
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(ids(list()).size(), 1003U); }), 1);
  put_projects(1003, 1203);
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(ids(list()).size(), 1203U); }), 3);

  auto all = **list();
  ASSERT_EQ(all.size(), 1203U);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].id, "p" + std::to_string(1202 - i));
  EXPECT_EQ(all[0].name, "name of p1202");
  EXPECT_GT(all[0].created_at, all[1].created_at);
  EXPECT_EQ(*site_->try_list("projects"), all);
}

TEST_F(ListsTest, OlderPagesAreReadIfNamesAreShown) {
  put_projects(0, 250);
  list();
  list();
  auto later = [&](bool with_names) {
    advance(std::chrono::minutes(1));
    return requests_of([&] {
      list();
      if (with_names) site_->names_were_shown("projects");
      run();
    });
  };
  EXPECT_EQ(later(true), 1) << "the names are as new as the list";
  service_.put("projects", "p0", {{"name", "renamed"}});
  for (int times = 0; times < 4; ++times) EXPECT_EQ(later(false), 1) << "whoever lists ids wants no names";
  EXPECT_EQ(site_->try_list("projects")->back().name, "name of p0");
  EXPECT_EQ(later(true), 2);
  EXPECT_EQ(requests_of([&] {
              site_->names_were_shown("projects");
              run();
            }),
            0)
      << "once a refresh";
  EXPECT_EQ(later(true), 2);
  EXPECT_EQ(site_->try_list("projects")->back().name, "renamed");
}

TEST_F(ListsTest, ACreatedRecordIsListedAtOnceAndOnlyOnce) {
  put_projects(0, 3);
  list();
  std::vector<std::string> changed;
  site_->on_list_changed([&](const std::string& collection, const ListChange&) { changed.push_back(collection); });
  put_projects(3, 150);  // of other projects, more than a page
  put_project("own", "");
  site_->learn("projects",
               *wire::decode_record(*wire::parse_json(R"({"id": "own", "created_at": "", "name": "mine"})")));
  EXPECT_THAT(changed, ElementsAre("projects"));
  ASSERT_EQ(site_->try_list("projects")->size(), 4U);
  EXPECT_EQ(site_->try_list("projects")->front().id, "own");
  EXPECT_EQ(site_->try_list("projects")->front().name, "mine");
  EXPECT_EQ(ids(list()).size(), 151U) << "nothing behind it is left out, and it is there once";
  EXPECT_EQ(changed.size(), 2U);
  EXPECT_EQ(ids(list()).size(), 151U);
  EXPECT_EQ(changed.size(), 2U) << "nothing is new";
}

TEST_F(ListsTest, ARecordMissingOnAReplicaStaysListedForAWhile) {
  put_projects(0, 3);
  list();
  site_->learn("projects",
               *wire::decode_record(*wire::parse_json(R"({"id": "own", "created_at": "", "name": "mine"})")));
  EXPECT_EQ(ids(list()).size(), 4U);
  advance(std::chrono::seconds(59));
  EXPECT_EQ(ids(list()).size(), 4U);
  advance(std::chrono::seconds(2));
  EXPECT_EQ(ids(list()).size(), 3U) << "the service lists it no more";
}

TEST_F(ListsTest, AnAnswerFromBeforeOurChangeIsNotStoredOverIt) {
  auto text = [](const std::string& day, const std::string& body) {
    return R"({"id":"m","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-)" + day + R"(T00:00:00Z","body":")" +
           body + R"("})";
  };
  auto body = [&] { return *site_->try_record("messages", "m")->fields.find("body")->string(); };
  service_.hold();
  Answer<ListPtr> all;
  site_->list("messages", {}, all.callback());
  run();
  service_.instead[service_.targets().back()] = R"({"records":[)" + text("02", "old") + "]}";
  Answer<RecordTextPtr> one;
  site_->record_text("messages", "m", {}, one.callback());
  run();
  service_.instead[service_.targets().back()] = R"({"record":)" + text("02", "old") + "}";
  advance(std::chrono::milliseconds(1));
  site_->relearn("messages", *wire::decode_record(*wire::parse_json(text("03", "new"))));
  service_.release();
  run();
  ASSERT_TRUE(one.ok() && all.ok());
  EXPECT_THAT((*one)->json, HasSubstr("new"));
  EXPECT_EQ(body(), "new");
  EXPECT_EQ((*all)->front().updated_at, parse_iso8601("2026-01-03T00:00:00Z"));
  advance(std::chrono::minutes(1));
  Answer<RecordTextPtr> later;
  site_->record_text("messages", "m", {}, later.callback());
  run();
  EXPECT_EQ(body(), "old") << "the service has gone back";
}

TEST_F(ListsTest, WhatWasLearntWhileFurtherPagesWereReadStays) {
  put_projects(0, 150);
  list();
  put_projects(150, 300);
  service_.put("projects", "p299", {{"name", "old"}});
  service_.hold();
  Answer<ListPtr> all;
  site_->list("projects", {}, all.callback());
  executor_.run_due();
  ASSERT_TRUE(service_.answer_at(0));  // the first page has the old name
  executor_.run_due();
  advance(std::chrono::milliseconds(1));
  site_->relearn("projects",
                 Record{"p299", "2023-11-14T22:18:20Z", "2026-01-01T00:00:00Z", "active", {{"name", "new"}}});
  service_.release();
  run();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ((**all)[0].name, "new");
  EXPECT_EQ(all->get()->size(), 300U);
  restart();
  EXPECT_EQ(site_->try_list("projects")->front().name, "new");
}

TEST_F(ListsTest, WhatWasLearntWhileAReadingIsStoredStays) {
  record_options_.executor = &executor_;  // whoever learns of a record does not wait for the disk
  restart();
  put_projects(0, 3);
  list();
  put_projects(3, 4);
  auto locked = std::move(*Database::open(directory_ / "records.db", Database::Durability::none));
  ASSERT_TRUE(locked.execute("BEGIN EXCLUSIVE"));
  Answer<ListPtr> all;
  site_->list("projects", {}, all.callback());
  std::thread reading([&] { run(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // by now it waits for the disk
  std::thread learning([&] {
    site_->relearn("projects",
                   Record{"p0", "2023-11-14T22:13:21Z", "2026-01-01T00:00:00Z", "active", {{"name", "new"}}});
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(locked.execute("COMMIT"));
  reading.join();
  learning.join();
  run();
  EXPECT_EQ(site_->try_list("projects")->size(), 4U);
  EXPECT_EQ(site_->try_list("projects")->back().name, "new");
  restart();
  EXPECT_EQ(site_->try_list("projects")->back().name, "new");
}

TEST_F(ListsTest, NamesFollowTheRecordsThatAreRead) {
  put_projects(0, 150);
  list();
  JsonObject renamed{{"name", "another"}, {"latest_revision", ""}};
  service_.put("projects", "p0", std::move(renamed));
  EXPECT_EQ(list()->get()->back().name, "name of p0") << "it is on no page that is read again";
  Answer<Head> head;
  site_->head(ProjectId("p0"), {}, head.callback());
  run();
  EXPECT_EQ(site_->try_list("projects")->back().name, "another");
  EXPECT_EQ(list()->get()->back().name, "another");
  restart();
  EXPECT_EQ(site_->try_list("projects")->back().name, "another");
}

TEST_F(ListsTest, ANameThatIsTooLongToBeKeptTakesNoMemory) {
  service_.put("projects", "p0", JsonObject{{"name", std::string(100'000, 'n')}});
  service_.put("messages", "m0", JsonObject{{"thread", std::string(100'000, 't')}});
  for (const char* collection : {"projects", "messages"}) {
    Answer<ListPtr> answer = list(collection);
    const Listed& item = answer->get()->front();
    EXPECT_LE(item.name.capacity() + item.project.capacity(), 100u) << collection;
  }
}

TEST_F(ListsTest, IsFreshForAsLongAsAHead) {
  put_projects(0, 1);
  EXPECT_FALSE(site_->is_list_fresh("projects"));
  list();
  EXPECT_TRUE(site_->is_list_fresh("projects"));
  advance(std::chrono::seconds(10));
  EXPECT_FALSE(site_->is_list_fresh("projects"));
}

TEST_F(ListsTest, IsKeptAcrossARestart) {
  put_projects(0, 300);
  list();
  restart();
  ASSERT_TRUE(site_->try_list("projects"));
  EXPECT_EQ(site_->try_list("projects")->size(), 300U);
  put_projects(300, 301);
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(ids(list()).size(), 301U); }), 1);
  restart();
  EXPECT_EQ(site_->try_list("projects")->size(), 301U);
  EXPECT_EQ(site_->try_list("projects")->front().id, "p300");
}

TEST_F(ListsTest, AnEmptyListIsAList) {
  ASSERT_TRUE(list().ok());
  EXPECT_TRUE(site_->try_list("projects"));
  put_projects(0, 1);
  EXPECT_THAT(ids(list()), ElementsAre("p0"));
}

TEST_F(ListsTest, ConcurrentCallersShareOneReading) {
  put_projects(0, 250);
  service_.hold();
  std::vector<Answer<ListPtr>> answers(10);
  for (auto& answer : answers) site_->list("projects", {}, answer.callback());
  service_.release();
  run();
  EXPECT_EQ(service_.requests(), 3);
  for (auto& answer : answers) EXPECT_EQ(ids(answer).size(), 250U);
}

TEST_F(ListsTest, ANewNameIsSeenAndKept) {
  put_projects(0, 3);
  list();
  service_.put("projects", "p1", {{"name", "renamed"}});
  auto renamed = list();
  ASSERT_TRUE(renamed.ok());
  EXPECT_EQ((**renamed)[1].name, "renamed");
  EXPECT_THAT(ids(renamed), ElementsAre("p2", "p1", "p0"));
  restart();
  EXPECT_EQ((*site_->try_list("projects"))[1].name, "renamed");
}

TEST_F(ListsTest, NamesAreTitlesWhereThereIsNoName) {
  service_.put("threads", "t", {{"title", "a title"}});
  EXPECT_EQ((**list("threads"))[0].name, "a title");
  put_revision("r", {}, {}, "p9");
  EXPECT_EQ((**list("revisions"))[0].project, "p9");
}

TEST_F(ListsTest, EndlessNamesAreNotKept) {
  service_.put("projects", "p", {{"name", std::string(100'000, 'x')}});
  EXPECT_EQ((**list())[0].name, "");
}

TEST_F(ListsTest, RemovedRecordsAtTheTopDoNotHideWhatIsBelow) {
  put_projects(0, 5);
  list();
  service_.remove("projects", "p4");
  put_projects(5, 6);
  auto answer = list();
  EXPECT_EQ(ids(answer).front(), "p5");
  EXPECT_THAT(ids(answer), testing::IsSupersetOf({"p0", "p1", "p2", "p3"}));
}

TEST_F(ListsTest, WhatTheServiceHasLostIsListedForAMinute) {
  put_projects(0, 105);
  list();
  service_.remove("projects", "p104");
  service_.remove("projects", "p50");
  EXPECT_EQ(ids(list()).size(), 105U) << "a replica may lag";
  advance(std::chrono::seconds(59));
  EXPECT_EQ(ids(list()).size(), 105U);
  advance(std::chrono::seconds(2));
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(ids(list()).size(), 103U); }), 3) << "a page, and then all of it";
  EXPECT_EQ(requests_of([&] { EXPECT_EQ(ids(list()).size(), 103U); }), 1);
  restart();
  EXPECT_EQ(site_->try_list("projects")->size(), 103U);
}

TEST_F(ListsTest, WhatAReplicaLacksNowAndThenStays) {
  put_projects(0, 3);
  list();
  const std::string target = "/.site/data/projects?limit=100";
  const std::string lagging = R"({"records":[{"id":"p1","name":"name of p1"}],"nextCursor":null})";
  for (int i = 0; i < 4; ++i) {
    service_.instead[target] = lagging;
    EXPECT_EQ(ids(list()).size(), 3U);
    service_.instead.clear();
    advance(std::chrono::seconds(59));
    EXPECT_EQ(ids(list()).size(), 3U);
    advance(std::chrono::seconds(59));
  }
}

TEST_F(ListsTest, AListThatWasReplacedIsReplaced) {
  put_projects(0, 5);
  list();
  for (int i = 0; i < 5; ++i) service_.remove("projects", "p" + std::to_string(i));
  put_projects(7, 9);
  EXPECT_THAT(ids(list()), ElementsAre("p8", "p7"));
  restart();
  EXPECT_EQ(site_->try_list("projects")->size(), 2U);
}

TEST_F(ListsTest, ARecordThatAppearsBelowTheNewestIsNotMissed) {
  put_projects(0, 5);
  list();
  // A server node with a slow clock: the page shows the record between known ones.
  const std::string target = "/.site/data/projects?limit=100";
  Json::Array shown;
  for (const auto& item : *site_->try_list("projects"))
    shown.push_back(JsonObject{{"id", item.id}, {"created_at", format_iso8601(item.created_at)}, {"name", item.name}});
  const WallTime between{(*site_->try_list("projects"))[1].created_at.nanoseconds - 1};
  shown.insert(shown.begin() + 2, JsonObject{{"id", "late"}, {"created_at", format_iso8601(between)}});
  service_.instead[target] = wire::to_text(JsonObject{{"records", shown}, {"nextCursor", Json()}});
  auto answer = list();
  EXPECT_EQ(ids(answer).size(), 6U);
  EXPECT_THAT(ids(answer), testing::Contains("late"));
}

TEST_F(ListsTest, WhereTheServiceIsAwayTheOldListServes) {
  put_projects(0, 3);
  list();
  service_.away = true;
  EXPECT_EQ(ids(list()).size(), 3U);
  EXPECT_EQ(list("threads").code(), ErrorCode::unreachable);
}

TEST_F(ListsTest, CursorsThatLoopEndWithAnError) {
  auto page = [](const std::string& id, const std::string& next) {
    return wire::to_text(JsonObject{{"records", Json::Array{JsonObject{{"id", id}}}}, {"nextCursor", next}});
  };
  service_.instead["/.site/data/projects?limit=100"] = page("a", "x");
  service_.instead["/.site/data/projects?limit=100&cursor=x"] = page("b", "y");
  service_.instead["/.site/data/projects?limit=100&cursor=y"] = page("c", "x");
  EXPECT_EQ(list().code(), ErrorCode::protocol);
  EXPECT_LE(service_.requests(), 3);
  EXPECT_THAT(events_->errors_text(), HasSubstr("projects"));
}

TEST_F(ListsTest, PagesThatBringNothingEndWithAnError) {
  for (int i = 0; i < 50; ++i) {
    const std::string cursor = i == 0 ? "" : "&cursor=n" + std::to_string(i);
    service_.instead["/.site/data/projects?limit=100" + cursor] =
        wire::to_text(JsonObject{{"records", Json::Array()}, {"nextCursor", "n" + std::to_string(i + 1)}});
  }
  EXPECT_EQ(list().code(), ErrorCode::protocol);
  EXPECT_LE(service_.requests(), 5);
}

TEST_F(ListsTest, AListThatDoesNotFitIsCutAndReportedOnce) {
  SiteOptions options;
  options.list_bytes = 80'000;  // enough for some hundreds
  restart(options);
  put_projects(0, 5000);
  const auto first = ids(list());
  ASSERT_GT(first.size(), 100U);
  ASSERT_LT(first.size(), 800U);
  EXPECT_EQ(first.front(), "p4999");
  EXPECT_EQ(first.back(), "p" + std::to_string(5000 - first.size()));
  EXPECT_LE(service_.requests(), 9) << "nor is it read";
  EXPECT_FALSE(site_->is_list_whole("projects"));
  EXPECT_THAT(events_->errors_text(),
              HasSubstr("is too long: its newest " + std::to_string(first.size()) + " records"));
  const std::string told = events_->errors_text();

  // New records push out old ones, and whatever is older than the last one is not news.
  put_projects(5000, 5030);
  EXPECT_EQ(requests_of([&] {
              const auto now = ids(list());
              EXPECT_EQ(now.front(), "p5029");
              EXPECT_EQ(now.back(), "p" + std::to_string(5030 - now.size()));
              EXPECT_LE(now.size(), first.size());
            }),
            1);
  EXPECT_EQ(events_->errors_text(), told);
  const auto before = ids(list());
  restart(options);
  ASSERT_TRUE(site_->try_list("projects"));
  EXPECT_FALSE(site_->is_list_whole("projects"));
  EXPECT_THAT(events_->errors_text(), HasSubstr("is too long"));
  EXPECT_EQ(ids(list()), before);
}

TEST_F(ListsTest, NewRecordsThatFillTheListReplaceOldOnes) {
  SiteOptions options;
  options.list_bytes = 80'000;
  restart(options);
  put_projects(0, 300);
  EXPECT_EQ(ids(list()).size(), 300U);
  EXPECT_TRUE(site_->is_list_whole("projects"));
  put_projects(300, 5000);
  const auto all = ids(list());
  EXPECT_EQ(all.front(), "p4999");
  EXPECT_EQ(all.back(), "p" + std::to_string(5000 - all.size()));
  EXPECT_FALSE(site_->is_list_whole("projects"));
}

TEST_F(ListsTest, NamesThatGrowTakeNoMoreThanFits) {
  SiteOptions options;
  options.list_bytes = 80'000;
  restart(options);
  put_projects(0, 90);
  list();
  for (int i = 0; i < 90; ++i) service_.put("projects", "p" + std::to_string(i), {{"name", std::string(999, 'n')}});
  const auto now = ids(list());
  EXPECT_GT(now.size(), 60U);
  EXPECT_LT(now.size(), 80U);
  EXPECT_EQ(now.front(), "p89");
  EXPECT_FALSE(site_->is_list_whole("projects"));
}

TEST_F(ListsTest, CursorsThatTakeMoreThanAListMayEndWithAnError) {
  SiteOptions options;
  options.list_bytes = 80'000;
  restart(options);
  const std::string filler(3'000, 'x');
  for (int i = 0; i < 100; ++i) {
    const std::string cursor = i == 0 ? "" : "&cursor=" + filler + std::to_string(i);
    service_.instead["/.site/data/projects?limit=100" + cursor] =
        wire::to_text(JsonObject{{"records", Json::Array{JsonObject{{"id", "p" + std::to_string(i)}}}},
                                 {"nextCursor", filler + std::to_string(i + 1)}});
  }
  EXPECT_EQ(list().code(), ErrorCode::protocol);
  EXPECT_LE(service_.requests(), 30);
}

TEST_F(ListsTest, ACancelledReaderIsAnsweredAtOnce) {
  put_projects(0, 3);
  service_.hold();
  CancelSource cancel;
  Answer<ListPtr> impatient;
  site_->list("projects", cancel.token(), impatient.callback());
  run();
  cancel.cancel();
  EXPECT_EQ(impatient.code(), ErrorCode::interrupted);
}

}  // namespace
}  // namespace playfs::content
