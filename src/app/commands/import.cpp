// playfs import: publishes a plain directory as a revision, of a new project or of an existing one.
//
// The directory is copied into a separate stage that is based on the revision the directory was made from, and is
// published like any commit: changes published since are merged, or this becomes a branch. The stage is kept with the
// other local state, one for each directory and project: repeating an interrupted import with --project resumes it.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "app/commands/commands.h"
#include "app/commit_report.h"
#include "app/import_base.h"
#include "app/import_tree.h"
#include "app/lookup.h"
#include "app/projects.h"
#include "app/publication_words.h"
#include "base/await.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/shell.h"
#include "model/path.h"
#include "publish/publisher.h"
#include "runtime/credentials.h"

namespace playfs::app {

namespace {

constexpr std::size_t kMostNamed = 10;

struct ImportTarget {
  ProjectId id;
  std::string name;
  RevisionId head;  ///< empty: no revision yet
};

Result<ImportTarget> target_of(CommandContext& context, runtime::ClientStack& stack, const ImportArguments& arguments,
                               const std::string& directory) {
  ImportTarget target;
  if (arguments.project) {
    PLAYFS_TRY(Project project, find_project(context, stack, *arguments.project));
    return ImportTarget{project.id, project.name, project.latest_revision};
  }
  target.name = arguments.name ? *arguments.name : std::filesystem::path(directory).filename().string();
  if (target.name.empty() || !is_valid_utf8(target.name))
    return fail(ErrorCode::invalid_argument, "the project needs a name",
                shell_line({{"playfs", "import"}, {arguments.directory}, {"--name", "NAME"}}));
  PLAYFS_TRY(Record project, create_project(stack, target.name));
  target.id = ProjectId(project.id);
  context.out.note("Created the project '" + safe(target.name) + "', " + safe(project.id) + ".");
  return target;
}

std::string import_again(const ImportArguments& arguments, const ImportTarget& target, const std::string& base) {
  ShellCommand again{{"playfs", "import"}, {arguments.directory}, {"--project", target.id.text()}};
  if (!base.empty()) again.options.insert(again.options.end(), {"--base", base});
  return shell_line(again);
}

std::string export_again(const RevisionId& revision) {
  return "playfs export " + shell_operand(revision.text()) + " OTHER";
}

/// For an export that must not be imported. Names the service, since the user may be where another one is the default.
std::string export_elsewhere(const std::string& site, const RevisionId& revision) {
  return shell_line({{"playfs", "export"}, {revision.text(), "OTHER"}, {"--site", site}}) +
         "   and import that, with your changes";
}

/// An untrusted mark is an error rather than ignored, since it may say that files are missing.
Result<std::optional<TreeOrigin>> mark_of(const CommandContext& context, const ImportArguments& arguments,
                                          const std::string& directory) {
  auto mark = read_mark(directory);
  if (mark) return mark;
  Error error = mark.error().while_doing("cannot tell which revision " + directory + " was made from");
  error.hint = context.next_command({{"export"}, {arguments.project.value_or("REVISION"), "OTHER"}}) +
               "   and import that, with your changes";
  return fail(std::move(error));
}

/// One import in progress.
class Import {
 public:
  Import(CommandContext& context, OpenStack& open, const ImportArguments& arguments, const ImportTarget& target,
         ImportBase base, std::string stage_directory)
      : context_(context),
        stack_(*open),
        progress_(open.progress()),
        arguments_(arguments),
        target_(target),
        base_(std::move(base)),
        stage_directory_(std::move(stage_directory)) {}

