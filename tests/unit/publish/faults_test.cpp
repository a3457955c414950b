// A network that loses requests and responses, a service that refuses, and other clients that move head meanwhile.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/await.h"
#include "model/plan.h"
#include "support/publish_world.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::Fault;
using test::WorkTree;

bool is_patch(const HttpRequest& request) { return request.method == "PATCH"; }
bool is_head_read(const HttpRequest& request) {
  return request.method == "GET" && request.target.find("/projects/") != std::string::npos;
}

class FaultsTest : public testing::Test {
 protected:
  FaultsTest() : project(world.create("projects", R"({"name":"p"})").id) {
    auto body = JsonObject{{"project", project},
                           {"parents", Json::Array{}},
                           {"manifest", JsonObject{{"files", JsonObject{{"base", JsonObject{{"inline", "0"}}}}}}}};
    base = world.create("revisions", wire::to_text(body)).id;
    world.set_head(project, base);
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree");
    for (int i = 0; i < 3; ++i) work->write("big" + std::to_string(i), big(i));
    work->write("small", "1");
    expected["base"] = "0";
    expected["small"] = "1";
    for (int i = 0; i < 3; ++i) expected["big" + std::to_string(i)] = big(i);
  }

  static std::string big(int seed) {
    std::string text;
    for (int i = 0; text.size() < 20'000; ++i) text += std::to_string(i * 17 + seed) + "\n";
    return text;
  }
  /// Another file besides those of the parent.
  std::string somebody_publishes(const std::string& parent, const std::string& path = "theirs") {
    JsonObject manifest = *world.get("revisions", parent).fields.find("manifest")->object();
    manifest.erase("tx");
    JsonObject files = *manifest.find("files")->object();
    files.set(path, JsonObject{{"inline", "t"}});
    manifest.set("files", std::move(files));
    auto body = JsonObject{{"project", project}, {"parents", Json::Array{parent}}, {"manifest", std::move(manifest)}};
    return world.create("revisions", wire::to_text(body)).id;
  }
  void expect_merged(const CommitResult& result, const std::string& theirs);
  std::size_t revisions() { return world.all("revisions").size(); }
  std::size_t patches() const {
    auto sent = work->faults.sent();
    return static_cast<std::size_t>(
        std::count_if(sent.begin(), sent.end(), [](const auto& one) { return is_patch(one.request); }));
  }
  /// What no fault may change.
  void expect_published_once(const Result<CommitResult>& result) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    EXPECT_EQ(world.head(project), result->revision.text());
    EXPECT_EQ(world.contents(result->revision.text()), expected);
    EXPECT_EQ(revisions(), 2u);
    EXPECT_EQ(world.all("file_chunks").size(), 6u);
    EXPECT_TRUE(work->stage->is_clean());
    expect_one_key_for_each_body();
  }
  void expect_one_key_for_each_body() const {
    std::map<std::string, std::string> body_of_key, key_of_body;
    auto sent = work->faults.sent();
    sent.erase(sent.begin(), sent.begin() + sent_before);
    for (const auto& one : sent) {
      if (one.request.method != "POST") continue;
      auto key = one.request.headers.get("Idempotency-Key");
      ASSERT_TRUE(key);
      std::string key_text(*key);
      EXPECT_EQ(body_of_key.try_emplace(key_text, one.request.body).first->second, one.request.body);
      EXPECT_EQ(key_of_body.try_emplace(one.request.body, key_text).first->second, key_text);
      EXPECT_LE(one.request.body.size(), kRecordRoom);
    }
  }

