#include "vfs/work/work_tree.h"

#include <unistd.h>

#include <set>

#include "base/text.h"
#include "model/path.h"
#include "publish/conflicts.h"
#include "stage/ignore.h"
#include "vfs/attempt_fetches.h"
#include "vfs/ino.h"
#include "vfs/once.h"
#include "vfs/projects_in_use.h"
#include "vfs/published/history.h"
#include "vfs/work/work_node.h"
#include "wire/json.h"

namespace playfs::vfs {
namespace {

/// Beside the stage, a work tree's directory holds the journal of its publications.
std::string journal_directory(const std::string& directory) { return directory + "/publication"; }

/// Counts the paths with staged changes, or in conflict while head's version is in place; the project's state counts as
/// one.
Result<std::size_t> staged_below(stage::Stage& stage, std::string_view path) {
  PLAYFS_TRY(auto changes, stage.changes());
  std::set<std::string> staged;
  for (const stage::Change& change : changes)
    if (!change.pending && is_at_or_below(change.path, path)) staged.insert(change.path);
  for (const stage::Conflicted& each : stage.conflicted())
    if (each.beside.empty() && is_at_or_below(each.path, path)) staged.insert(each.path);
  if (path.empty() && stage.staged_state()) staged.insert(stage::kStatePath);
  return staged.size();
}

bool is_there(stage::Stage& stage, std::string_view path) {
  stage::InodePtr at = stage.root();
  while (at && !path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    auto next = stage.lookup(at, path.substr(0, slash));
    at = next ? *next : nullptr;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return at != nullptr;
}

Error why_latest_is_not_shown(const content::Head& head) {
  if (head.refused) return *head.refused;
  return {ErrorCode::offline,
          "revision " + escape_for_terminal(head.project.latest_revision.text()) + ", now head, could not be read yet",
          "retry playfs update later"};
}

std::optional<std::string> rules_text(content::Site& site, const FileRef& file, std::size_t most) {
  auto blob = site.try_blob(file);
  if (!blob) return std::nullopt;
  auto text = blob->read(0, most);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

}  // namespace

WorkTree::WorkTree(Mount& mount, ProjectId project, std::string directory, std::unique_ptr<stage::Stage> stage)
    : mount_(mount),
      project_(std::move(project)),
      directory_(std::move(directory)),
      root_ino_(ino_below(ino_below(ino_below(kRootNode, "projects"), project_.text()), "work")),
      stage_(std::move(stage)) {}

WorkTree::~WorkTree() {
  std::unique_ptr<publish::Publisher> last;  // calls back until it has ended, so end it after the lock is released
  MutexLock lock(mutex_);
  last = std::move(publisher_);
}

Result<std::shared_ptr<WorkTree>> WorkTree::open(Mount& mount, const ProjectId& project, const std::string& directory,
                                                 RevisionTreePtr base) {
  const FileSystemOptions& options = mount.options();
  stage::StageOptions stage_options;
  stage_options.directory = directory;
  stage_options.uid = options.uid;
  stage_options.gid = options.gid;
  stage_options.umask = options.umask;
  stage_options.read_lower = [&site = mount.site()](const FileRef& file, std::size_t most) {
    return rules_text(site, file, most);
  };
  stage_options.tell_of_rules = [&events = mount.site().events(), scope = "projects/" + project.text() + "/work"](
                                    const Error& error) { events.error(scope, error); };
  PLAYFS_TRY(auto stage, stage::Stage::open(stage_options, mount.clock(), std::move(base)));
  if (const auto& lost = stage->found_lost())
    mount.site().events().error("projects/" + project.text() + "/work", *lost);
  std::shared_ptr<WorkTree> tree(new WorkTree(mount, project, directory, std::move(stage)));
  tree->keep_base();
  PLAYFS_TRY(auto pending, tree->stage_->pending());
  if (pending || ::access(journal_directory(directory).c_str(), F_OK) == 0) PLAYFS_CHECK(tree->open_publisher());
  return tree;
}

Result<bool> WorkTree::has_unfinished(const std::string& directory) {
  const std::string journal = journal_directory(directory);
  if (::access(journal.c_str(), F_OK) != 0) return false;
  // Only the tree can tell what a missing journal had under way.
  if (::access((journal + "/publish.db").c_str(), F_OK) != 0) return true;
  auto opened = publish::Journal::open(journal);
  // Likewise for a damaged journal: opening the tree sets it aside.
  if (!opened && opened.error().code == ErrorCode::corrupt) return true;
  if (!opened) return fail(opened.error());
  PLAYFS_TRY(auto front, (*opened)->front());
  return front.has_value();
}

RevisionId WorkTree::base_id() const {
  RevisionTreePtr base = stage_->base();
  return id_of(base);
}

std::shared_ptr<WorkNode> WorkTree::root(const NodePtr& parent, const std::string& name) {
  stage::InodePtr inode = stage_->root();
  MutexLock lock(mutex_);
  auto& slot = nodes_[inode.get()];
  auto node = slot.lock();
  if (!node) slot = node = std::make_shared<WorkNode>(mount_, parent, name, shared_from_this(), inode);
  return node;
}

std::shared_ptr<WorkNode> WorkTree::node(const stage::InodePtr& inode, const NodePtr& parent) {
  MutexLock lock(mutex_);
  auto& slot = nodes_[inode.get()];
  auto node = slot.lock();
  if (!node) slot = node = std::make_shared<WorkNode>(mount_, parent, std::string(), shared_from_this(), inode);
  return node;
}

void WorkTree::set_stand_in(const NodePtr& node) {
  MutexLock lock(mutex_);
  stand_in_ = node;
}

NodePtr WorkTree::known_node(const stage::InodePtr& inode) const {
  const bool is_root = inode == stage_->root();
  MutexLock lock(mutex_);
  if (auto stand_in = is_root ? stand_in_.lock() : nullptr) return stand_in;
  auto found = nodes_.find(inode.get());
  return found == nodes_.end() ? nullptr : found->second.lock();
}

void WorkTree::drop(const stage::Inode* inode) {
  MutexLock lock(mutex_);
  auto found = nodes_.find(inode);
  if (found != nodes_.end() && found->second.expired()) nodes_.erase(found);
}

Status WorkTree::check_may_write(const Caller& caller) const {
  PLAYFS_TRY(stage::Attributes root, stage_->attributes(stage_->root()));
  unsigned bits = caller.uid == root.uid   ? root.permissions >> 6
                  : caller.gid == root.gid ? root.permissions >> 3
                                           : root.permissions;
  if (caller.uid == 0 || (bits & 2)) return {};
  return fail(ErrorCode::permission_denied, "no permission to write in the work tree");
}

Async<void> WorkTree::tell(OperationPtr op, std::string what) {
  PLAYFS_AWAIT_CHECK(until_kernel_knows(mount_, op, project_, "told"));
  if (!op->noted(kUntold)) co_return Status();
  co_return fail(ErrorCode::timed_out,
                 what + ", but the tree may still show old names: a kernel operation is waiting for the service",
                 "look again when that operation has ended");
}

Status WorkTree::open_publisher() {
  MutexLock opening(opening_);
  if (publisher()) return {};
  // Head may contain more than what was published here, such as a merge, and may have been seen before the base
  // arrived.
  auto settled = [this](const std::vector<stage::Invalidation>& changed) {
    tell_kernel(changed);
    follow_head();
  };
  publish::PublisherOptions options;
  options.agent = mount_.options().agent;
  PLAYFS_TRY(auto opened,
             publish::Publisher::open(journal_directory(directory_), project_, mount_.site(), *stage_,
                                      mount_.executor(), mount_.clock(), mount_.random(), settled, options));
  MutexLock lock(mutex_);
  publisher_ = std::move(opened);
  return {};
}

publish::Publisher* WorkTree::publisher() const {
  MutexLock lock(mutex_);
  return publisher_.get();
}

bool WorkTree::is_on_branch() const {
  publish::Publisher* publishing = publisher();
  return publishing && publishing->branch().has_value();
}

Async<publish::Publisher*> WorkTree::opened_publisher() {
  if (!publisher()) {
    PLAYFS_AWAIT_CHECK(on_disk(mount_, [self = shared_from_this()] { return self->open_publisher(); }));
  }
  co_return publisher();
}

Async<CommitResult> WorkTree::commit(OperationPtr op, CommitRequest request) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  if (request.again.empty()) {
    // Freezing the change decides what is ignored. That may mean matching everything new against rules written by
    // strangers, in files that may not be here yet.
    PLAYFS_AWAIT_CHECK(compare(op, "judged", [self = shared_from_this()]() -> Status {
      static_cast<void>(self->stage_->rules_needed());
      return {};
    }));
    PLAYFS_AWAIT_CHECK(repeat([&]() -> Attempt<void> {
      for (const FileRef& rules : stage_->rules_needed()) PLAYFS_ATTEMPT_CHECK(blob_here(mount_, rules));
      return {};
    }));
  }
  PLAYFS_AWAIT(publish::Publisher* const publishing, opened_publisher());
  if (request.agent.empty()) request.agent = mount_.options().agent;
  CommitResult result;
  if (!request.again.empty()) {
    PLAYFS_AWAIT(result, answer<CommitResult>([publishing, request](CancelToken cancel, Callback<CommitResult> done) {
                   publishing->outcome_of(request.again, request.wait, std::move(cancel), std::move(done));
                 }));
  } else if (request.dry_run) {
    PLAYFS_AWAIT(const auto planned, answer<publish::PlannedCommit>(
                                         [publishing](CancelToken cancel, Callback<publish::PlannedCommit> done) {
                                           publishing->plan(std::move(cancel), std::move(done));
                                         }));
    result = publish::result_of(planned);
  } else {
    PLAYFS_AWAIT(result,
                 answer<CommitResult>([this, publishing, request](CancelToken cancel, Callback<CommitResult> done) {
                   mount_.site().client().ask_now();
                   publishing->commit(request, std::move(cancel), std::move(done));
                 }));
  }
  if (result.outcome == Outcome::pending) co_return result;
  mount_.in_use().head_moved(project_);
  // It is published, whatever the kernel still shows.
  auto telling = tell(op, "the commit has ended");
  if (Status told = co_await telling; !told) mount_.site().events().error(document_path(), told.error());
  co_return result;
}

Attempt<void> WorkTree::check_may_commit(const OperationPtr& op) {
  PLAYFS_ATTEMPT_CHECK(check_may_write(op->caller));
  PLAYFS_ATTEMPT(auto pending, stage_->pending());
  if (pending) return {};  // the commit is queued and judged when its turn comes
  PLAYFS_ATTEMPT_CHECK(weigh(op));
  PLAYFS_ATTEMPT_CHECK(publish::check_resolved(*stage_));
  return {};
}

Async<std::uint32_t> WorkTree::discard(OperationPtr op, std::string path, bool dry_run) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  std::uint32_t count = 0;
  PLAYFS_AWAIT_CHECK(on_disk(mount_, [self = shared_from_this(), &path, dry_run, &count]() -> Status {
    PLAYFS_TRY(count, self->discard_now(path, dry_run));
    return {};
  }));
  if (!dry_run) PLAYFS_AWAIT_CHECK(tell(op, "the staged changes were discarded"));
  co_return count;
}

Result<std::uint32_t> WorkTree::discard_now(const std::string& path, bool dry_run) {
  PLAYFS_TRY(std::size_t before, staged_below(*stage_, path));
  PLAYFS_TRY(stage::Discarded discarded, stage_->discard(path, dry_run));
  if (!dry_run) tell_kernel(discarded.changed);
  // Checked last: a publication under way does not mean that nothing is there.
  if (before == 0 && !is_there(*stage_, path))
    return fail(ErrorCode::not_found, path + " does not exist, and nothing is staged at or below it", "playfs status");
  const auto count = static_cast<std::uint32_t>(discarded.paths.size());
  if (dry_run) return count;
  if (publish::Publisher* publishing = publisher(); publishing && stage_->is_clean()) publishing->forget_lost_base();
  follow_head();
  return count;
}

Async<content::Head> WorkTree::ask_for_head() {
  PLAYFS_AWAIT_CHECK(answer<content::Head>([this](CancelToken cancel, Callback<content::Head> done) {
    mount_.site().client().ask_now();
    mount_.site().refresh_head(project_, std::move(cancel), std::move(done));
  }));
  auto shown = answer<content::Head>([this](CancelToken cancel, Callback<content::Head> done) {
    mount_.site().shown_head(project_, std::move(cancel), std::move(done));
  });
  co_return co_await shown;
}

Async<UpdateResult> WorkTree::update(OperationPtr op) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  PLAYFS_AWAIT_CHECK(ask_for_head());
  Updating asked;
  std::optional<UpdateResult> result;
  while (!result) {
    if (asked.needs_publisher) PLAYFS_AWAIT_CHECK(opened_publisher());
    PLAYFS_AWAIT(result, update_step(op, asked));
  }
  PLAYFS_AWAIT_CHECK(tell(op, "the work tree is now based on " + result->base));
  PLAYFS_AWAIT(const content::Head head, repeat([&] { return head_here(mount_, project_); }));
  if (!head.shows_latest()) co_return fail(why_latest_is_not_shown(head));
  co_return std::move(*result);
}

