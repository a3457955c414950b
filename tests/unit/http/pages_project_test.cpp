// A project's page: folders, who last changed what, branches.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/pages/last_changes.h"
#include "http/pages/tree.h"
#include "unit/http/pages_fixture.h"

namespace playfs::http {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

class ProjectPages : public PagesTest {
 protected:
  void SetUp() override {
    PagesTest::SetUp();
    service::ServiceOptions options;
    options.steward_key = "key";
    serve(std::move(options));
    project = create("projects", {{"name", "kiln"}});
  }
  std::string commit(const std::string& message, std::vector<std::pair<std::string, std::string>> files,
                     std::vector<std::string> parents = {}) {
    JsonObject entries;
    for (const auto& [path, content] : files) entries.set(path, inline_file(content));
    Json::Array named;
    for (std::string& parent : parents) named.emplace_back(std::move(parent));
    return publish(project, std::move(entries), std::move(named), message);
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> changes_before(const std::string& head) const {
    Reader reader(*store);
    auto revision = reader.revision(head);
    EXPECT_TRUE(revision);
    std::vector<std::pair<std::string, std::string>> messages;
    for (const auto& [name, change] : last_changes(reader, *revision)) messages.emplace_back(name, change.message);
    return messages;
  }
  std::string project = {};
};

TEST_F(ProjectPages, EachNameHasTheRevisionThatChangedItLast) {
  const auto one = commit("one", {{"a", "1"}, {"src/x", "1"}, {"src/y", "1"}});
  const auto two = commit("two", {{"a", "1"}, {"src/x", "2"}, {"src/y", "1"}}, {one});
  const auto three = commit("three", {{"a", "1"}, {"src/x", "2"}, {"src/y", "1"}, {"b", "1"}}, {two});
  EXPECT_THAT(changes_before(three), ElementsAre(Pair("a", "one"), Pair("b", "three"), Pair("src", "two")));
}

TEST_F(ProjectPages, AMergeChangedOnlyWhatNoParentHas) {
  const auto root = commit("root", {{"a", "1"}, {"b", "1"}, {"c", "1"}});
  const auto left = commit("left", {{"a", "2"}, {"b", "1"}, {"c", "1"}}, {root});
  const auto right = commit("right", {{"a", "1"}, {"b", "2"}, {"c", "2"}}, {root});
  const auto merge = commit("merge", {{"a", "2"}, {"b", "2"}, {"c", "3"}}, {left, right});
  EXPECT_THAT(changes_before(merge), ElementsAre(Pair("a", "left"), Pair("b", "right"), Pair("c", "merge")));
}

TEST_F(ProjectPages, WhatCannotBeKnownIsLeftOut) {
  const auto lost = commit("lost parent", {{"a", "1"}}, {"nowhere"});
  EXPECT_THAT(changes_before(lost), ElementsAre());
  const auto mine = commit("mine", {{"a", "1"}, {"b", "1"}}, {lost});
  EXPECT_THAT(changes_before(mine), ElementsAre(Pair("b", "mine")));
  // Another project's revision is no parent.
  const auto foreign = publish("elsewhere", {{"a", inline_file("0")}});
  EXPECT_THAT(changes_before(commit("taken over", {{"a", "0"}}, {foreign})), ElementsAre());
  // A circle.
  const auto first = commit("first", {{"a", "1"}}), second = commit("second", {{"a", "1"}}, {first});
  record(send("PATCH", "/revisions/" + first, wire::to_text(Json(JsonObject{{"parents", Json::Array{second}}})),
              {{"Authorization", "Bearer key"}}));
  EXPECT_THAT(changes_before(second), ElementsAre());
}

TEST_F(ProjectPages, TheWalkIsBounded) {
  std::string parent = commit("the very first", {{"old", "1"}, {"new", "0"}});
  for (int i = 0; i < 150; ++i) parent = commit("step", {{"old", "1"}, {"new", std::to_string(i)}}, {parent});
  EXPECT_THAT(changes_before(parent), ElementsAre(Pair("new", "step")));
  set_head(project, parent);
  EXPECT_THAT(page("/projects/" + project).text, HasSubstr("older"));
}

TEST_F(ProjectPages, AProjectShowsFoldersWithTheirAuthorsAndFolderPages) {
  const auto one =
      commit("begin", {{"README", "Read me, see https://example.org."}, {"src/a/x.c", "1"}, {"src/b.c", "1"}});
  const auto two = commit(
      "touch it", {{"README", "Read me, see https://example.org."}, {"src/a/x.c", "2"}, {"src/b.c", "1"}}, {one});
  set_head(project, two);
  const std::string files = "/projects/" + project + "/revisions/" + two + "/files/";
  auto markup = page("/projects/" + project);
  EXPECT_THAT(markup.text, HasSubstr("src/"));
  EXPECT_THAT(markup.text, HasSubstr("2 files"));
  EXPECT_THAT(markup.text, Not(HasSubstr("x.c")));
  EXPECT_THAT(markup.text, HasSubstr("Read me, see"));
  for (const std::string& link :
       {files + "src", files + "README", "/projects/" + project + "/log", std::string("/agents/wren"),
        std::string("https://example.org"), "/projects/" + project + "/revisions/" + one})
    EXPECT_THAT(markup.links, Contains(link));
  auto folder = page(files + "src");
  EXPECT_THAT(folder.links, Contains(files + "src/a"));
  EXPECT_THAT(folder.links, Contains(files + "src/b.c"));
  EXPECT_THAT(page(files + "src/a").links, Contains(files + "src/a/x.c"));
  EXPECT_THAT(page(files + "src/a/x.c").links, Contains(files + "src/a"));
  EXPECT_EQ(get(files + "sr").status, 404);
}

TEST_F(ProjectPages, BranchesAreWhatNothingIsBuiltOn) {
  const auto one = commit("one", {{"a", "1"}});
  const auto side = commit("aside", {{"a", "2"}}, {one});
  const auto two = commit("two", {{"a", "3"}}, {one});
  set_head(project, two);
  auto markup = page("/projects/" + project);
  EXPECT_THAT(markup.text, HasSubstr("1 of the latest 3 revisions is beside head"));
  EXPECT_THAT(markup.links, Contains("/projects/" + project + "/diff/" + two + ".." + side));
  set_head(project, commit("merge", {{"a", "3"}}, {two, side}));
  EXPECT_THAT(page("/projects/" + project).text, Not(HasSubstr("beside head")));
}

TEST_F(ProjectPages, AHeadOfAnotherProjectIsSaidToBe) {
  set_head(project, publish("elsewhere", {}));
  EXPECT_THAT(page("/projects/" + project).text, HasSubstr("which is another project's"));
}

TEST_F(ProjectPages, AReadmeThatIsNotAsPromisedIsNotShownAsIfItWere) {
  JsonObject wrong = inline_file("these");
  wrong.set("h", ContentHash::of("those").hex());
  set_head(project, publish(project, {{"README.md", wrong}}));
  auto markup = page("/projects/" + project);
  EXPECT_THAT(markup.text, HasSubstr("Its own page says why"));
  EXPECT_THAT(markup.text, Not(HasSubstr("these")));
}

TEST(Tree, EntriesOfAFolder) {
  Manifest manifest;
  for (const char* path : {"a-b", "a/x", "a/y/z", "a.b", "b"}) manifest.files[path];
  auto names = [&](std::string_view folder) {
    std::vector<std::pair<std::string, std::size_t>> names;
    for (const TreeEntry& entry : entries_of(manifest, folder)) names.emplace_back(entry.name, entry.files);
    return names;
  };
  EXPECT_THAT(names(""), ElementsAre(Pair("a", 2), Pair("a-b", 0), Pair("a.b", 0), Pair("b", 0)));
  EXPECT_THAT(names("a/"), ElementsAre(Pair("y", 1), Pair("x", 0)));
  EXPECT_THAT(names("nope/"), ElementsAre());
}

}  // namespace
}  // namespace playfs::http
