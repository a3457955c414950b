// Commits against the real service, undisturbed: what is published, sent and kept.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/await.h"
#include "publish/dry_run.h"
#include "support/publish_world.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

class CommitTest : public testing::Test {
 protected:
  CommitTest() : project(world.create("projects", R"({"name":"p"})").id) {}

  std::unique_ptr<WorkTree> tree(const std::string& name = "tree") {
    return std::make_unique<WorkTree>(world, project, directory.path() + "/" + name);
  }
  static std::size_t count(const WorkTree& tree, const std::string& method, const std::string& part) {
    auto sent = tree.faults.sent();
    return static_cast<std::size_t>(std::count_if(sent.begin(), sent.end(), [&](const test::Sent& one) {
      return one.request.method == method && one.request.target.find(part) != std::string::npos;
    }));
  }
  static std::string text(std::size_t size, int seed) {
    std::string text;
    for (int i = 0; text.size() < size; ++i) text += std::to_string(i * 31 + seed) + (i % 9 ? " " : "ä€\n");
    return text;
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
};

Result<CommitResult> outcome_of(const WorkTree& work, const std::string& tx) {
  return await<CommitResult>([&](auto done) { work.publisher->outcome_of(tx, true, {}, std::move(done)); });
}

TEST_F(CommitTest, AskingAgainReturnsTheOwnCommit) {
  auto work = tree();
  std::vector<CommitResult> told;
  for (const char* name : {"one", "two"}) {
    work->write(name, name);
    CommitRequest request;
    request.message = name;
    request.wait = false;
    auto pending = await<CommitResult>([&](auto done) { work->publisher->commit(request, {}, std::move(done)); });
    ASSERT_TRUE(pending);
    auto ended = outcome_of(*work, pending->tx);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ(ended->tx, pending->tx);
    told.push_back(*ended);
  }
  auto first = outcome_of(*work, told[0].tx);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->revision, told[0].revision) << "though another has ended since";
  EXPECT_EQ(outcome_of(*work, std::string(kTxDigits, 'e')).error().code, ErrorCode::not_found);
  work.reset();
  work = tree();
  auto last = outcome_of(*work, told[1].tx);
  ASSERT_TRUE(last) << "the journal has the last one";
  EXPECT_EQ(last->revision, told[1].revision);
  EXPECT_EQ(outcome_of(*work, told[0].tx).error().code, ErrorCode::not_found) << "and no other";
}

