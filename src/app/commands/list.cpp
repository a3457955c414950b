// playfs ls: lists the projects of a service, or the files of a project's head or of a revision.
#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/lookup.h"
#include "base/await.h"

namespace playfs::app {

namespace {

struct TreeListing {
  runtime::ClientStack& stack;
  RevisionTreePtr revision;
  const ListArguments& arguments;
  Json::Array items;
};

const char* type_of(const FileEntry& entry) { return entry.mode == FileMode::symlink ? "symlink" : "file"; }

Status list_file(CommandContext& context, TreeListing& listing, const std::string& path, const FileEntry& entry) {
  bool sized = context.out.json() || listing.arguments.details;
  std::uint64_t size = 0;
  if (sized) {
    PLAYFS_TRY(size, size_of(listing.stack, FileRef{listing.revision, path, &entry}));
  }
  listing.items.push_back(JsonObject{{"path", path},
                                     {"type", type_of(entry)},
                                     {"mode", git_mode(entry.mode)},
                                     {"size", size},
                                     {"hash", entry.hash_claim}});
  context.out.line(sized ? fmt::format("{} {:>9} {}", git_mode(entry.mode), size, safe(path)) : safe(path));
  return {};
}

Status list_directory(CommandContext& context, TreeListing& listing, const std::string& path,
                      const Tree::Directory& directory) {
  for (const auto& [name, child] : directory.children) {
    std::string whole = path.empty() ? name : path + "/" + name;
    if (const auto* file = std::get_if<const FileEntry*>(&child)) {
      PLAYFS_CHECK(list_file(context, listing, whole, **file));
      continue;
    }
    if (listing.arguments.recursive) {
      PLAYFS_CHECK(list_directory(context, listing, whole, *std::get<std::unique_ptr<Tree::Directory>>(child)));
      continue;
    }
    listing.items.push_back(JsonObject{{"path", whole}, {"type", "directory"}, {"mode", "040000"}});
    context.out.line(listing.arguments.details ? fmt::format("040000 {:>9} {}/", "-", safe(whole)) : safe(whole) + "/");
  }
  return {};
}

Result<ExitCode> list_projects(CommandContext& context, runtime::ClientStack& stack) {
  using List = std::shared_ptr<const std::vector<content::Listed>>;
  PLAYFS_TRY(List projects, await<List>([&](auto done) { stack.site().list("projects", {}, std::move(done)); }));
  Json::Array items;
  for (const content::Listed& project : *projects) {
    items.push_back(
        JsonObject{{"id", project.id}, {"name", project.name}, {"created_at", format_iso8601(project.created_at)}});
    context.out.line(safe(project.id) + "  " + safe(project.name));
  }
  const bool is_whole = stack.site().is_list_whole("projects");
  if (!is_whole)
    context.out.note("The list is incomplete: these are the newest " + std::to_string(items.size()) + " projects.");
  if (items.empty())
    context.out.note("No projects yet. Try: " + safe(context.next_command({{"init", "NAME"}})) + ", or " +
                     safe(context.next_command({{"import", "DIR"}})));
  JsonObject document{{"site", stack.source().text}, {"projects", std::move(items)}};
  if (!is_whole) document.append("more", true);
  context.out.document(std::move(document));
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> list(CommandContext& context, const ListArguments& arguments) {
  PLAYFS_TRY(auto stack, context.open_to_look());
  if (arguments.what.empty()) return list_projects(context, *stack);
  PLAYFS_TRY(RevisionTreePtr revision, find_revision(context, *stack, arguments.what));
  TreeListing listing{*stack, revision, arguments, {}};
  std::string path = normal_path(arguments.path);
  if (const FileEntry* file = revision->tree.file_at(path)) {
    PLAYFS_CHECK(list_file(context, listing, path, *file));
  } else if (const Tree::Directory* directory = revision->tree.directory_at(path)) {
    PLAYFS_CHECK(list_directory(context, listing, path, *directory));
  } else {
    return fail(ErrorCode::not_found, "there is no '" + path + "' in revision " + revision->revision.id.text(),
                context.next_command({{"ls", "-R"}, {arguments.what}}));
  }
  context.out.document(JsonObject{{"site", stack->source().text},
                                  {"project", revision->revision.project.text()},
                                  {"revision", revision->revision.id.text()},
                                  {"entries", std::move(listing.items)}});
  return ExitCode::done;
}

}  // namespace playfs::app
