// Beginning and ending a stage: opens its directory under its lock, and loads it.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/log.h"
#include "stage/loader.h"
#include "stage/store/begun.h"

namespace playfs::stage {

namespace {

Error in_use(const std::string& directory, const std::string& holder) {
  return Error{ErrorCode::busy,
               "the work tree's staged changes in " + directory + " are in use" +
                   (holder.empty() ? "" : " by process " + holder),
               "unmount it there first, or use another state directory for this mount"};
}

Result<HeldLock> take_lock(const std::string& directory) {
  std::string path = directory + "/lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // The directory existed a moment ago: another process has just removed this stage.
  if (!fd && errno == ENOENT) return fail(in_use(directory, ""));
  if (!fd) return fail(error_from_errno(errno, "open " + path));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "lock " + path));
    return fail(in_use(directory, read_at(fd.get(), 0, 20).value_or("")));
  }
  // A process that removes a stage holds its lock: this lock file may be unlinked by now.
  struct stat held {
  }, named{};
  if (fstat(fd.get(), &held) != 0 || stat(path.c_str(), &named) != 0 || held.st_ino != named.st_ino)
    return fail(in_use(directory, ""));
  if (ftruncate(fd.get(), 0) == 0) static_cast<void>(write_all_at(fd.get(), std::to_string(getpid()), 0));
  return HeldLock(std::move(fd));
}

/// On a full disk, what a crash left in the log is applied with the space reserved for that.
Result<std::unique_ptr<Rows>> open_rows(const std::string& directory) {
  auto rows = Rows::open(directory);
  if (!rows && rows.error().code == ErrorCode::corrupt) {
    Error error = rows.error().while_doing("the staged changes in " + directory);
    if (error.hint.empty()) error.hint = "playfs doctor --repair";
    return fail(std::move(error));
  }
  if (rows || rows.error().code != ErrorCode::no_space) return rows;
  if (unlink((directory + Reserve::kFile).c_str()) != 0) return rows;
  return Rows::open(directory);
}

}  // namespace

Stage::Stage(std::unique_ptr<State> state) : state_(std::move(state)) {}
Stage::~Stage() = default;
const std::optional<Error>& Stage::found_lost() const { return state_->found_lost; }

struct Stage::Found::Parts {
  HeldLock lock;
  std::unique_ptr<Rows> rows;  // ends before the lock
};

Stage::Found::Found() = default;
Stage::Found::Found(Found&& other) noexcept = default;
Stage::Found& Stage::Found::operator=(Found&& other) noexcept = default;
Stage::Found::~Found() = default;

Result<Stage::Found> Stage::look(const std::string& directory) {
  if (auto there = Rows::check_database(directory); !there)
    return fail(there.error().while_doing("the staged changes in " + directory));
  Found found;
  if (access((directory + Rows::kDatabase).c_str(), F_OK) != 0) return found;
  found.parts_ = std::make_unique<Found::Parts>();
  PLAYFS_TRY(found.parts_->lock, take_lock(directory));
  PLAYFS_TRY(found.parts_->rows, open_rows(directory));
  PLAYFS_TRY(auto recorded, found.parts_->rows->stored().value("base"));
  if (recorded) found.base_ = RevisionId(std::move(*recorded));
  return found;
}

Result<std::unique_ptr<Stage>> Stage::open(StageOptions options, const Clock& clock, RevisionTreePtr base,
                                           std::optional<Found> found) {
  auto state = std::make_unique<State>(std::move(options), clock);
  const std::string& directory = state->options.directory;
  PLAYFS_CHECK(make_private_directory(directory));
  if (found && found->parts_) {
    state->lock = std::move(found->parts_->lock);
    state->rows = std::move(found->parts_->rows);
  } else {
    PLAYFS_TRY(state->lock, take_lock(directory));
    PLAYFS_TRY(state->rows, open_rows(directory));
  }
  PLAYFS_TRY(state->spool, Spool::open(directory + "/spool", state->options.descriptors));
  state->snapshots.abandon();
  state->begin_housekeeping();
  {
    Loader loader(*state);
    MutexLock lock(state->mutex);
    auto loaded = [&]() -> Status {
      state->mutex.assert_held();
      PLAYFS_TRY(auto recorded, state->rows->stored().value("base"));
      if (!recorded) PLAYFS_CHECK(loader.create(base));
      return loader.load(std::move(base));
    }();
    if (!loaded) return fail(loaded.error().while_doing("open the staged changes in " + directory));
    PLAYFS_CHECK(state->rows->start());
    // Without the mark, a later loss of the database may go unnoticed.
    if (auto marked = mark_begun(directory, state->rows->stored()); !marked)
      log_warning("the staged changes in " + directory + " could not be marked as started: " + marked.error().message);
    PLAYFS_CHECK(loader.record_returned());
    // What is staged while it is shown was seen, and stays visible if it is hidden again.
    if (!state->instructions.hides_any()) state->unconceal();
    if (!state->reserve.keep(*state->rows)) state->reserve.give_up();
    state->is_open = true;
  }
  return std::unique_ptr<Stage>(new Stage(std::move(state)));
}

Status Stage::remove(std::unique_ptr<Stage> stage) {
  const std::string directory = stage->state_->options.directory, gone = directory + ".gone";
  const HeldLock lock = std::move(stage->state_->lock);  // until nothing is left that another process could open
  stage.reset();
  std::error_code error;
  std::filesystem::remove_all(gone, error);  // left by a crash
  if (std::rename(directory.c_str(), gone.c_str()) != 0)
    return fail(error_from_errno(errno, "remove the staged changes in " + directory));
  std::filesystem::remove_all(gone, error);
  if (error) return fail(error_from_errno(error.value(), "remove " + gone));
  return {};
}

Result<std::optional<RevisionId>> Stage::recorded_base(const std::string& directory) {
  PLAYFS_TRY(const Found found, look(directory));
  return found.base();
}

Stage::State::State(StageOptions given, const Clock& clock)
    : options(std::move(given)),
      clock(clock),
      boot(options.boot ? *options.boot : boot_of_system()),
      snapshots(options.directory),
      reserve(options.directory),
      instructions(options.instructions) {}

Stage::State::~State() {
  {
    // Destroying the tree from its root would recurse to its full depth; so every directory is emptied first.
    MutexLock locked(mutex);
    std::vector<InodePtr> all;
    if (root) all.push_back(root);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]->times_ahead) {
        if (auto stored = measure(*all[i]); !stored)
          log_warning("cannot save the times of a staged file: " + stored.error().message);
      }
      if (!all[i]->directory) continue;
      for (auto& [name, child] : all[i]->directory->children) all.push_back(child.inode);
    }
    if (is_open) {
      if (auto noted = note_sizes(all); !noted)
        log_warning("cannot save the sizes of staged files: " + noted.error().message);
    }
    for (auto& inode : all) {
      inode->names.clear();
      if (!inode->directory) continue;
      inode->directory->by_cookie.clear();
      inode->directory->children.clear();
    }
  }
  end_housekeeping();
}

}  // namespace playfs::stage
