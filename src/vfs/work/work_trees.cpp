#include "vfs/work/work_trees.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/text.h"
#include "model/content_hash.h"
#include "model/path.h"
#include "vfs/mount.h"

namespace playfs::vfs {

namespace {
/// Directory name prefix for projects whose id is too long to be a name.
constexpr const char* kOfHash = "sha256-";
}  // namespace

/// The opening of one work tree: find out its base, fetch that base's manifest, then open the stage on disk. The ticket
/// keeps the mount alive throughout.
class WorkTrees::Opening : public std::enable_shared_from_this<WorkTrees::Opening> {
 public:
  Opening(WorkTrees& owner, ProjectId project, Gate::Ticket ticket)
      : owner_(owner),
        project_(std::move(project)),
        directory_(owner.directory_of(project_)),
        ticket_(std::move(ticket)) {}

  void begin() {
    on_executor([](Opening& self) {
      auto found = stage::Stage::look(self.directory_);
      if (!found) return self.end(fail(std::move(found).error()));
      self.found_ = std::move(*found);
      if (const auto& recorded = self.found_->base()) return self.fetch_base(*recorded);
      self.ask_head();
    });
  }

 private:
  void ask_head() {
    if (const auto& revision = owner_.mount_.options().revision) return fetch_base(*revision);
    if (auto head = owner_.mount_.site().try_head(project_); head && head->shown) return fetch_base(*head->shown);
    owner_.mount_.site().shown_head(project_, closing(), [self = shared_from_this()](Result<content::Head> head) {
      self->on_executor([head = std::move(head)](Opening& opening) mutable {
        if (!head) return opening.end(fail(std::move(head).error()));
        opening.fetch_base(*head->shown);
      });
    });
  }

  void fetch_base(const RevisionId& base) {
    if (base.empty()) return open(nullptr);
    owner_.mount_.site().revision(base, closing(), [self = shared_from_this(), base](Result<RevisionTreePtr> tree) {
      self->on_executor([base, tree = std::move(tree)](Opening& opening) mutable {
        if (tree) return opening.open(std::move(*tree));
        const Error error = std::move(tree).error();
        // The project exists; a missing base must not read as "no such file".
        if (error.code == ErrorCode::not_found)
          return opening.end(
              fail(ErrorCode::protocol,
                   "revision " + escape_for_terminal(base.text()) +
                       ", the work tree's base, is gone from the service and from the local cache",
                   "the staged changes are intact in " + opening.directory_ +
                       ": have the service restored, or unmount, move that directory away and start over"));
        opening.end(fail(error.while_doing("read the work tree's base")));
      });
    });
  }

  void open(RevisionTreePtr base) {
    auto tree = WorkTree::open(owner_.mount_, project_, directory_, std::move(base), std::move(found_));
    found_.reset();
    if (!tree) return end(fail(std::move(tree).error()));
    tree_ = std::move(*tree);
    // Show from the start what was published since the tree was last open, if it is available here.
    auto head = owner_.mount_.site().try_head(project_);
    auto shown =
        head && head->shown && !head->shown->empty() ? owner_.mount_.site().try_revision(*head->shown) : nullptr;
    if (shown) tree_->opened_under(shown, owner_.mount_.site().is_current(project_));
    end(tree_);
  }

  void end(Result<std::shared_ptr<WorkTree>> result) {
    found_.reset();  // whoever waits may try again at once
    owner_.opened(project_, std::move(result));
  }

  template <class Step>
  void on_executor(Step step) {
    owner_.mount_.disk().post([self = shared_from_this(), step = std::move(step)]() mutable { step(*self); });
  }

  CancelToken closing() const { return owner_.mount_.gate()->closing(); }

