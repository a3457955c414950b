#include "vfs/told_names.h"

#include <algorithm>
#include <utility>

#include "vfs/mount.h"

namespace playfs::vfs {

void ToldNames::note(const std::string& collection, const std::string& id, const NodePtr& directory,
                     const std::string& name) {
  bool first = false, too_many = false;
  {
    MutexLock lock(mutex_);
    first = !std::exchange(begun_, true);
    too_many = count_ >= kMost;
  }
  if (too_many) invalidate_all();
  {
    MutexLock lock(mutex_);
    auto& names = names_[collection + "/" + id];
    const bool is_known = std::any_of(names.begin(), names.end(), [&](const Name& known) {
      return known.name == name && !known.directory.owner_before(directory) && !directory.owner_before(known.directory);
    });
    if (!is_known) {
      names.push_back({directory, name});
      ++count_;
    }
  }
  if (!first) return;
  mount_.site().on_record_changed(
      [this, gate = mount_.gate()](const std::string& of, const std::string& record, const std::string&) {
        if (auto ticket = gate->enter()) changed(of, record);
      });
}

double ToldNames::seconds(bool is_current) const {
  // An event that arrived before the name was noted did not invalidate it.
  return is_current || !mount_.site().events_state().is_live ? mount_.refresh_seconds() : 0;
}

void ToldNames::changed(const std::string& collection, const std::string& id) {
  if (collection.empty()) return invalidate_all();
  std::vector<Name> names;
  {
    MutexLock lock(mutex_);
    auto found = names_.find(collection + "/" + id);
    if (found == names_.end()) return;
    names = std::move(found->second);
    names_.erase(found);
    count_ -= names.size();
  }
  invalidate(names);
}

void ToldNames::invalidate_all() {
  Names all;
  {
    MutexLock lock(mutex_);
    all.swap(names_);
    count_ = 0;
  }
  for (const auto& [key, names] : all) invalidate(names);
}

void ToldNames::invalidate(const std::vector<Name>& names) {
  for (const Name& each : names)
    if (auto directory = each.directory.lock()) mount_.notifications().entry_changed(directory->id(), each.name);
}

}  // namespace playfs::vfs
