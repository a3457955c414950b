// Siblings that are merged into head: whose, what the merge contains, and what it costs.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/await.h"
#include "publish/dry_run.h"
#include "publish/publication_engine.h"
#include "support/publish_world.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::Fault;
using test::WorkTree;

std::string lines(int count, const std::string& first = "", const std::string& last = "") {
  std::string text = first;
  for (int i = 0; i < count; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  return text + last;
}

/// A branch that is older than head; both are based on `root`.
class ConvergenceTest : public testing::Test {
 protected:
  ConvergenceTest() : project(world.create("projects", R"({"name":"p"})").id) {}

  std::string publish(const std::string& parent, const Contents& contents, JsonObject manifest = {}) {
    JsonObject files;
    for (const auto& [path, content] : contents) files.set(path, JsonObject{{"inline", content}});
    manifest.set("files", std::move(files));
    Json::Array parents;
    if (!parent.empty()) parents.emplace_back(parent);
    return world
        .create("revisions", wire::to_text(JsonObject{{"project", project},
                                                      {"parents", std::move(parents)},
                                                      {"agent", "stranger"},
                                                      {"manifest", std::move(manifest)}}))
        .id;
  }
  void begin(const Contents& base, const Contents& branched, JsonObject manifest = {}) {
    root = publish("", base);
    branch = publish(root, branched, std::move(manifest));
    Contents more = base;
    more["head"] = "h";
    head = publish(root, more);
    world.set_head(project, head);
  }
  void open(MergePolicy::Whose whose = MergePolicy::Whose::all, bool reconciles = false,
            std::vector<std::string> agents = {}) {
    MergePolicy policy;
    policy.whose = whose;
    policy.agents = std::move(agents);
    open(policy, reconciles);
  }
  void open(MergePolicy policy, bool reconciles = false) {
    work.reset();
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree", nullptr, nullptr, reconciles, false,
                                      policy);
  }
  Revision revision(const std::string& id) { return *wire::decode_revision(world.get("revisions", id)); }
  std::size_t writes() const {
    auto sent = work->faults.sent();
    return static_cast<std::size_t>(
        std::count_if(sent.begin(), sent.end(), [](const auto& one) { return one.request.method != "GET"; }));
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project, root, branch, head;
  std::unique_ptr<WorkTree> work;
};

TEST_F(ConvergenceTest, AMergeIsTheSameWhoeverMakesIt) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}}, {{"auto", "a word of somebody's"}});
  open();
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->outcome, Outcome::merged);
  auto merge = revision(world.head(project));
  EXPECT_EQ(merge.message, "Merge " + branch + " and " + result->revision.text()) << "the older one first";
  EXPECT_TRUE(merge.manifest.is_automatic);
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"base", "0"}, {"branch", "b"}, {"head", "h"}, {"mine", "m"}}));
  EXPECT_EQ(result->writes_used, writes()) << "each write is counted before it is sent";
}

TEST_F(ConvergenceTest, OfTwoFirstCommitsTheSecondIsMadeOnTheFirst) {
  open();  // while there is nothing
  root = publish("", {{"theirs", "t"}});
  world.set_head(project, root);
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(revision(result->revision.text()).parents, std::vector{RevisionId(root)});
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"mine", "m"}, {"theirs", "t"}}));
  EXPECT_EQ(world.all("revisions").size(), 2U);
  EXPECT_EQ(work->events->events_text().find("service_lost"), std::string::npos) << "it names only what there is";
}

