#include "http/pages/graph.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace playfs::http {

namespace {

// In the drawing's own units, which the style sheet scales.
constexpr std::size_t kRow = 56;
constexpr std::size_t kLine = 16;
constexpr std::size_t kMargin = 12;
constexpr double kRem = 16;

std::size_t x_of(std::size_t line) { return kMargin + std::min(line, kMostLines - 1) * kLine; }
std::size_t y_of(std::size_t row) { return row * kRow + kRow / 2; }

std::string colour(std::size_t line) { return fmt::format("line-{}", line % 6); }

/// The lines that lead down to parents not reached yet.
class Lines {
 public:
  /// The line that leads to this revision, or else a free one, which is then taken.
  std::size_t take(const std::string& id) {
    auto waiting = std::find(awaited_.begin(), awaited_.end(), id);
    if (waiting == awaited_.end()) waiting = std::find(awaited_.begin(), awaited_.end(), std::string());
    if (waiting == awaited_.end()) waiting = awaited_.insert(waiting, std::string());
    *waiting = id;
    return static_cast<std::size_t>(waiting - awaited_.begin());
  }
  [[nodiscard]] bool awaits(const std::string& id) const {
    return std::find(awaited_.begin(), awaited_.end(), id) != awaited_.end();
  }
  void lead_to(std::size_t line, const std::string& id) { awaited_[line] = id; }
  void end(std::size_t line) { awaited_[line].clear(); }
  [[nodiscard]] std::size_t count() const { return awaited_.size(); }

 private:
  std::vector<std::string> awaited_;  // by line; empty: free
};

std::string path_of(const GraphEdge& edge, std::size_t rows, bool continues) {
  std::size_t x = x_of(edge.from_line), y = y_of(edge.from), to_x = x_of(edge.line);
  bool leaves = edge.to == rows;
  // At the end of the log, a line to a revision outside it is drawn as a stub.
  std::size_t end = !leaves ? y_of(edge.to) : continues ? rows * kRow : y + kRow / 2;
  std::string path = fmt::format("M{} {}", x, y);
  if (x != to_x)
    path += fmt::format("C{} {} {} {} {} {}", x, y + kRow / 2, to_x, y + kRow / 2, to_x,
                        std::min(y + kRow, std::max(end, y + kRow / 2)));
  return path + fmt::format("V{}", end);
}

}  // namespace

GraphLayout lay_out(const std::vector<GraphNode>& nodes) {
  std::unordered_map<std::string_view, std::size_t> rows;
  for (std::size_t row = 0; row < nodes.size(); ++row) rows.emplace(nodes[row].id, row);
  GraphLayout layout;
  Lines lines;
  for (const GraphNode& node : nodes)
    if (node.head) lines.take(node.id);  // the first line is the head's
  for (std::size_t row = 0; row < nodes.size(); ++row) {
    const std::size_t line = lines.take(nodes[row].id);
    layout.lines.push_back(line);
    bool goes_on = false;
    const auto& parents = nodes[row].parents;
    for (std::size_t i = 0; i < std::min(parents.size(), kMostParents); ++i) {
      const std::string& parent = parents[i];
      auto found = rows.find(parent);
      std::size_t to = found == rows.end() ? nodes.size() : found->second;
      if (to <= row) continue;
      // The first parent continues this line, unless another line leads to it already.
      bool straight = !goes_on && !lines.awaits(parent);
      if (straight) lines.lead_to(line, parent);
      goes_on = goes_on || straight;
      layout.edges.push_back({row, to, line, straight ? line : lines.take(parent)});
    }
    if (!goes_on) lines.end(line);
  }
  layout.width = std::min(lines.count(), kMostLines);
  return layout;
}

void draw(const std::vector<GraphNode>& nodes, const GraphLayout& layout, bool continues, Html& html) {
  const std::size_t width = 2 * kMargin + (std::max<std::size_t>(layout.width, 1) - 1) * kLine;
  const std::size_t height = nodes.size() * kRow;
  Html::Element svg = html.open("svg", {{"class", "graph"},
                                        {"role", "img"},
                                        {"aria-labelledby", "graph-title"},
                                        {"viewBox", fmt::format("0 0 {} {}", width, height)},
                                        {"width", fmt::format("{}rem", static_cast<double>(width) / kRem)},
                                        {"height", fmt::format("{}rem", static_cast<double>(height) / kRem)}});
  html.element("title", {{"id", "graph-title"}},
               fmt::format("{} revisions on {} lines, each connected to its parents; the list names them too",
                           nodes.size(), layout.width));
  for (const GraphEdge& edge : layout.edges)
    html.element("path", {{"class", colour(edge.line)}, {"d", path_of(edge, nodes.size(), continues)}}, "");
  for (std::size_t row = 0; row < nodes.size(); ++row)
    html.element("circle",
                 {{"class", colour(layout.lines[row]) + (nodes[row].head ? " head" : "")},
                  {"cx", std::to_string(x_of(layout.lines[row]))},
                  {"cy", std::to_string(y_of(row))},
                  {"r", nodes[row].head ? "6" : "4.5"}},
                 "");
}

}  // namespace playfs::http