  Status run(const std::string& directory) {
    PLAYFS_CHECK(take_up_or_clear());
    PLAYFS_CHECK(open());
    if (!base_.beside.empty() && stage_->is_clean()) PLAYFS_CHECK(take_in_beside());
    auto earlier = finish_earlier();
    PLAYFS_TRY(skipped, read(directory));
    // Ignore rules that stay as published apply too, so they must be in the cache.
    for (const FileRef& rules : stage_->rules_needed()) PLAYFS_CHECK(blob_of(stack_, rules));
    PLAYFS_CHECK(check_something_is_left(directory));
    if (base_.lacks_files) PLAYFS_CHECK(check_nothing_is_deleted(directory));
    if (!base_.known) PLAYFS_CHECK(check_nothing_is_undone(directory));
    PLAYFS_TRY(ignored, stage_->unpublished());
    publish::CommitRequest request;
    PLAYFS_TRY(request.agent, context_.agent(arguments_.agent, stack_.source().text));
    request.message = arguments_.message.value_or("Import " + std::filesystem::path(directory).filename().string());
    PLAYFS_TRY(commit, publish(request));
    if (commit.outcome == publish::Outcome::nothing && earlier) commit = std::move(*earlier);
    if (auto tree = stage_->base()) revision = tree->revision.id;
    return {};
  }

  /// Removes the stage once it is no longer needed.
  void forget() {
    publisher_.reset();
    if (auto removed = stage::Stage::remove(std::move(stage_)); !removed) log_warning(removed.error().message);
  }

  std::vector<Skipped> skipped;
  std::vector<std::string> ignored;
  publish::CommitResult commit;
  RevisionId revision;  ///< what the directory holds now, except for what is skipped and ignored

 private:
  Result<std::vector<Skipped>> read(const std::string& directory) {
    const EndOfTransfer ending(&progress_);
    progress_.begin("Reading the directory", {});
    return make_stage_look_like(*stage_, directory, [&](std::uint64_t size) { progress_.file_done(size); });
  }

  Result<publish::CommitResult> publish(const publish::CommitRequest& request) {
    const ShownProgress progress(context_.out, kShowPublicationEvery,
                                 [&] { return words_for_publication(publisher_->progress()); });
    return await<publish::CommitResult>([&](auto done) { publisher_->commit(request, {}, std::move(done)); });
  }

  [[nodiscard]] std::string purpose_path() const { return stage_directory_ + "/purpose"; }
  [[nodiscard]] std::string purpose() const {
    return base_.revision.text() + " " + base_.beside.text() + purpose_end();
  }
  /// How the purpose ends for an import with a known base, of a directory made by the same export.
  [[nodiscard]] std::string known_end() const { return "\n" + base_.export_id + "\n"; }
  [[nodiscard]] std::string purpose_end() const { return base_.known ? known_end() : "\n" + base_.export_id + " ?\n"; }

  /// Resumes an interrupted import if it was the same one; otherwise finishes or drops it.
  Status take_up_or_clear() {
    PLAYFS_CHECK(make_private_directory(stage_directory_));
    PLAYFS_TRY(auto begun, stage::Stage::recorded_base(stage_directory_));
    if (begun) {
      auto was_for = read_file(purpose_path(), 1 << 16);
      // An interrupted import of the directory may reveal its base if nothing else does.
      if (!base_.known && was_for && was_for->ends_with(known_end())) base_.known = true;
      else if (!was_for || *was_for != purpose()) PLAYFS_CHECK(finish_and_drop());
    }
    PLAYFS_TRY(begun, stage::Stage::recorded_base(stage_directory_));
    if (begun) return {};
    PLAYFS_CHECK(make_private_directory(stage_directory_));
    return write_file_atomically(purpose_path(), purpose());
  }

  /// Drops an import of this directory that had another base, once what it began to publish has ended.
  Status finish_and_drop() {
    PLAYFS_CHECK(open());
    PLAYFS_TRY(auto pending, stage_->pending());
    if (pending) {
      PLAYFS_CHECK(wait_for_publication());
      PLAYFS_TRY(pending, stage_->pending());
      if (pending) return fail(ErrorCode::busy, "an earlier import of this directory is still being published");
    }
    forget();
    return {};
  }