Async<std::optional<UpdateResult>> WorkTree::update_step(OperationPtr op, Updating& asked) {
  PLAYFS_AWAIT(const content::Head head, repeat([&] { return head_here(mount_, project_); }));
  if (!head.is_settled() && asked.awaited.insert(head.project.latest_revision).second) {
    // A newer head than the one awaited above, seen by a commit that we waited for.
    PLAYFS_AWAIT_CHECK(answer<content::Head>([this](CancelToken cancel, Callback<content::Head> done) {
      mount_.site().shown_head(project_, std::move(cancel), std::move(done));
    }));
    co_return std::nullopt;
  }
  const RevisionId latest = head.shown.value_or(RevisionId());
  {
    // If news of the same head is moving the tree right now, wait until its invalidations are queued.
    MutexLock moving(moving_);
  }
  const RevisionTreePtr base = stage_->base();
  RevisionTreePtr tree;
  if (!latest.empty() && !(base && base->revision.id == latest)) {
    Attempt<RevisionTreePtr> here = revision_here(mount_, op, latest);
    if (!here) {
      PLAYFS_AWAIT_CHECK(wait_for(std::move(here).error()));
      co_return std::nullopt;
    }
    tree = std::move(*here);
  }
  auto after_opening_publisher = [&] {
    asked.needs_publisher = true;
    return std::optional<UpdateResult>();
  };
  if (base && base->revision.id != latest && !is_known_to_hold(tree, base)) {
    // A revision shown in place of the latest one may be older than what was published from here, which would vanish.
    if (!head.shows_latest() && !is_on_branch()) co_return fail(why_latest_is_not_shown(head));
    if (!asked.bases.contains(base->revision.id)) {
      if (!publisher()) co_return after_opening_publisher();
      PLAYFS_AWAIT_CHECK(keep_lost_base(tree));
      asked.bases.insert(base->revision.id);
      co_return std::nullopt;
    }
  }
  // A record that is older than one that was read before does not name the latest revision. This comes after the base,
  // which may be missing for the same reason: one wait is enough for both.
  if (!asked.checked_head) {
    if (is_older_than_seen(head.project)) {
      if (!publisher()) co_return after_opening_publisher();
      if (Status newest = publisher()->check_head(head.project); !newest) {
        look_at_head_again_soon();
        co_return fail(std::move(newest).error());
      }
    }
    asked.checked_head = true;
  }
  if (tree && latest != base_id()) {
    PLAYFS_CO_TRY(const bool is_free, is_free_to_follow(tree));
    if (!is_free) {
      if (!publisher()) co_return after_opening_publisher();
      PLAYFS_AWAIT(const auto done, integrate(tree, true));
      // Otherwise a commit ended first, so the tree is based on more than that head: look at the current one.
      if (done.base != latest) co_return std::nullopt;
      co_return UpdateResult{done.base.text(), static_cast<std::uint32_t>(done.conflicts)};
    }
    PLAYFS_CO_CHECK(move_base(tree, id_of(base)));
  }
  PLAYFS_CO_CHECK(stage_->check_disk());  // an earlier, failed update may have come this far
  // The tree is as far as it can get.
  if (!head.shows_latest()) co_return fail(why_latest_is_not_shown(head));
  PLAYFS_CO_TRY(const auto conflicts, publish::unresolved(*stage_));
  co_return UpdateResult{base_id().text(), static_cast<std::uint32_t>(conflicts.size())};
}

