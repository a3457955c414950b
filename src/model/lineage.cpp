#include "model/lineage.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

namespace playfs {

namespace {

using Marks = std::vector<bool>;

bool is_newer(const Link& a, const Link& b) { return std::tie(a.created_at, a.id) > std::tie(b.created_at, b.id); }
bool is_older(const Link& a, const Link& b) { return is_newer(b, a); }

bool all(const Marks& marks) { return std::find(marks.begin(), marks.end(), false) == marks.end(); }

/// Walks from some revisions towards their ancestors, newest first, and marks each with those it is reached from.
class Walk {
 public:
  struct Visited {
    Link link;
    Marks from;
    bool stale = false;  ///< an ancestor of one that all reach
  };

  /// Without `stale` a walk ends where only revisions are left that all reach; with it, where only ancestors of such
  /// ones are left.
  Walk(const FindLink& find, bool stale) : find_(find), marks_stale_(stale) {}

  Status run(const std::vector<RevisionId>& starts) {
    for (std::size_t i = 0; i < starts.size(); ++i) {
      Marks from(starts.size());
      from[i] = true;
      PLAYFS_CHECK(reach(starts[i], from, false));
    }
    while (!queue_.empty() && open_ > 0 && visited.size() < kMostLinks) {
      RevisionId id = queue_.top().second;
      queue_.pop();
      Visited& here = visited.find(id)->second;
      queued_.erase(id);
      if (!is_closed(here)) --open_;
      bool is_common = all(here.from);
      // The map keeps its nodes where they are.
      for (const auto& parent : here.link.parents)
        PLAYFS_CHECK(reach(parent, here.from, marks_stale_ && (here.stale || is_common)));
    }
    return {};
  }

  std::unordered_map<RevisionId, Visited> visited;

 private:
  [[nodiscard]] bool is_closed(const Visited& revision) const {
    return marks_stale_ ? revision.stale : all(revision.from);
  }

  Status reach(const RevisionId& id, const Marks& from, bool stale) {
    auto found = visited.find(id);
    if (found == visited.end()) {
      if (missing_.contains(id)) return {};
      PLAYFS_TRY(auto link, find_(id));
      if (!link) {
        missing_.insert(id);
        return {};
      }
      found = visited.emplace(id, Visited{*std::move(link), Marks(from.size()), false}).first;
    }
    Visited& there = found->second;
    bool was_closed = is_closed(there);
    bool changed = false;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!from[i] || there.from[i]) continue;
      there.from[i] = true;
      changed = true;
    }
    if (stale && !there.stale) there.stale = changed = true;
    if (!changed) return {};
    bool is_queued = queued_.contains(id);
    if (is_queued && !was_closed && is_closed(there)) --open_;
    if (is_queued) return {};
    queued_.insert(id);
    queue_.emplace(there.link.created_at, id);
    if (!is_closed(there)) ++open_;
    return {};
  }

  const FindLink& find_;
  const bool marks_stale_;
  std::priority_queue<std::pair<WallTime, RevisionId>> queue_;
  std::unordered_set<RevisionId> queued_, missing_;
  std::size_t open_ = 0;  ///< queued ones that are not closed
};

}  // namespace

namespace {

/// Text that two values share only where they are the same.
class Fingerprint {
 public:
  void add(std::string_view text) {
    text_ += std::to_string(text.size()) + ':';
    text_ += text;
  }
  void add_json(const Json& value) {
    if (auto* text = value.string()) return add('s', *text);
    if (auto* number = value.number()) return add('n', number->text);
    if (auto truth = value.boolean()) return add('b', *truth ? "1" : "0");
    if (auto* values = value.array()) {
      add('a', std::to_string(values->size()));
      for (const Json& each : *values) add_json(each);
    } else if (auto* object = value.object()) {
      add('o', std::to_string(object->size()));
      for (const auto& [name, each] : *object) {
        add(name);
        add_json(each);
      }
    } else {
      add('0', "");
    }
  }
  /// The content by its hash where that has the form of one; it may stand inline in one record and in chunks in another.
  void add_entry(const FileEntry& entry) {
    add(std::to_string(static_cast<int>(entry.mode)));
    if (auto hash = ContentHash::parse(entry.hash_claim)) return add('h', hash->hex());
    add('?', entry.hash_claim);
    add(entry.inline_text.value_or(""));
    for (const ChunkId& chunk : entry.chunks) add('c', chunk.text());
  }
  [[nodiscard]] std::string hex() const { return ContentHash::of(text_).hex(); }

 private:
  void add(char kind, std::string_view text) {
    text_ += kind;
    add(text);
  }
  std::string text_;
};

/// The name of what the commit `tx` brought. A client that does not know `tx` carries it along when it edits a manifest,
/// or brings an old one back, so it means something only together with what stands beside it and below.
std::string piece_of(const Revision& revision, const Manifest& manifest) {
  Fingerprint all;
  for (const RevisionId& parent : revision.parents) all.add(parent.text());
  all.add_json(revision.state);
  for (const auto& [path, entry] : manifest.files) {
    all.add(path);
    all.add_entry(entry);
  }
  for (const RefusedEntry& refused : manifest.refused) {
    all.add(refused.path);
    all.add_json(refused.entry);
  }
  if (manifest.continuation && !manifest.continuation->is_read) all.add_entry(manifest.continuation->entry);
  return manifest.tx + ' ' + all.hex();
}

}  // namespace

