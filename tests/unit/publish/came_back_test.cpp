// Revisions that a service had lost and has again: a client that only read them reverts nothing that happened since.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/await.h"
#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

class CameBackTest : public testing::Test {
 protected:
  CameBackTest() : project(world.create("projects", R"({"name":"p"})").id) {}

  /// Ann publishes twice, and the service loses the second revision, which also has `more`. Bob has only read it.
  void lose(const Contents& more = {}) {
    auto ann = tree("ann");
    commit(*ann, {{"deleted", "4"}, {"changed", "4\n"}, {"stays", "4"}});
    world.back_up();
    ann->remove("deleted");
    for (const auto& [path, content] : more) ann->write(path, content);
    commit(*ann, {{"added", "5"}, {"changed", "5\n"}});
    bob = tree("bob");
    lose_it();
  }
  void lose_it(const std::string& backup = "backup") {
    world.restore(backup);
    auto head = revision(world.head(project));
    auto kept = bob->keep_lost_base(head);
    ASSERT_TRUE(kept && *kept);
  }
  /// Several lines, so that two clients can change it: the first and the last.
  static std::string text_of(const std::string& first, const std::string& last) {
    return first + "\nb\nc\nd\ne\nf\n" + last + "\n";
  }
  /// Like lose(), with a file whose first line the lost revision changed.
  void lines(const std::string& first) {
    auto ann = tree("ann");
    commit(*ann, {{"deleted", "4"}, {"changed", "4\n"}, {"lines", text_of("one", "two")}});
    world.back_up();
    ann->remove("deleted");
    commit(*ann, {{"added", "5"}, {"changed", "5\n"}, {"lines", text_of(first, "two")}});
    bob = tree("bob");
    lose_it();
  }
  /// A revision by another client.
  std::string create(const std::vector<std::string>& parents, const std::string& files,
                     const std::string& state = "{}") {
    std::string quoted;
    for (const auto& parent : parents) quoted += (quoted.empty() ? "\"" : ",\"") + parent + '"';
    return world
        .create("revisions", R"({"project":")" + project + R"(","parents":[)" + quoted +
                                 R"(],"agent":"carol","state":)" + state + R"(,"manifest":{"files":)" + files + "}}")
        .id;
  }

  std::unique_ptr<WorkTree> tree(const std::string& name) {
    return std::make_unique<WorkTree>(world, project, directory.path() + "/" + name);
  }
  RevisionTreePtr revision(const std::string& id) {
    auto tree = await<RevisionTreePtr>([&](auto done) { bob->site->revision(RevisionId(id), {}, std::move(done)); });
    EXPECT_TRUE(tree) << tree.error().message;
    return *tree;
  }
  static void commit(WorkTree& tree, const Contents& contents) {
    for (const auto& [path, content] : contents) tree.write(path, content);
    auto result = tree.commit();
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_NE(result->outcome, Outcome::branched);
  }
  /// Another client, which had kept the lost content, publishes it again.
  std::unique_ptr<WorkTree> publish_it_again(const Contents& more = {}) {
    auto zoe = tree("zoe");
    zoe->remove("deleted");
    for (const auto& [path, content] : more) zoe->write(path, content);
    commit(*zoe, {{"added", "5"}, {"changed", "5\n"}});
    return zoe;
  }
  Status update() {
    auto head = revision(world.head(project));
    auto updated = await<Integrated>([&](auto done) { bob->publisher->update(head, {}, std::move(done)); });
    return updated ? Status() : fail(updated.error());
  }
  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
  std::unique_ptr<WorkTree> bob;
};

/// Bob continues with a commit, or with an update and a commit.
class WayOfGoingOnTest : public CameBackTest, public testing::WithParamInterface<bool> {
 protected:
  void commit_of_bob(const Contents& contents) {
    for (const auto& [path, content] : contents) bob->write(path, content);
    if (GetParam()) {
      Status updated = update();
      ASSERT_TRUE(updated) << updated.error().message;
    }
    commit(*bob, {});
  }
};

TEST_P(WayOfGoingOnTest, LaterChangesByHeadStand) {
  lose();
  auto zoe = publish_it_again();
  zoe->remove("added");
  commit(*zoe, {{"changed", "4\n"}, {"deleted", "6"}});
  commit_of_bob({{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"changed", "4\n"}, {"deleted", "6"}, {"late", "7"}, {"stays", "4"}}));
}

TEST_P(WayOfGoingOnTest, ChangesToTheRemainingContentAreMerged) {
  lines("one of the second");
  ASSERT_TRUE(bob->stage->discard("lines", false));
  EXPECT_EQ(bob->read("lines"), text_of("one", "two"));
  publish_it_again({{"lines", text_of("one of the second", "two")}});
  commit_of_bob({{"lines", text_of("one", "two of bob")}});
  EXPECT_EQ(world.contents(world.head(project)).at("lines"), text_of("one of the second", "two of bob"));
}

