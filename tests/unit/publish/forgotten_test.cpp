// A commit whose journal is gone or damaged: it may have been sent, so its layer stays frozen until the service's log
// has been searched for it.
#include <atomic>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/await.h"
#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::Fault;
using test::WorkTree;

constexpr auto kPatient = std::chrono::minutes(10);

class ForgottenTest : public testing::Test {
 protected:
  ForgottenTest() : project(world.create("projects", R"({"name":"p"})").id) {
    open({});
    publish({{"text", lines("")}, {"moved", "m"}, {"deleted", "d"}});
  }

  static std::string lines(const std::string& first, const std::string& last = "") {
    std::string text = first + "\n";
    for (int i = 0; i < 20; ++i) text += std::to_string(i) + "\n";
    return text + last + "\n";
  }
  void open(test::FaultyTransport::Plan plan, std::chrono::milliseconds late_arrival = kPatient,
            JournalProbe probe = {}) {
    work.reset();
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree", std::move(plan), std::move(probe),
                                      false, false, MergePolicy(), late_arrival);
  }
  void publish(const Contents& contents) {
    for (const auto& [path, content] : contents) work->write(path, content);
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outcome, Outcome::published);
  }
  /// Stops the commit at its POST, which `reaches` the service or not; then its process ends.
  void leave_one_in_doubt(bool reaches) {
    std::atomic<bool> is_sent = false;
    work->faults.set_plan([&](const HttpRequest& request) {
      if (is_sent) return test::lose_request();
      if (!test::is_post_of_revision(request)) return Fault();
      is_sent = true;
      return reaches ? test::lose_reply() : test::lose_request();
    });
    work->publisher->commit({.agent = "who", .message = "why", .wait = false, .allow_merge = true}, {},
                            [](const Result<CommitResult>&) {});
    ASSERT_TRUE(test::eventually([&] { return is_sent.load(); }));
    work->wait_until_it_fails();
    work.reset();
  }
  void lose_journal() { std::filesystem::remove_all(directory.path() + "/tree/journal"); }
  void damage_journal() {
    std::ofstream(directory.path() + "/tree/journal/publish.db", std::ios::in | std::ios::out) << "no database at all";
  }
  /// Keeps the journal's database at each of its changes: what remains if the end of its log is lost, or what somebody
  /// may restore.
  JournalProbe keep_journals() {
    return [this](std::string_view, bool synced) {
      if (!synced) return;
      const auto kept = directory.path() + "/kept-" + std::to_string(journals++);
      std::filesystem::create_directory(kept);
      copy_database(directory.path() + "/tree/journal", kept);
    };
  }
  void put_journal_back(int kept) const {
    const auto journal = directory.path() + "/tree/journal";
    for (const char* part : {"/publish.db", "/publish.db-wal", "/publish.db-shm"})
      std::filesystem::remove(journal + part);
    copy_database(directory.path() + "/kept-" + std::to_string(kept), journal);
  }
  static void copy_database(const std::string& from, const std::string& to) {
    for (const char* part : {"/publish.db", "/publish.db-wal"})
      if (std::filesystem::exists(from + part)) std::filesystem::copy(from + part, to + part);
  }
  std::size_t revisions() { return world.all("revisions").size(); }
  void expect_published(const Contents& contents) {
    work->wait_until_idle();
    ASSERT_TRUE(work->publisher->last());
    const auto result = work->publisher->last().value();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    EXPECT_EQ(world.head(project), result->revision.text());
    EXPECT_EQ(world.contents(result->revision.text()), contents);
    EXPECT_TRUE(work->stage->is_clean());
  }
  void expect_given_back() {
    work->wait_until_idle();
    ASSERT_TRUE(work->publisher->last());
    const auto result = work->publisher->last().value();
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("does not have its revision"), std::string::npos) << result.error().message;
    EXPECT_FALSE(*work->stage->pending());
    EXPECT_FALSE(work->stage->is_clean());
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
  std::unique_ptr<WorkTree> work;
  int journals = 0;
};

TEST_F(ForgottenTest, WhatWasStoredIsFoundWithoutTheJournal) {
  work->write("new", "n");
  work->rename("moved", "there");
  work->remove("deleted");
  leave_one_in_doubt(true);
  lose_journal();
  open({});
  EXPECT_TRUE(work->events->events_text().find("commit_forgotten") != std::string::npos);
  expect_published({{"text", lines("")}, {"new", "n"}, {"there", "m"}});
  EXPECT_EQ(revisions(), 2u);
}

