#include "app/fsck/revision_graph.h"

#include <algorithm>
#include <set>
#include <utility>

namespace playfs::app {

namespace {

using Links = std::vector<std::vector<std::uint32_t>>;

/// Marks `from` and all its ancestors; returns how many were not marked before.
std::size_t mark_ancestors(const Links& links, std::uint32_t from, std::vector<bool>& marked) {
  if (marked[from]) return 0;
  std::size_t count = 1;
  marked[from] = true;
  for (std::vector<std::uint32_t> next{from}; !next.empty();) {
    const std::uint32_t here = next.back();
    next.pop_back();
    for (const std::uint32_t parent : links[here]) {
      if (marked[parent]) continue;
      marked[parent] = true;
      ++count;
      next.push_back(parent);
    }
  }
  return count;
}

/// The revisions whose ancestry has no end: what is left after revisions without parents are removed until there are
/// none.
std::vector<bool> without_end(const Links& links) {
  Links children(links.size());
  std::vector<std::size_t> parents_left(links.size());
  std::vector<std::uint32_t> ended;
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    for (const std::uint32_t parent : links[i]) children[parent].push_back(i);
    parents_left[i] = links[i].size();
    if (parents_left[i] == 0) ended.push_back(i);
  }
  std::vector<bool> left(links.size(), true);
  while (!ended.empty()) {
    const std::uint32_t here = ended.back();
    ended.pop_back();
    left[here] = false;
    for (const std::uint32_t child : children[here])
      if (--parents_left[child] == 0) ended.push_back(child);
  }
  return left;
}

}  // namespace

void RevisionGraph::add(RevisionId id, std::vector<RevisionId> parents) {
  if (has(id)) return;
  index_.emplace(id, static_cast<Index>(nodes_.size()));
  nodes_.push_back({std::move(id), std::move(parents)});
}

std::vector<RevisionGraph::Edge> RevisionGraph::to_unknown() const {
  std::vector<Edge> edges;
  for (const Node& node : nodes_) {
    std::set<RevisionId> named;
    for (const RevisionId& parent : node.parents)
      if (!has(parent) && named.insert(parent).second) edges.push_back({node.id, parent});
  }
  return edges;
}

std::vector<std::vector<RevisionGraph::Index>> RevisionGraph::links() const {
  Links links(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for (const RevisionId& parent : nodes_[i].parents)
      if (auto found = index_.find(parent); found != index_.end()) links[i].push_back(found->second);
    std::sort(links[i].begin(), links[i].end());
    links[i].erase(std::unique(links[i].begin(), links[i].end()), links[i].end());
  }
  return links;
}

std::vector<RevisionGraph::Cycle> RevisionGraph::cycles() const {
  const Links links = this->links();
  const std::vector<bool> left = without_end(links);
  std::vector<Cycle> cycles;
  // Each revision left has a parent that is also left, so a walk along such parents returns to where it has been.
  std::vector<Index> walked_in(nodes_.size(), 0), place(nodes_.size(), 0);
  Index walk = 0;
  for (Index start = 0; start < nodes_.size(); ++start) {
    if (!left[start] || walked_in[start] != 0) continue;
    ++walk;
    std::vector<Index> path;
    Index here = start;
    while (walked_in[here] == 0) {
      walked_in[here] = walk;
      place[here] = static_cast<Index>(path.size());
      path.push_back(here);
      here = *std::find_if(links[here].begin(), links[here].end(), [&](Index parent) { return left[parent]; });
    }
    if (walked_in[here] != walk) continue;  // it ran into an earlier one's
    const auto begin = path.begin() + static_cast<std::ptrdiff_t>(place[here]);
    cycles.push_back({nodes_[*std::min_element(begin, path.end())].id, static_cast<std::size_t>(path.end() - begin)});
  }
  return cycles;
}

std::vector<RevisionGraph::Branch> RevisionGraph::beside(const RevisionId& head) const {
  const Links links = this->links();
  std::vector<bool> reached(nodes_.size());
  if (auto found = index_.find(head); found != index_.end()) mark_ancestors(links, found->second, reached);
  std::vector<bool> has_child(nodes_.size());
  for (Index i = 0; i < nodes_.size(); ++i)
    for (const Index parent : links[i])
      if (parent != i) has_child[parent] = true;
  std::vector<Branch> branches;
  auto add = [&](Index tip) { branches.push_back({nodes_[tip].id, mark_ancestors(links, tip, reached)}); };
  for (Index i = 0; i < nodes_.size(); ++i)
    if (!reached[i] && !has_child[i]) add(i);
  // On a cycle every revision has a child.
  for (Index i = 0; i < nodes_.size(); ++i)
    if (!reached[i]) add(i);
  return branches;
}

}  // namespace playfs::app