TEST_F(ConvergenceTest, WhatIsMergedLineByLineIsUploadedWhereItIsLarge) {
  // Too large to be inline, and for one chunk.
  std::string text = lines(1'500);
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  open();
  work->write("text", text);
  auto first = work->commit();
  ASSERT_TRUE(first) << first.error().message;
  // Another client changes its end, while we change its beginning, and leaves the merge to us.
  MergePolicy nobodys;
  nobodys.whose = MergePolicy::Whose::none;
  auto beside =
      std::make_unique<WorkTree>(world, project, directory.path() + "/beside", nullptr, nullptr, false, false, nobodys);
  std::string theirs = lines(1'500, "", "their last line\n"), both = "our first line\n";
  theirs.insert(theirs.find("line 791900\n"), "their line in what is one chunk with ours\n");
  both += theirs;
  beside->write("text", theirs);
  work->write("text", lines(1'500, "our first line\n"));
  bool came = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "PATCH" && !std::exchange(came, true)) {
      EXPECT_TRUE(beside->commit());
    }
    return Fault();
  });
  auto before = writes();
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(came);
  auto contents = world.contents(world.head(project));
  EXPECT_EQ(contents["text"], both);
  EXPECT_EQ(contents["branch"], "b");
  EXPECT_EQ(result->writes_used, writes() - before);
}

TEST_F(ConvergenceTest, WhatDoesNotFitIntoOneRevisionStaysABranch) {
  root = publish("", {{"base", "0"}});
  branch = publish(root, {{"base", "0"}, {"branch", "b"}}, {{"one", std::string(9'000, '1')}});
  world.set_head(project, publish(root, {{"base", "0"}, {"head", "h"}}, {{"other", std::string(9'000, '2')}}));
  open();
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"base", "0"}, {"head", "h"}, {"mine", "m"}}));
}

TEST_F(ConvergenceTest, APolicyCanLeaveAllBranchesUnmerged) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  open(MergePolicy::Whose::none);
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.head(project), result->revision.text());
}

TEST_F(ConvergenceTest, APolicyCanMergeListedAgentsBranches) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  open(MergePolicy::Whose::listed, false, {"tester"});
  work->write("mine", "m");
  auto alone = work->commit();
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->outcome, Outcome::published);
  EXPECT_EQ(world.head(project), alone->revision.text());
  open(MergePolicy::Whose::listed, false, {"tester", "stranger"});
  work->write("mine", "more");
  auto merged = work->commit();
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(merged->outcome, Outcome::merged);
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"base", "0"}, {"branch", "b"}, {"head", "h"}, {"mine", "more"}}));
}

TEST_F(ConvergenceTest, AReconcileAnnouncesBranchesOfPlayfsOnly) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  auto ours = publish(root, {{"base", "0"}, {"ours", "o"}}, {{"tx", "c0ffee00c0ffee00c0ffee00c0ffee00"}});
  open(MergePolicy::Whose::none, true);
  // The foreign one is older, so it would be announced first.
  ASSERT_TRUE(test::eventually([&] { return !world.all("messages").empty(); }));
  auto messages = world.all("messages");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].fields.find("body")->string()->find(ours), std::string::npos);
  EXPECT_EQ(world.head(project), head);
}

/// An hour later, with more than a page of others' revisions in between: nothing reads further back.
void let_the_log_grow(test::World& world) {
  world.clock.advance(std::chrono::minutes(30));
  auto elsewhere = world.create("projects", R"({"name":"elsewhere"})").id;
  for (int i = 0; i < 120; ++i)
    world.create(
        "revisions",
        wire::to_text(JsonObject{
            {"project", elsewhere}, {"parents", Json::Array{}}, {"agent", "stranger"}, {"manifest", JsonObject{}}}));
  world.clock.advance(std::chrono::minutes(30));
}

/// Waits long enough that no client is still about to announce it.
void expect_said(test::World& world, const std::string& revision) {
  ASSERT_TRUE(test::eventually([&] { return !world.all("messages").empty(); }));
  auto messages = world.all("messages");
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_NE(messages[0].fields.find("body")->string()->find(revision), std::string::npos);
}

TEST_F(ConvergenceTest, ACommitKeepsUnannouncedBranches) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  auto left = publish(root, {{"base", "0"}, {"ours", "o"}}, {{"tx", "c0ffee00c0ffee00c0ffee00c0ffee00"}});
  open(MergePolicy::Whose::none);
  let_the_log_grow(world);
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(world.head(project), result->revision.text());
  EXPECT_TRUE(world.all("messages").empty());
  open(MergePolicy::Whose::none, true);
  expect_said(world, left);
}

TEST_F(ConvergenceTest, WhatACommitPassesByIsNamedUntilHeadHoldsIt) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  open(MergePolicy::Whose::none);
  let_the_log_grow(world);
  for (const std::string name : {"one", "two"}) {  // the second commit no longer finds the branch in the log
    work->write(name, name);
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(world.head(project), result->revision.text());
    let_the_log_grow(world);
    EXPECT_EQ(work->publisher->left_out(), std::vector{RevisionId(branch)});
  }
  open(MergePolicy::Whose::none);
  EXPECT_EQ(work->publisher->left_out(), std::vector{RevisionId(branch)}) << "after a restart, too";
  auto merged = world
                    .create("revisions", wire::to_text(JsonObject{{"project", project},
                                                                  {"parents", Json::Array{world.head(project), branch}},
                                                                  {"agent", "stranger"},
                                                                  {"manifest", JsonObject{{"files", JsonObject()}}}}))
                    .id;
  world.set_head(project, merged);
  open(MergePolicy::Whose::none, true);
  EXPECT_TRUE(test::eventually([&] { return work->publisher->left_out().empty(); }));
}