Link link_of(const Revision& revision, const Manifest& manifest) {
  Link link{revision.id, revision.created_at, revision.parents, {}};
  const bool is_merge = manifest.is_automatic && revision.parents.size() > 1;
  if (!is_merge) link.content = manifest.tx.empty() ? revision.id.text() : piece_of(revision, manifest);
  return link;
}

Link link_of(const RevisionTree& tree) { return link_of(tree.revision, tree.tree.manifest()); }

Result<Holdings> Holdings::compare(const std::vector<RevisionId>& of, const FindLink& find) {
  Holdings holdings;
  holdings.of_ = of;
  Walk walk(find, false);
  PLAYFS_CHECK(walk.run(of));
  std::map<std::string, Piece> pieces;
  for (const auto& [id, visited] : walk.visited) {
    if (visited.link.content.empty()) continue;
    auto [piece, is_new] = pieces.try_emplace(visited.link.content,
                                              Piece{visited.link.content, visited.link.created_at, id, visited.from});
    if (is_new) continue;
    Piece& known = piece->second;
    if (std::tie(visited.link.created_at, id) < std::tie(known.created_at, known.id)) {
      known.created_at = visited.link.created_at;
      known.id = id;
    }
    for (std::size_t i = 0; i < of.size(); ++i)
      if (visited.from[i]) known.held[i] = true;
  }
  for (auto& [content, piece] : pieces)
    if (!all(piece.held)) holdings.pieces_.push_back(std::move(piece));
  std::sort(holdings.pieces_.begin(), holdings.pieces_.end(),
            [](const Piece& a, const Piece& b) { return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id); });
  for (const auto& id : of) {
    auto visited = walk.visited.find(id);
    holdings.times_.push_back(visited == walk.visited.end() ? WallTime{} : visited->second.link.created_at);
  }
  return holdings;
}

std::size_t Holdings::number(const RevisionId& id) const {
  return static_cast<std::size_t>(std::find(of_.begin(), of_.end(), id) - of_.begin());
}

bool Holdings::covers(const RevisionId& a, const RevisionId& b) const {
  std::size_t one = number(a), other = number(b);
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [&](const Piece& piece) { return piece.held[one] || !piece.held[other]; });
}

bool Holdings::holds(const RevisionId& a, const std::string& content) const {
  std::size_t one = number(a);
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [&](const Piece& piece) { return piece.content == content && piece.held[one]; });
}

bool Holdings::comes_before(const RevisionId& a, const RevisionId& b) const {
  std::size_t one = number(a), other = number(b);
  for (const Piece& piece : pieces_)
    if (piece.held[one] != piece.held[other]) return piece.held[one];
  return std::tie(times_[one], of_[one]) < std::tie(times_[other], of_[other]);
}

Result<std::vector<RevisionId>> find_tips(const std::vector<Link>& revisions, const FindLink& find) {
  // An ancestor is covered by what it is an ancestor of, except where that adds nothing: an automatic merge of one
  // line.
  std::unordered_set<RevisionId> inner;
  for (const auto& revision : revisions)
    if (!revision.content.empty()) inner.insert(revision.parents.begin(), revision.parents.end());
  std::vector<RevisionId> candidates;
  for (const auto& revision : revisions)
    if (!inner.contains(revision.id)) candidates.push_back(revision.id);
  PLAYFS_TRY(Holdings holdings, Holdings::compare(candidates, find));
  std::map<RevisionId, const Link*> links;
  for (const auto& revision : revisions) links[revision.id] = &revision;
  std::vector<RevisionId> tips;
  for (const auto& id : candidates) {
    bool is_covered = std::any_of(candidates.begin(), candidates.end(), [&](const RevisionId& other) {
      if (other == id || !holdings.covers(other, id)) return false;
      return !holdings.covers(id, other) || is_older(*links[other], *links[id]);
    });
    if (!is_covered) tips.push_back(id);
  }
  std::sort(tips.begin(), tips.end(),
            [&](const RevisionId& a, const RevisionId& b) { return a != b && holdings.comes_before(a, b); });
  return tips;
}

Result<std::vector<RevisionId>> find_merge_bases(const RevisionId& a, const RevisionId& b, const FindLink& find) {
  if (a == b) return std::vector<RevisionId>{a};
  Walk walk(find, true);
  PLAYFS_CHECK(walk.run({a, b}));
  std::vector<Link> bases;
  for (const auto& [id, visited] : walk.visited)
    if (all(visited.from) && !visited.stale) bases.push_back(visited.link);
  std::sort(bases.begin(), bases.end(), is_newer);
  std::vector<RevisionId> ids;
  for (const auto& base : bases) ids.push_back(base.id);
  return ids;
}

}  // namespace playfs