Async<UpdateResult> WorkTree::merge(OperationPtr op, RevisionId revision) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  PLAYFS_AWAIT(const RevisionTreePtr tree, repeat([&] { return revision_of_project(mount_, op, revision, project_); }));
  PLAYFS_AWAIT(const auto done, integrate(tree, false));
  PLAYFS_AWAIT_CHECK(tell(op, "the work tree is now based on " + done.base.text()));
  co_return UpdateResult{done.base.text(), static_cast<std::uint32_t>(done.conflicts)};
}

Async<publish::Integrated> WorkTree::integrate(RevisionTreePtr revision, bool is_head) {
  PLAYFS_AWAIT(publish::Publisher* const publishing, opened_publisher());
  auto integrated = answer<publish::Integrated>(
      [this, publishing, revision, is_head](CancelToken cancel, Callback<publish::Integrated> done) {
        mount_.site().client().ask_now();
        if (is_head) publishing->update(revision, std::move(cancel), std::move(done));
        else publishing->merge(revision, std::move(cancel), std::move(done));
      });
  co_return co_await integrated;
}

Async<Cancelled> WorkTree::cancel(OperationPtr op) {
  PLAYFS_CO_CHECK(check_may_write(op->caller));
  publish::Publisher* const publishing = publisher();
  if (!publishing) co_return Cancelled();  // nothing was ever committed here
  auto cancelled = answer<Cancelled>([publishing](const CancelToken& cancel, Callback<Cancelled> done) {
    // The publisher notices between two steps, and freezing a large file is a long one: let the caller leave earlier.
    Once<Cancelled> first(std::move(done));
    auto interrupted = std::make_shared<CancelToken::Registration>(cancel.on_cancel([first] {
      first(fail(ErrorCode::interrupted,
                 "interrupted, but the cancellation continues: commits not yet sent are staged again"));
    }));
    publishing->cancel([first, interrupted](Result<Cancelled> cancelled) { first(std::move(cancelled)); });
  });
  co_return co_await cancelled;
}

