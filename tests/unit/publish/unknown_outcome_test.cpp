// A POST of a revision whose response was lost, and a service that refuses the retry: the revision may be stored, so
// nothing is returned to the stage before the log was searched.
#include <atomic>
#include <chrono>
#include <utility>

#include <gtest/gtest.h>

#include "base/await.h"
#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::Fault;
using test::WorkTree;

class UnknownOutcomeTest : public testing::TestWithParam<int> {
 protected:
  UnknownOutcomeTest() : project(world.create("projects", R"({"name":"p"})").id) { begin(true); }

  /// A commit is returned to the stage after `late_arrival`. The default is long enough that a revision that appears
  /// late is found however busy the machine is.
  void begin(bool repeats, std::chrono::milliseconds late_arrival = std::chrono::minutes(10)) {
    work.reset();
    open(test::FaultyTransport::Plan(), repeats, late_arrival);
    work->write("file", "content");
  }
  void open(test::FaultyTransport::Plan plan, bool repeats, std::chrono::milliseconds late_arrival) {
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree", std::move(plan), JournalProbe(),
                                      false, repeats, MergePolicy(), late_arrival);
  }
  [[nodiscard]] static Fault refusal() { return test::answer_with(GetParam(), R"({"error":"no","code":"other"})"); }
  std::size_t revisions() { return world.all("revisions").size(); }
  void expect_published(const Result<CommitResult>& result) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    EXPECT_EQ(revisions(), 1u);
    EXPECT_EQ(world.head(project), result->revision.text());
    EXPECT_TRUE(work->stage->is_clean());
  }
  void expect_given_back(const Result<CommitResult>& result) {
    ASSERT_FALSE(result);
    EXPECT_FALSE(*work->stage->pending());
    EXPECT_FALSE(work->stage->is_clean());
    EXPECT_EQ(revisions(), 0u);
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
  std::unique_ptr<WorkTree> work;
};

class EveryRefusalTest : public UnknownOutcomeTest {};

TEST_P(EveryRefusalTest, TheRepetitionOfAStoredPostIsRefused) {
  std::atomic<int> posts = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of_revision(request)) return Fault();
    return posts++ == 0 ? test::lose_reply() : refusal();
  });
  expect_published(work->commit());
  EXPECT_GT(posts, 1) << "the client repeated it by itself";
}

TEST_P(UnknownOutcomeTest, TheSearchCannotBeDoneForAWhile) {
  std::atomic<int> posts = 0, searches = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of_revision(request)) return posts++ == 0 ? test::lose_reply() : refusal();
    // Also refused, as by a gateway that has forgotten the session.
    if (posts > 1 && test::is_list_of_revisions(request) && searches++ < 3) return refusal();
    return Fault();
  });
  expect_published(work->commit());
  EXPECT_GT(searches, 3);
}

TEST_P(UnknownOutcomeTest, TheLogShowsItOnlyLater) {
  std::atomic<int> posts = 0, searches = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of_revision(request)) return posts++ == 0 ? test::lose_reply() : refusal();
    // A lagging replica.
    if (posts > 1 && test::is_list_of_revisions(request) && searches++ < 3)
      return test::answer_with(200, R"({"records":[],"nextCursor":null})");
    return Fault();
  });
  expect_published(work->commit());
  EXPECT_GT(searches, 3);
}

TEST_P(UnknownOutcomeTest, TheFirstRequestArrivesAfterItsRepetitionWasRefused) {
  std::atomic<int> posts = 0;
  HttpRequest late;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of_revision(request)) return Fault();
    switch (posts++) {
      case 0: late = request; return test::lose_request();
      case 1:
      case 2: return refusal();
      default: break;
    }
    if (!late.method.empty())
      world.transport().send(std::exchange(late, HttpRequest()), {}, {}, [](const Result<HttpResponse>&) {});
    return refusal();
  });
  expect_published(work->commit());
}

