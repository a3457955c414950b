// Which parents a merge names, and in which order. A work tree that merged a branch is based on two revisions: the next
// merge has both among its ancestors.
#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "base/await.h"
#include "support/publish_world.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

std::string publish_in(test::World& world, const std::string& project, const std::vector<std::string>& parents,
                       const Contents& contents) {
  JsonObject files;
  for (const auto& [path, content] : contents) files.set(path, JsonObject{{"inline", content}});
  Json::Array ids;
  for (const auto& parent : parents) ids.emplace_back(parent);
  JsonObject body{
      {"project", project}, {"parents", std::move(ids)}, {"manifest", JsonObject{{"files", std::move(files)}}}};
  return world.create("revisions", wire::to_text(body)).id;
}

class MergeParentsTest : public testing::Test {
 protected:
  MergeParentsTest() : project(world.create("projects", R"({"name":"p"})").id) {
    root = publish({}, {{"base", "0"}});
    head = publish({root}, {{"base", "0"}, {"head", "h"}});
    branch = publish({root}, {{"base", "0"}, {"gone", "1"}, {"changed", "1"}});
    world.set_head(project, head);
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree");
    auto taken_in =
        await<Integrated>([&](auto done) { work->publisher->merge(revision(branch), CancelToken(), std::move(done)); });
    EXPECT_TRUE(taken_in) << taken_in.error().message;
    work->write("mine", "m");
    EXPECT_EQ(work->stage->merge_parents(), std::vector{RevisionId(branch)});
    // Another client merged it too, and went on.
    theirs = publish({head, branch}, {{"base", "0"}, {"head", "h"}, {"changed", "2"}});
    world.set_head(project, theirs);
  }

  [[nodiscard]] std::vector<RevisionId> theirs_and_branch() const { return {RevisionId(theirs), RevisionId(branch)}; }
  std::string publish(const std::vector<std::string>& parents, const Contents& contents) {
    return publish_in(world, project, parents, contents);
  }
  RevisionTreePtr revision(const std::string& id) {
    auto tree = await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(id), {}, std::move(done)); });
    EXPECT_TRUE(tree);
    return *tree;
  }
  void expect_all_of_it(const Result<CommitResult>& result, const std::vector<RevisionId>& parents) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    EXPECT_EQ(world.contents(world.head(project)),
              (Contents{{"base", "0"}, {"head", "h"}, {"changed", "2"}, {"mine", "m"}}))
        << "what was done to the branch's files is undone by nobody";
    auto ours = *wire::decode_revision(world.get("revisions", result->revision.text()));
    EXPECT_EQ(ours.parents, parents) << "head's line first";
    EXPECT_TRUE(work->stage->is_clean());
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project, root, head, branch, theirs;
  std::unique_ptr<WorkTree> work;
};

TEST_F(MergeParentsTest, ACommitIsMergedWithAHeadThatTookTheBranchIn) {
  expect_all_of_it(work->commit(), theirs_and_branch());
}

TEST_F(MergeParentsTest, TheBranchIsStillAParentAfterARestart) {
  work.reset();
  work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree");
  EXPECT_EQ(work->stage->merge_parents(), std::vector{RevisionId(branch)});
  expect_all_of_it(work->commit(), theirs_and_branch());
}

TEST_F(MergeParentsTest, AnUpdateBringsAHeadThatTookTheBranchIn) {
  auto updated =
      await<Integrated>([&](auto done) { work->publisher->update(revision(theirs), CancelToken(), std::move(done)); });
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->conflicts, 0u);
  EXPECT_EQ(work->read("changed"), "2");
  EXPECT_TRUE(work->stage->merge_parents().empty()) << "head holds it";
  expect_all_of_it(work->commit(), {RevisionId(theirs)});
}