Attempt<WorkStatus> WorkTree::work_status(const OperationPtr& op) {
  PLAYFS_ATTEMPT_CHECK(check_may_write(op->caller));
  WorkStatus status;
  status.project = project_.text();
  if (auto head = mount_.site().try_head(project_))
    status.head = head->shown.value_or(head->project.latest_revision).text();
  PLAYFS_ATTEMPT_CHECK(weigh(op));
  RevisionTreePtr base;
  PLAYFS_ATTEMPT(auto changes, staged(base));
  if (base) status.base = base->revision.id.text();
  for (const stage::Change& change : changes) ++(change.pending ? status.pending : status.staged);
  PLAYFS_ATTEMPT(auto conflicts, publish::unresolved(*stage_));
  status.conflicts = static_cast<std::uint32_t>(conflicts.size());
  if (publish::Publisher* publishing = publisher()) {
    publish::Progress progress = publishing->progress();
    status.phase = progress.phase;
    status.chunks_done = progress.so_far.chunks_done;
    status.chunks_total = progress.so_far.chunks_total;
    status.retry_after_s = progress.so_far.retry_after_s;
    status.seconds_left = progress.seconds_left.value_or(0);
    status.bytes_done = progress.bytes_done;
    status.bytes_total = progress.bytes_total;
    PLAYFS_ATTEMPT(auto queue, publishing->queue());
    status.queued = static_cast<std::uint32_t>(queue.empty() ? 0 : queue.size() - 1);
  }
  return status;
}

