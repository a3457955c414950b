#include "vfs/listings.h"

#include <utility>

#include "vfs/mount.h"

namespace playfs::vfs {

void Listings::given(const std::string& collection, const NodePtr& directory, std::optional<std::string> owner) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !std::exchange(begun_, true);
    auto& directories = given_[collection];
    std::erase_if(directories, [](const auto& entry) { return entry.second.directory.expired(); });
    directories.insert_or_assign(directory->id(), Given{directory, std::move(owner)});
  }
  if (!first) return;
  mount_.site().on_list_changed([this, gate = mount_.gate()](const std::string& of, const content::ListChange& change) {
    if (auto ticket = gate->enter()) changed(of, change);
  });
}

void Listings::changed(const std::string& collection, const content::ListChange& change) {
  AllGiven told;
  {
    MutexLock lock(mutex_);
    auto found = given_.find(collection);
    if (found == given_.end()) return;
    AllGiven& all = found->second;
    for (auto each = all.begin(); each != all.end();) {
      const auto here = each++;
      if (!here->second.owner || change.touches(*here->second.owner)) told.insert(all.extract(here));
    }
  }
  for (const auto& [id, given] : told) {
    auto directory = given.directory.lock();
    if (!directory) continue;
    mount_.notifications().node_changed(id, 0, listings_of(collection));
    directory->listed_anew();
  }
}

}  // namespace playfs::vfs
