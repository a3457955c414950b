// What the service does not show: when it counts as gone, and that a single response has no consequences.
#include "publish/absences.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/await.h"
#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using test::Contents;
using test::Fault;
using test::WorkTree;
using Presence = Absences::Presence;

class AbsencesTest : public testing::Test {
 protected:
  explicit AbsencesTest(std::chrono::milliseconds late_arrival = test::kLateArrival)
      : project(world.create("projects", R"({"name":"p"})").id) {
    open(late_arrival);
  }

  /// Opens the work tree on head. `reconciles`: it reconciles, as in a mount.
  void open(std::chrono::milliseconds late_arrival, bool reconciles = false, test::FaultyTransport::Plan plan = {}) {
    work.reset();
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree", std::move(plan), nullptr, reconciles,
                                      false, MergePolicy(), late_arrival);
  }
  void publish(const Contents& contents) {
    for (const auto& [path, content] : contents) work->write(path, content);
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outcome, Outcome::published);
  }
  /// Another client's revision: adds `path` to the files of its parent, and omits `without`.
  std::string post(const std::string& parent, const std::string& path, const std::string& without = {}) {
    JsonObject manifest = *world.get("revisions", parent).fields.find("manifest")->object();
    manifest.erase("tx");
    JsonObject files = *manifest.find("files")->object();
    files.set(path, JsonObject{{"inline", "of others"}});
    files.erase(without);
    manifest.set("files", std::move(files));
    return world
        .create("revisions", R"({"project":")" + project + R"(","parents":[")" + parent +
                                 R"("],"agent":"other","manifest":)" + wire::to_text(manifest) + "}")
        .id;
  }
  /// Another client's revision that has only `both`, with other content.
  std::string publish_beside(const std::string& parent, const std::string& content) {
    const JsonObject files{{"both", JsonObject{{"inline", content}}}};
    return world
        .create("revisions", R"({"project":")" + project + R"(","parents":[")" + parent +
                                 R"("],"agent":"other","manifest":{"files":)" + wire::to_text(files) + "}}")
        .id;
  }
  /// Hides a revision, both by id and in lists.
  test::FaultyTransport::Plan without(const std::string& revision, int status = 404) {
    return [this, revision, status](const HttpRequest& request) {
      if (request.method != "GET") return Fault();
      if (request.target.ends_with("/revisions/" + revision)) return test::answer_with(status, R"({"code":"x"})");
      if (request.target.find("/revisions?") == std::string::npos) return Fault();
      Json::Array left;
      for (const auto& record : world.all("revisions")) {
        if (record.id == revision) continue;
        JsonObject one{{"id", record.id}, {"createdAt", record.created_at}, {"updatedAt", record.updated_at}};
        for (const auto& [name, value] : record.fields) one.set(name, value);
        left.emplace_back(std::move(one));
      }
      return test::answer_with(200, wire::to_text(JsonObject{{"records", std::move(left)}, {"nextCursor", Json()}}));
    };
  }
  void hide(const std::string& revision, int status = 404) { work->faults.set_plan(without(revision, status)); }
  [[nodiscard]] std::size_t looks_for(const std::string& revision) const {
    auto sent = work->faults.sent();
    return static_cast<std::size_t>(std::count_if(sent.begin(), sent.end(), [&](const test::Sent& one) {
      return one.request.target.ends_with("/revisions/" + revision);
    }));
  }
  RevisionTreePtr read(const std::string& id) {
    auto tree = await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(id), {}, std::move(done)); });
    EXPECT_TRUE(tree) << tree.error().message;
    return *tree;
  }
  void begin_commit() {
    work->publisher->commit({.agent = "t", .message = "m", .wait = false, .allow_merge = true}, {},
                            [](const Result<CommitResult>&) {});
  }
  /// Waits until the commit reports that the revision is not shown. It must not write anything before.
  void wait_until_it_is_missed(const std::string& revision) {
    const std::size_t published = writes().size();
    EXPECT_TRUE(test::eventually([&] {
      auto why = work->publisher->progress().last_error;
      return (why && why->message.find("does not show revision " + revision) != std::string::npos) ||
             writes().size() > published;
    }));
    EXPECT_EQ(writes().size(), published);
  }
  [[nodiscard]] std::vector<std::string> writes() const {
    std::vector<std::string> writes;
    for (const auto& sent : work->faults.sent())
      if (sent.request.method != "GET") writes.push_back(sent.request.method + " " + sent.request.target);
    return writes;
  }

  test::World world;
  test::TemporaryDirectory directory;
  const std::string project;
  std::unique_ptr<WorkTree> work;
};

