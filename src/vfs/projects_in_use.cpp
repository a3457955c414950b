#include "vfs/projects_in_use.h"

#include <vector>

#include "vfs/mount.h"
#include "vfs/work_trees.h"

namespace playfs::vfs {
namespace {

/// Well within the time for which the content room follows a project that was touched once.
constexpr std::chrono::seconds kKeepInterval{30};

}  // namespace

void ProjectsInUse::touch(const ProjectId& project, const NodePtr& directory) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    recent_.remove(project);
    recent_.push_front(project);
    if (recent_.size() > kKept) recent_.pop_back();
    directories_.insert_or_assign(project, directory);
    first = !std::exchange(begun_, true);
  }
  if (first) {
    mount_.site().on_head_changed([this, gate = mount_.gate()](const ProjectId& changed, const RevisionTreePtr& head) {
      if (auto ticket = gate->enter()) head_changed(changed, head);
    });
    mount_.later(kKeepInterval, [this] { keep(); });
  }
  mount_.site().follow(project);
}

std::vector<ProjectId> ProjectsInUse::list() const {
  MutexLock lock(mutex_);
  return {recent_.begin(), recent_.end()};
}

void ProjectsInUse::keep() {
  std::vector<ProjectId> in_use;
  std::vector<NodePtr> alive;  // let go of outside of the lock
  {
    MutexLock lock(mutex_);
    for (auto entry = directories_.begin(); entry != directories_.end();) {
      NodePtr directory = entry->second.lock();
      if (!directory) {
        recent_.remove(entry->first);
        entry = directories_.erase(entry);
      } else {
        alive.push_back(std::move(directory));
        ++entry;
      }
    }
    in_use.assign(recent_.begin(), recent_.end());
  }
  for (const ProjectId& project : in_use) mount_.site().follow(project);
  mount_.later(kKeepInterval, [this] { keep(); });
}

void ProjectsInUse::head_moved(const ProjectId& project) {
  NodePtr directory;
  {
    MutexLock lock(mutex_);
    auto found = directories_.find(project);
    if (found != directories_.end()) directory = found->second.lock();
  }
  if (!directory || directory->id() == kRootNode) return;
  mount_.notifications().entry_changed(directory->id(), "head");
  if (!mount_.works().find(project)) mount_.notifications().entry_changed(directory->id(), "work");
}

void ProjectsInUse::head_changed(const ProjectId& project, const RevisionTreePtr& head) {
  head_moved(project);
  mount_.works().head_changed(project, head);
}

}  // namespace playfs::vfs
