// Resolves what a person types, an id or a project's name, to a project or revision. Blocking; for commands.
#pragma once

#include <string>

#include "app/command_context.h"
#include "model/tree.h"
#include "runtime/client_stack.h"

namespace playfs::app {

/// The current list of a collection, newest first.
Result<content::ListPtr> list_of(runtime::ClientStack& stack, const std::string& collection);

/// What people call the records of a collection. `playfs ONE list` lists them.
struct Noun {
  const char* collection;
  const char* one;  ///< "thread"
};
/// By id, else the one that has that name (a handle or title), and then says on stderr if others carry it too.
Result<Record> find_record(CommandContext& context, runtime::ClientStack& stack, const Noun& noun,
                           const std::string& id_or_name);

/// By id, else the project that has that name.
Result<Project> find_project(const CommandContext& context, runtime::ClientStack& stack, const std::string& id_or_name);

/// The head of the project that `what` names, else the revision of that id.
Result<RevisionTreePtr> find_revision(const CommandContext& context, runtime::ClientStack& stack,
                                      const std::string& what);

/// Normalizes a path in a revision as people type it: "src/a.c", "/src/", "" for the root.
std::string normal_path(std::string_view path);

/// The true size in bytes; fetches the content if nothing else tells.
Result<std::uint64_t> size_of(runtime::ClientStack& stack, const FileRef& file);
Result<content::Blob> blob_of(runtime::ClientStack& stack, const FileRef& file);

}  // namespace playfs::app