TEST_P(UnknownOutcomeTest, WhatNeverArrivedIsGivenBackOnceTheLogWasSearched) {
  begin(true, test::kLateArrival);
  std::atomic<int> posts = 0;
  std::atomic<bool> is_searched = false;
  std::chrono::steady_clock::time_point lost;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_list_of_revisions(request)) is_searched = true;
    if (!test::is_post_of_revision(request)) return Fault();
    is_searched = false;
    if (posts++ > 0) return refusal();
    lost = std::chrono::steady_clock::now();
    return test::lose_request();
  });
  expect_given_back(work->commit());
  EXPECT_GE(std::chrono::steady_clock::now() - lost, test::kLateArrival);
  EXPECT_TRUE(is_searched) << "after the last refusal";
  work->faults.set_plan({});
  expect_published(work->commit());
}

TEST_P(UnknownOutcomeTest, WhatComesAfterItWasGivenBackIsSaid) {
  begin(true, test::kLateArrival);
  HttpRequest late;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of_revision(request)) return Fault();
    if (!late.method.empty()) return refusal();
    late = request;
    return test::lose_request();
  });
  expect_given_back(work->commit());
  work.reset();
  work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree", nullptr, nullptr, true);
  auto arrived = await<HttpResponse>([&](auto done) { world.transport().send(late, {}, {}, std::move(done)); });
  ASSERT_TRUE(arrived);
  ASSERT_EQ(revisions(), 1u);
  work->publisher->reconcile();
  ASSERT_TRUE(
      test::eventually([&] { return work->events->events_text().find("commit_came_late") != std::string::npos; }));
  std::string said = work->events->errors_text();
  EXPECT_NE(said.find("published after all, as revision " + world.all("revisions").front().id), std::string::npos)
      << said;
}

TEST_P(EveryRefusalTest, TheOnlyAttemptIsRefused) {
  std::atomic<int> posts = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of_revision(request)) return Fault();
    ++posts;
    return refusal();
  });
  expect_given_back(work->commit());
  EXPECT_EQ(posts, 1) << "there is nothing to wait for";
}

TEST_P(UnknownOutcomeTest, ARestartDoesNotForgetThatItMayHaveBeenSent) {
  begin(false);
  std::atomic<bool> is_stored = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (is_stored) return test::lose_request();
    if (!test::is_post_of_revision(request)) return Fault();
    is_stored = true;
    return test::lose_reply();
  });
  work->publisher->commit({.agent = "t", .message = "m", .wait = false, .allow_merge = true}, {},
                          [](const Result<CommitResult>&) {});
  ASSERT_TRUE(test::eventually([&] { return is_stored.load(); }));
  work->wait_until_it_fails();
  work.reset();
  std::atomic<int> searches = 0;
  auto plan = [&](const HttpRequest& request) {
    if (test::is_post_of_revision(request)) return refusal();
    if (test::is_list_of_revisions(request) && searches++ < 2)
      return test::answer_with(200, R"({"records":[],"nextCursor":null})");
    return Fault();
  };
  open(plan, false, std::chrono::minutes(10));
  work->wait_until_idle();
  EXPECT_GT(searches, 2);
  ASSERT_TRUE(work->publisher->last());
  expect_published(*work->publisher->last());
}

std::string status_of(const testing::TestParamInfo<int>& tested) { return "Http" + std::to_string(tested.param); }
INSTANTIATE_TEST_SUITE_P(Statuses, EveryRefusalTest, testing::Values(400, 401, 403, 404, 409, 413, 423, 425),
                         status_of);
INSTANTIATE_TEST_SUITE_P(Statuses, UnknownOutcomeTest, testing::Values(403, 409), status_of);

class OddServiceTest : public testing::Test {};