TEST_P(WayOfGoingOnTest, OlderContentIsNotAReturn) {
  // The lost revision had reverted the one before it.
  auto ann = tree("ann");
  commit(*ann, {{"file", "A"}});
  const std::string oldest = world.head(project);
  commit(*ann, {{"file", "B"}, {"added", "y"}});
  world.back_up();
  const std::string left = world.head(project);
  ann->remove("added");
  commit(*ann, {{"file", "A"}, {"more", "x"}});
  bob = tree("bob");
  lose_it();
  // A revision made at the same time as that one, and the merge of both.
  const std::string theirs = create({oldest}, R"({"file":{"inline":"A"},"theirs":{"inline":"c"}})");
  world.set_head(project,
                 create({theirs, left}, R"({"file":{"inline":"B"},"added":{"inline":"y"},"theirs":{"inline":"c"}})"));
  commit_of_bob({{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"file", "A"}, {"late", "7"}, {"more", "x"}, {"theirs", "c"}}));
}

TEST_P(WayOfGoingOnTest, AServiceThatWentBackTwiceHasItAgain) {
  auto ann = tree("ann");
  commit(*ann, {{"file", "3"}});
  world.back_up("first");
  commit(*ann, {{"file", "4"}});
  world.back_up("second");
  commit(*ann, {{"file", "5"}, {"added", "5"}});
  world.back_up("newest");
  bob = tree("bob");
  lose_it("second");
  lose_it("first");
  world.restore("newest");
  ann->remove("added");
  commit(*ann, {{"file", "4"}});
  commit_of_bob({{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"file", "4"}, {"late", "7"}}));
}

TEST_P(WayOfGoingOnTest, RewritingTheLostContentIsAChange) {
  lose();
  auto zoe = tree("zoe");
  commit(*zoe, {{"changed", "5\n"}});
  commit(*zoe, {{"changed", "6\n"}});
  Status updated = update();
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(bob->read("changed"), "6\n");
  EXPECT_TRUE(bob->publisher->lost_base()) << "the rest is not back";
  bob->write("changed", "5\n");
  commit(*zoe, {{"theirs", "7"}});
  commit_of_bob({});
  EXPECT_EQ(world.contents(world.head(project)).at("changed"), "5\n");
}

TEST_P(WayOfGoingOnTest, LaterChangesToItsStateStand) {
  const std::string files = R"({"file":{"inline":"1"}})", more = R"({"added":{"inline":"2"},"file":{"inline":"1"}})";
  const std::string left = create({}, files, R"({"season":"spring"})");
  world.set_head(project, left);
  world.back_up();
  world.set_head(project, create({left}, more, R"({"season":"summer"})"));
  bob = tree("bob");
  lose_it();
  const std::string again = create({left}, more, R"({"season":"summer"})");
  world.set_head(project, create({again}, more, R"({"season":"autumn"})"));
  commit_of_bob({{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)), (Contents{{"added", "2"}, {"file", "1"}, {"late", "7"}}));
  EXPECT_EQ(wire::to_text(revision(world.head(project))->revision.state), R"({"season":"autumn"})");
}

TEST_F(CameBackTest, AnAncestorOfTheLostRevisionIsNotItsReturn) {
  auto ann = tree("ann");
  commit(*ann, {{"file", "3"}});
  world.back_up("old");
  commit(*ann, {{"file", "5"}});
  commit(*ann, {{"file", "7"}});
  world.back_up("better");
  commit(*ann, {{"file", "5"}});
  bob = tree("bob");
  lose_it("old");
  world.restore("better");
  Status updated = update();
  ASSERT_TRUE(updated) << updated.error().message;
  ASSERT_EQ(bob->stage->conflicted().size(), 1u);
  EXPECT_EQ(bob->stage->conflicted().front().path, "file");
}

TEST_P(WayOfGoingOnTest, WhatIsNotBackIsPublishedAgain) {
  lose();
  commit(*tree("zoe"), {{"theirs", "6"}});
  commit_of_bob({{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"added", "5"}, {"changed", "5\n"}, {"late", "7"}, {"stays", "4"}, {"theirs", "6"}}));
}

TEST_F(CameBackTest, HeadDecidesForContentWithoutBytes) {
  lose({{"large", std::string(30'000, 'l')}});
  auto zoe = publish_it_again();
  commit(*zoe, {{"large", "newer"}});
  Status updated = update();
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_TRUE(bob->stage->is_clean());
  EXPECT_FALSE(bob->publisher->lost_base());
  commit(*bob, {{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"added", "5"}, {"changed", "5\n"}, {"large", "newer"}, {"late", "7"}, {"stays", "4"}}));
}

INSTANTIATE_TEST_SUITE_P(Ways, WayOfGoingOnTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "AfterAnUpdate" : "ByACommit"; });

}  // namespace
}  // namespace playfs::publish