TEST_F(ForgottenTest, WhatWasStoredIsFoundBesideADamagedJournal) {
  work->write("new", "n");
  leave_one_in_doubt(true);
  damage_journal();
  open({});
  EXPECT_NE(work->events->errors_text().find("damaged-1"), std::string::npos) << work->events->errors_text();
  EXPECT_NE(work->events->events_text().find("journal_set_aside"), std::string::npos) << work->events->events_text();
  expect_published({{"text", lines("")}, {"moved", "m"}, {"deleted", "d"}, {"new", "n"}});
  EXPECT_EQ(revisions(), 2u);
}

TEST_F(ForgottenTest, WhatWasMergedWithHeadBeforeItWasSentIsFound) {
  WorkTree other(world, project, directory.path() + "/other");
  other.write("text", lines("theirs"));
  other.write("more", "o");
  ASSERT_TRUE(other.commit());
  work->write("text", lines("", "ours"));
  leave_one_in_doubt(true);
  lose_journal();
  open({});
  expect_published({{"text", lines("theirs", "ours")}, {"moved", "m"}, {"deleted", "d"}, {"more", "o"}});
  EXPECT_EQ(revisions(), 3u);
}

TEST_F(ForgottenTest, AnUnreadableParentDoesNotHideIt) {
  const std::string unread =
      world
          .create("revisions", wire::to_text(JsonObject{
                                   {"project", project}, {"parents", Json::Array{}}, {"manifest", "of years to come"}}))
          .id;
  ASSERT_TRUE(work->stage->integrate(work->stage->base(), {}, {RevisionId(unread)}));
  work->write("new", "n");
  leave_one_in_doubt(true);
  lose_journal();
  open({});
  expect_published({{"text", lines("")}, {"moved", "m"}, {"deleted", "d"}, {"new", "n"}});
  EXPECT_EQ(revisions(), 3u);
}

TEST_F(ForgottenTest, ARevisionWithAnotherStateIsNotTakenForIt) {
  ASSERT_TRUE(work->stage->stage_state(R"({"ours":1})"));
  leave_one_in_doubt(true);
  lose_journal();
  open({});
  expect_published({{"text", lines("")}, {"moved", "m"}, {"deleted", "d"}});
  EXPECT_EQ(revisions(), 2u);

  ASSERT_TRUE(work->stage->stage_state(R"({"ours":2})"));
  leave_one_in_doubt(false);
  auto journal = Journal::open(directory.path() + "/tree/journal");
  ASSERT_TRUE(journal) << journal.error().message;
  JsonObject manifest = *world.get("revisions", world.head(project)).fields.find("manifest")->object();
  manifest.set("tx", (**(*journal)->front()).tx);
  journal->reset();
  world.create("revisions", wire::to_text(JsonObject{{"project", project},
                                                     {"parents", Json::Array{Json(world.head(project))}},
                                                     {"state", JsonObject{{"ours", 1}}},
                                                     {"manifest", std::move(manifest)}}));
  lose_journal();
  open({}, test::kLateArrival);
  expect_given_back();
}

TEST_F(ForgottenTest, WhatIsNotThereIsStagedAgainOnceTheLogWasSearched) {
  work->write("new", "n");
  leave_one_in_doubt(false);
  lose_journal();
  std::atomic<bool> is_readable = false;
  std::atomic<int> refused = 0, posts = 0;
  open(
      [&](const HttpRequest& request) {
        if (test::is_post_of_revision(request)) ++posts;
        if (!test::is_list_of_revisions(request) || is_readable) return Fault();
        ++refused;
        return test::answer_with(403, R"({"code":"forbidden"})");
      },
      test::kLateArrival);
  // However long the log cannot be searched, nothing is returned to the stage and the commit cannot be cancelled.
  ASSERT_TRUE(test::eventually([&] { return refused >= 10; }));
  EXPECT_TRUE(*work->stage->pending());
  work->publisher->cancel([](const Result<Cancelled>& cancelled) { EXPECT_TRUE(cancelled && cancelled->too_late); });
  is_readable = true;
  expect_given_back();
  EXPECT_EQ(posts, 0) << "nobody asked anew";
  work->faults.set_plan({});
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
}

TEST_F(ForgottenTest, AnotherRestartContinuesTheSearch) {
  work->write("new", "n");
  leave_one_in_doubt(true);
  lose_journal();
  auto hidden = [](const HttpRequest& request) {
    return test::is_list_of_revisions(request) ? test::answer_with(200, R"({"records":[],"nextCursor":null})")
                                               : Fault();
  };
  for (int times = 0; times < 2; ++times) {
    open(hidden);
    work->wait_until_it_fails();
    EXPECT_TRUE(*work->stage->pending());
  }
  open({});
  expect_published({{"text", lines("")}, {"moved", "m"}, {"deleted", "d"}, {"new", "n"}});
  EXPECT_EQ(revisions(), 2u);
}