  /// Another commit, with keys of its own.
  void begin_again() {
    work->faults.set_plan({});
    sent_before = static_cast<std::ptrdiff_t>(work->faults.sent().size());
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::ptrdiff_t sent_before = 0;
  std::string project, base;
  std::unique_ptr<WorkTree> work;
  Contents expected;
};

TEST_F(FaultsTest, EveryRequestIsLostOnce) {
  std::set<std::string> seen;
  work->faults.set_plan([&](const HttpRequest& request) {
    return seen.insert(request.method + request.target + request.body).second ? test::lose_request() : Fault();
  });
  expect_published_once(work->commit());
}

TEST_F(FaultsTest, EveryReplyIsLostOnce) {
  std::set<std::string> seen;
  work->faults.set_plan([&](const HttpRequest& request) {
    return seen.insert(request.method + request.target + request.body).second ? test::lose_reply() : Fault();
  });
  expect_published_once(work->commit());
}

TEST_F(FaultsTest, AMoveOfHeadWhoseReplyIsLostIsLookedForAtOnce) {
  // Without backoff, which is for errors that a retry may cure: here the log shows whether head was moved.
  for (const Fault& lost : {test::lose_reply(), test::lose_request(), test::answer_with(200, "<html>sign in</html>")}) {
    bool is_lost = false;
    work->faults.set_plan([&](const HttpRequest& request) {
      return is_patch(request) && !std::exchange(is_lost, true) ? lost : Fault();
    });
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_TRUE(is_lost);
    EXPECT_EQ(world.head(project), result->revision.text());
    EXPECT_EQ(work->events->events_text().find("commit_waiting"), std::string::npos);
    work->faults.set_plan({});
    work->write("small", std::to_string(revisions()));
  }
}

TEST_F(FaultsTest, EveryWriteIsRefusedForAWhile) {
  std::map<std::string, int> seen;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "GET") return Fault();
    switch (seen[request.method + request.target + request.body]++) {
      case 0: return test::answer_with(503, "<html>busy</html>");
      case 1: return test::answer_with(429, R"({"code":"rate_limited","retry_after":0})");
      case 2: return test::answer_with(200, "<html>please sign in</html>");
      default: return Fault();
    }
  });
  expect_published_once(work->commit());
}

TEST_F(FaultsTest, TheReplyToThePostIsLostAndTheServiceForgetsTheKey) {
  // The record was stored, but its key is forgotten, so repeating the POST would store another one.
  std::atomic<bool> lost = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/revisions")) return Fault();
    if (!lost.exchange(true)) return test::lose_reply();
    return test::answer_with(500, "a repetition, which a service without memory would store again");
  });
  expect_published_once(work->commit());
}

TEST_F(FaultsTest, HeadMovedBeforeThePost) {
  auto theirs = somebody_publishes(base);
  world.set_head(project, theirs);
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.head(project), result->revision.text());
  // Merged before it was posted: one revision based on theirs, with both.
  EXPECT_EQ(revisions(), 3u);
  auto revision = *wire::decode_revision(world.get("revisions", result->revision.text()));
  EXPECT_EQ(revision.parents, std::vector{RevisionId(theirs)});
  auto contents = world.contents(result->revision.text());
  EXPECT_TRUE(contents.contains("theirs"));
  contents.erase("theirs");
  EXPECT_EQ(contents, expected);
  EXPECT_TRUE(work->stage->is_clean());
  EXPECT_EQ(work->read("theirs"), world.contents(theirs)["theirs"]);
}

TEST_F(FaultsTest, HeadMovesAndCannotBeReadAndMovesBack) {
  // The layer was being merged with that head when the network failed. What is left of it must not be published.
  auto theirs = somebody_publishes(base);
  bool is_read = false, is_back = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    bool is_uploaded = world.all("file_chunks").size() == 6;
    is_back = is_back || (is_read && is_head_read(request));
    if (is_head_read(request) && is_uploaded && !is_read) world.set_head(project, theirs);
    if (request.method != "GET" || !request.target.ends_with("/revisions/" + theirs) || is_back) return Fault();
    if (!std::exchange(is_read, true)) world.set_head(project, base);
    return test::lose_request();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(is_read);
  auto revision = *wire::decode_revision(world.get("revisions", result->revision.text()));
  EXPECT_EQ(revision.parents, std::vector{RevisionId(base)});
  expect_merged(*result, theirs);
}

TEST_F(FaultsTest, WhatCannotBeMergedIsABranchAndAnnounced) {
  auto theirs = somebody_publishes(base, "small");
  world.set_head(project, theirs);
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched);
  EXPECT_EQ(result->conflicts, std::vector<std::string>{"small"});
  EXPECT_EQ(world.head(project), theirs);
  EXPECT_EQ(patches(), 0u);
  EXPECT_EQ(world.contents(result->revision.text()), expected);
  auto revision = *wire::decode_revision(world.get("revisions", result->revision.text()));
  EXPECT_EQ(revision.parents, std::vector{RevisionId(base)});
  EXPECT_NE(work->events->events_text().find("commit_branched"), std::string::npos);
  auto messages = world.all("messages");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].fields.find("body")->string()->find(result->revision.text()), std::string::npos);
  auto threads = world.all("threads");
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(*threads[0].fields.find("kind"), Json("collab"));
  EXPECT_EQ(*messages[0].fields.find("thread"), Json(threads[0].id));
  // The work tree is based on its branch, and says so, also after a restart.
  EXPECT_EQ(work->stage->base()->revision.id, result->revision);
  EXPECT_EQ(work->publisher->branch(), result->revision);
  EXPECT_TRUE(work->stage->is_clean());
  work.reset();
  work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree");
  EXPECT_EQ(work->publisher->branch(), result->revision);
  ASSERT_TRUE(work->publisher->last());
  EXPECT_EQ((*work->publisher->last())->outcome, Outcome::branched);
  // The next one is announced in the same thread.
  work->write("small", "more of it");
  ASSERT_TRUE(work->commit());
  EXPECT_EQ(world.all("threads").size(), 1u);
  EXPECT_EQ(world.all("messages").size(), 2u);
}