// When a revision is gone.

class DoubtTest : public AbsencesTest {
 protected:
  DoubtTest() {
    publish({{"a", "a"}});
    revision = RevisionId(world.head(project));
    hide(revision.text());
  }
  Presence look() {
    auto presence = absences.look(revision);
    EXPECT_TRUE(presence) << presence.error().message;
    return *presence;
  }
  Presence look_after(std::chrono::nanoseconds time) {
    world.clock.advance(time);
    return look();
  }
  void show() { work->faults.set_plan({}); }

  RevisionId revision;
  SiteUpstream upstream{*work->site, ProjectId(project), 1};
  Absences absences{upstream, world.clock, minutes(2)};
};

TEST_F(DoubtTest, IsGoneOnceMissingForAsLongAsReadsMayLag) {
  EXPECT_EQ(look(), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(60)), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(50)), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(15)), Presence::gone);
  EXPECT_EQ(look(), Presence::gone);
}

TEST_F(DoubtTest, OneSightingEndsTheDoubt) {
  EXPECT_EQ(look(), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(100)), Presence::not_shown);
  show();
  EXPECT_EQ(look_after(seconds(10)), Presence::there);
  hide(revision.text());
  EXPECT_EQ(look_after(seconds(20)), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(60)), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(70)), Presence::gone);
}

TEST_F(DoubtTest, ASightingElsewhereEndsTheDoubtToo) {
  EXPECT_EQ(look(), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(100)), Presence::not_shown);
  absences.saw([](const RevisionId&) { return false; });
  EXPECT_EQ(look_after(seconds(30)), Presence::gone);
  absences.saw([&](const RevisionId& id) { return id == revision; });
  EXPECT_EQ(look(), Presence::not_shown);
}

TEST_F(DoubtTest, IsCheckedInBetween) {
  EXPECT_EQ(look(), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(130)), Presence::not_shown);
  EXPECT_EQ(look(), Presence::gone);
}

TEST_F(DoubtTest, ALongGapBetweenChecksStartsOver) {
  EXPECT_EQ(look(), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(60)), Presence::not_shown);
  EXPECT_EQ(look_after(minutes(10)), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(60)), Presence::not_shown);
  EXPECT_EQ(look_after(seconds(61)), Presence::gone);
}

TEST_F(DoubtTest, ThreeLookupsFarApartAreEnough) {
  EXPECT_EQ(look(), Presence::not_shown);
  EXPECT_EQ(look_after(minutes(10)), Presence::not_shown);
  EXPECT_EQ(look_after(minutes(10)), Presence::gone);
}

TEST_F(DoubtTest, AnOlderHeadIsAcceptedAfterConsistentReads) {
  show();
  const auto older = upstream.project();
  ASSERT_TRUE(older) << older.error().message;
  world.clock.advance(seconds(1));
  world.set_head(project, post(revision.text(), "b"));
  EXPECT_TRUE(absences.check_head(*older)) << "nobody here has seen another";
  const auto newer = upstream.project();
  ASSERT_TRUE(newer) << newer.error().message;
  auto check_after = [&](std::chrono::nanoseconds time, const Project& shown) {
    world.clock.advance(time);
    auto checked = absences.check_head(shown);
    return checked ? ErrorCode::internal : checked.error().code;
  };
  const ErrorCode none = ErrorCode::internal;
  EXPECT_EQ(check_after(seconds(0), *older), ErrorCode::busy);
  EXPECT_EQ(check_after(seconds(100), *older), ErrorCode::busy);
  EXPECT_EQ(check_after(seconds(10), *newer), none);
  EXPECT_EQ(check_after(seconds(20), *older), ErrorCode::busy) << "it was seen in between";
  EXPECT_EQ(check_after(seconds(60), *older), ErrorCode::busy);
  EXPECT_EQ(check_after(seconds(61), *older), none);
  EXPECT_EQ(check_after(seconds(1), *older), none) << "for good";
}