Status WorkTree::stage_state(const Caller& caller, std::string text) {
  PLAYFS_CHECK(check_may_write(caller));
  return stage_->stage_state(std::move(text));
}

Attempt<void> WorkTree::weigh(const OperationPtr& op) {
  if (op->noted("weighed")) return {};
  return missing(compare(op, "weighed", [self = shared_from_this()]() -> Status {
    PLAYFS_TRY([[maybe_unused]] auto changes, self->stage_->changes());
    PLAYFS_TRY([[maybe_unused]] auto conflicts, publish::unresolved(*self->stage_));
    return {};
  }));
}

Fetch WorkTree::compare(const OperationPtr& op, const std::string& fact, UniqueFunction<Status()> work) {
  return [self = shared_from_this(), op, fact, work = std::move(work)](const CancelToken& cancel,
                                                                       Callback<void> done) mutable {
    auto told = [op, fact, done = std::move(done)](Result<bool> compared) mutable {
      if (!compared) return done(fail(std::move(compared).error()));
      op->note(fact);
      done({});
    };
    if (!self->comparisons_.join(fact, cancel, std::move(told))) return;
    self->mount_.comparing().post([self, fact, work = std::move(work)]() mutable {
      Status compared = work();
      self->comparisons_.land(fact, compared ? Result<bool>(true) : Result<bool>(fail(std::move(compared).error())));
    });
  };
}

