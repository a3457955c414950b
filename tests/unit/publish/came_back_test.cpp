// What a service had lost, and has again: whoever only read it changes nothing of what became of it since.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/await.h"
#include "support/publish_world.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

class CameBackTest : public testing::Test {
 protected:
  CameBackTest() : project(world.create("projects", R"({"name":"p"})").id) {}

  /// Ann publishes twice, and the service loses the second, which also has `more`. Bob has only seen it.
  void lose(const Contents& more = {}) {
    auto ann = tree("ann");
    commit(*ann, {{"deleted", "4"}, {"changed", "4\n"}, {"stays", "4"}});
    world.back_up();
    ann->remove("deleted");
    for (const auto& [path, content] : more) ann->write(path, content);
    commit(*ann, {{"added", "5"}, {"changed", "5\n"}});
    bob = tree("bob");
    world.restore();
    auto head = revision(world.head(project));
    auto kept = await<bool>([&](auto done) { bob->publisher->keep_lost_base(head, {}, std::move(done)); });
    ASSERT_TRUE(kept && *kept);
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
  /// Somebody else who had kept what was lost.
  std::unique_ptr<WorkTree> publish_it_again() {
    auto zoe = tree("zoe");
    zoe->remove("deleted");
    commit(*zoe, {{"added", "5"}, {"changed", "5\n"}});
    return zoe;
  }
  Status update() {
    auto head = revision(world.head(project));
    auto updated = await<Integrated>([&](auto done) { bob->publisher->update(head, {}, std::move(done)); });
    return updated ? Status() : fail(updated.error());
  }
  test::World world;
  test::TempDirectory directory;
  std::string project;
  std::unique_ptr<WorkTree> bob;
};

/// Bob goes on by a commit, or by an update and a commit.
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

TEST_P(WayOfGoingOnTest, WhatHeadDidToItSinceStands) {
  lose();
  auto zoe = publish_it_again();
  zoe->remove("added");
  commit(*zoe, {{"changed", "4\n"}, {"deleted", "6"}});
  commit_of_bob({{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"changed", "4\n"}, {"deleted", "6"}, {"late", "7"}, {"stays", "4"}}));
}

TEST_P(WayOfGoingOnTest, WhatWasDoneToItHereIsNoConflict) {
  lose();
  publish_it_again();
  commit_of_bob({{"changed", "5\nof bob\n"}});
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"added", "5"}, {"changed", "5\nof bob\n"}, {"stays", "4"}}));
}

TEST_P(WayOfGoingOnTest, WhatIsNotBackIsPublishedAgain) {
  lose();
  commit(*tree("zoe"), {{"theirs", "6"}});
  commit_of_bob({{"late", "7"}});
  EXPECT_EQ(world.contents(world.head(project)),
            (Contents{{"added", "5"}, {"changed", "5\n"}, {"late", "7"}, {"stays", "4"}, {"theirs", "6"}}));
}

TEST_F(CameBackTest, OfWhatNobodyHasTheBytesHeadHasTheLastWord) {
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
