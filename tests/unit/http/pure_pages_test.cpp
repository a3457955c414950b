// The parts of pages that are pure functions: drawing a log, arranging messages.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/pages/conversation.h"
#include "http/pages/graph.h"
#include "http/pages/layout.h"

namespace playfs::http {
namespace {

using testing::ElementsAre;

// Graphs.

std::vector<GraphNode> nodes(std::vector<std::pair<std::string, std::vector<std::string>>> list) {
  std::vector<GraphNode> nodes;
  for (auto& [id, parents] : list) nodes.push_back({id, parents, false});
  return nodes;
}

TEST(Graph, OneLineOfWorkIsOneLine) {
  auto layout = lay_out(nodes({{"c", {"b"}}, {"b", {"a"}}, {"a", {}}}));
  EXPECT_THAT(layout.lines, ElementsAre(0, 0, 0));
  EXPECT_EQ(layout.width, 1u);
  ASSERT_EQ(layout.edges.size(), 2u);
  EXPECT_EQ(layout.edges[1].from, 1u);
  EXPECT_EQ(layout.edges[1].to, 2u);
}

TEST(Graph, MergeLeadsToBothOfItsParents) {
  auto layout = lay_out(nodes({{"m", {"x", "y"}}, {"y", {"r"}}, {"x", {"r"}}, {"r", {}}}));
  EXPECT_THAT(layout.lines, ElementsAre(0, 1, 0, 1));
  ASSERT_EQ(layout.edges.size(), 4u);
  // Every edge stays on the line of the parent that it leads to.
  for (const auto& edge : layout.edges) EXPECT_EQ(edge.line, layout.lines[edge.to]);
}

TEST(Graph, HeadStandsOnTheFirstLine) {
  auto log = nodes({{"branch", {"a"}}, {"head", {"a"}}, {"a", {}}});
  log[1].head = true;
  EXPECT_EQ(lay_out(log).lines[1], 0u);
}

TEST(Graph, ParentsOutsideLeadToTheEnd) {
  auto layout = lay_out(nodes({{"b", {"older"}}}));
  ASSERT_EQ(layout.edges.size(), 1u);
  EXPECT_EQ(layout.edges[0].to, 1u);
}

TEST(Graph, ClaimsThatAreNoGraphDoNoHarm) {
  auto layout = lay_out(nodes({{"a", {"b", "a"}}, {"b", {"a"}}, {"c", {"a", "c", "c"}}}));
  EXPECT_EQ(layout.lines.size(), 3u);
  for (const auto& edge : layout.edges) EXPECT_GT(edge.to, edge.from);
}

TEST(Graph, StaysNarrowUnderManyBranches) {
  std::vector<GraphNode> log;
  for (int i = 0; i < 50; ++i) {
    GraphNode node{"tip" + std::to_string(i), {}, false};
    for (int p = 0; p < 700; ++p) node.parents.push_back("p" + std::to_string(i) + "-" + std::to_string(p));
    log.push_back(node);
  }
  auto layout = lay_out(log);
  EXPECT_EQ(layout.width, kMostLines);
  EXPECT_LE(layout.edges.size(), log.size() * kMostParents);
}

// Conversations.

Record message(const std::string& id, const std::string& parent) {
  return {id, {}, {}, {}, JsonObject{{"parent", parent}}};
}

std::vector<std::string> outline(const std::vector<Record>& newest_first) {
  std::vector<std::string> lines;
  for (const Reply& reply : arrange(newest_first)) lines.push_back(std::to_string(reply.depth) + reply.message->id);
  return lines;
}

TEST(Conversation, PutsRepliesBelowWhatTheyAnswer) {
  EXPECT_THAT(outline({message("e", ""), message("d", "b"), message("c", "a"), message("b", "a"), message("a", "")}),
              ElementsAre("0a", "1b", "2d", "1c", "0e"));
}

TEST(Conversation, KeepsEveryMessageWhateverItsParentIs) {
  EXPECT_THAT(outline({message("d", "d"), message("c", "nowhere"), message("b", "a"), message("a", "b")}),
              ElementsAre("0a", "1b", "0c", "0d"));
}

TEST(Conversation, SetsInOnlySoFar) {
  std::vector<Record> chain;
  for (int i = 0; i < 100; ++i)
    chain.insert(chain.begin(), message("m" + std::to_string(i), i ? "m" + std::to_string(i - 1) : ""));
  auto arranged = arrange(chain);
  ASSERT_EQ(arranged.size(), 100u);
  EXPECT_EQ(arranged.back().depth, kDeepest);
}

TEST(Conversation, KnowsWhereTheIndentationDoesNotTellTheParent) {
  std::vector<Record> chain = {message("stray", "nowhere")};
  for (int i = 0; i < 9; ++i)
    chain.push_back(message("m" + std::to_string(8 - i), i < 8 ? "m" + std::to_string(7 - i) : ""));
  const std::vector<Reply> arranged = arrange(chain);
  ASSERT_EQ(arranged.size(), 10u);
  for (std::size_t i = 0; i < arranged.size(); ++i) EXPECT_EQ(arranged[i].shows_parent, i >= 1 && i <= kDeepest) << i;
}

TEST(Conversation, KnowsWhereTheRepliesToAMessageEnd) {
  const std::vector<Record> messages = {message("e", ""), message("d", "b"), message("c", "a"), message("b", "a"),
                                        message("a", "")};
  std::vector<std::size_t> ends;
  for (const Reply& reply : arrange(messages)) ends.push_back(reply.branch_end);
  EXPECT_THAT(ends, ElementsAre(4, 3, 3, 4, 5));  // a, b, d, c, e
}

// Words.

TEST(Excerpt, IsOneLineAndEndsBetweenCharacters) {
  EXPECT_EQ(excerpt("  a\n\n b\t", 10), "a b");
  EXPECT_EQ(excerpt("äöüß", 4), "äöüß");
  EXPECT_EQ(excerpt("äöüßx", 4), "äöüß…");
  EXPECT_EQ(headline("\n first\nsecond", "none"), "first");
  EXPECT_EQ(headline(" \n", "none"), "none");
  EXPECT_EQ(below_headline("\n first \n\n second\n"), "second");
  EXPECT_EQ(below_headline("only"), "");
  std::string wide(200, 'x');
  EXPECT_EQ(below_headline(wide), wide);
}

TEST(ShortId, IsTheEndOfALongOne) {
  EXPECT_EQ(short_id("1m7xzdwff2ym6jejsma5"), "…6jejsma5");
  EXPECT_EQ(short_id("short"), "short");
  EXPECT_EQ(short_id("äöüßäöüßäöüß"), "äöüßäöüßäöüß");
}

TEST(Size, ReadsWell) {
  EXPECT_EQ(size_in_words(0), "0 B");
  EXPECT_EQ(size_in_words(1023), "1023 B");
  EXPECT_EQ(size_in_words(1536), "1.5 KB");
  EXPECT_EQ(size_in_words(64 << 20), "64 MB");
}

}  // namespace
}  // namespace playfs::http
