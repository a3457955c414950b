#include "app/lookup.h"

#include "base/await.h"
#include "base/shell.h"

namespace playfs::app {

namespace {

/// Whether an error means that the id does not exist: a service may also refuse what cannot be an id.
bool means_absent(const Error& error) {
  return error.code == ErrorCode::not_found || error.code == ErrorCode::invalid_argument || error.http_status == 400;
}

Result<content::Head> head_of(runtime::ClientStack& stack, const std::string& id) {
  return await<content::Head>([&](auto done) { stack.site().head(ProjectId(id), {}, std::move(done)); });
}

bool can_be_id(const std::string& text) { return !text.empty() && text.size() <= kMaxIdLength; }

}  // namespace

Result<Project> find_project(runtime::ClientStack& stack, const std::string& id_or_name) {
  if (can_be_id(id_or_name)) {
    auto head = head_of(stack, id_or_name);
    if (head) return std::move(head->project);
    if (!means_absent(head.error())) return fail(head.error());
  }
  using List = std::shared_ptr<const std::vector<content::Listed>>;
  PLAYFS_TRY(List list, await<List>([&](auto done) { stack.site().list("projects", {}, std::move(done)); }));
  // Newest first, so the last match is the oldest, as in by-name/.
  const content::Listed* oldest = nullptr;
  for (const content::Listed& listed : *list)
    if (listed.name == id_or_name) oldest = &listed;
  if (!stack.site().is_list_whole("projects"))
    return fail(ErrorCode::not_found,
                "not all projects at " + stack.source().text + " are listed, and an older one may be named '" +
                    id_or_name + "'",
                "use the project's id");
  if (oldest == nullptr)
    return fail(ErrorCode::not_found, "there is no project '" + id_or_name + "' at " + stack.source().text,
                "playfs ls");
  PLAYFS_TRY(content::Head head, head_of(stack, oldest->id));
  return std::move(head.project);
}

Result<RevisionTreePtr> find_revision(runtime::ClientStack& stack, const std::string& what) {
  auto fetch = [&](const RevisionId& id) {
    return await<RevisionTreePtr>([&](auto done) { stack.site().revision(id, {}, std::move(done)); });
  };
  auto project = find_project(stack, what);
  if (project) {
    if (project->latest_revision.empty())
      return fail(ErrorCode::not_found, "the project '" + what + "' has no revisions yet",
                  "playfs import DIR --project " + shell_word(what));
    return fetch(project->latest_revision);
  }
  if (project.error().code != ErrorCode::not_found || !can_be_id(what)) return fail(project.error());
  auto revision = fetch(RevisionId(what));
  if (!revision && means_absent(revision.error()) && !stack.site().is_list_whole("projects"))
    return fail(project.error());
  if (!revision && means_absent(revision.error()))
    return fail(ErrorCode::not_found, "there is no project or revision '" + what + "' at " + stack.source().text,
                "playfs ls");
  return revision;
}

std::string normal_path(std::string_view path) {
  std::string normal;
  while (!path.empty()) {
    auto slash = std::min(path.find('/'), path.size());
    std::string_view part = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (!normal.empty()) normal += '/';
    normal += part;
  }
  return normal;
}

Result<content::Blob> blob_of(runtime::ClientStack& stack, const FileRef& file) {
  auto blob = await<content::Blob>([&](auto done) { stack.site().blob(file, {}, std::move(done)); });
  if (!blob) return fail(blob.error().while_doing(file.path));
  return blob;
}

Result<std::uint64_t> size_of(runtime::ClientStack& stack, const FileRef& file) {
  if (auto known = stack.site().size_of(file)) return *known;
  PLAYFS_TRY(content::Blob blob, blob_of(stack, file));
  return blob.size();
}

}  // namespace playfs::app
