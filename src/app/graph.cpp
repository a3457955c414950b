#include "app/graph.h"

#include <algorithm>

namespace playfs::app {

namespace {

std::string row_of(std::size_t columns, std::size_t star) {
  std::string row;
  for (std::size_t i = 0; i < columns; ++i) row += i == star ? "* " : "| ";
  return row;
}

void put(std::string& row, std::size_t at, char mark) {
  if (row.size() <= at) row.resize(at + 1, ' ');
  row[at] = mark;
}

}  // namespace

/// Replaces the revision in `column` by its parents; returns where each column continues.
std::vector<Graph::Edge> Graph::replace(std::size_t column, const std::vector<std::string>& parents) {
  std::vector<std::string> next(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(column));
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < column; ++i) edges.push_back({i, i});
  std::vector<std::string> joined;
  for (const std::string& parent : parents) {
    if (drawn_.contains(parent) || std::count(next.begin(), next.end(), parent) > 0) {
      if (!drawn_.contains(parent)) joined.push_back(parent);
      continue;
    }
    if (std::count(columns_.begin(), columns_.end(), parent) > 0) {
      joined.push_back(parent);
      continue;
    }
    edges.push_back({column, next.size()});
    next.push_back(parent);
  }
  for (std::size_t i = column + 1; i < columns_.size(); ++i) {
    edges.push_back({i, next.size()});
    next.push_back(columns_[i]);
  }
  for (const std::string& parent : joined)
    edges.push_back({column, static_cast<std::size_t>(std::find(next.begin(), next.end(), parent) - next.begin())});
  columns_ = std::move(next);
  return edges;
}

std::vector<std::string> Graph::draw(const std::string& id, const std::vector<std::string>& parents,
                                     const std::vector<std::string>& text) {
  auto column = static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), id) - columns_.begin());
  if (column == columns_.size()) columns_.push_back(id);
  drawn_.insert(id);
  std::vector<std::string> rows{row_of(columns_.size(), column)};
  auto edges = replace(column, parents);
  // Each edge moves one column per row until all have arrived.
  while (std::any_of(edges.begin(), edges.end(), [](const Edge& edge) { return edge.at != edge.to; })) {
    std::string row;
    for (Edge& edge : edges) {
      if (edge.at == edge.to) {
        put(row, 2 * edge.at, '|');
      } else if (edge.to > edge.at) {
        put(row, 2 * edge.at + 1, '\\');
        ++edge.at;
      } else {
        put(row, 2 * edge.at - 1, '/');
        --edge.at;
      }
    }
    rows.push_back(row);
  }
  while (rows.size() < text.size()) rows.push_back(row_of(columns_.size(), columns_.size()));
  std::size_t width = 0;
  for (const std::string& row : rows) width = std::max(width, (row.find_last_not_of(' ') + 1) / 2 * 2 + 2);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].resize(width, ' ');
    if (i < text.size()) rows[i] += text[i];
    rows[i].resize(rows[i].find_last_not_of(' ') + 1);
  }
  return rows;
}

}  // namespace playfs::app
