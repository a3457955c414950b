#include "http/pages/place.h"

#include <utility>

namespace playfs::http {

Result<Place> find_place(Reader& reader, const std::string& project_id, const std::string& revision_id) {
  PLAYFS_TRY(Project project, reader.project(project_id));
  PLAYFS_TRY(Revision revision, reader.revision(revision_id));
  if (revision.project != project.id)
    return fail(ErrorCode::not_found, "revision " + revision_id + " does not belong to this project");
  return Place{std::move(project), std::move(revision)};
}

Result<const FileEntry*> find_file(const Place& place, const std::string& path) {
  auto found = place.revision.manifest.files.find(path);
  if (found == place.revision.manifest.files.end())
    return fail(ErrorCode::not_found, "there is no file " + path + " in this revision");
  return &found->second;
}

std::string_view file_name(std::string_view path) {
  auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace playfs::http
