#include "vfs/directories/links.h"

#include "content/names.h"
#include "model/path.h"
#include "vfs/attempt_driver.h"
#include "vfs/mount.h"

namespace playfs::vfs {

std::string LinksDirectory::name_of(const content::Listed& record) const {
  return why_not_a_component(record.id) ? std::string() : view_.name(record);
}

Attempt<ListedNames> LinksDirectory::names(const OperationPtr& op) {
  PLAYFS_ATTEMPT(ListPtr list, list_here(mount(), op, view_.collection));
  mount().site().names_were_shown(view_.collection);
  const bool is_sure = !view_.is_shared || mount().site().is_list_whole(view_.collection);
  return derived_.of(list, [this, is_sure](const std::vector<content::Listed>& records) {
    std::vector<ListedName> names;
    if (!is_sure) return names;
    const auto holders = content::holders_of(records, [this](const auto& record) { return name_of(record); });
    for (std::size_t i = records.size(); i > 0; --i) {
      std::string name = name_of(records[i - 1]);
      if (name.empty() || holders.at(name) != &records[i - 1]) continue;
      names.push_back({std::move(name), S_IFLNK, kFirstPosition + (records.size() - i)});
    }
    return names;
  });
}

Attempt<LookupResult> LinksDirectory::child(const OperationPtr& op, const std::string& name) {
  if (why_not_a_component(name)) return nothing(kEndless);
  auto carries = [&](const content::Listed& record) { return name_of(record) == name; };
  PLAYFS_ATTEMPT(ListPtr list, fresh_list(mount(), op, view_.collection));
  const content::Listed* record = content::holder_where(*list, carries);
  if (!record) {
    PLAYFS_ATTEMPT(list, list_here(mount(), op, view_.collection));
    record = content::holder_where(*list, carries);
  }
  mount().site().names_were_shown(view_.collection);
  if (!record || (view_.is_shared && !mount().site().is_list_whole(view_.collection))) return nothing();
  // What is written by a name goes to the record only if it still has that name, so the kernel must look the link up
  // each time.
  if (view_.is_shared) mount().names_used().note(op->caller.pid, {view_.collection, record->id, record->name});
  return symlink(op, name, view_.before + record->id + view_.after, record->created_at,
                 view_.is_shared ? 0 : mount().refresh_seconds());
}

Attempt<LookupResult> LinksDirectory::make_node(const OperationPtr& op, const std::string& name, mode_t mode,
                                                dev_t device) {
  if (!view_.is_shared) return VirtualDirectory::make_node(op, name, mode, device);
  // A shell's `>` tries to create a file if no record has the name. Fails like a path through such a name.
  op->note(kRefused);
  return fail(ErrorCode::not_found, "nothing is called \"" + name + "\" here: it was renamed, or never was",
              "list the directory to see what has which name; a path by id stays, whatever it is called");
}

}  // namespace playfs::vfs