TEST_F(MergeParentsTest, WhatIsDiscardedPathByPathIsTakenFromNobody) {
  for (const char* path : {"gone", "changed", "mine"}) ASSERT_TRUE(work->stage->discard(path)) << path;
  EXPECT_TRUE(work->stage->is_clean());
  work->write("other", "o");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.contents(result->revision.text()),
            (Contents{{"base", "0"}, {"head", "h"}, {"changed", "2"}, {"other", "o"}}));
}

TEST_F(MergeParentsTest, ADiscardWhileAnUpdateIsWorkedOutTakesNothingFromHead) {
  // The update has to request a revision that is new here, and the branch counts as merged until then.
  const Contents contents{{"base", "0"}, {"head", "h"}, {"gone", "1"}, {"changed", "1"}};
  auto between = publish({head, branch}, contents);
  auto newest = publish({between}, contents);
  world.set_head(project, newest);
  auto tree = revision(newest);
  bool is_discarded = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!is_discarded && request.target.ends_with("/revisions/" + between))
      is_discarded = work->stage->discard("").has_value();
    return test::Fault();
  });
  auto updated = await<Integrated>([&](auto done) { work->publisher->update(tree, CancelToken(), std::move(done)); });
  ASSERT_TRUE(updated) << updated.error().message;
  ASSERT_TRUE(is_discarded);
  EXPECT_TRUE(work->stage->is_clean());
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  auto expected = contents;
  expected["mine"] = "m";
  EXPECT_EQ(world.contents(result->revision.text()), expected);
}

TEST_F(MergeParentsTest, AnUpdateThatWaitedForACommitDoesNotUndoIt) {
  auto asked_for = revision(theirs);
  std::atomic<bool> is_posting = false, is_asked = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "POST" && request.target.ends_with("/revisions")) is_posting = true;
    EXPECT_TRUE(test::eventually([&] { return !is_posting || is_asked; }));
    return test::Fault();
  });
  std::promise<Result<CommitResult>> committed;
  std::promise<Result<Integrated>> updated;
  work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                          [&](const Result<CommitResult>& result) { committed.set_value(result); });
  ASSERT_TRUE(test::eventually([&] { return is_posting.load(); }));
  work->publisher->update(asked_for, CancelToken(), [&](Result<Integrated> result) { updated.set_value(result); });
  is_asked = true;
  expect_all_of_it(committed.get_future().get(), theirs_and_branch());
  auto update = updated.get_future().get();
  ASSERT_TRUE(update) << update.error().message;
  EXPECT_EQ(update->base.text(), world.head(project));
  EXPECT_EQ(id_of(work->stage->base()).text(), world.head(project));
  EXPECT_TRUE(work->stage->is_clean());
}

/// A clean tree follows head whenever it hears of it, also while an update of it is computed.
TEST(BaseThatMovesTest, AnUpdateThatWasWorkedOutOnAnotherBaseIsWorkedOutAgain) {
  test::World world;
  test::TemporaryDirectory directory;
  const std::string project = world.create("projects", R"({"name":"p"})").id;
  auto publish = [&](const std::string& parents, const std::string& path) {
    std::string id = world
                         .create("revisions", R"({"project":")" + project + R"(","parents":[)" + parents +
                                                  R"(],"manifest":{"files":{")" + path + R"(":{"inline":"1"}}}})")
                         .id;
    world.set_head(project, id);
    return id;
  };
  const std::string root = publish("", "root"), theirs = publish('"' + root + '"', "theirs");
  WorkTree work(world, project, directory.path() + "/tree");
  // Another client sets head to a revision that does not contain it.
  const std::string blind = publish('"' + root + '"', "blind");
  auto head = await<RevisionTreePtr>([&](auto done) { work.site->revision(RevisionId(blind), {}, std::move(done)); });
  ASSERT_TRUE(head);
  bool has_moved = false;
  work.faults.set_plan([&](const HttpRequest& request) {
    if (!has_moved && request.target.ends_with("/revisions/" + root))
      has_moved = bool(work.stage->move_base(*head, id_of(work.stage->base())));
    return test::Fault{};
  });
  auto updated = await<Integrated>([&](auto done) { work.publisher->update(*head, CancelToken(), std::move(done)); });
  ASSERT_TRUE(updated) << updated.error().message;
  ASSERT_TRUE(has_moved);
  work.write("mine", "m");
  auto result = work.commit();
  ASSERT_TRUE(result) << result.error().message;
  auto ours = *wire::decode_revision(world.get("revisions", result->revision.text()));
  EXPECT_EQ(world.contents(result->revision.text()), (Contents{{"blind", "1"}, {"mine", "m"}}));
  EXPECT_EQ(ours.parents, std::vector{RevisionId(blind)}) << "it does not say to hold what it has not";
}