TEST_F(DoubtTest, ALostHeadStaysLostWhileItIsHead) {
  show();
  const auto on_it = upstream.project();
  ASSERT_TRUE(on_it) << on_it.error().message;
  Project elsewhere = *on_it;
  elsewhere.latest_revision = RevisionId("another");
  hide(revision.text());
  auto is_gone_in_time = [&] {
    look();
    look_after(seconds(60));
    return look_after(seconds(60)) == Presence::gone;
  };
  ASSERT_TRUE(absences.check_head(*on_it));
  EXPECT_TRUE(is_gone_in_time());
  EXPECT_EQ(look_after(minutes(10)), Presence::gone) << "though nobody looked in between";
  show();
  EXPECT_EQ(look(), Presence::there);
  hide(revision.text());
  EXPECT_EQ(look(), Presence::not_shown) << "it was seen";
  EXPECT_TRUE(is_gone_in_time());
  ASSERT_TRUE(absences.check_head(elsewhere));
  ASSERT_TRUE(absences.check_head(*on_it));
  EXPECT_EQ(look_after(minutes(10)), Presence::not_shown) << "head was elsewhere";
  EXPECT_TRUE(is_gone_in_time());
  absences.saw([&](const RevisionId& id) { return id == revision; });
  EXPECT_EQ(look(), Presence::not_shown) << "it was in a list";
}

TEST_F(DoubtTest, NoChoiceIsMadeBeforeHeadIsStable) {
  show();
  const auto one = upstream.project();
  ASSERT_TRUE(one) << one.error().message;
  Project other = *one;
  other.latest_revision = RevisionId("another");
  auto may_choose_after = [&](std::chrono::nanoseconds time, const Project& project) {
    world.clock.advance(time);
    auto checked = absences.check_choice(project);
    EXPECT_TRUE(checked || checked.error().code == ErrorCode::busy);
    return checked.has_value();
  };
  EXPECT_FALSE(may_choose_after(seconds(0), *one));
  EXPECT_FALSE(may_choose_after(seconds(100), *one));
  EXPECT_TRUE(may_choose_after(seconds(21), *one));
  EXPECT_FALSE(may_choose_after(seconds(1), other));
  EXPECT_FALSE(may_choose_after(seconds(1), *one));
  EXPECT_FALSE(may_choose_after(seconds(121), *one)) << "two looks are too few";
  EXPECT_TRUE(may_choose_after(seconds(1), *one));
}

TEST_F(DoubtTest, CallersAreToldToRetryUntilThen) {
  auto gone = absences.is_gone(revision);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::busy);
  EXPECT_EQ(look_after(seconds(119)), Presence::not_shown);
  world.clock.advance(seconds(2));
  gone = absences.is_gone(revision);
  EXPECT_TRUE(gone && *gone);
}

TEST_F(DoubtTest, ARefusedRecordExistsAndAFailureProvesNothing) {
  hide(revision.text(), 403);
  EXPECT_EQ(look(), Presence::there);
  EXPECT_EQ(look_after(seconds(200)), Presence::there);
  hide(revision.text(), 503);
  EXPECT_FALSE(absences.look(revision));
  EXPECT_FALSE(absences.is_gone(revision));
}

// Head.

TEST_F(AbsencesTest, ACommitDoesNotMoveHeadUntilItIsShown) {
  publish({{"a", "a"}});
  open(minutes(10));
  const std::string theirs = post(world.head(project), "theirs");
  world.set_head(project, theirs);
  read(theirs);
  hide(theirs);
  work->write("mine", "m");
  begin_commit();
  wait_until_it_is_missed(theirs);
  EXPECT_EQ(world.head(project), theirs);
  work->faults.set_plan({});
  work->wait_until_idle();
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"a", "a"}, {"mine", "m"}, {"theirs", "of others"}}));
}

TEST_F(AbsencesTest, AReconcileDoesNotMoveHeadUntilItsRevisionIsLost) {
  publish({{"a", "a"}});
  const std::string root = world.head(project), theirs = post(root, "theirs");
  world.set_head(project, theirs);
  read(theirs);
  open(minutes(10), true, without(theirs));
  auto wait_for_looks = [&](std::size_t count) {
    count += looks_for(theirs);
    EXPECT_TRUE(test::eventually([&] { return looks_for(theirs) >= count || !writes().empty(); }));
  };
  for (int minute = 0; minute < 10; minute += 3) {
    wait_for_looks(3);
    EXPECT_THAT(writes(), testing::IsEmpty()) << "after minutes: " << minute;
    world.clock.advance(minutes(3));
  }
  // The client keeps checking, without a request by a user.
  EXPECT_TRUE(test::eventually([&] { return world.head(project) == root; }));
}