TEST_F(ConvergenceTest, AStrangersManyBranchesAreNotAllRemembered) {
  begin({{"base", "0"}}, {{"base", "0"}});
  open(MergePolicy::Whose::none);
  std::string last;
  for (int i = 0; i < 70; ++i) last = publish(root, {{"base", "0"}, {"branch", std::to_string(i)}});
  work->write("mine", "m");
  ASSERT_TRUE(work->commit());
  auto left_out = work->publisher->left_out();
  EXPECT_EQ(left_out.size(), 64U);
  EXPECT_EQ(std::count(left_out.begin(), left_out.end(), RevisionId(last)), 1) << "the newest are";
}

TEST_F(ConvergenceTest, ABranchThatGrowsIsNamedOnce) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  open(MergePolicy::Whose::none);
  std::string grown = publish(root, {{"base", "0"}, {"grown", "0"}});
  for (int i = 1; i < 4; ++i) {
    work->write("mine", std::to_string(i));
    ASSERT_TRUE(work->commit());
    let_the_log_grow(world);
    grown = publish(grown, {{"base", "0"}, {"grown", std::to_string(i)}});
  }
  open(MergePolicy::Whose::none, true);
  const std::set<RevisionId> tips = {RevisionId(branch), RevisionId(grown)};
  auto named = [&] {
    auto left_out = work->publisher->left_out();
    return std::set<RevisionId>(left_out.begin(), left_out.end());
  };
  EXPECT_TRUE(test::eventually([&] { return named() == tips; }));
}

TEST_F(ConvergenceTest, ARevisionWithoutParentsDoesNotCostTheWholeHistory) {
  constexpr int kLong = 1'500;
  begin({{"base", "0"}}, {{"base", "0"}});
  for (int i = 0; i < kLong; ++i) head = publish(head, {{"base", std::to_string(i)}});
  world.set_head(project, head);
  open(MergePolicy::Whose::none);
  const RevisionId alone(publish("", {{"alone", "a"}}));
  for (const std::string name : {"one", "two"}) {  // with the second, the log is forgotten up to head
    work->write(name, name);
    ASSERT_TRUE(work->commit());
    let_the_log_grow(world);
  }
  auto is_named = [&] {
    auto left_out = work->publisher->left_out();
    return std::count(left_out.begin(), left_out.end(), alone) == 1;
  };
  ASSERT_TRUE(is_named());
  work.reset();
  std::filesystem::remove_all(directory.path() + "/tree/cache");
  open(MergePolicy::Whose::none, true);
  auto reads = [&] {
    auto sent = work->faults.sent();
    return std::count_if(sent.begin(), sent.end(), [](const auto& one) {
      return one.request.method == "GET" && one.request.target.find("/revisions/") != std::string::npos;
    });
  };
  EXPECT_TRUE(test::eventually([&] { return reads() > 500; })) << "it looks whether head has taken it in";
  EXPECT_FALSE(test::eventually([&] { return reads() > kLong - 200; }, std::chrono::seconds(3)));
  EXPECT_TRUE(is_named());
}

TEST_F(ConvergenceTest, AReconcileKeepsBranchesUntilTheyAreAnnounced) {
  begin({{"base", "0"}}, {{"base", "0"}});
  auto left = publish(root, {{"base", "0"}, {"ours", "o"}}, {{"tx", "c0ffee00c0ffee00c0ffee00c0ffee00"}});
  open(MergePolicy::Whose::none);
  let_the_log_grow(world);
  world.set_head(project, publish(head, {{"base", "0"}, {"later", "l"}}));
  work.reset();
  std::atomic<bool> is_sent = false;
  MergePolicy policy;
  policy.whose = MergePolicy::Whose::none;
  auto lost = [&](const HttpRequest& request) {
    if (!request.target.ends_with("/messages") || request.method != "POST") return Fault();
    is_sent = true;
    return test::lose_request();
  };
  work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree", lost, nullptr, true, false, policy);
  ASSERT_TRUE(test::eventually([&] { return is_sent.load(); }));
  open(MergePolicy::Whose::none, true);
  expect_said(world, left);
}

