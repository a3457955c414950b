// playfs import: a plain directory published as a revision, of a new project or of an existing one.
//
// The directory is brought into a stage of its own and published as every commit is. The stage lies with the other
// local state under the project's id: an import that was interrupted goes on where it stopped when it is repeated
// with --project.
#include <unistd.h>

#include <filesystem>

#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/import_tree.h"
#include "app/lookup.h"
#include "app/projects.h"
#include "base/await.h"
#include "base/fd.h"
#include "publish/publisher.h"

namespace playfs::app {

namespace {

struct Target {
  ProjectId id;
  std::string name;
  RevisionTreePtr head;  ///< nullptr: no revision yet
};

Result<Target> target_of(Context& context, World& world, const ImportArguments& arguments,
                         const std::string& directory) {
  Target target;
  if (arguments.project) {
    PLAYFS_TRY(Project project, find_project(world, *arguments.project));
    target.id = project.id;
    target.name = project.name;
    if (project.latest_revision.empty()) return target;
    PLAYFS_TRY(target.head, await<RevisionTreePtr>([&](auto done) {
                 world.site().revision(project.latest_revision, {}, std::move(done));
               }));
    return target;
  }
  target.name = arguments.name ? *arguments.name : std::filesystem::path(directory).filename().string();
  if (target.name.empty() || !is_valid_utf8(target.name))
    return fail(ErrorCode::invalid_argument, "the project needs a name",
                "playfs import " + arguments.directory + " --name NAME");
  PLAYFS_TRY(Record project, create_project(world, target.name));
  target.id = ProjectId(project.id);
  context.out.note("Created the project '" + safe(target.name) + "', " + safe(project.id) + ".");
  return target;
}

struct Published {
  std::vector<Skipped> skipped;
  publish::CommitResult commit;
  std::vector<std::string> ignored;
};

Result<Published> publish_directory(Context& context, World& world, const Target& target,
                                    const ImportArguments& arguments, const std::string& directory,
                                    const std::string& stage_directory) {
  stage::StageOptions options;
  options.directory = stage_directory;
  options.uid = geteuid();
  options.gid = getegid();
  options.read_lower = [&](const FileRef& file) -> std::optional<std::string> {
    auto blob = world.site().try_blob(file);
    auto text = blob ? blob->read(0, blob->size()) : Result<std::string>(std::string());
    return blob && text ? std::optional(std::move(*text)) : std::nullopt;
  };
  PLAYFS_TRY(auto stage, stage::Stage::open(options, world.clock(), target.head));
  PLAYFS_TRY(auto publisher,
             publish::Publisher::open(stage_directory + "/journal", target.id, world.site(), *stage, world.executor(),
                                      world.clock(), world.random(), [](const std::vector<stage::Invalidation>&) {}));
  Published published;
  PLAYFS_TRY(published.skipped, make_stage_look_like(*stage, directory));
  // The ignore rules that stay as they were published decide too, so they have to be here.
  for (const FileRef& rules : stage->rules_needed()) PLAYFS_CHECK(blob_of(world, rules));
  PLAYFS_TRY(published.ignored, stage->unpublished());
  publish::CommitRequest request;
  request.agent = arguments.agent.value_or(context.agent(world.source().text));
  request.message = arguments.message.value_or("Import " + std::filesystem::path(directory).filename().string());
  PLAYFS_TRY(published.commit,
             await<publish::CommitResult>([&](auto done) { publisher->commit(request, {}, std::move(done)); }));
  return published;
}

}  // namespace

Result<ExitCode> import(Context& context, const ImportArguments& arguments) {
  std::string directory = context.io.absolute(arguments.directory);
  std::error_code problem;
  if (!std::filesystem::is_directory(directory, problem))
    return fail(problem ? ErrorCode::not_found : ErrorCode::not_a_directory, directory + " is not a directory",
                "playfs import DIR");
  PLAYFS_TRY(auto world, context.open_world());
  PLAYFS_TRY(Target target, target_of(context, *world, arguments, directory));
  PLAYFS_TRY(std::string state, world->state_directory());
  std::string stage_directory = state + "/imports/" + as_component(target.id.text());
  PLAYFS_CHECK(make_private_directory(stage_directory));
  auto published = publish_directory(context, *world, target, arguments, directory, stage_directory);
  if (!published) {
    Error error = published.error();
    if (error.hint.empty()) error.hint = "playfs import " + arguments.directory + " --project " + target.id.text();
    return fail(std::move(error));
  }
  const publish::CommitResult& commit = published->commit;
  if (commit.outcome != publish::Outcome::pending) std::filesystem::remove_all(stage_directory, problem);

  Json::Array skipped, ignored;
  for (const Skipped& entry : published->skipped) {
    context.out.note("skipped " + safe(entry.path) + ": " + safe(entry.reason));
    skipped.push_back(JsonObject{{"path", entry.path}, {"reason", entry.reason}});
  }
  for (const std::string& path : published->ignored) ignored.push_back(path);
  context.out.line(target.id.text() + " " + commit.revision.text());
  tell_commit(context.out, commit);
  JsonObject document{{"site", world->source().text}, {"project", target.id.text()}, {"name", target.name}};
  for (const auto& [name, value] : commit_document(commit)) document.append(name, value);
  document.append("skipped", std::move(skipped));
  document.append("ignored", std::move(ignored));
  context.out.document(std::move(document));
  return exit_code_for(commit.outcome);
}

}  // namespace playfs::app