TEST_F(OddServiceTest, AProjectThatIsGoneDoesNotHideWhatWasStored) {
  test::World world;
  test::TemporaryDirectory directory;
  const std::string project = world.create("projects", R"({"name":"p"})").id;
  WorkTree work(world, project, directory.path() + "/tree", {}, {}, false, true);
  work.write("file", "content");
  std::atomic<bool> is_gone = false;
  work.faults.set_plan([&](const HttpRequest& request) {
    if (is_gone && request.target.find("/projects/") != std::string::npos)
      return test::answer_with(404, R"({"code":"not_found"})");
    if (!test::is_post_of_revision(request)) return Fault();
    return is_gone.exchange(true) ? test::answer_with(404, R"({"code":"not_found"})") : test::lose_reply();
  });
  auto result = work.commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched) << "it is there, and head cannot be moved";
  EXPECT_EQ(world.get("revisions", result->revision.text()).id, result->revision.text());
}

TEST_F(OddServiceTest, WhereTheAnswerIsAnotherRevisionOursIsLookedFor) {
  test::World world;
  test::TemporaryDirectory directory;
  const std::string project = world.create("projects", R"({"name":"p"})").id;
  WorkTree work(world, project, directory.path() + "/tree", {}, {}, false, true, {}, std::chrono::minutes(10));
  work.write("file", "content");
  std::atomic<int> posts = 0;
  work.faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of_revision(request)) return Fault();
    if (posts++ == 0) world.create("revisions", request.body);
    return test::answer_with(201, wire::to_text(JsonObject{{"id", "another"},
                                                           {"created_at", "2026-01-01T00:00:00.000Z"},
                                                           {"updated_at", "2026-01-01T00:00:00.000Z"},
                                                           {"status", "active"},
                                                           {"project", project},
                                                           {"parents", Json::Array{}},
                                                           {"manifest", JsonObject{{"files", JsonObject()}}}}));
  });
  auto result = work.commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.all("revisions").size(), 1u);
  EXPECT_EQ(world.head(project), result->revision.text());
}

TEST_F(OddServiceTest, AnAnswerWithTheIdOfAnotherProjectsRevisionTakesNothingFromTheTree) {
  test::World world;
  test::TemporaryDirectory directory;
  const std::string project = world.create("projects", R"({"name":"p"})").id;
  const std::string stranger = world.create("projects", R"({"name":"stranger"})").id;
  const std::string theirs =
      world
          .create("revisions",
                  R"({"project":")" + stranger + R"(","parents":[],"manifest":{"files":{"t":{"inline":"t"}}}})")
          .id;
  WorkTree work(world, project, directory.path() + "/tree", {}, {}, false, true, {}, std::chrono::seconds(0));
  ASSERT_TRUE(await<RevisionTreePtr>([&](auto done) { work.site->revision(RevisionId(theirs), {}, std::move(done)); }));
  work.write("file", "content");
  std::atomic<int> posts = 0;
  work.faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of_revision(request) || posts++ > 0) return Fault();
    // Everything in the response is right except the id, and nothing of it is stored.
    auto record = *wire::parse_json(request.body)->object();
    record.set("id", theirs);
    record.set("created_at", "2030-01-01T00:00:00.000Z");
    return test::answer_with(200, wire::to_text(JsonObject{{"record", std::move(record)}}));
  });
  auto result = work.commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_NE(result->revision.text(), theirs);
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"file", "content"}}));
  auto known = work.site->try_record("revisions", theirs);
  ASSERT_TRUE(known);
  EXPECT_EQ(*known->fields.find("project")->string(), stranger) << "nor is anything of theirs another one";
}

TEST_F(OddServiceTest, ABranchThatCannotBeAnnouncedEndsAllTheSame) {
  test::World world;
  test::TemporaryDirectory directory;
  const std::string project = world.create("projects", R"({"name":"p"})").id;
  WorkTree work(world, project, directory.path() + "/tree", {}, {}, false, true);
  work.write("file", "content");
  work.faults.set_plan([&](const HttpRequest& request) {
    bool is_refused = request.method == "PATCH" || request.target.ends_with("/threads");
    return is_refused ? test::answer_with(403, R"({"code":"forbidden"})") : Fault();
  });
  auto result = work.commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched);
  EXPECT_NE(work.events->errors_text().find("announce the branch"), std::string::npos);
}

}  // namespace
}  // namespace playfs::publish
