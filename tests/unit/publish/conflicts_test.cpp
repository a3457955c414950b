// Which conflicts of a merge are still unresolved.
#include "publish/conflicts.h"

#include <gtest/gtest.h>

#include "model/path.h"
#include "stage/ignore.h"
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

const std::string kMarked = "<<<<<<< work tree\n1\n=======\n2\n>>>>>>> head 1m7ype\n";

TEST_F(ConflictsTest, OneOfTheMarkersIsEnoughHoweverAnEditorSavedIt) {
  leave("f", kMarked, true);
  for (const std::string text :
       {"1\n=======\n2\n>>>>>>> head 1m7ype", "1\r>>>>>>> revision 1m7ype\r", "<<<<<<< work tree\r\n1",
        "\xef\xbb\xbf<<<<<<< work tree\n", "// 1\n\t  >>>>>>> head 1m7ype\n"}) {
    ASSERT_TRUE(bench.put("f", text));
    EXPECT_FALSE(is_resolved()) << text;
    for (const char* mark : {"\xff\xfe", "\xfe\xff"}) {
      std::string wide = mark;
      for (char c : text) wide += *mark == '\xff' ? std::string{c, '\0'} : std::string{'\0', c};
      ASSERT_TRUE(bench.put("f", wide));
      EXPECT_FALSE(is_resolved()) << "UTF-16: " << text;
    }
  }
  for (const char* text : {"Heading\n=======\n", "<<<<<<< theirs\n", ">>>>>>> work tree\n", "a <<<<<<< work tree\n"}) {
    ASSERT_TRUE(bench.put("f", text));
    EXPECT_TRUE(is_resolved()) << text;
  }
}

TEST_F(ConflictsTest, StagedCopiesOfMarkersAreInConflictOnceTheirFileIsNot) {
  leave("f", kMarked, true);
  ASSERT_TRUE(bench.put("f", kMarked) && bench.put("copy", "a line more\n" + kMarked) && bench.put("other", "o"));
  auto open = [&] {
    std::vector<std::string> paths;
    const auto left = unresolved(*bench.stage).value();
    for (const auto& each : left) paths.push_back(each.path);
    return paths;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(open(), Paths{"f"});
  ASSERT_TRUE(bench.unlink("f"));
  EXPECT_EQ(open(), Paths{"copy"});
  ASSERT_TRUE(bench.put("f", "1 and 2\n"));
  EXPECT_EQ(open(), Paths{"copy"});
  ASSERT_TRUE(bench.stage->discard("f"));
  EXPECT_EQ(open(), Paths{"copy"}) << "of a discarded file";
  ASSERT_TRUE(bench.put("copy~", kMarked) && bench.put("copy", "1 and 2\n"));
  EXPECT_EQ(open(), Paths()) << "what is ignored is not published";
}

TEST_F(ConflictsTest, MarkersThatNoConflictLeftAreAnyText) {
  ASSERT_TRUE(bench.put("new", kMarked));
  leave("f", "ours");
  ASSERT_TRUE(bench.put("f", "both"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, AFileMayBeCalledAsTheStateIs) {
  ASSERT_TRUE(bench.stage->stage_state(R"({"k":1})"));
  ASSERT_TRUE(bench.mkdir("(state)"));
  for (const char* path : {"(state) k", "(state)/f", "(manifest) k"}) {
    ASSERT_TRUE(bench.put(path, kMarked));
    leave(path, kMarked, true);
    EXPECT_FALSE(is_resolved()) << path;
    ASSERT_TRUE(bench.put(path, "both"));
    EXPECT_TRUE(is_resolved()) << path;
  }
  ASSERT_TRUE(
      bench.stage->record_conflicted({{.path = "/(state) k",
                                       .reason = "",
                                       .left = hash_of_state(wire::parse_json(R"({"k":1})").value(), "/(state) k")}}));
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.stage->discard("(state) k"));
  EXPECT_FALSE(is_resolved());
  EXPECT_EQ(shown_path(bench.stage->conflicted().front()), "(state) k");
}

TEST(PathOf, OnlyAFileHasOneWithoutASlash) {
  EXPECT_EQ(path_of({"(state) k", ConflictKind::published, "", {}}), "/(state) k");
  EXPECT_EQ(path_of({"(manifest) k", ConflictKind::published, "", {}}), "/(manifest) k");
  EXPECT_EQ(path_of({"../refused", ConflictKind::published, "", {}}), "../refused");
  EXPECT_EQ(path_of({"(state) k", ConflictKind::text, "", {}}), "(state) k");
}

TEST(RulesOf, ALinkHasNoneAndTheEncodingOfChunksCounts) {
  auto rules = [](FileMode mode, ContentEncoding encoding) {
    FileEntry entry;
    entry.mode = mode;
    entry.encoding = encoding;
    entry.chunks = {ChunkId("c1")};
    Manifest manifest;
    manifest.files.emplace("d/.gitignore", entry);
    manifest.files.emplace("d/other", entry);
    return stage::rules_of(manifest);
  };
  const auto plain = rules(FileMode::regular, ContentEncoding::text);
  EXPECT_EQ(plain.size(), 1u);
  EXPECT_EQ(rules(FileMode::executable, ContentEncoding::text), plain);
  EXPECT_NE(rules(FileMode::regular, ContentEncoding::base64), plain);
  EXPECT_EQ(rules(FileMode::symlink, ContentEncoding::text), stage::RuleFiles());
}

TEST_F(ConflictsTest, AStateKeyIsInConflictUntilItsValueChanges) {
  auto parsed = [](const char* text) { return wire::parse_json(text).value(); };
  const Json left = parsed(R"({"k": 1, "n": {"m": [2], "o": 3}, "a.b": 4})");
  std::vector<stage::Conflicted> list;
  for (const char* path : {"/(state) k", "/(state) n.m", "/(state) a.b", "/(state) gone"})
    list.push_back({.path = path, .reason = "both", .left = hash_of_state(left, path)});
  ASSERT_TRUE(bench.stage->record_conflicted(list));
  auto open = [&](const char* text) {
    EXPECT_TRUE(bench.stage->stage_state(text));
    std::vector<std::string> paths;
    const auto still_open = unresolved(*bench.stage).value();
    for (const auto& each : still_open) paths.push_back(each.path.substr(9));
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
  leave("/(state) k", R"({"k":1})");
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