TEST_F(AbsencesTest, ADryRunNeverWrites) {
  publish({{"a", "a"}});
  world.back_up();
  const std::string lost = post(world.head(project), "theirs");
  read(lost);
  world.restore();
  world.set_head(project, lost);
  const std::size_t published = writes().size();
  work->write("mine", "m");
  Result<PlannedCommit> planned;
  int busy = 0;
  ASSERT_TRUE(test::eventually([&] {
    planned = await<PlannedCommit>([&](auto done) { work->publisher->plan({}, std::move(done)); });
    const bool is_busy = !planned && planned.error().code == ErrorCode::busy;
    busy += is_busy;
    return !is_busy;
  }));
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_GT(busy, 0) << "head is looked for first";
  EXPECT_GT(planned->revision_size, 0u);
  EXPECT_EQ(writes().size(), published);
  EXPECT_EQ(world.head(project), lost);
  ASSERT_TRUE(work->commit());
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"a", "a"}, {"mine", "m"}}));
}

/// Another client set head to an id that no revision has.
class NowhereTest : public AbsencesTest {
 protected:
  NowhereTest() {
    publish({{"a", "a"}});
    root = world.head(project);
    world.set_head(project, nowhere);
  }
  Outcome commit(const std::string& path) {
    work->write(path, "m");
    auto result = work->commit();
    EXPECT_TRUE(result) << result.error().message;
    return result ? result->outcome : Outcome::nothing;
  }
  [[nodiscard]] std::size_t waits() const {
    const std::string events = work->events->events_text();
    std::size_t count = 0;
    for (auto at = events.find("commit_waiting"); at != std::string::npos; at = events.find("commit_waiting", at + 1))
      ++count;
    return count;
  }
  const std::string nowhere = "never-there";
  std::string root;
};

TEST_F(NowhereTest, ACommitMovesHeadBack) {
  EXPECT_EQ(commit("mine"), Outcome::published);
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"a", "a"}, {"mine", "m"}}));
  EXPECT_GT(waits(), 0U) << "it might only not be shown yet";
  EXPECT_NE(work->events->events_text().find("head_was_gone"), std::string::npos);
}

TEST_F(NowhereTest, WaitsOnceWhileHeadStaysThere) {
  work->faults.set_plan([](const HttpRequest& request) {
    return request.method == "PATCH" ? test::answer_with(403, R"({"code":"forbidden"})") : Fault();
  });
  EXPECT_EQ(commit("one"), Outcome::branched);
  EXPECT_EQ(world.head(project), nowhere);
  const std::size_t waited = waits();
  for (const char* path : {"two", "three"}) {
    world.clock.advance(minutes(10));
    EXPECT_EQ(commit(path), Outcome::branched);
  }
  EXPECT_EQ(waits(), waited);
}

TEST_F(NowhereTest, WaitsOnceIfSomebodySetsItThereAgain) {
  EXPECT_EQ(commit("one"), Outcome::published);
  world.set_head(project, nowhere);
  EXPECT_EQ(commit("two"), Outcome::published);
  world.set_head(project, nowhere);
  EXPECT_EQ(commit("three"), Outcome::branched) << "somebody means it";
  EXPECT_EQ(world.head(project), nowhere);
}

TEST_F(NowhereTest, ARevisionThatHasAChildExisted) {
  const std::string beside = post(root, "beside");
  const std::string on_it = publish_beside(nowhere, "theirs");
  EXPECT_EQ(commit("mine"), Outcome::branched) << "what they have in common is not known";
  EXPECT_EQ(world.head(project), on_it);
}

TEST_F(AbsencesTest, ALaggingRecordDecidesNothing) {
  publish({{"both", "0"}});
  const std::string root = world.head(project);
  open(minutes(10));
  auto old = world.get("projects", project);
  JsonObject record{{"id", old.id}, {"createdAt", old.created_at}, {"updatedAt", old.updated_at}};
  for (const auto& [name, value] : old.fields) record.set(name, value);
  const std::string lagging = wire::to_text(JsonObject{{"record", std::move(record)}});
  post(root, "both");
  const std::string chosen = publish_beside(root, "chosen");
  world.set_head(project, chosen);
  std::atomic<bool> lags = true;
  work->faults.set_plan([&](const HttpRequest& request) {
    const bool is_record = request.method == "GET" && request.target.ends_with("/projects/" + project);
    return is_record && lags ? test::answer_with(200, lagging) : Fault();
  });
  work->write("mine", "m");
  begin_commit();
  auto is_waited_for = [&] {
    auto why = work->publisher->progress().last_error;
    return why && why->message.find("do not merge") != std::string::npos;
  };
  EXPECT_TRUE(test::eventually([&] { return is_waited_for() || world.head(project) != chosen; }));
  EXPECT_EQ(world.head(project), chosen);
  lags = false;
  work->wait_until_idle();
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"both", "chosen"}, {"mine", "m"}}));
}