  Status open() {
    PLAYFS_TRY(auto begun, stage::Stage::recorded_base(stage_directory_));
    RevisionTreePtr on;
    if (const RevisionId& id = begun ? *begun : base_.revision; !id.empty()) {
      auto tree = await<RevisionTreePtr>([&](auto done) { stack_.site().revision(id, {}, std::move(done)); });
      if (!tree) return fail(tree.error().while_doing("read the directory's base revision"));
      on = std::move(*tree);
    }
    stage::StageOptions options;
    options.directory = stage_directory_;
    options.uid = geteuid();
    options.gid = getegid();
    options.read_lower = [this](const FileRef& file, std::size_t most) -> std::optional<std::string> {
      auto blob = stack_.site().try_blob(file);
      auto text = blob ? blob->read(0, most) : Result<std::string>(std::string());
      return blob && text ? std::optional(std::move(*text)) : std::nullopt;
    };
    options.tell_of_rules = [](const Error& error) { log_warning(error.message); };
    PLAYFS_TRY(stage_, stage::Stage::open(options, stack_.clock(), on));
    publish::PublisherOptions publishing;
    // The published revision is then exactly the directory, so it can be the base of the next import.
    publishing.merges_first = false;
    PLAYFS_TRY(const std::string author, context_.agent(arguments_.agent, stack_.source().text));
    publishing.frozen = [this, author] { stack_.site().note_instructions(author, stage_->trusted_instructions()); };
    PLAYFS_TRY(publisher_,
               publish::Publisher::open(
                   stage_directory_ + "/journal", target_.id, stack_.site(), *stage_, stack_.executor(), stack_.clock(),
                   stack_.random(), [](const std::vector<stage::Invalidation>&) {}, publishing));
    return {};
  }

  /// The directory was imported before, as a branch, so this import merges that branch with the base. Files of the
  /// branch are published even if ignore rules that came with the base match them.
  Status take_in_beside() {
    auto beside = await<RevisionTreePtr>([&](auto done) { stack_.site().revision(base_.beside, {}, std::move(done)); });
    const bool is_lost = !beside && beside.error().code == ErrorCode::not_found;
    if (!beside && !is_lost) return fail(beside.error().while_doing("read what the directory was imported as before"));
    const RevisionTreePtr base = stage_->base();
    stage::Merged merged;
    if (beside)
      for (const auto& [path, entry] : (*beside)->tree.manifest().files)
        if (!base || !base->tree.file_at(path)) merged.tracked.emplace(path, stage::TrackedAs::taken_in);
    return stage_->integrate(base, merged, {base_.beside});
  }

  Status wait_for_publication() {
    // Planning waits for the publication in progress.
    auto seen = await<publish::PlannedCommit>([&](auto done) { publisher_->plan({}, std::move(done)); });
    if (!seen && seen.error().code == ErrorCode::busy) return fail(seen.error());
    return {};
  }

  /// The outcome of a publication that an interrupted import started; nullopt while it backs off: the commit then waits
  /// for it.
  std::optional<publish::CommitResult> finish_earlier() {
    auto pending = stage_->pending();
    if (!pending || !*pending || !wait_for_publication()) return std::nullopt;
    auto last = publisher_->last();
    if (!last || !*last) return std::nullopt;
    return **last;
  }

  /// An unmounted mount point looks like an empty directory, or holds a `lost+found`: importing it must not delete
  /// every file. The same goes for a directory in which an export was killed before it wrote more than the folder of
  /// its mark.
  Status check_something_is_left(const std::string& directory) {
    auto tree = stage_->base();
    const std::size_t published = tree ? tree->tree.manifest().files.size() : 0;
    PLAYFS_TRY(auto changes, stage_->changes());
    const auto deleted = std::count_if(changes.begin(), changes.end(), [&](const stage::Change& change) {
      return change.kind == stage::ChangeKind::deleted && tree && tree->tree.file_at(change.path);
    });
    const bool is_any_added = std::any_of(changes.begin(), changes.end(), [](const stage::Change& change) {
      return change.kind == stage::ChangeKind::added;
    });
    if (published == 0 || is_any_added || static_cast<std::size_t>(deleted) < published) return {};
    remove_stage_unless_publishing();
    return fail(
        ErrorCode::invalid_argument, directory + " is empty of files to publish: importing it would delete every file",
        "mount it, if it is a mount point; to delete every file, remove them in the project's work tree and commit");
  }

