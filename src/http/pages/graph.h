// The revision graph of a log as a drawing: which line each revision is on, and the curves to its parents. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "http/pages/html.h"

namespace playfs::http {

/// One revision of a log, newest first.
struct GraphNode {
  std::string id;
  std::vector<std::string> parents;  ///< those past kMostParents are not drawn
  bool head = false;
};

/// From a revision to one of its parents. It switches from its row's line to `line`, and stays there.
struct GraphEdge {
  std::size_t from = 0;  ///< row
  std::size_t to = 0;    ///< row; the number of rows if the parent is not in this log
  std::size_t from_line = 0;
  std::size_t line = 0;
};

struct GraphLayout {
  std::vector<std::size_t> lines;  ///< of each row's revision
  std::vector<GraphEdge> edges;
  std::size_t width = 0;  ///< number of lines; at most kMostLines
};

/// Further lines are drawn on the last one: publishing hundreds of branches makes a muddle, not a wider page.
inline constexpr std::size_t kMostLines = 8;
inline constexpr std::size_t kMostParents = 16;

/// A parent that is above its child, or is the child itself, is not drawn: published parents need not form a graph.
GraphLayout lay_out(const std::vector<GraphNode>& nodes);

/// As SVG, with rows as high as the style sheet's --row. `continues`: the log has more rows below.
void draw(const std::vector<GraphNode>& nodes, const GraphLayout& layout, bool continues, Html& html);

}  // namespace playfs::http