/// The service goes back and loses a branch that was merged here, but not the base.
class LostBranchTest : public testing::Test {
 protected:
  LostBranchTest() : project(world.create("projects", R"({"name":"p"})").id) {
    root = publish({}, {{"base", "0"}});
    head = publish({root}, {{"base", "0"}, {"head", "h"}});
    world.set_head(project, head);
    world.back_up();
    branch = publish({root}, {{"base", "0"}, {"gone", "1"}, {"theirs", "1"}});
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree");
    auto tree =
        await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(branch), {}, std::move(done)); });
    EXPECT_TRUE(tree);
    auto taken_in =
        await<Integrated>([&](auto done) { work->publisher->merge(*tree, CancelToken(), std::move(done)); });
    EXPECT_TRUE(taken_in) << taken_in.error().message;
    work->write("mine", "m");
    work->remove("gone");
  }
  std::string publish(const std::vector<std::string>& parents, const Contents& contents) {
    return publish_in(world, project, parents, contents);
  }
  void expect_published(const std::vector<RevisionId>& parents, const Contents& contents) {
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    EXPECT_EQ(world.contents(world.head(project)), contents);
    EXPECT_EQ(wire::decode_revision(world.get("revisions", result->revision.text()))->parents, parents);
    EXPECT_TRUE(work->stage->is_clean());
  }
  [[nodiscard]] bool said_so() const {
    return work->events->events_text().find("service_lost_branch") != std::string::npos;
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project, root, head, branch;
  std::unique_ptr<WorkTree> work;
};

TEST_F(LostBranchTest, WhatItBroughtIsPublishedAndItIsNoParent) {
  world.restore();
  expect_published({RevisionId(head)}, {{"base", "0"}, {"head", "h"}, {"mine", "m"}, {"theirs", "1"}});
  EXPECT_TRUE(said_so());
}

TEST_F(LostBranchTest, AlsoWhereHeadHasMovedOn) {
  world.restore();
  const std::string next = publish({head}, {{"base", "0"}, {"head", "h"}, {"next", "n"}});
  world.set_head(project, next);
  expect_published({RevisionId(next)}, {{"base", "0"}, {"head", "h"}, {"mine", "m"}, {"next", "n"}, {"theirs", "1"}});
}

TEST_F(LostBranchTest, OneAnswerTakesItOffNoParents) {
  std::atomic<int> asked = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method != "GET" || !request.target.ends_with("/revisions/" + branch) || asked++ > 0)
      return test::Fault();
    return test::answer_with(404, R"({"error":"nothing is here","code":"not_found"})");
  });
  expect_published({RevisionId(head), RevisionId(branch)},
                   {{"base", "0"}, {"head", "h"}, {"mine", "m"}, {"theirs", "1"}});
  EXPECT_GT(asked, 1);
  EXPECT_FALSE(said_so());
}