TEST_F(ConvergenceTest, AFailedReconcileIsRetried) {
  begin({{"base", "0"}}, {{"base", "0"}});
  auto left = publish(root, {{"base", "0"}, {"ours", "o"}}, {{"tx", "c0ffee00c0ffee00c0ffee00c0ffee00"}});
  std::atomic<int> lost = 0;
  MergePolicy policy;
  policy.whose = MergePolicy::Whose::none;
  auto lose_two = [&](const HttpRequest& request) {
    if (!request.target.ends_with("/messages") || request.method != "POST" || lost == 2) return Fault();
    ++lost;
    return test::lose_request();
  };
  work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree", lose_two, nullptr, true, false, policy);
  expect_said(world, left);
  EXPECT_EQ(lost, 2);
}

TEST_F(ConvergenceTest, AReconcileEnds) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  publish(root, {{"base", "0"}, {"ours", "o"}}, {{"tx", "c0ffee00c0ffee00c0ffee00c0ffee00"}});
  open(MergePolicy::Whose::none, true);
  ASSERT_TRUE(test::eventually([&] { return !world.all("messages").empty(); }));
  auto is_quiet = [&] {
    const int before = work->faults.count();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return work->faults.count() == before;
  };
  bool ends = false;
  for (int i = 0; i < 100 && !ends; ++i) ends = is_quiet();
  EXPECT_TRUE(ends) << "one after the other, unasked";
}

TEST_F(ConvergenceTest, ConflictsAreNamedEvenIfNothingMayBeMerged) {
  begin({{"base", "0"}}, {{"base", "theirs"}});
  world.set_head(project, root);
  MergePolicy policy;
  policy.most_in_an_hour = 0;
  open(policy);
  world.set_head(project, branch);
  work->write("base", "mine");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched);
  EXPECT_EQ(result->conflicts, std::vector<std::string>{"base"});
}

/// The service's responses to the first merge that is posted.
class MergeAnswerTest : public ConvergenceTest {
 protected:
  void commit_with(const std::function<Fault(const HttpRequest&)>& first_merge) {
    begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
    open();
    bool is_first = true;
    work->faults.set_plan([&](const HttpRequest& request) {
      bool is_merge = request.method == "POST" && request.target.ends_with("/revisions") &&
                      request.body.find("\"auto\"") != std::string::npos;
      return is_merge && std::exchange(is_first, false) ? first_merge(request) : Fault();
    });
    work->write("mine", "m");
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_FALSE(is_first);
    EXPECT_EQ(result->outcome, Outcome::merged);
    EXPECT_EQ(world.contents(world.head(project)),
              (Contents{{"base", "0"}, {"branch", "b"}, {"head", "h"}, {"mine", "m"}}));
  }
  [[nodiscard]] std::string said() const { return work->events->events_text(); }
};

TEST_F(MergeAnswerTest, SystemFieldsAloneAreEnough) {
  commit_with([&](const HttpRequest& request) {
    Record made = world.create("revisions", request.body);
    return test::answer_with(
        201,
        wire::to_text(JsonObject{
            {"id", made.id}, {"created_at", made.created_at}, {"updated_at", made.updated_at}, {"status", "active"}}));
  });
  EXPECT_EQ(said().find("commit_waiting"), std::string::npos) << said();
}

TEST_F(MergeAnswerTest, AnotherRevisionIsNotTakenForTheMerge) {
  commit_with([&](const HttpRequest&) {
    return test::answer_with(201, wire::to_text(JsonObject{{"id", branch},
                                                           {"created_at", "2026-01-01T00:00:00.000Z"},
                                                           {"updated_at", "2026-01-01T00:00:00.000Z"},
                                                           {"status", "active"},
                                                           {"project", project},
                                                           {"parents", Json::Array{}},
                                                           {"manifest", JsonObject{{"files", JsonObject()}}}}));
  });
  EXPECT_NE(said().find("different revision than the merge"), std::string::npos) << said();
}

TEST_F(ConvergenceTest, AMergeThatTheListDoesNotShowYetIsNotMissed) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  open();
  std::optional<HttpRequest> list;
  std::optional<HttpResponse> before;
  int merges = 0, stale = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "POST" && request.body.find("\"auto\"") != std::string::npos) {
      ++merges;
      auto listed = await<HttpResponse>([&](auto done) { world.transport().send(*list, {}, {}, std::move(done)); });
      EXPECT_TRUE(listed);
      before = *std::move(listed);
    }
    if (request.method != "GET" || request.target.find("/revisions?") == std::string::npos) return Fault();
    list = request;
    if (!before || ++stale > 1) return Fault();
    return Fault{Fault::Kind::answer, *before};
  });
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::merged);
  EXPECT_EQ(merges, 1);
  EXPECT_GE(stale, 1);
  EXPECT_EQ(work->events->events_text().find("commit_waiting"), std::string::npos) << "it was there to be read";
}

