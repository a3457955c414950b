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

/// Walks from the start revisions to their ancestors, newest first, marking each with the starts that reach it. Every
/// visited revision ends up with all its marks, whatever the timestamps say, unless the walk `is_cut`.
class Walk {
 public:
  struct Visited {
    Link link;
    Marks from;
    bool stale = false;   ///< ancestor of a revision that all starts reach
    bool is_gap = false;  ///< its ancestors are unknown, or were not visited
  };

  /// The walk ends when all remaining revisions are reached by every start; with `stale`, when all remaining ones are
  /// ancestors of such revisions.
  Walk(const FindLink& find, bool stale) : find_(find), marks_stale_(stale) {}

  Status run(const std::vector<RevisionId>& starts) {
    for (std::size_t i = 0; i < starts.size(); ++i) {
      Marks from(starts.size());
      from[i] = true;
      PLAYFS_CHECK(reach(starts[i], from, false));
    }
    std::size_t until_look = 0, patience = 1;
    while (!queue_.empty()) {
      if (open_ == 0 && until_look-- == 0) {
        if (is_settled()) return {};
        until_look = patience *= 2;  // a check costs as much as the whole walk so far, so double the interval
      }
      if (visited.size() >= kMostLinks) return cut();
      RevisionId id = queue_.top().second;
      queue_.pop();
      Visited& here = visited.find(id)->second;
      queued_.erase(id);
      if (!is_closed(here)) --open_;
      bool is_common = all(here.from);
      // unordered_map references stay valid across insertions.
      for (const auto& parent : here.link.parents)
        PLAYFS_CHECK(reach(parent, here.from, marks_stale_ && (here.stale || is_common)));
    }
    return {};
  }

  std::unordered_map<RevisionId, Visited> visited;
  bool is_cut = false;

 private:
  [[nodiscard]] bool is_closed(const Visited& revision) const {
    return marks_stale_ ? revision.stale : all(revision.from);
  }

  /// Whether what is queued (none of it open) can no longer change the marks of an open revision. This holds if every
  /// open revision is a descendant of each queued one, and so not its ancestor. Timestamps cannot show that, since a
  /// child may be dated before its parent.
  [[nodiscard]] bool is_settled() const {
    std::unordered_map<RevisionId, std::vector<const Visited*>> children;
    std::size_t open = 0;
    for (const auto& [id, revision] : visited) {
      for (const auto& parent : revision.link.parents) children[parent].push_back(&revision);
      if (!is_closed(revision)) ++open;
    }
    return std::all_of(queued_.begin(), queued_.end(), [&](const RevisionId& from) {
      std::unordered_set<const Visited*> above;
      std::size_t open_above = 0;
      for (std::vector<RevisionId> next = {from}; !next.empty();) {
        auto found = children.find(next.back());
        next.pop_back();
        if (found == children.end()) continue;
        for (const Visited* child : found->second) {
          if (!above.insert(child).second) continue;
          if (!is_closed(*child)) ++open_above;
          next.push_back(child->link.id);
        }
      }
      return open_above == open;
    });
  }

  Status cut() {
    is_cut = true;
    for (const auto& id : queued_) visited.find(id)->second.is_gap = true;
    return {};
  }

