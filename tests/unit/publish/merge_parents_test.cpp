// A work tree that took in a branch stands on two revisions: what is merged with it next has both behind it.
#include <gtest/gtest.h>

#include "base/await.h"
#include "support/publish_world.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

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
    // Somebody else took it in too, and went on.
    theirs = publish({head, branch}, {{"base", "0"}, {"head", "h"}, {"changed", "2"}});
    world.set_head(project, theirs);
  }

  std::string publish(const std::vector<std::string>& parents, const Contents& contents) {
    JsonObject files;
    for (const auto& [path, content] : contents) files.set(path, JsonObject{{"inline", content}});
    Json::Array ids;
    for (const auto& parent : parents) ids.emplace_back(parent);
    JsonObject body{
        {"project", project}, {"parents", std::move(ids)}, {"manifest", JsonObject{{"files", std::move(files)}}}};
    return world.create("revisions", wire::to_text(body)).id;
  }
  RevisionTreePtr revision(const std::string& id) {
    auto tree = await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(id), {}, std::move(done)); });
    EXPECT_TRUE(tree);
    return *tree;
  }
  void expect_all_of_it(const Result<CommitResult>& result) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    EXPECT_EQ(world.contents(world.head(project)),
              (Contents{{"base", "0"}, {"head", "h"}, {"changed", "2"}, {"mine", "m"}}))
        << "what was done to the branch's files is undone by nobody";
    auto ours = *wire::decode_revision(world.get("revisions", result->revision.text()));
    EXPECT_EQ(ours.parents, (std::vector{RevisionId(branch), RevisionId(theirs)}));
    EXPECT_TRUE(work->stage->is_clean());
  }

  test::World world;
  test::TempDirectory directory;
  std::string project, root, head, branch, theirs;
  std::unique_ptr<WorkTree> work;
};

TEST_F(MergeParentsTest, ACommitIsMergedWithAHeadThatTookTheBranchIn) { expect_all_of_it(work->commit()); }

TEST_F(MergeParentsTest, AnUpdateBringsAHeadThatTookTheBranchIn) {
  auto updated =
      await<Integrated>([&](auto done) { work->publisher->update(revision(theirs), CancelToken(), std::move(done)); });
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(updated->conflicts, 0u);
  EXPECT_EQ(work->read("changed"), "2");
  expect_all_of_it(work->commit());
}

}  // namespace
}  // namespace playfs::publish
