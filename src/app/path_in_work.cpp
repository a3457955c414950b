#include "app/path_in_work.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "base/shell.h"

namespace playfs::app {

namespace {

Result<std::optional<PathInWork>> link_at(const std::string& named, const std::string& absolute) {
  struct stat attributes {};
  if (lstat(absolute.c_str(), &attributes) != 0 || !S_ISLNK(attributes.st_mode)) return std::optional<PathInWork>();
  const auto slash = absolute.rfind('/');
  const std::string folder = absolute.substr(0, std::max<std::size_t>(slash, 1)), name = absolute.substr(slash + 1);
  auto place = find_project_at(folder);
  if (!place || !place->in_work) return std::optional<PathInWork>();
  std::string path = place->in_work->empty() ? name : *place->in_work + "/" + name;
  return std::optional(PathInWork{named, *std::move(place), std::move(path)});
}

}  // namespace

Result<PathInWork> path_in_work(const CommandContext& context, const std::string& named, const std::string& command) {
  const std::string absolute = context.io.absolute(named);
  PLAYFS_TRY(auto link, link_at(named, absolute));
  if (link) return *std::move(link);
  PLAYFS_TRY(MountedPlace place, find_project_at(absolute));
  if (!place.in_work)
    return fail(ErrorCode::invalid_argument, absolute + " is not in the work tree " + place.work,
                "playfs " + command + " " + shell_word(place.work));
  std::string path = *place.in_work;
  return PathInWork{named, std::move(place), std::move(path)};
}

}  // namespace playfs::app
