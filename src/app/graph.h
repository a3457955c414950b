// A history as `git log --graph` draws one: a column for each line of revisions, edges where lines part and join.
//
// A value; for one thread. Revisions are drawn one after the other, each after those that were made on it; one that
// comes later than that is drawn all the same, without an edge.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace playfs::app {

class Graph {
 public:
  /// What is to be printed for a revision: its text line by line beside its row and the edges to its parents. `parents`
  /// may be any: doubles and those that were drawn before get no edge.
  std::vector<std::string> draw(const std::string& id, const std::vector<std::string>& parents,
                                const std::vector<std::string>& text);

 private:
  struct Edge {
    std::size_t at = 0, to = 0;  ///< columns
  };
  std::vector<Edge> replace(std::size_t column, const std::vector<std::string>& parents);

  std::vector<std::string> columns_;  ///< which revision each leads to
  std::set<std::string> drawn_;
};

}  // namespace playfs::app