TEST_F(ConvergenceTest, AMergeUploadsOnlyMissingChunks) {
  const std::string text = lines(8'000);
  MergePolicy none;  // so that the merge is made here
  none.whose = MergePolicy::Whose::none;
  auto beside =
      std::make_unique<WorkTree>(world, project, directory.path() + "/beside", nullptr, nullptr, false, false, none);
  beside->write("text", text);
  ASSERT_TRUE(beside->commit());
  open();
  // Both sides change the same chunk, so neither has the result; another client uploaded the other chunks.
  auto changed = [&](const std::string& line) {
    std::string other = text;
    auto at = other.find(line);
    EXPECT_NE(at, std::string::npos);
    return other.insert(at, "changed\n");
  };
  beside->write("text", changed("line 79190\n"));
  work->write("text", changed("line 0\n"));
  bool came = false;
  std::size_t uploads = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "PATCH" && !std::exchange(came, true)) {
      EXPECT_TRUE(beside->commit());
    }
    uploads += came && request.method == "POST" && request.target.ends_with("/file_chunks");
    return Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.contents(world.head(project))["text"], [&] {
    std::string both = changed("line 79190\n");
    return both.insert(both.find("line 0\n"), "changed\n");
  }());
  EXPECT_GE(uploads, 1u);
  EXPECT_LE(uploads, 2u);
}

TEST_F(ConvergenceTest, AMergeThatIsRefusedForGoodLeavesHeadWhereItIs) {
  begin({{"base", "0"}}, {{"base", "0"}, {"branch", "b"}});
  open();
  int refused = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    bool is_merge = request.method == "POST" && request.target.ends_with("/revisions") &&
                    request.body.find("\"auto\"") != std::string::npos;
    if (!is_merge) return Fault();
    ++refused;
    return test::answer_with(403, R"({"code":"forbidden","message":"no merges"})");
  });
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched);
  EXPECT_EQ(refused, 1) << "nothing that is answered like that is asked for again";
  EXPECT_EQ(world.head(project), head);
}

TEST_F(ConvergenceTest, HeadIsReadAgainAfterASlowScan) {
  root = publish("", {{"base", "0"}});
  world.set_head(project, root);
  open();
  std::string theirs;
  std::atomic<bool> is_posted = false, is_listed = false;
  work->faults.on_reply([&](const HttpRequest& request, auto&) {
    if (request.method == "POST") is_posted = true;
    if (request.method != "GET" || !is_posted) return;
    if (request.target.find("/revisions?") != std::string::npos) is_listed = true;
    if (request.target.find("/projects/") == std::string::npos || !theirs.empty()) return;
    EXPECT_TRUE(test::eventually([&] { return is_listed.load(); }));
    theirs = publish(root, {{"base", "theirs"}});
    world.set_head(project, theirs);
    world.clock.advance(std::chrono::milliseconds(1'100));
  });
  work->write("base", "ours");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_FALSE(theirs.empty());
  EXPECT_EQ(world.head(project), theirs) << "whoever moved it there was told that it stands";
  EXPECT_EQ(result->outcome, Outcome::branched);
}

TEST(Results, WhatIsPublishedHasNoConflictsLeft) {
  Publication publication;
  publication.conflicts = {"a"};
  publication.ending = Ending::published;
  auto published = result_of(publication);
  ASSERT_TRUE(published);
  EXPECT_TRUE(published->conflicts.empty());
  publication.ending = Ending::branched;
  EXPECT_EQ(result_of(publication)->conflicts, std::vector<std::string>{"a"});
}

TEST(Results, APlanCountsItsWrites) {
  PlannedCommit planned;
  EXPECT_EQ(result_of(planned).outcome, Outcome::nothing);
  EXPECT_EQ(result_of(planned).writes_used, 0u);
  planned.revision_size = 100;
  planned.files_changed = 2;
  planned.paths = {{.path = "a", .chunks = 3}, {.path = "b", .chunks = 1}};
  auto result = result_of(planned);
  EXPECT_EQ(result.outcome, Outcome::planned);
  EXPECT_EQ(result.chunks_total, 4u);
  EXPECT_EQ(result.writes_used, 6u) << "and the revision, and head";
}

}  // namespace
}  // namespace playfs::publish