TEST_F(CommitTest, PublishesWhatWasWritten) {
  auto work = tree();
  Contents expected{{"a", "hello\n"},
                    {"dir/big", text(30'000, 1)},
                    {"bin", std::string("\0\xff\x80", 3)},
                    {"empty", ""},
                    {"run.sh", "#!/bin/sh\n"}};
  for (const auto& [path, content] : expected) work->write(path, content, path == "run.sh" ? 0755 : 0644);
  auto result = work->commit("the first");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(result->files_changed, 5u);
  EXPECT_EQ(result->chunks_total, 3u);
  EXPECT_EQ(result->chunks_done, 3u);
  EXPECT_EQ(result->writes_used, 5u);
  EXPECT_EQ(world.head(project), result->revision.text());
  EXPECT_EQ(world.contents(result->revision.text()), expected);
  auto revision = *wire::decode_revision(world.get("revisions", result->revision.text()));
  EXPECT_TRUE(revision.parents.empty());
  EXPECT_EQ(revision.agent, "tester");
  EXPECT_EQ(revision.message, "the first");
  EXPECT_EQ(revision.manifest.tx.size(), 32u);
  EXPECT_EQ(revision.state, Json(JsonObject())) << "a record has one, also where nothing is in it";
  EXPECT_EQ(revision.manifest.files.at("run.sh").mode, FileMode::executable);
  EXPECT_EQ(count(*work, "POST", "file_chunks"), 3u);
  EXPECT_EQ(count(*work, "POST", "revisions"), 1u);
  EXPECT_EQ(count(*work, "PATCH", "projects"), 1u);

  EXPECT_TRUE(work->stage->is_clean());
  EXPECT_EQ(work->stage->base()->revision.id, result->revision);
  EXPECT_FALSE(work->publisher->branch());
  for (const auto& [path, content] : expected) EXPECT_EQ(work->read(path), content) << path;
  // Neither the revision nor the content just sent is fetched, except for the few chunks that show whether the service
  // went back meanwhile.
  EXPECT_EQ(count(*work, "GET", "revisions/"), 0u);
  EXPECT_LE(count(*work, "GET", "file_chunks"), 4u);
  // Head and the log are read before and after the PATCH.
  EXPECT_EQ(count(*work, "GET", "revisions?"), 2u);
  EXPECT_EQ(count(*work, "GET", "projects/"), 4u) << "with the one when the tree was opened";
  ASSERT_TRUE(work->publisher->last());
  EXPECT_EQ((*work->publisher->last())->revision, result->revision);
}

TEST_F(CommitTest, NothingStagedSendsNothing) {
  auto work = tree();
  auto before = work->faults.sent().size();
  auto result = work->commit();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, Outcome::nothing);
  EXPECT_EQ(work->faults.sent().size(), before);
}

TEST_F(CommitTest, TheNextCommitStandsOnTheOneBefore) {
  auto work = tree();
  work->write("a", "1");
  work->write("b", text(20'000, 2));
  auto first = work->commit();
  ASSERT_TRUE(first);
  work->write("a", "2");
  work->rename("b", "c");
  work->write("d/e", "3");
  auto second = work->commit();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->outcome, Outcome::published);
  EXPECT_EQ(second->chunks_total, 0u);
  auto revision = *wire::decode_revision(world.get("revisions", second->revision.text()));
  EXPECT_EQ(revision.parents, std::vector{first->revision});
  EXPECT_EQ(world.contents(second->revision.text()), (Contents{{"a", "2"}, {"c", text(20'000, 2)}, {"d/e", "3"}}));
  work->remove("c");
  auto third = work->commit();
  ASSERT_TRUE(third);
  EXPECT_EQ(world.contents(third->revision.text()), (Contents{{"a", "2"}, {"d/e", "3"}}));
  // What was uploaded once stays known.
  work->write("back", text(20'000, 2));
  auto fourth = work->commit();
  ASSERT_TRUE(fourth);
  EXPECT_EQ(fourth->chunks_total, 0u);
  EXPECT_EQ(world.contents(fourth->revision.text()).at("back"), text(20'000, 2));
}

TEST_F(CommitTest, AnotherClientsRevisionIsCarriedForwardWithAllItSays) {
  auto content = text(10'000, 3);
  auto chunk =
      world.create("file_chunks", wire::to_text(JsonObject{{"path", "big"}, {"seq", 0}, {"content", content}}));
  JsonObject files{{"README.md", JsonObject{{"h", "x1"}, {"s", 5}, {"inline", "hello"}, {"lang", "en"}}},
                   {"big", JsonObject{{"h", ContentHash::of(content).hex()},
                                      {"s", content.size()},
                                      {"c", Json::Array{chunk.id}},
                                      {"note", Json::Array{1, nullptr}}}},
                   {"../up", JsonObject{{"inline", "no"}}}};
  JsonObject manifest{{"files", files}, {"generator", JsonObject{{"name", "other"}, {"v", 3}}}};
  JsonObject body{{"project", project},   {"parents", Json::Array{}},
                  {"agent", "other"},     {"message", "m"},
                  {"manifest", manifest}, {"state", JsonObject{{"score", Json(Json::Number{"1.50"})}}},
                  {"mood", "good"}};
  auto theirs = world.create("revisions", wire::to_text(body));
  world.set_head(project, theirs.id);

  auto work = tree();
  work->write("README.md", "changed");
  work->write("copy", content);
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(result->chunks_total, 0u) << "their chunk holds that content, as was compared";
  auto ours = world.get("revisions", result->revision.text());
  const auto& kept = *ours.fields.find("manifest")->object();
  EXPECT_EQ(*kept.find("generator"), *manifest.find("generator"));
  const auto& kept_files = *kept.find("files")->object();
  EXPECT_EQ(*kept_files.find("big"), *files.find("big"));
  EXPECT_EQ(*kept_files.find("../up"), *files.find("../up"));
  EXPECT_EQ(*kept_files.find("README.md")->object()->find("lang"), Json("en"));
  EXPECT_EQ(*ours.fields.find("state"), *body.find("state"));
  EXPECT_EQ(ours.fields.find("mood"), nullptr) << "what a record says of itself is not ours to repeat";
  EXPECT_EQ(world.contents(ours.id).at("copy"), content);
}

TEST_F(CommitTest, AChunkThatOnlyClaimsTheContentIsNotReused) {
  auto content = text(10'000, 4);
  auto fake = world.create("file_chunks", wire::to_text(JsonObject{{"path", "x"}, {"content", "something else"}}));
  JsonObject files{
      {"trap", JsonObject{{"h", ContentHash::of(content).hex()}, {"s", content.size()}, {"c", Json::Array{fake.id}}}}};
  auto theirs = world.create(
      "revisions", wire::to_text(JsonObject{
                       {"project", project}, {"parents", Json::Array{}}, {"manifest", JsonObject{{"files", files}}}}));
  world.set_head(project, theirs.id);
  auto work = tree();
  work->write("mine", content);
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->chunks_total, 1u);
  EXPECT_EQ(world.contents(result->revision.text()).at("mine"), content);
}

TEST_F(CommitTest, StateIsPublishedOnceItIsStaged) {
  auto work = tree();
  ASSERT_TRUE(work->stage->stage_state(R"({"level":2})"));
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(*world.get("revisions", result->revision.text()).fields.find("state"), Json(JsonObject{{"level", 2}}));
  work->write("a", "1");
  result = work->commit();
  EXPECT_EQ(*world.get("revisions", result->revision.text()).fields.find("state"), Json(JsonObject{{"level", 2}}));
}

TEST_F(CommitTest, WhatCannotFitIsRefusedBeforeAnythingIsSent) {
  auto work = tree();
  work->write("file", "content");
  ASSERT_TRUE(work->stage->stage_state(R"({"level":")" + std::string(15'900, 'x') + "\"}"));
  auto before = work->faults.sent().size();
  auto result = work->commit();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::file_too_big);
  EXPECT_NE(result.error().message.find("(the project's state) 15912, "), std::string::npos) << result.error().message;
  EXPECT_EQ(work->faults.sent().size(), before);
  // Everything is staged as before, and a smaller commit succeeds.
  EXPECT_FALSE(*work->stage->pending());
  ASSERT_TRUE(work->stage->stage_state("{}"));
  result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.contents(result->revision.text()).size(), 1u);
}

TEST_F(CommitTest, FilesBeyondTheManifestGoToAContinuation) {
  auto work = tree();
  Contents expected;
  for (int i = 0; i < 250; ++i) expected["dir/file" + std::to_string(i)] = text(i == 7 ? 30'000 : 300, i);
  for (const auto& [path, content] : expected) work->write(path, content);
  auto first = work->commit();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(world.contents(first->revision.text()), expected);
  EXPECT_EQ(first->chunks_total, first->chunks_done);
  EXPECT_LT(first->chunks_total, 20u) << "small files share chunks";
  EXPECT_EQ(work->stage->base()->tree.manifest().files.size(), 250u);
  // On top of it, by this client and by one with an empty cache.
  auto other = tree("other");
  for (const auto& [path, content] : expected) EXPECT_EQ(other->read(path), content) << path;
  expected["dir/file9"] = "changed\n";
  other->write("dir/file9", "changed\n");
  expected["here"] = "here\n";
  work->write("here", "here\n");
  auto second = other->commit();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_LE(second->chunks_total, 2u);
  auto third = work->commit();
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_NE(third->outcome, Outcome::branched);
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(CommitTest, ABrokenContinuationIsAPlainFile) {
  auto root = world.create("revisions", R"({"project":")" + project + R"(","parents":[],"agent":"s","message":"m",
      "manifest":{"files":{".playfs-manifest":{"inline":"not a continuation\n"},"a":{"inline":"1"}}},"state":{}})");
  world.set_head(project, root.id);
  auto work = tree();
  EXPECT_EQ(work->read(".playfs-manifest"), "not a continuation\n");
  work->write("a", "2");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.contents(result->revision.text()),
            (Contents{{".playfs-manifest", "not a continuation\n"}, {"a", "2"}}));
}

TEST_F(CommitTest, EveryRecordStaysWithinSixteenKilobytes) {
  auto work = tree();
  std::string quotes, control, emoji;
  while (quotes.size() < 40'000) quotes += "\"\\\"\\";
  while (control.size() < 20'000) control += "\x01\x02\n\t";
  while (emoji.size() < 300'000) emoji += "😀é€x";
  work->write("quotes", quotes);
  work->write("control", control);
  work->write("emoji", emoji);
  work->write(std::string(200, 'n') + "/" + std::string(200, 'm'), std::string(100'000, '\0'));
  for (int i = 0; i < 30; ++i) work->write("small" + std::to_string(i), text(600, i));
  auto result = work->commit(std::string(500, '"'));
  ASSERT_TRUE(result) << result.error().message;
  for (const auto& collection : {"revisions", "file_chunks"})
    for (const auto& record : world.all(collection))
      EXPECT_LE(wire::to_text(wire::encode_record(record)).size(), kMaxRecordSize);
  EXPECT_EQ(world.contents(result->revision.text()).at("emoji"), emoji);
  EXPECT_EQ(world.contents(result->revision.text()).at("control"), control);
}

/// As if the disk had been full when the dry run's layer was to be returned to the stage.
TEST_F(CommitTest, ALeftoverDryRunBlocksNothing) {
  auto work = tree();
  auto leave = [&](const std::string& name) {
    work->write(name, name);
    ASSERT_TRUE(*work->stage->freeze(kDryRunTx));
    work->write(name, "again");
  };
  leave("a");
  auto planned = await<PlannedCommit>([&](auto done) { work->publisher->plan(CancelToken(), std::move(done)); });
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_EQ(planned->paths.size(), 1u);
  EXPECT_EQ(planned->paths.front().size, 5u);
  leave("b");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.contents(result->revision.text()), (Contents{{"a", "again"}, {"b", "again"}}));
  leave("c");
  auto updated = await<Integrated>(
      [&](auto done) { work->publisher->update(work->stage->base(), CancelToken(), std::move(done)); });
  EXPECT_TRUE(updated) << updated.error().message;
}

TEST_F(CommitTest, SeveralCommitsQueue) {
  auto work = tree();
  work->write("a", "1");
  struct Answers {
    std::mutex mutex;
    std::condition_variable arrived;
    std::vector<Outcome> outcomes;
  } answers;
  for (int i = 0; i < 3; ++i)
    work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                            [&](Result<CommitResult> result) {
                              std::lock_guard lock(answers.mutex);
                              answers.outcomes.push_back(result ? result->outcome : Outcome::branched);
                              answers.arrived.notify_all();
                            });
  std::unique_lock lock(answers.mutex);
  answers.arrived.wait(lock, [&] { return answers.outcomes.size() == 3; });
  EXPECT_THAT(answers.outcomes, testing::ElementsAre(Outcome::published, Outcome::nothing, Outcome::nothing));
  EXPECT_EQ(world.all("revisions").size(), 1u);
}

TEST_F(CommitTest, WritingGoesOnWhileWhatWasFrozenIsPublished) {
  auto work = tree();
  work->write("a", "frozen");
  work->write("b", text(20'000, 1));
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "POST" && request.target.find("file_chunks") != std::string::npos) {
      work->write("a", "later");
      work->write("c", "later too");
    }
    return test::Fault();
  });
  auto first = work->commit();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(world.contents(first->revision.text()), (Contents{{"a", "frozen"}, {"b", text(20'000, 1)}}));
  work->faults.set_plan({});
  EXPECT_EQ(work->read("a"), "later");
  auto second = work->commit();
  ASSERT_TRUE(second);
  EXPECT_EQ(world.contents(second->revision.text()),
            (Contents{{"a", "later"}, {"b", text(20'000, 1)}, {"c", "later too"}}));
}

TEST_F(CommitTest, NoWaitReturnsOnceTheChangeIsFrozen) {
  auto work = tree();
  work->write("a", "1");
  work->faults.set_plan([](const HttpRequest&) { return test::lose_request(); });
  auto result = await<CommitResult>([&](auto done) {
    work->publisher->commit({.agent = "t", .message = "m", .wait = false, .allow_merge = true}, {}, std::move(done));
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, Outcome::pending);
  EXPECT_EQ(result->files_changed, 1u);
  work->write("a", "2");
  work->faults.set_plan({});
  work->wait_until_idle();
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"a", "1"}}));
}

TEST_F(CommitTest, CancellingAWaitLeavesThePublicationGoing) {
  auto work = tree();
  work->write("a", "1");
  CancelSource source;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "POST") source.cancel();
    return test::Fault();
  });
  auto result = await<CommitResult>([&](auto done) {
    work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, source.token(),
                            std::move(done));
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, Outcome::pending);
  EXPECT_EQ(result->files_changed, 1u) << "how far it came by then";
  work->wait_until_idle();
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"a", "1"}}));
}

TEST_F(CommitTest, AQueuedCommitDoesNotReportTheProgressOfTheFirst) {
  auto work = tree();
  work->write("a", "1");
  work->faults.set_plan([](const HttpRequest&) { return test::lose_request(); });
  std::vector<CommitResult> told;
  for (int i = 0; i < 2; ++i) {
    auto result = await<CommitResult>([&](auto done) {
      work->publisher->commit({.agent = "t", .message = "m", .wait = false, .allow_merge = true}, {}, std::move(done));
    });
    ASSERT_TRUE(result);
    told.push_back(*result);
  }
  EXPECT_EQ(told[0].files_changed, 1u);
  EXPECT_EQ(told[1].outcome, Outcome::pending);
  EXPECT_EQ(told[1].files_changed, 0u);
  work->faults.set_plan({});
  work->wait_until_idle();
}

}  // namespace
}  // namespace playfs::publish