  WorkTrees& owner_;
  const ProjectId project_;
  const std::string directory_;
  Gate::Ticket ticket_;  // held until the tree is released: after that nothing of the mount may be touched
  std::optional<stage::Stage::Found> found_;
  std::shared_ptr<WorkTree> tree_;
};

bool shows_head_instead(const Error& refusal) {
  return refusal.code == ErrorCode::busy || refusal.code == ErrorCode::read_only ||
         refusal.code == ErrorCode::not_supported;
}

WorkTrees::~WorkTrees() = default;

std::shared_ptr<WorkTree> WorkTrees::find(const ProjectId& project) const {
  MutexLock lock(mutex_);
  auto found = trees_.find(project);
  return found == trees_.end() ? nullptr : found->second;
}

std::string WorkTrees::directory_of(const ProjectId& project) const {
  std::string name = percent_encode(project.text());
  // "%2E": an id of only dots must not lead out of the directory.
  if (name == "." || name == "..") name = "%2E" + name.substr(1);
  if (name.size() > kMaxComponentLength - 16) name = kOfHash + ContentHash::of(project.text()).hex();
  return mount_.options().state_directory + "/" + name;
}

bool WorkTrees::exist(const ProjectId& project) const {
  struct stat status {};
  return find(project) != nullptr || ::stat(directory_of(project).c_str(), &status) == 0;
}

Attempt<std::shared_ptr<WorkTree>> WorkTrees::here(const OperationPtr& op, const ProjectId& project) {
  if (mount_.options().read_only) return fail(ErrorCode::read_only, "the mount is read-only");
  if (auto tree = find(project)) return tree;
  const std::string fact = "refused/" + project.text();
  if (auto why = op->noted(fact) ? refusal_of(project) : std::nullopt) return fail(*std::move(why));
  return missing([this, op, project, fact](const CancelToken& cancel, Callback<void> done) {
    open(project, cancel, [this, op, project, fact, done = std::move(done)](Status status) mutable {
      if (!status && status.error().code != ErrorCode::interrupted && refusal_of(project)) {
        op->note(fact);
        status = {};
      }
      done(std::move(status));
    });
  });
}

std::optional<Error> WorkTrees::refusal_of(const ProjectId& project) const {
  MutexLock lock(mutex_);
  auto found = refused_.find(project);
  return found == refused_.end() ? std::nullopt : std::optional(found->second);
}

void WorkTrees::try_open(const ProjectId& project, Callback<void> done) {
  open(project, mount_.gate()->closing(), std::move(done));
}

void WorkTrees::head_seen(const ProjectId& project) {
  if (auto tree = find(project)) tree->head_seen();
}

void WorkTrees::head_changed(const ProjectId& project, const RevisionTreePtr& head) {
  if (auto tree = find(project)) tree->head_changed(head);
}

std::optional<ProjectId> WorkTrees::project_in(const std::string& directory) const {
  auto name = std::string_view(directory).substr(directory.rfind('/') + 1);
  if (name.starts_with(kOfHash)) return std::nullopt;
  auto text = percent_decode(name);
  if (!text || text->empty() || directory_of(ProjectId(*text)) != directory) return std::nullopt;
  return ProjectId(std::move(*text));
}

void WorkTrees::resume() {
  if (mount_.options().read_only) return;
  mount_.soon([this] { open_unfinished(); });
}

void WorkTrees::open_unfinished() {
  std::error_code problem;
  const CancelToken closing = mount_.gate()->closing();
  std::filesystem::directory_iterator entry(mount_.options().state_directory, problem);
  for (; !problem && entry != std::filesystem::directory_iterator() && !closing.cancelled(); entry.increment(problem)) {
    auto project = project_in(entry->path().string());
    if (!project || find(*project)) continue;
    if (mount_.options().project && *mount_.options().project != *project) continue;
    auto tell = [this, project = *project](const Error& error) {
      // busy: another process has the tree open and publishes it.
      if (error.code != ErrorCode::busy && error.code != ErrorCode::interrupted)
        mount_.site().events().error("projects/" + project.text(), error.while_doing("resume the publication"));
    };
    auto unfinished = WorkTree::has_unfinished(entry->path().string());
    if (!unfinished) tell(unfinished.error());
    else if (*unfinished)
      open(*project, closing, [tell](Status opened) {
        if (!opened) tell(opened.error());
      });
  }
}

void WorkTrees::open(const ProjectId& project, const CancelToken& cancel, Callback<void> done) {
  Once<void> first(std::move(done));
  auto on_cancel = cancel.on_cancel([first] { first(fail(ErrorCode::interrupted, "interrupted")); });
  bool begin = false;
  bool here = false;
  {
    MutexLock lock(mutex_);
    here = trees_.contains(project);
    if (!here) {
      auto [opening, is_new] = opening_.try_emplace(project);
      opening->second.push_back({first, std::move(on_cancel)});
      begin = is_new;
    }
  }
  if (here) return first({});
  if (!begin) return;
  if (auto ticket = mount_.gate()->enter()) std::make_shared<Opening>(*this, project, std::move(*ticket))->begin();
  else opened(project, fail(ErrorCode::interrupted, "the mount is shutting down"));
}

void WorkTrees::opened(const ProjectId& project, Result<std::shared_ptr<WorkTree>> tree) {
  std::vector<Waiter> waiters;
  {
    MutexLock lock(mutex_);
    if (tree) trees_.insert_or_assign(project, *tree);
    refused_.erase(project);
    if (!tree && tree.error().code == ErrorCode::busy)
      refused_.emplace(project, Error{ErrorCode::busy, "another process has the work tree of this project open",
                                      "unmount it there, or edit there; work/ shows head here"});
    else if (!tree && (tree.error().code == ErrorCode::protocol || tree.error().code == ErrorCode::not_supported))
      refused_.emplace(project, tree.error());
    auto found = opening_.find(project);
    waiters = std::move(found->second);
    opening_.erase(found);
  }
  // The errno, EACCES, does not say which file of ours belongs to another user.
  if (!tree && tree.error().code == ErrorCode::permission_denied)
    mount_.site().events().refusal("projects/" + project.text() + "/work", tree.error());
  for (Waiter& waiter : waiters) waiter.done(tree ? Status() : Status(fail(tree.error())));
}

}  // namespace playfs::vfs
