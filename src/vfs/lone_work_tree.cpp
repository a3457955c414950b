#include "vfs/lone_work_tree.h"

#include <unistd.h>

#include <filesystem>

#include "stage/store/identity.h"
#include "vfs/async.h"
#include "vfs/attempt_driver.h"
#include "vfs/control/control_text.h"
#include "vfs/directories/project.h"
#include "vfs/mount.h"
#include "vfs/published/head_fetches.h"
#include "vfs/published/history.h"
#include "vfs/work/work_tree.h"
#include "vfs/work/work_trees.h"

namespace playfs::vfs {
namespace {

Async<void> find_branches(Mount& mount, OperationPtr op, ProjectId project) {
  auto asked = answer<content::Head>([&mount, project](CancelToken cancel, Callback<content::Head> done) {
    mount.site().refresh_head(project, std::move(cancel), std::move(done));
  });
  PLAYFS_CO_TRY(const content::Head head, co_await asked);
  const RevisionId latest = head.shown.value_or(head.project.latest_revision);
  PLAYFS_AWAIT(const auto names, repeat([&] { return branches_of(mount, op, project, latest); }));
  for (const std::string& name : names) {
    // One that cannot be fetched is left out, as under branches/.
    auto fetched = repeat([&] { return revision_here(mount, op, RevisionId(name)); });
    static_cast<void>(co_await fetched);
  }
  co_return Status();
}

FileSystemOptions on_its_base(FileSystemOptions options) {
  options.follows_head = false;
  return options;
}

}  // namespace

LoneWorkTree::LoneWorkTree(content::Site& site, const Clock& clock, Executor& executor, Random& random,
                           FileSystemOptions options)
    : mount_(std::make_unique<Mount>(site, clock, executor, random, on_its_base(std::move(options)))) {}

LoneWorkTree::~LoneWorkTree() {
  tree_.reset();  // the mount waits for its end
}

stage::Stage& LoneWorkTree::stage() { return tree_->stage(); }

std::uint64_t LoneWorkTree::stage_identity() const {
  std::error_code problem;
  // Of its one project.
  for (std::filesystem::directory_iterator entry(mount_->options().state_directory, problem), end;
       !problem && entry != end; entry.increment(problem))
    if (const std::uint64_t identity = stage::identity_of_stage(entry->path().string())) return identity;
  return 0;
}

Caller LoneWorkTree::user(CancelToken cancel) { return {geteuid(), getegid(), getpid(), std::move(cancel)}; }

template <class T, class F>
void LoneWorkTree::run(Counted counted, F attempt, Reply<T> done, CancelToken cancel) {
  mount_->metrics().count(counted);
  auto op = std::make_shared<Operation>(user(std::move(cancel)));
  drive<T>(
      *mount_, counted, std::move(op), std::move(attempt), [] { return std::string("work"); }, std::move(done));
}

void LoneWorkTree::open(Reply<void> done) {
  const ProjectId& project = *mount_->options().project;
  mount_->works().try_open(project, [this, project, done = std::move(done)](Status opened) mutable {
    if (opened) tree_ = mount_->works().find(project);
    done(std::move(opened));
  });
}

void LoneWorkTree::commit(CommitRequest request, CancelToken cancel, Reply<CommitResult> done) {
  run<CommitResult>(Counted::commit, as_attempt([tree = tree_, request = std::move(request)](const OperationPtr& op) {
                      return tree->commit(op, request);
                    }),
                    std::move(done), std::move(cancel));
}

void LoneWorkTree::discard(DiscardRequest request, Reply<DiscardResult> done) {
  run<DiscardResult>(Counted::discard, as_attempt([tree = tree_, request = std::move(request)](const OperationPtr& op) {
                       return tree->discard(op, request.paths, request.dry_run, request.kept_in);
                     }),
                     std::move(done));
}

void LoneWorkTree::checkpoint(CheckpointRequest request, Reply<CheckpointResult> done) {
  run<CheckpointResult>(Counted::checkpoint,
                        as_attempt([tree = tree_, request = std::move(request)](const OperationPtr& op) {
                          return tree->checkpoint(op, request);
                        }),
                        std::move(done));
}

void LoneWorkTree::restore(RestoreRequest request, Reply<RestoreResult> done) {
  run<RestoreResult>(Counted::restore, as_attempt([tree = tree_, request = std::move(request)](const OperationPtr& op) {
                       return tree->restore(op, request);
                     }),
                     std::move(done));
}

void LoneWorkTree::update(const RevisionId& revision, Reply<UpdateResult> done) {
  run<UpdateResult>(Counted::update, as_attempt([tree = tree_, revision](const OperationPtr& op) {
                      return revision.empty() ? tree->update(op) : tree->merge(op, revision);
                    }),
                    std::move(done));
}

void LoneWorkTree::cancel(Reply<Cancelled> done) {
  run<Cancelled>(Counted::cancel, as_attempt([tree = tree_](const OperationPtr& op) { return tree->cancel(op); }),
                 std::move(done));
}

void LoneWorkTree::work_status(Reply<WorkStatus> done) {
  run<WorkStatus>(
      Counted::work_status, [tree = tree_](const OperationPtr& op) { return tree->work_status(op); }, std::move(done));
}

void LoneWorkTree::status(Reply<ProjectStatus> done) {
  run<ProjectStatus>(
      Counted::work_status,
      [mount = mount_.get(), project = tree_->project()](const OperationPtr& op) {
        return status_here(*mount, op, project);
      },
      std::move(done));
}

void LoneWorkTree::look_for_branches(Reply<void> done) {
  run<void>(Counted::list, as_attempt([mount = mount_.get(), project = tree_->project()](const OperationPtr& op) {
              return find_branches(*mount, op, project);
            }),
            std::move(done));
}

std::string LoneWorkTree::document(const CommitResult& result) const { return tree_->document(result); }

}  // namespace playfs::vfs