/// Manifest fields that are unknown here, written by other clients.
class UnknownFieldsTest : public testing::Test {
 protected:
  std::string publish(const std::vector<std::string>& parents, const std::string& path, JsonObject fields) {
    Json::Array ids;
    for (const auto& parent : parents) ids.emplace_back(parent);
    fields.set("files", JsonObject{{"base", JsonObject{{"inline", "0"}}}, {path, JsonObject{{"inline", path}}}});
    JsonObject body{{"project", project}, {"parents", std::move(ids)}, {"manifest", std::move(fields)}};
    return world.create("revisions", wire::to_text(body)).id;
  }
  static Result<Integrated> merge(WorkTree& work, const std::string& branch) {
    auto tree =
        await<RevisionTreePtr>([&](auto done) { work.site->revision(RevisionId(branch), {}, std::move(done)); });
    if (!tree) return fail(std::move(tree).error());
    return await<Integrated>([&](auto done) { work.publisher->merge(*tree, CancelToken(), std::move(done)); });
  }
  JsonObject fields_of_head() {
    return wire::decode_revision(world.get("revisions", world.head(project)))->manifest.extra;
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
};

TEST_F(UnknownFieldsTest, ThoseThatOnlyABranchChangedAreInTheMerge) {
  for (bool head_moves : {false, true}) {
    project = world.create("projects", R"({"name":"p"})").id;
    std::string root = publish({}, "root", {{"kept", "1"}, {"changed", "1"}, {"dropped", "1"}});
    std::string branch = publish({root}, "branch", {{"kept", "1"}, {"changed", "2"}, {"added", "2"}});
    std::string head = publish({root}, "head", {{"kept", "1"}, {"changed", "1"}, {"dropped", "1"}, {"heads", "3"}});
    world.set_head(project, head);
    WorkTree work(world, project, directory.path() + (head_moves ? "/moves" : "/stays"));
    auto taken_in = merge(work, branch);
    ASSERT_TRUE(taken_in) << taken_in.error().message;
    JsonObject wanted{{"kept", "1"}, {"changed", "2"}, {"heads", "3"}, {"added", "2"}};
    if (head_moves) {
      JsonObject fields{{"kept", "4"}, {"changed", "1"}, {"dropped", "1"}, {"heads", "3"}};
      world.set_head(project, publish({head}, "moved", fields));
      wanted.set("kept", "4");
    }
    auto result = work.commit();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    JsonObject now = fields_of_head();
    for (const auto& member : wanted) {
      const Json* found = now.find(member.name);
      ASSERT_TRUE(found) << member.name << (head_moves ? ", head moved" : "");
      EXPECT_EQ(*found, member.value) << member.name;
    }
    EXPECT_FALSE(now.find("dropped"));
  }
}

TEST_F(UnknownFieldsTest, SoAreThoseOfEntries) {
  auto entry = [](const std::string& text, const std::string& note) {
    JsonObject entry{{"inline", text}};
    if (!note.empty()) entry.set("note", note);
    return entry;
  };
  auto revision = [&](const std::vector<std::string>& parents, JsonObject files) {
    Json::Array ids;
    for (const auto& parent : parents) ids.emplace_back(parent);
    JsonObject manifest{{"files", std::move(files)}};
    JsonObject body{{"project", project}, {"parents", std::move(ids)}, {"manifest", std::move(manifest)}};
    return world.create("revisions", wire::to_text(body)).id;
  };
  for (bool head_moves : {false, true}) {
    SCOPED_TRACE(head_moves ? "head moves" : "head stays");
    project = world.create("projects", R"({"name":"p"})").id;
    const JsonObject first{{"same", entry("0", "")},     {"content", entry("0", "1")}, {"both", entry("0", "1")},
                           {"dropped", entry("0", "1")}, {"deleted", entry("0", "1")}, {"heads", entry("0", "1")}};
    const std::string root = revision({}, first);
    std::string branch = revision({root}, {{"same", entry("0", "2")},
                                           {"content", entry("2", "2")},
                                           {"both", entry("2", "2")},
                                           {"dropped", entry("0", "")},
                                           {"deleted", entry("0", "2")},
                                           {"heads", entry("0", "1")},
                                           {"added", entry("2", "2")},
                                           {"edited", entry("2", "2")}});
    JsonObject heads = first;
    heads.set("heads", entry("0", "3"));
    heads.set("both", entry("3", "1"));
    heads.erase("deleted");
    const std::string head = revision({root}, heads);
    world.set_head(project, head);
    WorkTree work(world, project, directory.path() + (head_moves ? "/moves" : "/stays"));
    auto taken_in = merge(work, branch);
    ASSERT_TRUE(taken_in) << taken_in.error().message;
    work.write("both", "resolved");
    work.write("edited", "here");
    work.write("own", "here");
    if (head_moves) {
      heads.set("heads", entry("4", "4"));
      heads.set("of head", entry("4", "4"));
      world.set_head(project, revision({head}, heads));
    }
    auto result = work.commit();
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    std::map<std::string, std::string> notes;
    const auto published = wire::decode_revision(world.get("revisions", world.head(project)));
    for (const auto& [path, file] : published->manifest.files) {
      const Json* note = file.extra.find("note");
      notes[path] = note ? *note->string() : "";
    }
    std::map<std::string, std::string> wanted = {{"same", "2"},  {"content", "2"}, {"both", "2"},   {"dropped", ""},
                                                 {"heads", "3"}, {"added", "2"},   {"edited", "2"}, {"own", ""}};
    if (head_moves) {
      wanted["heads"] = "4";
      wanted["of head"] = "4";
    }
    EXPECT_EQ(notes, wanted);
  }
}

/// A branch that is older than head.
class HeadsLineTest : public testing::Test {
 protected:
  HeadsLineTest() : project(world.create("projects", R"({"name":"p"})").id) {
    root = publish("", "base");
    branch = publish(root, "branch");
    head = publish(root, "head");
    world.set_head(project, head);
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree");
  }
  std::string publish(const std::string& parent, const std::string& path) {
    JsonObject files{{"base", JsonObject{{"inline", "0"}}}};
    files.set(path, JsonObject{{"inline", "0"}});
    Json::Array parents;
    if (!parent.empty()) parents.emplace_back(parent);
    return world
        .create("revisions", wire::to_text(JsonObject{{"project", project},
                                                      {"parents", std::move(parents)},
                                                      {"manifest", JsonObject{{"files", std::move(files)}}}}))
        .id;
  }
  Revision revision(const std::string& id) { return *wire::decode_revision(world.get("revisions", id)); }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project, root, branch, head;
  std::unique_ptr<WorkTree> work;
};

TEST_F(HeadsLineTest, AnAutomaticMergeNamesItFirst) {
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::merged);
  Revision merge = revision(world.head(project));
  EXPECT_TRUE(merge.manifest.is_automatic);
  EXPECT_EQ(merge.parents, (std::vector{result->revision, RevisionId(branch)})) << "and not by age";
  EXPECT_EQ(revision(result->revision.text()).parents, std::vector{RevisionId(head)});
}

TEST_F(HeadsLineTest, ACommitThatTakesABranchInNamesItFirst) {
  auto tree = await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(branch), {}, std::move(done)); });
  ASSERT_TRUE(tree);
  ASSERT_TRUE(await<Integrated>([&](auto done) { work->publisher->merge(*tree, CancelToken(), std::move(done)); }));
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(revision(result->revision.text()).parents, (std::vector{RevisionId(head), RevisionId(branch)}));
}

TEST_F(HeadsLineTest, ItIsTheLineOfHeadAlsoWhereTheWorkTreeStandsOnTheBranch) {
  // On the branch, with head merged by its id rather than by an update.
  world.set_head(project, branch);
  work = std::make_unique<WorkTree>(world, project, directory.path() + "/other");
  world.set_head(project, head);
  auto tree = await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(head), {}, std::move(done)); });
  ASSERT_TRUE(tree);
  ASSERT_TRUE(await<Integrated>([&](auto done) { work->publisher->merge(*tree, CancelToken(), std::move(done)); }));
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.head(project), result->revision.text());
  EXPECT_EQ(revision(result->revision.text()).parents.front(), RevisionId(head));
}

}  // namespace
}  // namespace playfs::publish
