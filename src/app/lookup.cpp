#include "app/lookup.h"

#include <algorithm>

#include "base/await.h"
#include "content/names.h"

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

/// The record that has that name, as in by-name/ and agents/. `lister`: the command that lists them.
Result<content::Listed> named(runtime::ClientStack& stack, const Noun& noun, const std::string& name,
                              const std::string& lister, std::size_t* count = nullptr) {
  PLAYFS_TRY(content::ListPtr list, list_of(stack, noun.collection));
  if (!stack.site().is_list_whole(noun.collection))
    return fail(ErrorCode::not_found,
                "not all " + std::string(noun.one) + "s at " + stack.source().text +
                    " are listed, and another one may have the name '" + name + "'",
                "use the " + std::string(noun.one) + "'s id");
  const content::Listed* holder = content::holder_of(*list, name);
  if (!holder)
    return fail(ErrorCode::not_found,
                "there is no " + std::string(noun.one) + " '" + name + "' at " + stack.source().text, lister);
  if (count)
    *count = static_cast<std::size_t>(
        std::count_if(list->begin(), list->end(), [&](const auto& each) { return each.name == name; }));
  return *holder;
}

}  // namespace

Result<content::ListPtr> list_of(runtime::ClientStack& stack, const std::string& collection) {
  return await<content::ListPtr>([&](auto done) { stack.site().list(collection, {}, std::move(done)); });
}

Result<Record> find_record(CommandContext& context, runtime::ClientStack& stack, const Noun& noun,
                           const std::string& id_or_name) {
  auto get = [&](const std::string& id) {
    return await<Record>([&](auto done) { stack.site().record(noun.collection, id, {}, std::move(done)); });
  };
  if (can_be_id(id_or_name)) {
    auto found = get(id_or_name);
    if (found || !means_absent(found.error())) return found;
  }
  std::size_t count = 0;
  PLAYFS_TRY(content::Listed holder,
             named(stack, noun, id_or_name, context.next_command({{noun.one, "list"}}), &count));
  if (count > 1)
    context.out.note(std::to_string(count) + " " + noun.one + "s are called '" + safe(id_or_name) + "': this is " +
                     safe(holder.id) + ", which had the name first. The others go by their ids.");
  return get(holder.id);
}

Result<Project> find_project(const CommandContext& context, runtime::ClientStack& stack,
                             const std::string& id_or_name) {
  if (can_be_id(id_or_name)) {
    auto head = head_of(stack, id_or_name);
    if (head) return std::move(head->project);
    if (!means_absent(head.error())) return fail(head.error());
  }
  PLAYFS_TRY(content::Listed holder, named(stack, {"projects", "project"}, id_or_name, context.next_command({{"ls"}})));
  PLAYFS_TRY(content::Head head, head_of(stack, holder.id));
  return std::move(head.project);
}

Result<RevisionTreePtr> find_revision(const CommandContext& context, runtime::ClientStack& stack,
                                      const std::string& what) {
  auto fetch = [&](const RevisionId& id) {
    return await<RevisionTreePtr>([&](auto done) { stack.site().revision(id, {}, std::move(done)); });
  };
  auto project = find_project(context, stack, what);
  if (project) {
    if (project->latest_revision.empty())
      return fail(ErrorCode::not_found, "the project '" + what + "' has no revisions yet",
                  context.next_command({{"import", "DIR", "--project", what}}));
    return fetch(project->latest_revision);
  }
  if (project.error().code != ErrorCode::not_found || !can_be_id(what)) return fail(project.error());
  auto revision = fetch(RevisionId(what));
  if (!revision && means_absent(revision.error()) && !stack.site().is_list_whole("projects"))
    return fail(project.error());
  if (!revision && means_absent(revision.error()))
    return fail(ErrorCode::not_found, "there is no project or revision '" + what + "' at " + stack.source().text,
                context.next_command({{"ls"}}));
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
