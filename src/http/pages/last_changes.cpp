#include "http/pages/last_changes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "compare/trees.h"

namespace playfs::http {

namespace {

constexpr std::size_t kRevisionsWalked = 120;
constexpr std::size_t kBytesWalked = 1 << 20;
constexpr std::size_t kParentsWalked = 4;  // of one revision

using Names = std::set<std::string, std::less<>>;

/// A revision that has these names as head has them.
struct Open {
  Revision revision;
  Names names;
};

Names names_changed(const Manifest& before, const Manifest& after) {
  Names names;
  for (const compare::FileChange& change : compare::changes_between(before, after)) names.insert(top_of(change.path));
  return names;
}

class Walk {
 public:
  Walk(Reader& reader, const Revision& head) : reader_(reader) {
    Names names;
    for (const auto& [path, entry] : head.manifest.files) names.insert(top_of(path));
    open_.push_back({head, std::move(names)});
  }

  LastChanges run() {
    while (!open_.empty()) {
      // The newest one: all that came after it have passed on their names.
      auto newest = std::max_element(open_.begin(), open_.end(), [](const Open& a, const Open& b) {
        return a.revision.created_at < b.revision.created_at;
      });
      const Open open = std::move(*newest);
      open_.erase(newest);
      look_at(open.revision, open.names);
    }
    return std::move(changes_);
  }

 private:
  void look_at(const Revision& revision, Names names) {
    bool all_known = revision.parents.size() <= kParentsWalked;
    for (std::size_t i = 0; i < std::min(revision.parents.size(), kParentsWalked) && !names.empty(); ++i) {
      Open* parent = open(revision.parents[i], revision);
      if (!parent) {
        all_known = false;
        continue;
      }
      const Names changed = names_changed(parent->revision.manifest, revision.manifest);
      for (auto name = names.begin(); name != names.end();)
        if (changed.contains(*name)) ++name;
        else parent->names.insert(std::move(names.extract(name++).value()));
    }
    if (!all_known) return;
    for (const std::string& name : names)
      changes_[name] = {revision.id.text(), revision.agent, revision.message, format_iso8601(revision.created_at)};
  }

  /// nullptr if it cannot be read, or is no parent: published parents need not form a graph, and a walk in a circle
  /// would not end.
  Open* open(const RevisionId& id, const Revision& child) {
    auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.revision.id == id; });
    if (found == open_.end()) {
      auto revision = reader_.revision(id.text());
      if (!revision || revision->project != child.project) return nullptr;
      open_.push_back({*std::move(revision), {}});
      found = std::prev(open_.end());
    }
    return found->revision.created_at < child.created_at ? &*found : nullptr;
  }

  Reader& reader_;
  std::vector<Open> open_;
  LastChanges changes_;
};

}  // namespace

std::string top_of(std::string_view path) { return std::string(path.substr(0, path.find('/'))); }

LastChanges last_changes(Reader& reader, const Revision& head) {
  const Reader::Part part(reader, kRevisionsWalked, kBytesWalked);
  return Walk(reader, head).run();
}

}  // namespace playfs::http