TEST_F(ForgottenTest, WhatAnotherClientMadeOfOursIsNotTakenForIt) {
  work->write("new", "n");
  leave_one_in_doubt(false);
  auto journal = Journal::open(directory.path() + "/tree/journal");
  ASSERT_TRUE(journal) << journal.error().message;
  const std::string tx = (**(*journal)->front()).tx;
  journal->reset();
  JsonObject manifest = *world.get("revisions", world.head(project)).fields.find("manifest")->object();
  manifest.set("tx", tx);
  world.create("revisions", wire::to_text(JsonObject{{"project", project},
                                                     {"parents", Json::Array{Json(world.head(project))}},
                                                     {"manifest", std::move(manifest)}}));
  lose_journal();
  open({}, test::kLateArrival);
  expect_given_back();
  EXPECT_EQ(work->read("new"), "n");
}

TEST_F(ForgottenTest, AJournalWithoutItsLastRowsStagesNothingThatWasSent) {
  open({}, kPatient, keep_journals());
  work->write("new", std::string(20'000, 'n'));
  work->write("more", "m");
  leave_one_in_doubt(true);
  const std::string before = directory.path() + "/before";
  test::copy_directory(directory.path() + "/tree", before);
  const std::string head = world.head(project);
  ASSERT_GT(journals, 3);
  for (int kept = 0; kept < journals; ++kept) {
    SCOPED_TRACE(kept);
    std::filesystem::remove_all(directory.path() + "/tree");
    test::copy_directory(before, directory.path() + "/tree");
    world.set_head(project, head);
    put_journal_back(kept);
    std::atomic<int> posts = 0;
    std::atomic<bool> is_readable = false;
    open([&](const HttpRequest& request) {
      if (test::is_post_of_revision(request)) ++posts;
      return test::is_list_of_revisions(request) && !is_readable ? test::answer_with(403, R"({"code":"forbidden"})")
                                                                 : Fault();
    });
    auto cancelled = await<Cancelled>([&](auto done) { work->publisher->cancel(std::move(done)); });
    ASSERT_TRUE(cancelled) << cancelled.error().message;
    EXPECT_TRUE(cancelled->too_late);
    is_readable = true;
    expect_published(
        {{"text", lines("")}, {"moved", "m"}, {"deleted", "d"}, {"more", "m"}, {"new", std::string(20'000, 'n')}});
    EXPECT_EQ(posts, 0);
    EXPECT_EQ(revisions(), 2u);
    open({});
    EXPECT_TRUE(work->publisher->queue()->empty()) << "and once is enough";
  }
}

TEST_F(ForgottenTest, AnOutdatedJournalPublishesNothing) {
  open({}, kPatient, keep_journals());
  work->write("first", "1");
  ASSERT_TRUE(work->commit());
  work->write("second", "2");
  ASSERT_TRUE(work->commit());
  ASSERT_GT(journals, 8);
  work->write("staged", "not to be published");
  work.reset();
  const std::string before = directory.path() + "/before";
  test::copy_directory(directory.path() + "/tree", before);
  const std::string head = world.head(project);
  for (int kept = 0; kept < journals; ++kept) {
    SCOPED_TRACE(kept);
    std::filesystem::remove_all(directory.path() + "/tree");
    test::copy_directory(before, directory.path() + "/tree");
    put_journal_back(kept);
    open({}, test::kLateArrival);
    work->wait_until_idle();
    ASSERT_EQ(revisions(), 3u);
    EXPECT_EQ(world.head(project), head);
    EXPECT_EQ(work->read("staged"), "not to be published");
    ASSERT_FALSE(work->stage->is_clean());
    EXPECT_FALSE(*work->stage->pending());
    // A requested commit continues after a restart, whatever number it got.
    open([](const HttpRequest&) { return test::lose_request(); });
    work->publisher->commit({.agent = "who", .message = "why", .wait = false, .allow_merge = true}, {},
                            [](const Result<CommitResult>&) {});
    work->wait_until_it_fails();
    open([](const HttpRequest&) { return test::lose_request(); });
    work->wait_until_it_fails();
    EXPECT_EQ(work->publisher->queue()->size(), 1u);
    EXPECT_TRUE(*work->stage->pending());
  }
}

}  // namespace
}  // namespace playfs::publish
