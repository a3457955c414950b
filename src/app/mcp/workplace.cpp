#include "app/mcp/workplace.h"

#include <sys/stat.h>

#include "app/commands/commands.h"
#include "app/lookup.h"
#include "base/text.h"

namespace playfs::app {

namespace {

/// Below a service's state directory. No project's id is called so.
constexpr const char* kOwnClones = "/=mcp/";

}  // namespace

Result<const FoundWork*> Workplace::enter(Lane& lane) {
  {
    MutexLock lock(mutex_);
    while (!found_ && is_looked_for_) found_or_failed_.wait(mutex_);
    if (found_) {
      lane.stand_in(found_->place.work);
      return found_.get();
    }
    is_looked_for_ = true;
  }
  auto found = find(lane);
  MutexLock lock(mutex_);
  is_looked_for_ = false;
  found_or_failed_.notify_all();
  if (!found) return fail(std::move(found).error());
  found_ = std::move(*found);
  lane.stand_in(found_->place.work);
  return found_.get();
}

Result<std::unique_ptr<const FoundWork>> Workplace::find(Lane& lane) const {
  auto found = std::make_unique<FoundWork>();
  if (given_) {
    found->place = *given_;
  } else {
    PLAYFS_TRY(found->place, own_clone(lane.context()));
    // Discard the hints that the commands printed for users of a shell.
    static_cast<void>(lane.take_output());
    static_cast<void>(lane.take_notes());
  }
  PLAYFS_TRY(WorkFiles files, WorkFiles::open(found->place.work));
  found->files = std::make_unique<const WorkFiles>(std::move(files));
  return std::unique_ptr<const FoundWork>(std::move(found));
}

Result<MountedPlace> Workplace::own_clone(CommandContext& context) const {
  std::string directory;
  {
    PLAYFS_TRY(auto stack, context.open_client_stack());
    PLAYFS_TRY(const Project project, find_project(context, *stack, project_));
    PLAYFS_TRY(directory, stack->state_directory());
    directory += kOwnClones;
    PLAYFS_CHECK(make_private_directory(directory));
    directory += percent_encode(project.id.text());
  }
  PLAYFS_TRY(const auto before, read_clone_mark(directory));
  if (!before) {
    PLAYFS_CHECK(clone_project(context, {project_, directory, {}}));
  } else if (auto updated = update(context, {directory}); !updated && !is_outage(updated.error().code)) {
    // The update also completes what a killed process left. During an outage, the files can be edited nevertheless.
    return fail(std::move(updated).error());
  }
  return find_project_at(directory);
}

}  // namespace playfs::app