  Status reach(const RevisionId& id, const Marks& from, bool stale) {
    auto found = visited.find(id);
    if (found == visited.end()) {
      PLAYFS_TRY(auto link, find_(id));
      const bool is_gap = !link;
      if (is_gap) link = Link{id, {}, {}, {}};
      found = visited.emplace(id, Visited{*std::move(link), Marks(from.size()), false, is_gap}).first;
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
  std::unordered_set<RevisionId> queued_;
  std::size_t open_ = 0;  ///< queued revisions that are not closed
};

/// Builds a text that is equal for two values only if they are equal.
class Fingerprint {
 public:
  void add(std::string_view text) {
    text_ += std::to_string(text.size()) + ':';
    text_ += text;
  }
  void add_json(const Json& value) {
    if (const auto* text = value.string()) return add('s', *text);
    if (const auto* number = value.number()) return add('n', number->text);
    if (auto truth = value.boolean()) return add('b', *truth ? "1" : "0");
    if (const auto* values = value.array()) {
      add('a', std::to_string(values->size()));
      for (const Json& each : *values) add_json(each);
    } else if (const auto* object = value.object()) {
      add('o', std::to_string(object->size()));
      for (const auto& [name, each] : *object) {
        add(name);
        add_json(each);
      }
    } else {
      add('0', "");
    }
  }
  /// Identifies content by its hash if the claim looks like one, because the same content may be inline in one record
  /// and chunked in another.
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

/// Names the content that a commit contributed: its `tx` plus a fingerprint of the rest of the revision.
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

/// See MergeBases::began_apart. A `tx` shared by different contents was copied, by a client that names no parents and
/// may have deleted something.
bool begin_on_nothing(const std::unordered_map<RevisionId, Walk::Visited>& visited) {
  std::unordered_map<std::string, std::set<std::string>> contents;  // by tx
  for (const auto& [id, revision] : visited) contents[revision.link.tx].insert(revision.link.content);
  return std::all_of(visited.begin(), visited.end(), [&](const auto& item) {
    const Link& link = item.second.link;
    return !link.parents.empty() || (!link.tx.empty() && contents[link.tx].size() == 1);
  });
}

}  // namespace

Link link_of(const Revision& revision, const Manifest& manifest) {
  Link link{revision.id, revision.created_at, revision.parents, revision.id.text(), manifest.tx};
  if (!manifest.tx.empty()) link.content = piece_of(revision, manifest);
  link.is_merge = manifest.is_automatic && revision.parents.size() > 1;
  return link;
}

Link link_of(const RevisionTree& tree) { return link_of(tree.revision, tree.tree.manifest()); }

Result<Holdings> Holdings::compare(const std::vector<RevisionId>& of, const Links& links) {
  Holdings holdings;
  holdings.of_ = of;
  Walk walk(links.find, false);
  PLAYFS_CHECK(walk.run(of));
  std::map<std::string, Piece> pieces;
  std::vector<std::pair<Link, Piece>> claimed;
  for (const auto& [id, visited] : walk.visited) {
    const Link& link = visited.link;
    if (visited.is_gap) {
      // Stands for everything below the gap. No real piece has such a name.
      std::string beyond = '\0' + id.text();
      pieces.insert_or_assign(beyond, Piece{beyond, link.created_at, id, visited.from});
    }
    Piece own{link.content, link.created_at, id, visited.from};
    if (link.content.empty() || all(own.held)) continue;
    if (link.is_merge) {
      claimed.emplace_back(link, std::move(own));
      continue;
    }
    auto [piece, is_new] = pieces.try_emplace(link.content, own);
    if (is_new) continue;
    Piece& known = piece->second;
    if (std::tie(own.created_at, id) < std::tie(known.created_at, known.id)) {
      known.created_at = own.created_at;
      known.id = id;
    }
    for (std::size_t i = 0; i < of.size(); ++i)
      if (own.held[i]) known.held[i] = true;
  }
  for (auto& [content, piece] : pieces)
    if (!all(piece.held)) holdings.pieces_.push_back(std::move(piece));
  PLAYFS_CHECK(holdings.add_claimed(std::move(claimed), links));
  std::sort(holdings.pieces_.begin(), holdings.pieces_.end(),
            [](const Piece& a, const Piece& b) { return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id); });
  for (const auto& id : of) {
    auto visited = walk.visited.find(id);
    holdings.times_.push_back(visited == walk.visited.end() ? WallTime{} : visited->second.link.created_at);
  }
  return holdings;
}

/// A revision that falsely claims to be an automatic merge has a piece of its own. Confirming the claim means redoing
/// the merge, so it is done only if it decides whether one compared revision covers another.
Status Holdings::add_claimed(std::vector<std::pair<Link, Piece>> claimed, const Links& links) {
  std::sort(claimed.begin(), claimed.end(), [](const auto& a, const auto& b) { return is_newer(a.first, b.first); });
  for (auto& [link, piece] : claimed) {
    bool decides = false;
    for (std::size_t one = 0; one < of_.size() && !decides; ++one)
      for (std::size_t other = 0; other < of_.size() && !decides; ++other)
        decides = !piece.held[one] && piece.held[other] && covers(one, other);
    if (!decides) continue;
    PLAYFS_TRY(bool is_merge, links.confirm(link));
    if (!is_merge) pieces_.push_back(std::move(piece));
  }
  return {};
}

std::size_t Holdings::number(const RevisionId& id) const {
  return static_cast<std::size_t>(std::find(of_.begin(), of_.end(), id) - of_.begin());
}

bool Holdings::covers(std::size_t one, std::size_t other) const {
  return std::all_of(pieces_.begin(), pieces_.end(),
                     [&](const Piece& piece) { return piece.held[one] || !piece.held[other]; });
}

bool Holdings::covers(const RevisionId& a, const RevisionId& b) const { return covers(number(a), number(b)); }

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

Result<std::vector<RevisionId>> find_tips(const std::vector<Link>& revisions, const Links& links) {
  // A descendant covers its ancestors unless it may add nothing, as an automatic merge does.
  std::unordered_set<RevisionId> inner;
  for (const auto& revision : revisions)
    if (!revision.is_merge) inner.insert(revision.parents.begin(), revision.parents.end());
  std::vector<RevisionId> candidates;
  for (const auto& revision : revisions)
    if (!inner.contains(revision.id)) candidates.push_back(revision.id);
  PLAYFS_TRY(Holdings holdings, Holdings::compare(candidates, links));
  std::map<RevisionId, const Link*> by_id;
  for (const auto& revision : revisions) by_id[revision.id] = &revision;
  std::vector<RevisionId> tips;
  for (const auto& id : candidates) {
    bool is_covered = std::any_of(candidates.begin(), candidates.end(), [&](const RevisionId& other) {
      if (other == id || !holdings.covers(other, id)) return false;
      return !holdings.covers(id, other) || is_older(*by_id[other], *by_id[id]);
    });
    if (!is_covered) tips.push_back(id);
  }
  std::sort(tips.begin(), tips.end(),
            [&](const RevisionId& a, const RevisionId& b) { return a != b && holdings.comes_before(a, b); });
  return tips;
}

Result<MergeBases> find_merge_bases(const RevisionId& a, const RevisionId& b, const FindLink& find) {
  if (a == b) return MergeBases{{a}};
  Walk walk(find, true);
  PLAYFS_CHECK(walk.run({a, b}));
  MergeBases bases;
  bases.is_whole = !walk.is_cut;
  std::vector<Link> common;
  for (const auto& [id, visited] : walk.visited) {
    if (visited.stale) continue;
    if (all(visited.from)) common.push_back(visited.link);
    else if (visited.is_gap) bases.is_whole = false;
  }
  bases.began_apart = bases.is_whole && common.empty() && begin_on_nothing(walk.visited);
  std::sort(common.begin(), common.end(), is_newer);
  for (const auto& base : common) bases.ids.push_back(base.id);
  return bases;
}

}  // namespace playfs
