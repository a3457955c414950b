#include "model/lineage.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace playfs {
namespace {

class LineageTest : public testing::Test {
 protected:
  /// Each a second later than the previous one. Without content it is an automatic merge.
  void add(const std::string& id, const std::vector<std::string>& parents, const std::string& content) {
    Link link{RevisionId(id), {static_cast<std::int64_t>(links.size() + 1) * 1'000'000'000}, {}, content};
    if (link.is_merge = content.empty(); link.is_merge) link.content = id;
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
  Links graph{find, [this](const Link& link) -> Result<bool> {
                asked_about.insert(link.id.text());
                return !forged.contains(link.id.text());
              }};
  std::set<std::string> forged, asked_about;
  std::vector<std::string> tips() {
    std::vector<std::string> ids;
    auto found = find_tips(links, graph);
    for (const auto& tip : *found) ids.push_back(tip.text());
    return ids;
  }
  std::vector<std::string> bases(const std::string& a, const std::string& b) {
    std::vector<std::string> ids;
    auto found = find_merge_bases(RevisionId(a), RevisionId(b), find);
    EXPECT_TRUE(found->is_whole);
    for (const auto& base : found->ids) ids.push_back(base.text());
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

TEST_F(LineageTest, ACommitPostedTwiceIsAsOldAsTheFirst) {
  for (bool is_first_first : {true, false}) {
    links.clear();
    add("root");
    add("a", {"root"}, "tx");
    add("b", {"root"});
    add("again", {"root"}, "tx");
    add("x", is_first_first ? Ids{"a", "again"} : Ids{"again", "a"});
    add("y", {"b"});
    EXPECT_EQ(tips(), (Ids{"x", "y"}));
    links[1].created_at.nanoseconds += 10;
    links[2].created_at = links[3].created_at = links[1].created_at;
    links[1].id = RevisionId("c");  // of two at the same time, the one whose id sorts first
    links[4].parents[is_first_first ? 0 : 1] = RevisionId("c");
    EXPECT_EQ(tips(), (Ids{"x", "y"}));
  }
}

TEST_F(LineageTest, OnlyWhatHasTwoParentsCanBeAnAutomaticMerge) {
  Revision revision;
  revision.id = RevisionId("r");
  revision.parents = {RevisionId("a")};
  Manifest manifest;
  manifest.is_automatic = true;
  EXPECT_FALSE(link_of(revision, manifest).is_merge) << "a client that knows nothing of it carried `auto` along";
  revision.parents.emplace_back("b");
  EXPECT_TRUE(link_of(revision, manifest).is_merge);
}

TEST_F(LineageTest, AFalseMergeMarkDoesNotHideContent) {
  add("root");
  add("a", {"root"});
  add("b", {"root"});
  add("m1", {"a", "b"}, "");
  EXPECT_EQ(tips(), Ids{"m1"});
  EXPECT_TRUE(asked_about.empty()) << "whether it is makes no difference";
  add("edited", {"a", "b"}, "");
  forged = {"edited"};
  EXPECT_EQ(tips(), Ids{"edited"});
  add("next", {"m1"});
  EXPECT_EQ(tips(), (Ids{"edited", "next"}));
  EXPECT_TRUE(asked_about.contains("edited"));
}

TEST_F(LineageTest, ACommitIsIdentifiedByItsTxAndItsContent) {
  Revision revision;
  revision.id = RevisionId("r");
  Manifest manifest;
  manifest.tx = "tx";
  manifest.files["doc"].inline_text = "old";
  const std::string ours = link_of(revision, manifest).content;
  revision.id = RevisionId("again");
  EXPECT_EQ(link_of(revision, manifest).content, ours) << "one commit, posted twice";
  auto carried = revision;
  carried.parents = {RevisionId("r")};
  EXPECT_NE(link_of(carried, manifest).content, ours) << "a revision of the old files, brought back";
  auto edited = manifest;
  edited.files["doc"].inline_text = "new";
  EXPECT_NE(link_of(revision, edited).content, ours);
  auto renamed = manifest;
  renamed.files["text"] = manifest.files["doc"];
  renamed.files.erase("doc");
  EXPECT_NE(link_of(revision, renamed).content, ours);
  auto with_state = revision;
  with_state.state = JsonObject{{"k", "v"}};
  EXPECT_NE(link_of(with_state, manifest).content, ours);
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
  auto holdings = Holdings::compare({RevisionId("a"), RevisionId("b")}, {counting, graph.confirm});
  ASSERT_TRUE(holdings);
  EXPECT_FALSE(holdings->covers(RevisionId("a"), RevisionId("b")));
  EXPECT_TRUE(holdings->holds(RevisionId("a"), "content of r2999"));
  EXPECT_LT(asked, 10u);
  asked = 0;
  EXPECT_EQ(find_merge_bases(RevisionId("a"), RevisionId("b"), counting)->ids, std::vector{RevisionId("r2998")});
  EXPECT_LT(asked, 10u);
}

TEST_F(LineageTest, AncestorsOfAnUnreadableRevisionAreNotGuessed) {
  add("root");
  add("mine", {"root"});
  add("theirs", {"hidden"});
  auto bases = find_merge_bases(RevisionId("mine"), RevisionId("theirs"), find);
  EXPECT_TRUE(bases->ids.empty());
  EXPECT_FALSE(bases->is_whole);
  auto holdings = Holdings::compare({RevisionId("mine"), RevisionId("theirs")}, graph);
  EXPECT_FALSE(holdings->covers(RevisionId("theirs"), RevisionId("mine")));
  EXPECT_FALSE(holdings->covers(RevisionId("mine"), RevisionId("theirs")));
  // A visible common ancestor does not help: there may be a newer one above it.
  add("other", {"hidden", "root"});
  EXPECT_FALSE(find_merge_bases(RevisionId("mine"), RevisionId("other"), find)->is_whole);
  // Nothing below the common base matters.
  add("one", {"theirs"});
  add("two", {"theirs"});
  EXPECT_EQ(this->bases("one", "two"), Ids{"theirs"});
}

TEST_F(LineageTest, UnrelatedLinesMayBothStartEmpty) {
  auto root = [&](const std::string& id, const std::string& tx) {
    add(id, {}, tx.empty() ? id : tx + ' ' + id);
    links.back().tx = tx;
  };
  auto began_apart = [&](const std::string& a, const std::string& b) {
    return find_merge_bases(RevisionId(a), RevisionId(b), find)->began_apart;
  };
  root("one", "1");
  root("two", "2");
  root("foreign", "");
  root("copied", "1");
  add("one more", {"one"});
  EXPECT_TRUE(began_apart("one", "two"));
  EXPECT_TRUE(began_apart("one more", "two"));
  EXPECT_FALSE(began_apart("one more", "foreign")) << "it may have been made on anything, and deleted some of it";
  EXPECT_FALSE(began_apart("one more", "copied")) << "nor does a tx help that another has";
  add("on nobody knows what", {"hidden"});
  EXPECT_FALSE(began_apart("one", "on nobody knows what"));
}

TEST_F(LineageTest, BeyondTheSearchLimitNothingIsGuessed) {
  std::map<RevisionId, Link> by_id;
  auto put = [&](const std::string& id, const std::string& parent) {
    Link link{RevisionId(id), {static_cast<std::int64_t>(by_id.size())}, {}, id};
    if (!parent.empty()) link.parents.emplace_back(parent);
    by_id.emplace(link.id, link);
  };
  put("base", "");
  put("r0", "base");
  for (std::size_t i = 1; i <= kMostLinks; ++i) put("r" + std::to_string(i), "r" + std::to_string(i - 1));
  put("mine", "base");
  by_id.at(RevisionId("mine")).created_at = {0};
  Links far{[&](const RevisionId& id) -> Result<std::optional<Link>> { return std::optional(by_id.at(id)); },
            graph.confirm};
  auto at = [](std::size_t i) { return RevisionId("r" + std::to_string(i)); };
  EXPECT_EQ(find_merge_bases(at(kMostLinks - 10), RevisionId("mine"), far.find)->ids, std::vector{RevisionId("base")});
  EXPECT_FALSE(find_merge_bases(at(kMostLinks), RevisionId("mine"), far.find)->is_whole);
  EXPECT_FALSE(Holdings::compare({at(kMostLinks), RevisionId("base")}, far)->covers(at(kMostLinks), RevisionId("base")))
      << "not seen to";
}

// Whatever the clocks said, and whatever is missing: compared with the plain definition, over small random histories.

class RandomHistory {
 public:
  explicit RandomHistory(std::mt19937& random, double skew) {
    std::uniform_real_distribution<double> off(-skew, skew);
    const int size = 3 + static_cast<int>(random() % 10);
    for (int i = 0; i < size; ++i) {
      Link link{id(i), {static_cast<std::int64_t>((i + off(random)) * 1000)}, {}, id(i).text()};
      std::set<int> parents;
      for (unsigned k = 0, most = random() % 4 == 0 ? 2 : 1; i > 0 && k < most; ++k)
        if (random() % 12 != 0) parents.insert(static_cast<int>(random() % static_cast<unsigned>(i)));
      for (int parent : parents) link.parents.push_back(id(parent));
      links.push_back(link);
    }
  }
  static RevisionId id(int number) { return RevisionId(std::string(1, static_cast<char>('a' + number))); }
  [[nodiscard]] const Link* find(const RevisionId& id) const {
    for (const auto& link : links)
      if (link.id == id) return &link;
    return nullptr;
  }
  [[nodiscard]] std::set<RevisionId> ancestry(const RevisionId& id) const {
    std::set<RevisionId> all = {id};
    for (const auto& parent : find(id)->parents) all.merge(ancestry(parent));
    return all;
  }
  [[nodiscard]] bool covers(const RevisionId& a, const RevisionId& b) const { return ancestry(a).contains(b); }
  [[nodiscard]] std::set<RevisionId> bases(const RevisionId& a, const RevisionId& b) const {
    std::set<RevisionId> one = ancestry(a), other = ancestry(b), common, best;
    std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::inserter(common, common.end()));
    for (const auto& id : common)
      if (std::none_of(common.begin(), common.end(), [&](const auto& each) { return each != id && covers(each, id); }))
        best.insert(id);
    return best;
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const auto& link : links) {
      text += link.id.text() + '@' + std::to_string(link.created_at.nanoseconds) + ':';
      for (const auto& parent : link.parents) text += ' ' + parent.text();
      text += '\n';
    }
    return text;
  }
  std::vector<Link> links;
};

TEST(LineageProperty, HoldsWhateverTheClocksSaid) {
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    const RandomHistory history(random, (std::array{0.0, 1.0, 3.0, 10.0})[static_cast<std::size_t>(round % 4)]);
    auto pick = [&] { return history.links[random() % history.links.size()].id; };
    const RevisionId a = pick(), b = pick();
    FindLink find = [&](const RevisionId& id) -> Result<std::optional<Link>> {
      return std::optional(*history.find(id));
    };
    const Links links{find, [](const Link&) -> Result<bool> { return true; }};
    auto holdings = Holdings::compare({a, b}, links);
    ASSERT_EQ(holdings->covers(a, b), history.covers(a, b)) << a.text() << ' ' << b.text() << '\n' << history.text();
    auto bases = find_merge_bases(a, b, find);
    ASSERT_TRUE(bases->is_whole);
    ASSERT_EQ(std::set<RevisionId>(bases->ids.begin(), bases->ids.end()), history.bases(a, b))
        << a.text() << ' ' << b.text() << '\n'
        << history.text();
    auto tips = find_tips(history.links, links);
    std::set<RevisionId> uncovered;
    for (const auto& link : history.links)
      if (std::none_of(history.links.begin(), history.links.end(),
                       [&](const auto& other) { return other.id != link.id && history.covers(other.id, link.id); }))
        uncovered.insert(link.id);
    ASSERT_EQ(std::set<RevisionId>(tips->begin(), tips->end()), uncovered) << history.text();

    // The same with an unreadable revision: less may be known, but nothing wrong.
    const RevisionId hidden = pick();
    FindLink partly = [&](const RevisionId& id) -> Result<std::optional<Link>> {
      return id == hidden ? std::nullopt : std::optional(*history.find(id));
    };
    auto seen = Holdings::compare({a, b}, {partly, links.confirm});
    if (seen->covers(a, b)) {
      ASSERT_TRUE(history.covers(a, b)) << hidden.text() << '\n' << history.text();
    }
    auto found = find_merge_bases(a, b, partly);
    if (found->is_whole && std::find(found->ids.begin(), found->ids.end(), hidden) == found->ids.end()) {
      ASSERT_EQ(std::set<RevisionId>(found->ids.begin(), found->ids.end()), history.bases(a, b))
          << a.text() << ' ' << b.text() << " hidden " << hidden.text() << '\n'
          << history.text();
    }
  }
}

TEST_F(LineageTest, CyclesAndMissingParentsDoNoHarm) {
  add("a", {"b", "nowhere"});
  add("b", {"a"});
  add("c", {"b"});
  EXPECT_EQ(tips(), Ids{"c"});
}

// Whose own content a revision is.

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

TEST(LinkTest, OnlyWhatHasTwoParentsMayBeAMerge) {
  Manifest automatic = holding("a", "");
  automatic.is_automatic = true;
  EXPECT_TRUE(link_of(made("m", {"a", "b"}), automatic).is_merge);
  EXPECT_FALSE(link_of(made("m", {"a"}), automatic).is_merge);
}

}  // namespace
}  // namespace playfs