Attempt<void> WorkTree::describe(const OperationPtr& op, ProjectStatus& status) {
  PLAYFS_ATTEMPT_CHECK(weigh(op));
  PLAYFS_ATTEMPT_CHECK(describe(status));
  return {};
}

Result<std::vector<stage::Change>> WorkTree::staged(RevisionTreePtr& base) const {
  for (;;) {
    base = stage_->base();
    PLAYFS_TRY(auto changes, stage_->changes());
    if (stage_->base() == base) return changes;
  }
}

Status WorkTree::describe(ProjectStatus& status) {
  RevisionTreePtr base;
  PLAYFS_TRY(status.changes, staged(base));
  status.base = id_of(base);
  if (base) status.refused = base->tree.manifest().refused;
  status.branch = is_on_branch();
  status.state_staged = stage_->staged_state().has_value();
  status.lost_files = stage_->lost_files();
  PLAYFS_TRY(status.unpublished, stage_->unpublished());
  PLAYFS_TRY(status.conflicts, publish::unresolved(*stage_));
  status.merging = stage_->merge_parents();
  if (publish::Publisher* publishing = publisher()) {
    status.progress = publishing->progress();
    PLAYFS_TRY(status.queue, publishing->queue());
    status.left_out = publishing->left_out();
    status.last = publishing->last();
    if (auto lost = publishing->lost_base(); lost && (!stage_->is_clean() || status.base == lost->revision))
      status.lost = lost->revision;
  }
  return {};
}

std::string WorkTree::document(const CommitResult& result) const {
  publish::Publisher* publishing = publisher();
  auto plan = publishing && result.outcome == Outcome::planned ? publishing->last_plan() : std::nullopt;
  if (!plan || plan->id != result.tx) return {};  // replaced by another dry run
  JsonObject json = commit_members(result);
  json.set("schema_version", kSchemaVersion);
  json.set("plan", plan_json(*plan));
  return wire::to_pretty_text(json);
}

std::string WorkTree::document_path() const {
  return mount_.options().project ? ".playfs/project/commit" : "projects/" + project_.text() + "/commit";
}

std::optional<Result<CommitResult>> WorkTree::last_commit() const {
  publish::Publisher* publishing = publisher();
  if (!publishing) return std::nullopt;
  publish::Progress progress = publishing->progress();
  if (progress.phase != Phase::idle) return progress.so_far;
  return publishing->last();
}

Attempt<std::string> WorkTree::staged_word(const OperationPtr& op, const std::string& path) {
  PLAYFS_ATTEMPT_CHECK(weigh(op));
  PLAYFS_ATTEMPT(auto changes, stage_->changes());
  bool staged = false;
  for (const stage::Change& change : changes) {
    if (!is_at_or_below(change.path, path)) continue;
    if (change.pending) return std::string("pending");
    staged = true;
  }
  if (staged) return std::string("staged");
  PLAYFS_ATTEMPT(auto unpublished, stage_->unpublished());
  bool ignored = std::any_of(unpublished.begin(), unpublished.end(),
                             [&](const std::string& name) { return is_at_or_below(path, name); });
  return std::string(ignored && !path.empty() ? "ignored" : "published");
}

