#include "model/lineage.h"

#include <map>

#include <gtest/gtest.h>

namespace playfs {
namespace {

class LineageTest : public testing::Test {
 protected:
  /// Each a second later than the one before. Without content it is an automatic merge.
  void add(const std::string& id, const std::vector<std::string>& parents, const std::string& content) {
    Link link{RevisionId(id), {static_cast<std::int64_t>(links.size() + 1) * 1'000'000'000}, {}, content};
    for (const auto& parent : parents) link.parents.emplace_back(parent);
    links.push_back(link);
  }
  void add(const std::string& id, const std::vector<std::string>& parents = {}) {
    add(id, parents, "content of " + id);
  }
  FindLink find = [this](const RevisionId& id) -> Result<std::optional<Link>> {
    for (const auto& link : links)
      if (link.id == id) return std::optional(link);
    return std::optional<Link>();
  };
  std::vector<std::string> tips() {
    std::vector<std::string> ids;
    auto found = find_tips(links, find);
    for (const auto& tip : *found) ids.push_back(tip.text());
    return ids;
  }
  std::vector<std::string> bases(const std::string& a, const std::string& b) {
    std::vector<std::string> ids;
    auto found = find_merge_bases(RevisionId(a), RevisionId(b), find);
    for (const auto& base : *found) ids.push_back(base.text());
    return ids;
  }
  using Ids = std::vector<std::string>;
  std::vector<Link> links;
};

TEST_F(LineageTest, TheLastOfALineIsItsTip) {
  add("a");
  add("b", {"a"});
  add("c", {"b"});
  EXPECT_EQ(tips(), Ids{"c"});
}

TEST_F(LineageTest, SiblingsAreTipsInTheOrderOfTheirOldestDifference) {
  add("root");
  add("a", {"root"});
  add("b", {"root"});
  EXPECT_EQ(tips(), (Ids{"a", "b"}));
  add("b2", {"b"});
  add("a2", {"a"});
  EXPECT_EQ(tips(), (Ids{"a2", "b2"})) << "a was first, whatever came since";
}

TEST_F(LineageTest, MergesOfTheSameCoverEachOther) {
  add("root");
  add("a", {"root"});
  add("b", {"root"});
  add("m1", {"a", "b"}, "");
  add("m2", {"b", "a"}, "");
  EXPECT_EQ(tips(), Ids{"m1"}) << "two that hold the same: the older one";
  add("m3", {"m1", "m2"}, "");
  EXPECT_EQ(tips(), Ids{"m1"}) << "a merge of merges holds no more";
  add("c", {"m2"});
  EXPECT_EQ(tips(), Ids{"c"});
}

TEST_F(LineageTest, TheSameCommitPostedTwiceIsOne) {
  add("root");
  add("a", {"root"}, "tx");
  add("again", {"root"}, "tx");
  EXPECT_EQ(tips(), Ids{"a"});
  add("next", {"a"});
  EXPECT_EQ(tips(), Ids{"next"});
}

TEST_F(LineageTest, AnAutomaticMergeOfOneLineIsNoMoreThanThatLine) {
  add("root");
  add("a", {"root"});
  add("m", {"a"}, "");
  EXPECT_EQ(tips(), Ids{"a"});
}

TEST_F(LineageTest, BasesAreTheBestCommonAncestors) {
  add("root");
  add("a", {"root"});
  add("b", {"root"});
  EXPECT_EQ(bases("a", "b"), Ids{"root"});
  EXPECT_EQ(bases("a", "root"), Ids{"root"});
  EXPECT_EQ(bases("a", "a"), Ids{"a"});
  add("x", {"a", "b"});
  add("y", {"b", "a"});
  EXPECT_EQ(bases("x", "y"), (Ids{"b", "a"})) << "merged crosswise";
  add("x2", {"x"});
  add("y2", {"y", "x"});
  EXPECT_EQ(bases("x2", "y2"), Ids{"x"});
  add("stranger");
  EXPECT_TRUE(bases("x2", "stranger").empty());
}

TEST_F(LineageTest, ALongHistoryIsNotWalkedToItsEnd) {
  add("r0");
  for (int i = 1; i < 3000; ++i) add("r" + std::to_string(i), {"r" + std::to_string(i - 1)});
  add("a", {"r2999"});
  add("b", {"r2998"});
  std::map<RevisionId, Link> by_id;
  for (const auto& link : links) by_id[link.id] = link;
  std::size_t asked = 0;
  FindLink counting = [&](const RevisionId& id) -> Result<std::optional<Link>> {
    ++asked;
    return std::optional(by_id.at(id));
  };
  auto holdings = Holdings::compare({RevisionId("a"), RevisionId("b")}, counting);
  ASSERT_TRUE(holdings);
  EXPECT_FALSE(holdings->covers(RevisionId("a"), RevisionId("b")));
  EXPECT_TRUE(holdings->holds(RevisionId("a"), "content of r2999"));
  EXPECT_LT(asked, 10u);
  asked = 0;
  EXPECT_EQ(find_merge_bases(RevisionId("a"), RevisionId("b"), counting).value(), std::vector{RevisionId("r2998")});
  EXPECT_LT(asked, 10u);
}

TEST_F(LineageTest, CyclesAndMissingParentsDoNoHarm) {
  add("a", {"b", "nowhere"});
  add("b", {"a"});
  add("c", {"b"});
  EXPECT_EQ(tips(), Ids{"c"});
}

// What a revision's own piece of content is.

Revision made(const std::string& id, const std::vector<std::string>& parents) {
  Revision revision;
  revision.id = RevisionId(id);
  for (const auto& parent : parents) revision.parents.emplace_back(parent);
  return revision;
}

Manifest holding(const std::string& text, const std::string& tx = "tx") {
  Manifest manifest;
  manifest.tx = tx;
  manifest.files["a"].inline_text = text;
  return manifest;
}

TEST(LinkTest, OneCommitPostedTwiceIsOnePiece) {
  const Link once = link_of(made("1", {"p"}), holding("a"));
  EXPECT_EQ(once.content, link_of(made("2", {"p"}), holding("a")).content);
  EXPECT_NE(once.content, link_of(made("2", {"p"}), holding("a", "other")).content);
}

TEST(LinkTest, ACommitsNameThatWasCarriedAlongNamesNothing) {
  const std::string ours = link_of(made("1", {"p"}), holding("a")).content;
  EXPECT_NE(ours, link_of(made("2", {"p"}), holding("edited")).content);
  EXPECT_NE(ours, link_of(made("2", {"1"}), holding("a")).content) << "brought back";
  Revision other_state = made("2", {"p"});
  other_state.state = JsonObject{{"season", "spring"}};
  EXPECT_NE(ours, link_of(other_state, holding("a")).content);
  Manifest executable = holding("a");
  executable.files["a"].mode = FileMode::executable;
  EXPECT_NE(ours, link_of(made("2", {"p"}), executable).content);
  Manifest refused = holding("a");
  refused.refused.push_back({"../b", "leads out", "x"});
  EXPECT_NE(ours, link_of(made("2", {"p"}), refused).content);
}

TEST(LinkTest, WhereTheTextStandsMakesNoDifference) {
  Manifest inlined = holding("a"), chunked = holding("a");
  inlined.files["a"].hash_claim = chunked.files["a"].hash_claim = ContentHash::of("a").hex();
  chunked.files["a"].inline_text.reset();
  chunked.files["a"].chunks = {ChunkId("c")};
  EXPECT_EQ(link_of(made("1", {"p"}), inlined).content, link_of(made("2", {"p"}), chunked).content);
}

TEST(LinkTest, OnlyAMergeMayHaveNothingOfItsOwn) {
  Manifest automatic = holding("a", "");
  automatic.is_automatic = true;
  EXPECT_EQ(link_of(made("m", {"a", "b"}), automatic).content, "");
  EXPECT_EQ(link_of(made("m", {"a"}), automatic).content, "m");
}

}  // namespace
}  // namespace playfs