  void remove_stage_unless_publishing() {
    if (auto pending = stage_->pending(); pending && !*pending) forget();
  }

  /// What the import would delete and, with `also_changes`, change. If that is anything, removes the stage, unless it
  /// is being published; otherwise returns "".
  Result<std::string> undone(bool also_changes) {
    PLAYFS_TRY(auto changes, stage_->changes());
    std::string named;
    std::size_t count = 0;
    for (const stage::Change& change : changes) {
      const bool is_deletion = change.kind == stage::ChangeKind::deleted;
      if (change.kind == stage::ChangeKind::added || (!is_deletion && !also_changes)) continue;
      const char* kind = is_deletion ? "delete " : "change ";
      if (++count <= kMostNamed) named += (named.empty() ? "" : ", ") + std::string(kind) + safe(change.path);
    }
    if (count > kMostNamed) named += " and " + std::to_string(count - kMostNamed) + " more";
    if (count > 0) remove_stage_unless_publishing();
    return named;
  }

  Status check_nothing_is_deleted(const std::string& directory) {
    PLAYFS_TRY(std::string named, undone(false));
    if (named.empty()) return {};
    return fail(ErrorCode::invalid_argument,
                directory +
                    " is an export that left out files, so importing it would delete what nobody deleted: it "
                    "would " +
                    named,
                export_elsewhere(stack_.source().text, base_.revision));
  }

  Status check_nothing_is_undone(const std::string& directory) {
    PLAYFS_TRY(std::string named, undone(true));
    if (named.empty()) return {};
    return fail(ErrorCode::invalid_argument,
                "it is not known which revision of " + target_.id.text() + " " + directory +
                    " is based on, so importing it could undo what others have published: it would " + named,
                import_again(arguments_, target_, base_.revision.text()) +
                    "   if you mean that; directories made by playfs export record their revision");
  }