// The base.

/// What was published here was gone for a while, and another client had deleted part of it before.
class BaseTest : public AbsencesTest {
 protected:
  explicit BaseTest(std::chrono::milliseconds late_arrival = test::kLateArrival, const std::string& kept = "k")
      : AbsencesTest(late_arrival) {
    publish({{"a", "a"}});
    const std::string root = world.head(project);
    world.back_up("old");
    publish({{"deleted", "d"}, {"kept", kept}});
    base = world.head(project);
    theirs = post(base, "theirs", "deleted");
    // Head does not hold the base, so it does not show whether the base is still there.
    world.set_head(project, root);
    world.back_up("new");
    world.restore("old");
  }
  void expect_that_it_stays_deleted() {
    auto contents = world.contents(world.head(project));
    EXPECT_FALSE(contents.contains("deleted"));
    EXPECT_TRUE(contents.contains("kept"));
    EXPECT_TRUE(contents.contains("theirs"));
    EXPECT_TRUE(contents.contains("mine"));
  }
  std::string base, theirs;
};

class PatientBaseTest : public BaseTest {
 protected:
  PatientBaseTest() : BaseTest(minutes(10)) {}
};

TEST_F(PatientBaseTest, ACommitWaitsForIt) {
  work->write("mine", "m");
  const std::size_t published = writes().size();
  begin_commit();
  wait_until_it_is_missed(base);
  world.clock.advance(minutes(9));
  const std::size_t seen = looks_for(base);
  EXPECT_TRUE(test::eventually([&] { return looks_for(base) >= seen + 3 || writes().size() > published; }));
  ASSERT_EQ(writes().size(), published);
  world.restore("new");
  work->wait_until_idle();
  expect_that_it_stays_deleted();
  EXPECT_EQ(work->events->events_text().find("service_went_back"), std::string::npos);
}

/// Its content is uploaded again, since its chunks were lost with it.
class BaseOfChunksTest : public BaseTest {
 protected:
  BaseOfChunksTest() : BaseTest(test::kLateArrival, std::string(30'000, 'k')) {}
};

TEST_F(BaseOfChunksTest, ContentThatReturnsDuringUploadsIsNotAChange) {
  work->write("mine", "m");
  bool is_lost = false, is_back = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    is_lost = is_lost || work->events->events_text().find("service_went_back") != std::string::npos;
    if (is_lost && test::is_post_of(request, "/file_chunks") && !std::exchange(is_back, true)) world.restore("new");
    return Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(is_back);
  expect_that_it_stays_deleted();
}

TEST_F(BaseTest, ContentThatReturnsBeforeTheRevisionIsNotAChange) {
  work->write("mine", "m");
  bool is_back = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/revisions") || std::exchange(is_back, true)) return Fault();
    world.restore("new");
    return test::lose_request();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(is_back);
  expect_that_it_stays_deleted();
}

TEST_F(AbsencesTest, ALostLineIsWaitedForOnce) {
  open(minutes(10));
  publish({{"a", "a"}});
  world.back_up();
  for (const char* name : {"b", "c", "d"}) publish({{name, name}});
  const std::string common = world.head(project);
  publish({{"mine", "m"}});
  // Posted before the service went back, and arriving afterwards.
  const std::string manifest = wire::to_text(*world.get("revisions", common).fields.find("manifest"));
  world.restore();
  const std::string late = world
                               .create("revisions", R"({"project":")" + project + R"(","parents":[")" + common +
                                                        R"("],"agent":"other","manifest":)" + manifest + "}")
                               .id;
  world.set_head(project, late);
  auto head = read(late);
  auto keep = [&] {
    return await<bool>([&](auto done) { work->publisher->keep_lost_base(head, {}, std::move(done)); });
  };
  for (int minute = 0; minute < 10; minute += 4) {
    auto kept = keep();
    ASSERT_FALSE(kept) << "after minutes: " << minute;
    EXPECT_EQ(kept.error().code, ErrorCode::busy);
    EXPECT_FALSE(work->publisher->lost_base());
    world.clock.advance(minutes(4));
  }
  auto kept = keep();
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_TRUE(*kept);
  EXPECT_EQ(work->read("mine"), "m");
}

}  // namespace
}  // namespace playfs::publish
