#include "vfs/listings.h"

#include <utility>

#include "vfs/mount.h"

namespace playfs::vfs {

void Listings::given(const std::string& collection, const NodePtr& directory) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    first = !std::exchange(begun_, true);
    auto& directories = given_[collection];
    std::erase_if(directories, [](const auto& entry) { return entry.second.expired(); });
    directories.insert_or_assign(directory->id(), directory);
  }
  if (!first) return;
  mount_.site().on_list_changed([this, gate = mount_.gate()](const std::string& of) {
    if (auto ticket = gate->enter()) changed(of);
  });
}

void Listings::changed(const std::string& collection) {
  std::map<NodeId, std::weak_ptr<Node>> directories;
  {
    MutexLock lock(mutex_);
    auto found = given_.find(collection);
    if (found == given_.end()) return;
    directories.swap(found->second);
  }
  for (const auto& [id, weak] : directories) {
    auto directory = weak.lock();
    if (!directory) continue;
    mount_.notifications().node_changed(id, 0, listings_of(collection));
    directory->listed_anew();
  }
}

}  // namespace playfs::vfs