void WorkTree::head_changed(const RevisionTreePtr& head) {
  // Every participant repairs what others left behind.
  if (publish::Publisher* publishing = publisher()) publishing->reconcile();
  RevisionTreePtr base = stage_->base();
  if (head && (!base || head->revision.id == base->revision.id || is_known_to_hold(head, base)))
    return follow(head, id_of(base));
  if (base) look_for_base(head);
}

Result<bool> WorkTree::is_free_to_follow() {
  if (is_on_branch() || !stage_->is_clean()) return false;
  // A path in conflict where head's version is in place has nothing staged, yet still awaits a decision.
  PLAYFS_TRY(auto conflicts, publish::unresolved(*stage_));
  return conflicts.empty();
}

Result<bool> WorkTree::is_free_to_follow(const RevisionTreePtr& head) {
  PLAYFS_TRY(bool is_free, is_free_to_follow());
  if (!is_free || stage::rules_of(stage_->base()) == stage::rules_of(head)) return is_free;
  // If the ignore rules differ, only an update makes sure that nothing local-only gets published.
  PLAYFS_TRY(auto unpublished, stage_->unpublished());
  return unpublished.empty();
}

void WorkTree::follow(const RevisionTreePtr& head, const RevisionId& from) {
  if (!head || head->revision.id == from || !is_free_to_follow(head).value_or(false)) return;
  auto moved = move_base(head, from);
  // busy: something was staged just now, so the base stays; or a commit moved it, perhaps past this head.
  if (!moved && moved.error().code != ErrorCode::busy) {
    mount_.site().events().error("projects/" + project_.text() + "/work", moved.error().while_doing("follow head"));
  }
}

Status WorkTree::move_base(const RevisionTreePtr& base, const RevisionId& from) {
  MutexLock moving(moving_);
  PLAYFS_TRY(auto changed, stage_->move_base(base, from));
  tell_kernel(changed);
  return {};
}

void WorkTree::head_seen() {
  if (is_free_to_follow().value_or(false)) follow_head();
}

void WorkTree::opened_under(const RevisionTreePtr& head, bool is_current) {
  RevisionTreePtr base = stage_->base();
  if (is_current) head_changed(head);
  else if (!base || is_known_to_hold(head, base)) follow(head, id_of(base));
}

void WorkTree::follow_head() {
  auto head = mount_.site().try_head(project_);
  auto self = weak_from_this().lock();
  if (!self || !head || head->shown == base_id()) return;  // no self: the tree is being destroyed, publisher and all
  bring_shown(mount_, project_, [self](const RevisionTreePtr& tree) { self->head_changed(tree); });
}

void WorkTree::keep_base() {
  const RevisionId base = base_id();
  {
    MutexLock lock(mutex_);
    if (std::exchange(kept_, base) == base) return;
  }
  mount_.site().keep(directory_, base);
}

void WorkTree::tell_kernel(const std::vector<stage::Invalidation>& changed) {
  keep_base();  // the base may have moved
  std::set<NodeId> directories;
  auto known = [&](const stage::InodePtr& inode) -> std::optional<NodeId> {
    NodePtr node = inode ? known_node(inode) : nullptr;
    return node && mount_.nodes().find(node->id()) ? std::optional(node->id()) : std::nullopt;
  };
  for (const stage::Invalidation& one : changed) {
    // A file that loses a name changes its link count wherever it is known: under another name, or as an open file.
    if (auto before = known(one.before)) mount_.notifications().node_changed(*before, -1, project_.text());
    auto directory = known(one.directory);
    if (!directory) continue;
    mount_.notifications().entry_changed(*directory, one.name, project_.text());
    directories.insert(*directory);
  }
  for (NodeId directory : directories) mount_.notifications().node_changed(directory, 0, project_.text());
}

}  // namespace playfs::vfs
