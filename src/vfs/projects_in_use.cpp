#include "vfs/projects_in_use.h"

#include <algorithm>

#include "vfs/mount.h"
#include "vfs/work/work_trees.h"

namespace playfs::vfs {
namespace {

/// Well within the time that content follows a project after one touch.
constexpr std::chrono::seconds kKeepInterval{30};

}  // namespace

void ProjectsInUse::touch(const ProjectId& project, const std::shared_ptr<HeadView>& view) {
  bool first = false;
  {
    MutexLock lock(mutex_);
    recent_.remove(project);
    recent_.push_front(project);
    if (recent_.size() > kKept) recent_.pop_back();
    views_.insert_or_assign(project, view);
    first = !std::exchange(begun_, true);
  }
  if (first) {
    mount_.site().on_head_changed([this, gate = mount_.gate()](const ProjectId& changed, const RevisionTreePtr& head) {
      if (auto ticket = gate->enter()) head_changed(changed, head);
    });
    mount_.site().on_head_seen([this, gate = mount_.gate()](const ProjectId& seen) {
      if (auto ticket = gate->enter()) head_seen(seen);
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
  std::vector<ProjectId> in_use, others;
  std::vector<std::shared_ptr<HeadView>> alive;  // released after the lock
  {
    MutexLock lock(mutex_);
    for (auto entry = views_.begin(); entry != views_.end();) {
      auto view = entry->second.lock();
      if (!view) {
        recent_.remove(entry->first);
        entry = views_.erase(entry);
      } else {
        alive.push_back(std::move(view));
        ++entry;
      }
    }
    in_use.assign(recent_.begin(), recent_.end());
    others = next_others();
  }
  for (const ProjectId& project : in_use) mount_.site().follow(project);
  for (const ProjectId& project : others) bring_up(project);
  mount_.later(kKeepInterval, [this] { keep(); });
}

std::vector<ProjectId> ProjectsInUse::next_others() {
  std::vector<ProjectId> others;
  auto next = views_.upper_bound(asked_last_);
  for (std::size_t left = views_.size(); left > 0 && others.size() < kKept; --left) {
    if (next == views_.end()) next = views_.begin();
    const ProjectId& project = next++->first;
    if (std::find(recent_.begin(), recent_.end(), project) == recent_.end()) others.push_back(project);
  }
  if (!others.empty()) asked_last_ = others.back();
  return others;
}

void ProjectsInUse::bring_up(const ProjectId& project) {
  // While the service does not answer, one request for all projects is enough.
  if (!mount_.site().patience().left_for("projects/" + project.text())) return;
  // The result reaches us through head_seen().
  mount_.site().head(project, mount_.gate()->closing(), [](const Result<content::Head>&) {});
}

std::shared_ptr<HeadView> ProjectsInUse::view_of(const ProjectId& project) {
  MutexLock lock(mutex_);
  auto found = views_.find(project);
  return found == views_.end() ? nullptr : found->second.lock();
}

void ProjectsInUse::head_moved(const ProjectId& project) {
  if (auto view = view_of(project)) view->head_moved();
}

void ProjectsInUse::head_changed(const ProjectId& project, const RevisionTreePtr& head) {
  mount_.works().head_changed(project, head);
  head_moved(project);
}

void ProjectsInUse::head_seen(const ProjectId& project) {
  mount_.works().head_seen(project);
  if (auto view = view_of(project)) view->head_seen();
}

}  // namespace playfs::vfs
