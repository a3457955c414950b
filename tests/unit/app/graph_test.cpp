#include "app/graph.h"

#include <gtest/gtest.h>

namespace playfs::app {
namespace {

struct Node {
  std::string id;
  std::vector<std::string> parents;
};

std::string drawn(const std::vector<Node>& history, std::size_t lines = 1) {
  Graph graph;
  std::string text;
  for (const Node& node : history)
    for (const std::string& line : graph.draw(node.id, node.parents, std::vector(lines, node.id))) text += line + "\n";
  return text;
}

// Drawn as git draws the same histories.

TEST(Graph, ALineIsALine) { EXPECT_EQ(drawn({{"c", {"b"}}, {"b", {"a"}}, {"a", {}}}), "* c\n* b\n* a\n"); }

TEST(Graph, PartsAndJoinsAgain) {
  EXPECT_EQ(drawn({{"m", {"a", "b"}}, {"b", {"r"}}, {"a", {"r"}}, {"r", {}}}),
            "*   m\n"
            "|\\\n"
            "| * b\n"
            "* | a\n"
            "|/\n"
            "* r\n");
}

TEST(Graph, HasAColumnForEachHead) {
  EXPECT_EQ(drawn({{"x", {"r"}}, {"y", {"r"}}, {"z", {"r"}}, {"r", {}}}),
            "* x\n"
            "| * y\n"
            "|/\n"
            "| * z\n"
            "|/\n"
            "* r\n");
}

TEST(Graph, LinesMoveAsideForAMerge) {
  EXPECT_EQ(drawn({{"t", {"s"}}, {"m", {"a", "b"}}, {"s", {"a"}}, {"b", {"a"}}, {"a", {}}}),
            "* t\n"
            "| *   m\n"
            "| |\\\n"
            "* | | s\n"
            "|/ /\n"
            "| * b\n"
            "|/\n"
            "* a\n");
}

TEST(Graph, AnEdgeCrossesOthersOneColumnARow) {
  EXPECT_EQ(drawn({{"1", {"r"}}, {"2", {"s"}}, {"3", {"t"}}, {"4", {"r"}}, {"3x", {}}}).substr(0, 41),
            "* 1\n| * 2\n| | * 3\n| | | * 4\n| | |/\n| |/|\n");
}

TEST(Graph, TextStandsBesideTheEdges) {
  EXPECT_EQ(drawn({{"m", {"a", "b"}}, {"b", {"a"}}, {"a", {}}}, 3),
            "*   m\n"
            "|\\  m\n"
            "| | m\n"
            "| * b\n"
            "|/  b\n"
            "|   b\n"
            "* a\n"
            "  a\n"
            "  a\n");
}

TEST(Graph, BearsWhatStrangersMadeOfTheirParents) {
  // A revision as its own parent, a duplicate, one that was drawn before, more than two.
  EXPECT_EQ(drawn({{"a", {"a", "b", "b"}}, {"b", {"a", "c", "d", "e"}}, {"c", {"a"}}, {"d", {}}, {"e", {}}}),
            "* a\n"
            "*     b\n"
            "|\\\n"
            "| |\\\n"
            "* | | c\n"
            " / /\n"
            "* | d\n"
            " /\n"
            "* e\n");
}

}  // namespace
}  // namespace playfs::app