  CommandContext& context_;
  runtime::ClientStack& stack_;
  TransferProgress& progress_;
  const ImportArguments& arguments_;
  const ImportTarget& target_;
  ImportBase base_;
  const std::string stage_directory_;
  std::unique_ptr<stage::Stage> stage_;
  std::unique_ptr<publish::Publisher> publisher_;
};

/// --site, else the site that the directory was exported from, else the default.
Result<OpenStack> open_client_stack(const CommandContext& context, const std::optional<TreeOrigin>& mark) {
  if (!mark || context.settings.text_of(runtime::Settings::Layer::flag, "site")) return context.open_client_stack();
  PLAYFS_TRY(runtime::Source source, context.source(*mark));
  return context.open_client_stack(source);
}

void tell(CommandContext& context, runtime::ClientStack& stack, const ImportArguments& arguments,
          const ImportTarget& target, const publish::CommitResult& commit) {
  const std::string project = target.id.text();
  if (commit.outcome == publish::Outcome::branched) {
    auto now = find_project(context, stack, project);
    const std::string head = now ? now->latest_revision.text() : target.head.text();
    tell_commit(context.out, commit,
                export_again(RevisionId(head)) + ", merge its changes into " + shell_word(arguments.directory) +
                    ", then " + import_again(arguments, target, head));
    return;
  }
  tell_commit(context.out, commit);
  if (commit.outcome == publish::Outcome::merged)
    context.out.note(safe(arguments.directory) +
                     " was not changed and lacks what others have published. Try: playfs export " +
                     shell_operand(project) + " OTHER, to get both");
}

/// What playfs keeps for this user has keys, and would be published. `directory`: as canonical() returns it.
Status check_has_no_own_place(const runtime::Places& places, const std::string& directory) {
  for (const std::string& own : {runtime::credentials_path(places), places.state, places.data}) {
    std::error_code nothing;
    const std::string real = std::filesystem::canonical(own, nothing).string();
    if (!nothing && (directory == "/" || is_at_or_below(real, directory)))
      return fail(ErrorCode::invalid_argument,
                  directory + " holds what playfs itself keeps for you, with keys: " + own + ". Nothing was published",
                  "playfs import DIR, with a directory that has only the project's files");
  }
  return {};
}

}  // namespace

Result<ExitCode> import(CommandContext& context, const ImportArguments& arguments) {
  std::error_code problem;
  std::string directory = context.io.absolute(arguments.directory);
  if (!std::filesystem::is_directory(directory, problem))
    return fail(problem ? ErrorCode::not_found : ErrorCode::not_a_directory, directory + " is not a directory",
                "playfs import DIR");
  directory = std::filesystem::canonical(directory, problem).string();
  if (problem) return fail(error_from_errno(problem.value(), "resolve " + arguments.directory));
  if (arguments.base && !arguments.project)
    return fail(ErrorCode::invalid_argument, "--base needs --project: it names a revision of that project",
                "playfs import --help");
  PLAYFS_CHECK(check_has_no_own_place(context.places, directory));
  PLAYFS_TRY(auto clone, read_clone_mark(directory));
  if (clone)
    return fail(ErrorCode::invalid_argument, directory + " is a clone, which is committed rather than imported",
                "cd " + shell_word(directory) + "; playfs commit -m MESSAGE");
  PLAYFS_TRY(auto mark, mark_of(context, arguments, directory));
  if (mark && mark->extent == Extent::unfinished)
    return fail(ErrorCode::invalid_argument,
                directory + " is an export that has not finished: its files may be missing or cut short",
                export_elsewhere(mark->site, mark->revision));
  PLAYFS_TRY(auto stack, open_client_stack(context, mark));
  PLAYFS_TRY(ImportTarget target, target_of(context, *stack, arguments, directory));
  PLAYFS_TRY(auto origin, ImportOrigin::open(*stack, target.id, directory, mark));
  PLAYFS_TRY(ImportBase base, base_of_import(context, *stack, target.id, target.head, origin.origin(), arguments.base));
  base.lacks_files = origin.lacks_files();
  base.export_id = origin.export_id();
  PLAYFS_TRY(std::string state, stack->state_directory());
  Import import(context, stack, arguments, target, base,
                state + "/imports/" + runtime::as_component(target.id.text() + "\n" + directory));
  if (auto done = import.run(directory); !done) {
    Error error = done.error();
    if (error.hint.empty()) error.hint = import_again(arguments, target, arguments.base.value_or(""));
    return fail(std::move(error));
  }
  const publish::CommitResult& commit = import.commit;
  if (commit.outcome != publish::Outcome::pending) {
    // In this order: if the process dies in between, the import can still be resumed.
    if (auto moved = import.revision.empty() ? Status() : origin.move_to(import.revision); !moved)
      context.out.note("Cannot record the directory's base revision: " + safe(moved.error().message));
    import.forget();
  }

  Json::Array skipped, ignored;
  for (const Skipped& entry : import.skipped) {
    context.out.note("Skipped " + safe(entry.path) + ": " + safe(entry.reason));
    skipped.push_back(JsonObject{{"path", entry.path}, {"reason", entry.reason}});
  }
  for (const std::string& path : import.ignored) ignored.emplace_back(path);
  const std::string ids = target.id.text() + " " + commit.revision.text();
  context.out.line(context.out.is_terminal() ? safe(ids) : ids);
  tell(context, *stack, arguments, target, commit);
  JsonObject document{{"site", stack->source().text}, {"project", target.id.text()}, {"name", target.name}};
  for (const auto& [name, value] : commit_document(commit)) document.append(name, value);
  document.append("base", base.revision.text());
  document.append("skipped", std::move(skipped));
  document.append("ignored", std::move(ignored));
  context.out.document(std::move(document));
  return exit_code_for(commit.outcome);
}

}  // namespace playfs::app
