// Which conflicts of a merge are still unresolved.
#include "publish/conflicts.h"

#include <gtest/gtest.h>

#include "model/path.h"
#include "support/workbench.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

class ConflictsTest : public testing::Test {
 protected:
  ConflictsTest() { bench.open(test::revision_of("r1", {{"f", "published"}, {"l", {"f", FileMode::symlink}}})); }
  /// Records that a merge left `content` there, in conflict.
  void leave(const std::string& path, const std::string& content, bool has_markers = false) {
    ASSERT_TRUE(bench.stage->record_conflicted(
        {{.path = path, .reason = "", .has_markers = has_markers, .left = ContentHash::of(content), .beside = ""}}));
  }
  bool is_resolved() {
    auto left = unresolved(*bench.stage);
    EXPECT_TRUE(left) << left.error().message;
    return left && left->empty();
  }
  test::Workbench bench;
};

TEST_F(ConflictsTest, AFileWithMarkersIsInConflict) {
  const std::string marked = "<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\n";
  ASSERT_TRUE(bench.put("f", marked));
  leave("f", marked, true);
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.put("f", "a line more\n" + marked));
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.put("f", "1 and 2\n"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, MarkersOfARemovedFileAreInConflictElsewhere) {
  const std::string marked = "<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\n";
  leave("f", marked, true);
  ASSERT_TRUE(bench.put("copy", "a line more\n" + marked) && bench.unlink("f"));
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.put("copy~", marked) && bench.put("copy", "1 and 2\n"));
  EXPECT_TRUE(is_resolved()) << "what is ignored is not published";
}

TEST_F(ConflictsTest, AStateKeyIsInConflictUntilItsValueChanges) {
  auto parsed = [](const char* text) { return wire::parse_json(text).value(); };
  const Json left = parsed(R"({"k": 1, "n": {"m": [2], "o": 3}, "a.b": 4})");
  std::vector<stage::Conflicted> list;
  for (const char* path : {"(state) k", "(state) n.m", "(state) a.b", "(state) gone"})
    list.push_back({.path = path, .reason = "both", .left = hash_of_state(left, path)});
  ASSERT_TRUE(bench.stage->record_conflicted(list));
  auto open = [&](const char* text) {
    EXPECT_TRUE(bench.stage->stage_state(text));
    std::vector<std::string> paths;
    const auto still_open = unresolved(*bench.stage).value();
    for (const auto& each : still_open) paths.push_back(each.path.substr(8));
    return paths;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(open(R"({"a.b": 4, "k": 1, "n": {"o": 5, "m": [2]}, "z": 0})"), (Keys{"k", "n.m", "a.b", "gone"}));
  EXPECT_EQ(open(R"({"a.b": 5, "k": 1, "n": {"m": [2]}})"), (Keys{"k", "n.m", "gone"}));
  EXPECT_EQ(open(R"({"a.b": 5, "n": {"m": [2]}, "gone": null})"), Keys{"n.m"});
  EXPECT_EQ(open(R"({"a.b": 5, "n": 1, "gone": null})"), Keys());
}

TEST_F(ConflictsTest, AStateConflictOfAnOlderVersionIsResolvedByAnyEdit) {
  ASSERT_TRUE(bench.stage->stage_state(R"({"k":1})"));
  leave("(state) k", R"({"k":1})");
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.stage->stage_state(R"({"k":2})"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, WithoutMarkersAnyEditResolvesIt) {
  ASSERT_TRUE(bench.put("f", "ours"));
  leave("f", "ours");
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.put("f", "both"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, ALinkIsInConflictUntilItPointsElsewhere) {
  ASSERT_TRUE(bench.unlink("l") && bench.symlink("ours", "l"));
  leave("l", "ours");
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.unlink("l") && bench.symlink("theirs", "l"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, ReplacingOrRemovingItResolvesIt) {
  leave("f", "published");
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.unlink("f"));
  EXPECT_TRUE(is_resolved());
  leave("f", "published");
  ASSERT_TRUE(bench.mkdir("f"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, TheFileBesideItMustBeRemoved) {
  ASSERT_TRUE(bench.put("f.head", "theirs"));
  ASSERT_TRUE(bench.stage->record_conflicted(
      {{.path = "f", .reason = "", .has_markers = false, .left = std::nullopt, .beside = "f.head"}}));
  ASSERT_TRUE(bench.put("f", "edited"));
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.unlink("f.head"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, TheFileBesideItMustBeRemovedEvenAfterADiscard) {
  ASSERT_TRUE(bench.put("f", "ours"));
  ASSERT_TRUE(bench.put("f.head", "theirs"));
  ASSERT_TRUE(bench.stage->record_conflicted(
      {{.path = "f", .reason = "", .has_markers = false, .left = std::nullopt, .beside = "f.head"}}));
  ASSERT_TRUE(bench.stage->discard("f"));
  EXPECT_FALSE(is_resolved()) << "f.head would be published unasked";
  ASSERT_TRUE(bench.stage->discard("f.head"));
  EXPECT_TRUE(is_resolved());
}

TEST(NameBeside, HasASuffixAndANumberFromTheSecondOn) {
  EXPECT_EQ(name_beside("d.x/a", ".head", 1), "d.x/a.head");
  EXPECT_EQ(name_beside("d.x/a", ".head", 2), "d.x/a.head-2");
  EXPECT_EQ(name_beside("a", ".branch", 10), "a.branch-10");
}

TEST(NameBeside, LongNamesAreShortened) {
  const std::string longest(kMaxComponentLength, 'x');
  EXPECT_EQ(name_beside("d/" + longest, ".head", 1), "d/" + std::string(kMaxComponentLength - 5, 'x') + ".head");
  std::string two_bytes_each = "x";
  while (two_bytes_each.size() < kMaxComponentLength) two_bytes_each += "ä";
  EXPECT_EQ(name_beside(two_bytes_each, ".head", 1), two_bytes_each.substr(0, kMaxComponentLength - 6) + ".head")
      << "whole ones";
  std::string deep = "x";
  while (deep.size() < kMaxPathLength) deep += "/x";
  EXPECT_EQ(name_beside(deep, "", 1), deep);
  const std::string deepest = std::string(200, 'd') + '/' + std::string(54, 'x');
  EXPECT_EQ(name_beside(deepest, ".head", 1), deepest + ".head") << "only the last part has that length";
}

TEST(NameBeside, BytesAfterThePathAreNotRead) {
  EXPECT_EQ(name_beside(std::string_view("a\xa4", 1), ".head", 1), "a.head");
}

}  // namespace
}  // namespace playfs::publish
