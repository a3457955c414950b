#include "app/cloned_work_tree.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "app/author.h"
#include "app/clone_state.h"
#include "app/published_tree.h"
#include "base/await.h"
#include "base/fd.h"
#include "base/private_place.h"
#include "base/shell.h"
#include "clone/git_guard.h"
#include "wire/json.h"

namespace playfs::app {

namespace {

constexpr std::chrono::milliseconds kLookForInterrupt{100};

vfs::FileSystemOptions options_of(const CommandContext& context, const MountedPlace& place) {
  vfs::FileSystemOptions options;
  options.state_directory = place.work + "/" + kMarkFolder + "/" + clone::kGuardedFolder;
  options.mount_source = place.source;
  options.version = PLAYFS_VERSION;
  options.agent = author_at(context, place.source).handle;
  options.uid = geteuid();
  options.gid = getegid();
  options.project = ProjectId(place.project);
  options.revision = place.clone->revision;
  options.instructions = place.clone->instructions;
  return options;
}

/// Like await(), but cancels the operation once `interrupted` says so.
template <class T, class Start>
Result<T> await_or_cancel(const std::function<bool()>& interrupted, const Start& start) {
  Awaited<T> awaited;
  CancelSource cancel;
  start(cancel.token(), awaited.callback());
  while (!interrupted())
    if (auto answer = awaited.wait_for(kLookForInterrupt)) return std::move(*answer);
  cancel.cancel();
  return awaited.wait();
}

}  // namespace

Result<std::unique_ptr<ClonedWorkTree>> ClonedWorkTree::open(CommandContext& context, MountedPlace place,
                                                             const std::string& command, OthersCommits others) {
  const std::string who = "playfs " + command + " (process " + std::to_string(getpid()) + ")";
  PLAYFS_TRY(auto lock, clone::Lock::take(place.work, who, [&](const std::string& holder) {
               context.out.note("Waiting for " + (holder.empty() ? "another command" : safe(holder)) +
                                ", which is at work in " + safe(place.work) + ".");
             }));
  PLAYFS_TRY(const runtime::Source source, context.source(*place.clone));
  PLAYFS_TRY(auto stack, context.open_client_stack(source));
  std::unique_ptr<ClonedWorkTree> opened(
      new ClonedWorkTree(context, std::move(place), std::move(lock), std::move(stack), others));
  PLAYFS_CHECK(opened->begin());
  return opened;
}

Status ClonedWorkTree::begin() {
  const std::string folder = place().work + "/" + kMarkFolder;
  PLAYFS_CHECK(make_private_directory_below(folder, folder + "/" + clone::kGuardedFolder));
  PLAYFS_CHECK(clone::guard_from_git(folder));
  if (!has_whole_clone_mark(place().work)) PLAYFS_CHECK(write_clone_mark(place().work, *place().clone));
  vfs::FileSystemOptions options = options_of(context_, place());
  options.may_go_on = [this](const auto& waiting) { return may_go_on(waiting); };
  tree_ = std::make_unique<vfs::LoneWorkTree>(stack_->site(), stack_->clock(), stack_->executor(), stack_->random(),
                                              std::move(options));
  Awaited<void> opened;
  tree_->open(opened.callback());
  auto seen = clone::Clone::look(place().work);  // meanwhile, on this thread
  PLAYFS_CHECK(opened.wait());
  if (!seen) return fail(std::move(seen).error());
  clone_ = clone::Clone::open(*std::move(seen), stack_->site(), *tree_);
  tell_of_kept();
  hidden_ = tree_->stage().hidden();
  return clone_->take_in();
}

Status ClonedWorkTree::may_go_on(const std::vector<publish::QueuedCommit>& waiting) {
  if (others_ == OthersCommits::refused) return queued_.check(waiting);
  for (const publish::QueuedCommit& each : waiting) PLAYFS_CHECK(queued_.note(each.tx));
  taken_over_ = waiting;
  return {};
}

void ClonedWorkTree::tell_of_kept() {
  for (const std::string& path : clone_->newly_kept())
    context_.out.note("Kept in " + safe(path) +
                      ": it was saved here while playfs replaced it. Compare it with your file.");
}

/// Whoever commits believes that all of the directory is published.
void ClonedWorkTree::tell_of_unread() {
  constexpr std::size_t kMostNamed = 5;
  const auto state = clone_->state();
  if (!state) return;
  const auto& unread = state->unread;
  for (std::size_t i = 0; i < std::min(unread.size(), kMostNamed); ++i)
    context_.out.note("Not read, so not part of it: " + safe(unread[i].path) + ": " + safe(unread[i].why));
  if (unread.size() > kMostNamed)
    context_.out.note("And " + std::to_string(unread.size() - kMostNamed) + " more. Try: playfs status");
}

/// Files of the user's own that others have changed vanish from the directory.
void ClonedWorkTree::tell_of_hidden() {
  const auto before = std::exchange(hidden_, tree_->stage().hidden());
  std::vector<std::string> more;
  std::set_difference(hidden_.begin(), hidden_.end(), before.begin(), before.end(), std::back_inserter(more));
  if (more.empty()) return;
  const std::string others = more.size() == 1 ? "" : ", and " + std::to_string(more.size() - 1) + " more";
  context_.out.note("Hidden now, since others wrote or changed it and agents would obey it: " + safe(more.front()) +
                    others + ". A person reads it with: playfs cat " + safe(place().project) + " " +
                    safe(shell_operand(more.front())));
}

Amount ClonedWorkTree::whole() const {
  const RevisionTreePtr base = tree_->stage().base();
  return base ? Amount::of(base->tree.manifest()) : Amount();
}

Result<clone::BroughtOut> ClonedWorkTree::bring_out(Amount amount) {
  stack_.progress().begin("Writing files", amount);
  clone_->on_fetched([this](std::uint64_t size) { stack_.progress().file_done(size); });
  auto brought = clone_->bring_out();
  stack_.progress().end();
  tell_of_kept();
  tell_of_hidden();
  if (!brought) {
    Error error = brought.error().while_doing("write the work tree to " + place().work);
    if (error.hint.empty()) error.hint = "playfs update, which goes on with it";
    return fail(std::move(error));
  }
  for (const auto& each : brought->left_out)
    context_.out.note("Left out " + safe(each.path) + (each.is_final ? ": " : " for now: ") + safe(each.why.message));
  if (!brought->lacks_some()) PLAYFS_CHECK(mark_base());
  return brought;
}

std::vector<RefusedEntry> ClonedWorkTree::refused() const {
  const RevisionTreePtr base = tree_->stage().base();
  return base ? base->tree.manifest().refused : std::vector<RefusedEntry>();
}

Status ClonedWorkTree::mark_base() {
  const RevisionTreePtr tree = tree_->stage().base();
  const RevisionId base = tree ? tree->revision.id : RevisionId();
  if (base == marked_) return {};
  TreeOrigin origin = *place().clone;
  origin.revision = base;
  PLAYFS_CHECK(write_clone_mark(place().work, origin));
  marked_ = base;
  return {};
}

template <class T, class Start>
Result<T> ClonedWorkTree::change(Start start) {
  PLAYFS_CHECK(clone_->expect_changes());
  auto changed = await<T>(start);
  auto brought = bring_out();
  if (changed && !brought) return fail(brought.error());
  return changed;
}

// Queries.

Result<vfs::ProjectStatus> ClonedWorkTree::project_status() {
  PLAYFS_TRY(auto status, await<vfs::ProjectStatus>([&](auto done) { tree_->status(std::move(done)); }));
  status.head_age.reset();  // nobody asked the service
  return status;
}

Result<std::string> ClonedWorkTree::status_text() {
  PLAYFS_TRY(const auto status, project_status());
  PLAYFS_TRY(const auto state, clone_->state());
  return vfs::status_text(status) + clone_state_text(state);
}

Result<JsonObject> ClonedWorkTree::status_document() {
  PLAYFS_TRY(const auto status, project_status());
  PLAYFS_TRY(const auto state, clone_->state());
  JsonObject document = *vfs::status_json(status).object();
  add_clone_state(document, state);
  return document;
}

Status ClonedWorkTree::look_for_branches() {
  return await<void>([&](auto done) { tree_->look_for_branches(std::move(done)); });
}

Result<std::unique_ptr<RevisionSource>> ClonedWorkTree::revisions(std::uint64_t) { return remote_revisions(*stack_); }

bool ClonedWorkTree::has_revision(const std::string& id) {
  auto revision =
      await<RevisionTreePtr>([&](auto done) { stack_->site().revision(RevisionId(id), {}, std::move(done)); });
  return revision && (*revision)->revision.project.text() == place().project;
}

Result<std::unique_ptr<ReadableTree>> ClonedWorkTree::tree(const std::string& revision) {
  return published_tree(*stack_, revision, [this](const Manifest& manifest) {
    PathSet hidden;
    if (place().clone->instructions == Instructions::show) return hidden;
    const auto own = tree_->stage().trusted_instructions();
    for (const std::string& path : instructions_in(manifest)) {
      const auto content = instructions_identity(*manifest.file_at(path));
      if (!content || std::find(own.begin(), own.end(), *content) == own.end()) hidden.insert(path);
    }
    return hidden;
  });
}

// Operations on the work tree.

Result<vfs::WorkStatus> ClonedWorkTree::status() {
  return await<vfs::WorkStatus>([&](auto done) { tree_->work_status(std::move(done)); });
}

std::optional<Error> ClonedWorkTree::why_it_waits() {
  const auto status = project_status();
  return status && status->progress ? status->progress->last_error : std::nullopt;
}

Result<publish::CommitResult> ClonedWorkTree::commit(const publish::CommitRequest& asked,
                                                     const std::function<bool()>& interrupted) {
  publish::CommitRequest request = asked;
  // If the home directory cannot be written, the commit is published nevertheless.
  auto noted = std::make_shared<Status>();
  request.queueing = [queued = queued_, noted](const std::string& tx) { *noted = queued.note(tx); };
  if (!request.dry_run) PLAYFS_CHECK(clone_->expect_changes());
  auto result = await_or_cancel<publish::CommitResult>(
      interrupted, [&](CancelToken cancel, auto done) { tree_->commit(request, std::move(cancel), std::move(done)); });
  if (result && result->outcome != publish::Outcome::pending) queued_.forget(result->tx);
  else if (!*noted)
    context_.out.note(safe(noted->error().message) +
                      ". So the next command asks whose commit it is. Try: playfs clone --adopt " +
                      shell_word(place().work));
  if (result) tell_of_unread();
  // The commit is published even if this fails; the next command brings out the rest.
  if (auto brought = bring_out(); !brought) context_.out.note(safe(brought.error().message) + ". Try: playfs update");
  return result;
}

JsonObject ClonedWorkTree::details(const publish::CommitResult& result) {
  auto document = wire::parse_json(tree_->document(result));
  return document && document->object() ? *document->object() : JsonObject();
}

Result<vfs::UpdateResult> ClonedWorkTree::update() {
  return change<vfs::UpdateResult>([&](auto done) { tree_->update(RevisionId(), std::move(done)); });
}

Result<vfs::UpdateResult> ClonedWorkTree::merge(const std::string& revision) {
  return change<vfs::UpdateResult>([&](auto done) { tree_->update(RevisionId(revision), std::move(done)); });
}

Result<publish::Cancelled> ClonedWorkTree::cancel() {
  return change<publish::Cancelled>([&](auto done) { tree_->cancel(std::move(done)); });
}

Result<DroppedChanges> ClonedWorkTree::discard(const std::vector<std::string>& paths, bool dry_run) {
  DroppedChanges dropped;
  if (paths.empty()) return dropped;
  auto start = [&](auto done) { tree_->discard({paths, dry_run}, std::move(done)); };
  PLAYFS_TRY(const vfs::DiscardResult result,
             dry_run ? await<vfs::DiscardResult>(start) : change<vfs::DiscardResult>(start));
  dropped.paths = result.paths;
  dropped.kept.add(result.checkpoint, result.at);
  return dropped;
}

Result<vfs::CheckpointResult> ClonedWorkTree::checkpoint(const std::string& message) {
  return await<vfs::CheckpointResult>([&](auto done) { tree_->checkpoint({message}, std::move(done)); });
}

Status ClonedWorkTree::drop_checkpoint(std::uint64_t id) {
  PLAYFS_CHECK(await<vfs::CheckpointResult>([&](auto done) { tree_->checkpoint({{}, id}, std::move(done)); }));
  return {};
}

Result<vfs::RestoreResult> ClonedWorkTree::restore(const vfs::RestoreRequest& request) {
  return change<vfs::RestoreResult>([&](auto done) { tree_->restore(request, std::move(done)); });
}

}  // namespace playfs::app