TEST_F(FaultsTest, ABranchThatSomebodyTookInIsNoneAnyMore) {
  world.set_head(project, somebody_publishes(base, "small"));
  auto result = work->commit();
  ASSERT_TRUE(result);
  EXPECT_TRUE(work->publisher->branch());
  auto look = [&] {
    auto head =
        await<content::Head>([&](auto done) { work->site->refresh_head(ProjectId(project), {}, std::move(done)); });
    ASSERT_TRUE(head);
    auto tree = await<RevisionTreePtr>(
        [&](auto done) { work->site->revision(head->project.latest_revision, {}, std::move(done)); });
    EXPECT_TRUE(tree);
  };
  world.set_head(project, result->revision.text());
  look();
  EXPECT_FALSE(work->publisher->branch());
  world.set_head(project, somebody_publishes(result->revision.text()));
  look();
  EXPECT_FALSE(work->publisher->branch());
}

/// Head has ours and theirs, joined by a merge that either client would make.
void FaultsTest::expect_merged(const CommitResult& result, const std::string& theirs) {
  EXPECT_EQ(result.outcome, Outcome::merged);
  EXPECT_EQ(result.merged_revision.text(), world.head(project));
  auto merge = *wire::decode_revision(world.get("revisions", world.head(project)));
  EXPECT_TRUE(merge.manifest.is_automatic);
  EXPECT_TRUE(merge.manifest.tx.empty());
  std::set<RevisionId> parents(merge.parents.begin(), merge.parents.end());
  EXPECT_EQ(parents, (std::set{result.revision, RevisionId(theirs)}));
  auto contents = world.contents(world.head(project));
  EXPECT_TRUE(contents.contains("theirs"));
  contents.erase("theirs");
  EXPECT_EQ(contents, expected);
}

TEST_F(FaultsTest, HeadMovesBetweenPostAndPatch) {
  std::string theirs;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (is_head_read(request) && revisions() == 2 && theirs.empty()) {
      theirs = somebody_publishes(base);
      world.set_head(project, theirs);
    }
    return Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  expect_merged(*result, theirs);
}

TEST_F(FaultsTest, HeadMovesWhileThePatchIsLost) {
  // The PATCH never arrives; before it could be repeated, another client moves head: theirs must stay.
  std::string theirs;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!is_patch(request) || !theirs.empty()) return Fault();
    theirs = somebody_publishes(base);
    world.set_head(project, theirs);
    return test::lose_request();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  expect_merged(*result, theirs);
  EXPECT_EQ(patches(), 2u);
}

TEST_F(FaultsTest, HeadMovesWhileThePatchIsRateLimited) {
  std::string theirs;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!is_patch(request) || !theirs.empty()) return Fault();
    theirs = somebody_publishes(base);
    world.set_head(project, theirs);
    return test::answer_with(429, R"({"code":"rate_limited","retry_after":0})");
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  expect_merged(*result, theirs);
}

TEST_F(FaultsTest, SomebodyMovesHeadRightAfterOurPatch) {
  std::string theirs;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (is_head_read(request) && patches() == 1 && theirs.empty()) {
      theirs = somebody_publishes(base);  // on the old head, without reading the new one
      world.set_head(project, theirs);
    }
    return Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  expect_merged(*result, theirs);
}

TEST_F(FaultsTest, SomebodyBuildsOnOurRevisionBeforeWeLook) {
  std::string top;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (is_head_read(request) && patches() == 1 && top.empty()) {
      top = somebody_publishes(somebody_publishes(world.head(project)));
      world.set_head(project, top);
    }
    return Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.head(project), top);
  EXPECT_FALSE(work->publisher->branch());
}

