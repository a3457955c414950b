// Draws a history as `git log --graph` does: a column for each line of revisions, edges where lines part and join.
//
// A value; for one thread. Revisions are drawn one by one, each after its children; one that comes later than a child
// is drawn without an edge to it.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace playfs::app {

class Graph {
 public:
  /// The lines to print for a revision: its text beside its row and the edges to its parents. `parents` is not trusted:
  /// duplicates and revisions already drawn get no edge.
  std::vector<std::string> draw(const std::string& id, const std::vector<std::string>& parents,
                                const std::vector<std::string>& text);

 private:
  struct Edge {
    std::size_t at = 0, to = 0;  ///< columns
  };
  std::vector<Edge> replace(std::size_t column, const std::vector<std::string>& parents);

  std::vector<std::string> columns_;  ///< the revision that each column leads to
  std::set<std::string> drawn_;
};

}  // namespace playfs::app
