#include "app/fsck/revision_graph.h"

#include <gtest/gtest.h>

namespace playfs::app {
namespace {

struct Made {
  std::string id;
  std::vector<std::string> parents;
};

RevisionGraph graph_of(const std::vector<Made>& revisions) {
  RevisionGraph graph;
  for (const Made& each : revisions) {
    std::vector<RevisionId> parents;
    for (const std::string& parent : each.parents) parents.emplace_back(parent);
    graph.add(RevisionId(each.id), std::move(parents));
  }
  return graph;
}

std::string cycles_of(const RevisionGraph& graph) {
  std::string text;
  for (const auto& [first, length] : graph.cycles()) text += first.text() + ":" + std::to_string(length) + " ";
  return text;
}

std::string branches_of(const RevisionGraph& graph, const std::string& head) {
  std::string text;
  for (const auto& [tip, revisions] : graph.beside(RevisionId(head)))
    text += tip.text() + ":" + std::to_string(revisions) + " ";
  return text;
}

TEST(RevisionGraph, TellsWhichParentsAreUnknown) {
  const auto graph = graph_of({{"c", {"b", "x", "x"}}, {"b", {"a", "y"}}, {"a", {}}});
  std::string edges;
  for (const auto& [child, parent] : graph.to_unknown()) edges += child.text() + parent.text() + " ";
  EXPECT_EQ(edges, "cx by ");
  EXPECT_TRUE(graph.has(RevisionId("a")));
  EXPECT_FALSE(graph.has(RevisionId("x")));
}

TEST(RevisionGraph, TheFirstRecordOfAnIdCounts) {
  EXPECT_EQ(branches_of(graph_of({{"b", {"a"}}, {"b", {}}, {"a", {}}}), "b"), "");
}

TEST(RevisionGraph, ALineOrAMergeHasNoCycle) {
  EXPECT_EQ(cycles_of(graph_of({})), "");
  EXPECT_EQ(cycles_of(graph_of({{"m", {"a", "b", "a"}}, {"b", {"r"}}, {"a", {"r"}}, {"r", {"unknown"}}})), "");
}

TEST(RevisionGraph, FindsCyclesAndNotWhatHangsOnThem) {
  EXPECT_EQ(cycles_of(graph_of({{"a", {"a"}}})), "a:1 ");
  EXPECT_EQ(cycles_of(graph_of({{"tip", {"c"}}, {"c", {"b", "root"}}, {"b", {"a"}}, {"a", {"c"}}, {"root", {}}})),
            "c:3 ");
  EXPECT_EQ(cycles_of(graph_of({{"d", {"c"}}, {"c", {"d", "b"}}, {"b", {"a"}}, {"a", {"b"}}})), "d:2 b:2 ");
}

TEST(RevisionGraph, ABranchIsWhatHeadDoesNotReach) {
  const auto graph = graph_of({{"m", {"b", "a"}}, {"z", {"y"}}, {"y", {"a"}}, {"x", {"y"}}, {"b", {"a"}}, {"a", {}}});
  EXPECT_EQ(branches_of(graph, "m"), "z:2 x:1 ");
  EXPECT_EQ(branches_of(graph, "z"), "m:2 x:1 ");
  EXPECT_EQ(branches_of(graph, "elsewhere"), "m:3 z:2 x:1 ");
}

TEST(RevisionGraph, ACycleBesideHeadIsABranchToo) {
  EXPECT_EQ(branches_of(graph_of({{"h", {}}, {"b", {"a"}}, {"a", {"b"}}, {"s", {"s"}}}), "h"), "s:1 b:2 ");
}

}  // namespace
}  // namespace playfs::app