TEST_F(FaultsTest, AChunkThatIsRefusedForGoodGivesTheStageBack) {
  work->faults.set_plan([&](const HttpRequest& request) {
    return test::is_post_of(request, "/file_chunks") ? test::answer_with(403, R"({"code":"forbidden"})") : Fault();
  });
  auto result = work->commit();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(revisions(), 1u);
  EXPECT_FALSE(*work->stage->pending());
  EXPECT_FALSE(work->stage->is_clean());
  begin_again();
  expect_published_once(work->commit());
}

TEST_F(FaultsTest, ARevisionThatIsTooLargeForTheServiceGivesTheStageBack) {
  work->faults.set_plan([&](const HttpRequest& request) {
    return test::is_post_of(request, "/revisions") ? test::answer_with(413, R"({"code":"record_too_large"})") : Fault();
  });
  auto result = work->commit();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::record_too_large);
  EXPECT_FALSE(*work->stage->pending());
  begin_again();
  expect_published_once(work->commit());  // no chunk was uploaded twice
}

TEST_F(FaultsTest, APatchThatIsForbiddenLeavesABranch) {
  work->faults.set_plan([&](const HttpRequest& request) {
    return is_patch(request) ? test::answer_with(403, R"({"code":"forbidden"})") : Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched);
  EXPECT_EQ(world.head(project), base);
  EXPECT_NE(work->events->errors_text().find("permission_denied"), std::string::npos);
}

TEST_F(FaultsTest, AServiceThatKeepsAnotherTextIsNotBuiltOn) {
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/file_chunks")) return Fault();
    return test::answer_with(200, R"({"record":{"id":"x","content":"shortened"}})");
  });
  auto result = work->commit();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::corrupt);
  EXPECT_EQ(revisions(), 1u);
}

TEST_F(FaultsTest, ALongRateLimitIsShownAndWaitedOut) {
  std::atomic<bool> limited = true, is_shown_on = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!limited && work->publisher->progress().last_error) is_shown_on = true;
    if (!test::is_post_of(request, "/revisions") || !limited) return Fault();
    return test::answer_with(429, R"({"code":"rate_limited","retry_after":1})");
  });
  std::atomic<bool> answered = false;
  work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                          [&](const Result<CommitResult>&) { answered = true; });
  work->wait_until_it_fails();
  auto progress = work->publisher->progress();
  EXPECT_EQ(progress.last_error->code, ErrorCode::rate_limited);
  EXPECT_EQ(progress.so_far.outcome, Outcome::pending);
  EXPECT_EQ(progress.so_far.chunks_done, 6u);
  EXPECT_GT(progress.so_far.retry_after_s, 0u);
  EXPECT_FALSE(progress.seconds_left) << "nothing is left to be uploaded";
  EXPECT_FALSE(answered);
  limited = false;
  work->wait_until_idle();
  EXPECT_FALSE(is_shown_on) << "it does not wait any more";
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(FaultsTest, TheRemainingTimeIsShownDuringARateLimit) {
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/file_chunks")) return Fault();
    return test::answer_with(429, R"({"code":"rate_limited","retry_after":60})");
  });
  work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                          [](const Result<CommitResult>&) {});
  work->wait_until_it_fails();
  auto progress = work->publisher->progress();
  EXPECT_EQ(progress.phase, Phase::uploading);
  ASSERT_TRUE(progress.seconds_left);
  EXPECT_GE(*progress.seconds_left, progress.so_far.retry_after_s);
}

TEST_F(FaultsTest, WhatWasUploadedTellsHowLongTheRestTakes) {
  std::atomic<int> asked = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/file_chunks")) return Fault();
    if (++asked > 3) return test::answer_with(429, R"({"code":"rate_limited","retry_after":60})");
    world.clock.advance(std::chrono::seconds(10));
    return Fault();
  });
  work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                          [](const Result<CommitResult>&) {});
  work->wait_until_it_fails();
  auto progress = work->publisher->progress();
  EXPECT_EQ(progress.so_far.chunks_done, 3u);
  ASSERT_TRUE(progress.seconds_left);
  EXPECT_GE(*progress.seconds_left, progress.so_far.retry_after_s + 10) << "three more, as slow as the first three";
}

TEST_F(FaultsTest, NothingIsSentUntilRetryAfterHasPassed) {
  std::atomic<bool> is_refused = false;
  std::atomic<int> since = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    since += is_refused;
    if (!test::is_post_of(request, "/revisions")) return Fault();
    is_refused = true;
    return test::answer_with(429, R"({"code":"rate_limited","retry_after":60})");
  });
  work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                          [](const Result<CommitResult>&) {});
  ASSERT_TRUE(test::eventually([&] { return is_refused.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(since, 0);
}

}  // namespace
}  // namespace playfs::publish
