// playfs clone: a project's work tree in a plain directory, for places where nothing can be mounted.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "app/cloned_work_tree.h"
#include "app/commands/commands.h"
#include "app/json_fields.h"
#include "app/left_out.h"
#include "app/lookup.h"
#include "app/mounted.h"
#include "base/await.h"
#include "base/fd.h"
#include "base/shell.h"

namespace playfs::app {

namespace {

/// Neither in a mount nor in another clone.
Status check_place(const std::string& path) {
  PLAYFS_TRY(auto already, read_clone_mark(path));
  if (already)
    return fail(ErrorCode::already_exists, path + " is a clone already", "cd " + shell_word(path) + "; playfs update");
  PLAYFS_TRY(auto mount, find_mount(path));
  if (mount) return fail(ErrorCode::invalid_argument, path + " is in a mount of playfs", "name a directory elsewhere");
  PLAYFS_TRY(auto around, find_clone(path));
  if (!around) return {};
  return fail(ErrorCode::invalid_argument, path + " is in the clone " + around->root, "name a directory elsewhere");
}

/// A new or empty directory; its real path.
Result<std::string> prepare_directory(const std::string& path) {
  PLAYFS_CHECK(check_place(path));
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return fail(error_from_errno(errno, "create " + path));
  std::error_code problem;
  const bool is_empty = std::filesystem::is_empty(path, problem);
  if (problem) return fail(error_from_errno(problem.value(), "list " + path));
  if (!is_empty) return fail(ErrorCode::not_empty, path + " is not empty", "name a new directory");
  std::string real = std::filesystem::canonical(path, problem).string();
  if (problem) return fail(error_from_errno(problem.value(), "find " + path));
  PLAYFS_CHECK(check_place(real));  // a link may lead elsewhere
  return real;
}

/// Checks that the revision is one of the project's.
Status check_revision(runtime::ClientStack& stack, const Project& project, const RevisionId& id) {
  auto revision = await<RevisionTreePtr>([&](auto done) { stack.site().revision(id, {}, std::move(done)); });
  if (revision && (*revision)->revision.project == project.id) return {};
  if (!revision && revision.error().code != ErrorCode::not_found) return fail(revision.error());
  return fail(ErrorCode::not_found, "the project has no revision '" + id.text() + "'",
              "playfs log --project " + shell_word(project.id.text()));
}

/// What head is, if the service shows it.
Result<RevisionId> shown_head(runtime::ClientStack& stack, const Project& project) {
  if (project.latest_revision.empty()) return project.latest_revision;
  PLAYFS_TRY(const auto head,
             await<content::Head>([&](auto done) { stack.site().shown_head(project.id, {}, std::move(done)); }));
  return head.shown.value_or(project.latest_revision);
}

Result<MountedPlace> plan_clone(CommandContext& context, const CloneArguments& arguments) {
  PLAYFS_TRY(const runtime::Source source, context.source());
  PLAYFS_TRY(auto stack, context.open_client_stack(source));
  PLAYFS_TRY(const Project project, find_project(context, *stack, arguments.project));
  RevisionId base(arguments.revision.value_or(""));
  if (arguments.revision) {
    PLAYFS_CHECK(check_revision(*stack, project, base));
  } else {
    PLAYFS_TRY(base, shown_head(*stack, project));
  }
  MountedPlace place;
  PLAYFS_TRY(place.work, prepare_directory(context.io.absolute(arguments.directory)));
  place.mount_point = place.path = place.work;
  place.source = source.text;
  place.project = project.id.text();
  place.in_work = "";
  // The name of a local playground may refer to another directory later.
  const bool is_embedded = source.kind == runtime::Source::Kind::embedded;
  place.clone = TreeOrigin{is_embedded ? "local:" + source.directory : source.text, source.base_path, project.id, base};
  place.clone->instructions = arguments.show_instructions   ? Instructions::show
                              : arguments.hide_instructions ? Instructions::hide
                                                            : runtime::instructions_for(context.settings, source.text);
  return place;
}

/// Names the files in that member of a clone's status, if there are any.
Json tell_of_instructions(Output& out, const JsonObject& status, const char* member, const std::string& one,
                          const std::string& many, const std::string& how) {
  const Json::Array* paths = array_of(status, member);
  if (paths == nullptr || paths->empty()) return Json::Array();
  constexpr std::size_t kMostNamed = 5;
  std::string named;
  for (std::size_t i = 0; i < std::min(paths->size(), kMostNamed); ++i)
    if (const std::string* path = (*paths)[i].string()) named += (i > 0 ? ", " : "") + *path;
  if (paths->size() > kMostNamed) named += ", …";
  out.note(std::to_string(paths->size()) + (paths->size() == 1 ? one : many) +
           " instructions to agents: " + safe(named) + ". " + how);
  return *paths;
}

/// The mark comes first: a command that finds it goes on with what a killed clone left.
Status write_state(const MountedPlace& place) {
  const std::string folder = place.work + "/" + kMarkFolder;
  PLAYFS_CHECK(make_private_directory(folder));
  return write_clone_mark(place.work, *place.clone);
}

/// Takes over what waits in a clone, as it is when its queue is opened.
Result<ExitCode> adopt(CommandContext& context, const std::string& directory) {
  PLAYFS_TRY(MountedPlace place, find_project_at(context.io.absolute(directory)));
  if (!place.clone)
    return fail(ErrorCode::invalid_argument, place.work + " is in a mount, whose queue is yours", "playfs status");
  PLAYFS_TRY(const auto tree, ClonedWorkTree::open(context, std::move(place), "clone", OthersCommits::taken_over));
  Json::Array adopted;
  for (const publish::QueuedCommit& each : tree->taken_over()) {
    context.out.note("Taken over: '" + safe(each.message) + "', by " + safe(each.agent) + ".");
    adopted.push_back(JsonObject{{"tx", each.tx}, {"agent", each.agent}, {"message", each.message}});
  }
  context.out.note(adopted.empty() ? "Nothing waits there to be published."
                                   : "Publishing it goes on with each command there. Try: playfs status");
  context.out.line(tree->place().work);
  context.out.document(JsonObject{{"project", tree->place().project},
                                  {"site", tree->place().source},
                                  {"directory", tree->place().work},
                                  {"adopted", std::move(adopted)}});
  return ExitCode::done;
}

}  // namespace

Result<ExitCode> clone_project(CommandContext& context, const CloneArguments& arguments) {
  const bool adopts = !arguments.adopt.empty();
  if (adopts ? !arguments.project.empty() : arguments.directory.empty())
    return fail(ErrorCode::invalid_argument, "clone needs a project and a new directory, or --adopt and a clone",
                "playfs help clone");
  if (adopts) return adopt(context, arguments.adopt);
  PLAYFS_TRY(const MountedPlace place, plan_clone(context, arguments));
  PLAYFS_CHECK(write_state(place));
  PLAYFS_TRY(auto tree, ClonedWorkTree::open(context, place, "clone"));
  PLAYFS_TRY(const auto brought, tree->bring_out(tree->whole()));
  PLAYFS_TRY(const auto status, tree->status());
  LeftOut left_out;
  left_out.add(tree->refused());
  left_out.tell(context.out);  // bring_out() has reported the others
  for (const auto& each : brought.left_out) left_out.add(each.path, each.why);
  context.out.line(place.work);
  context.out.note("Cloned " + safe(arguments.project) +
                   (status.base.empty() ? ", which has no revisions yet" : ", revision " + safe(status.base)) + ": " +
                   std::to_string(brought.written) + (brought.written == 1 ? " file." : " files."));
  PLAYFS_TRY(const JsonObject whole, tree->status_document());
  Json hidden = tell_of_instructions(context.out, whole, "hidden", " file is hidden, since it gives",
                                     " files are hidden, since they give",
                                     "To read them: playfs cat; to have them: playfs clone --show-instructions");
  Json others = tell_of_instructions(context.out, whole, "instructions_of_others", " file by others gives",
                                     " files by others give", "Agents that start here follow them");
  context.out.note("Try: cd " + safe(shell_word(place.work)) + ", edit, then playfs commit -m MESSAGE");
  context.out.document(JsonObject{{"project", place.project},
                                  {"site", place.source},
                                  {"directory", place.work},
                                  {"revision", status.base},
                                  {"files", brought.written},
                                  {"hidden", std::move(hidden)},
                                  {"instructions_of_others", std::move(others)},
                                  {"left_out", left_out.document()}});
  return left_out.exit_code();
}

}  // namespace playfs::app
