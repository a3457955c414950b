#include "app/siblings.h"

#include <sys/stat.h>

#include <filesystem>

namespace playfs::app {

Status look_for_siblings(const MountedPlace& place) {
  const std::string directory = place.project_directory + "/branches";
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(directory, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    // Follows the link, so that the mount fetches its target; a branch that cannot be fetched is left out.
    struct stat ignored {};
    static_cast<void>(stat(entry->path().c_str(), &ignored));
  }
  if (problem) return fail(error_from_errno(problem.value(), "list the branches in " + directory));
  return {};
}

}  // namespace playfs::app
