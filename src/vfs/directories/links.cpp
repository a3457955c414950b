#include "vfs/directories/links.h"

#include <algorithm>
#include <unordered_set>

#include "model/path.h"
#include "vfs/mount.h"

namespace playfs::vfs {

Attempt<ListedNames> LinksDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, view_.collection));
  mount().site().names_were_shown(view_.collection);
  const bool is_sure = !view_.is_shared || mount().site().is_list_whole(view_.collection);
  return derived_.of(list, [this, is_sure](const std::vector<content::Listed>& records) {
    std::vector<ListedName> names;
    if (!is_sure) return names;
    std::unordered_set<std::string> seen;
    for (std::size_t i = records.size(); i > 0; --i) {
      if (why_not_a_component(records[i - 1].id)) continue;
      std::string name = view_.name(records[i - 1]);
      if (name.empty() || !seen.insert(name).second) continue;
      names.push_back({std::move(name), S_IFLNK, kFirstPosition + (records.size() - i)});
    }
    return names;
  });
}

Attempt<LookupResult> LinksDirectory::child(const OperationPtr& op, const std::string& name) {
  if (why_not_a_component(name)) return nothing(kEndless);
  auto oldest = [&](const std::vector<content::Listed>& records) -> const content::Listed* {
    auto found = std::find_if(records.rbegin(), records.rend(), [&](const content::Listed& record) {
      return !why_not_a_component(record.id) && view_.name(record) == name;
    });
    return found == records.rend() ? nullptr : &*found;
  };
  PLAYFS_ATTEMPT(ListPtr list, fresh_list(mount(), op, view_.collection));
  const content::Listed* record = oldest(*list);
  if (!record) {
    PLAYFS_ATTEMPT(list, list_here(mount(), op, view_.collection));
    record = oldest(*list);
  }
  mount().site().names_were_shown(view_.collection);
  if (!record || (view_.is_shared && !mount().site().is_list_whole(view_.collection))) return nothing();
  return symlink(op, name, view_.before + record->id + view_.after, record->created_at, mount().refresh_seconds());
}

}  // namespace playfs::vfs
