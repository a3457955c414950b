// Content of staged files, and the attributes that depend on it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "stage/stage_state.h"

namespace playfs::stage {

namespace {

constexpr std::uint64_t kEverything = std::numeric_limits<std::uint64_t>::max();

timespec to_timespec(WallTime time) {
  constexpr std::int64_t second = 1'000'000'000;
  std::int64_t nanoseconds = time.nanoseconds % second;
  std::int64_t seconds = time.nanoseconds / second;
  if (nanoseconds < 0) {
    nanoseconds += second;
    --seconds;
  }
  return {static_cast<time_t>(seconds), static_cast<long>(nanoseconds)};
}

WallTime to_wall_time(const timespec& time) { return {std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec}; }

/// A spool file's mtime is the file's; its atime, not needed otherwise, holds the file's ctime.
Status store_times(int fd, const Metadata& metadata) {
  const timespec times[2] = {to_timespec(metadata.ctime), to_timespec(metadata.mtime)};
  if (futimens(fd, times) != 0) return fail(error_from_errno(errno, "set the times of a staged file"));
  return {};
}

Error still_below() { return Error{ErrorCode::busy, "the bytes still belong to the base", "copy them up first"}; }

}  // namespace

Status Stage::State::measure(Inode& inode) {
  if (!inode.spool || (inode.measured && !inode.times_ahead)) return {};
  auto opened = spool->descriptor(*inode.spool, false);
  if (!opened && inode.spool->is_lost) {
    // A lost file can be stat'ed, or nobody could remove it; reads go through us and fail with the reason.
    inode.size = inode.spool->noted.size;
    inode.blocks = 0;
    return {};
  }
  PLAYFS_TRY(SharedFd fd, std::move(opened));
  if (!fd) {
    inode.size = inode.blocks = 0;
    inode.measured = true;
    inode.times_ahead = false;
    return {};
  }
  if (inode.times_ahead) PLAYFS_CHECK(store_times(fd->get(), inode.metadata));
  struct stat found {};
  if (fstat(fd->get(), &found) != 0) return fail(error_from_errno(errno, "stat a staged file"));
  inode.size = static_cast<std::uint64_t>(found.st_size);
  inode.blocks = static_cast<std::uint64_t>(found.st_blocks);
  if (!inode.times_ahead) {
    WallTime mtime = to_wall_time(found.st_mtim);
    WallTime ctime = std::max(inode.metadata.ctime, to_wall_time(found.st_atim));
    // After a crash the last write may have set only the disk's own times; it was the last change then.
    if (mtime <= to_wall_time(found.st_ctim)) ctime = std::max(ctime, mtime);
    inode.metadata.mtime = mtime;
    inode.metadata.ctime = ctime;
  }
  inode.times_ahead = false;
  inode.measured = inode.writers == 0;
  return {};
}

Attributes Stage::State::attributes(const Inode& inode) const {
  Attributes shown;
  shown.ino = inode.ino;
  shown.kind = inode.kind;
  shown.device = inode.device;
  shown.permissions = inode.metadata.permissions;
  shown.uid = inode.metadata.uid;
  shown.gid = inode.metadata.gid;
  shown.atime = inode.metadata.atime;
  shown.mtime = inode.metadata.mtime;
  shown.ctime = inode.metadata.ctime;
  shown.links = static_cast<std::uint32_t>(inode.names.size());
  if (inode.is_directory()) {
    shown.links = is_removed(inode) ? 0 : 2 + inode.directory->subdirectories;
    shown.size = 4096;
  } else if (inode.is_below()) {
    shown.is_below = true;
  } else {
    shown.size = inode.kind == Kind::symlink ? inode.target.size() : inode.size;
    shown.blocks = inode.blocks;
  }
  return shown;
}

Result<Attributes> Stage::attributes(const InodePtr& inode) const {
  MutexLock lock(state_->mutex);
  if (inode->is_directory()) state_->load_directory(*inode);
  PLAYFS_CHECK(state_->measure(*inode));
  return state_->attributes(*inode);
}

Result<Attributes> Stage::set_attributes(const InodePtr& inode, const AttributeChange& change) {
  const bool frees_room = change.size && *change.size == 0;
  if (change.size) {
    Status resized = state_->resize(inode, *change.size);
    bool is_full = !resized && resized.error().code == ErrorCode::no_space;
    if (is_full && AtOnce::may_wait() && state_->make_room(frees_room)) resized = state_->resize(inode, *change.size);
    PLAYFS_CHECK(resized);
  }
  return state_->with_room(frees_room, [&] {
    state_->mutex.assert_held();
    return state_->set_attributes(inode, change);
  });
}

Result<Attributes> Stage::State::set_attributes(const InodePtr& inode, const AttributeChange& change) {
  if (inode->is_directory()) load_directory(*inode);
  PLAYFS_CHECK(measure(*inode));
  if (!change.permissions && !change.uid && !change.gid && !change.atime && !change.mtime) return attributes(*inode);
  PLAYFS_CHECK(inode->check_may_change());

  Metadata metadata = inode->metadata;
  if (change.permissions) metadata.permissions = *change.permissions & 07777;
  if (change.uid) metadata.uid = *change.uid;
  if (change.gid) metadata.gid = *change.gid;
  if (change.atime) metadata.atime = *change.atime;
  if (change.mtime) metadata.mtime = *change.mtime;
  metadata.ctime = clock.wall();
  if (!is_removed(*inode)) {
    Batch batch = rows->begin();
    secure(batch, *inode);
    InodeRow row = row_of(*inode);
    row.metadata = metadata;
    rows->put_inode(row);
    PLAYFS_CHECK(batch.commit());
  }
  inode->metadata = metadata;
  changed();
  if (change.mtime && inode->spool) {
    inode->times_ahead = true;
    PLAYFS_CHECK(measure(*inode));
  }
  return attributes(*inode);
}

Result<std::string> Stage::symlink_target(const InodePtr& inode) const {
  MutexLock lock(state_->mutex);
  if (inode->kind != Kind::symlink) return fail(ErrorCode::invalid_argument, "not a symbolic link");
  if (inode->is_below()) return fail(still_below());
  return inode->target;
}

std::optional<FileRef> Stage::lower_content(const InodePtr& inode) const {
  MutexLock lock(state_->mutex);
  if (!inode->is_below()) return std::nullopt;
  return inode->lower;
}

Result<SpoolFilePtr> Stage::State::begin_change(Inode& inode, std::uint64_t keep) {
  for (;;) {
    // In every round: while this thread waited or copied, a new base may have superseded the inode.
    PLAYFS_CHECK(inode.check_may_change());
    if (inode.is_below()) return fail(still_below());
    if (gate.is_closed() || inode.switching) {
      PLAYFS_CHECK(AtOnce::may_wait());
      gate.wait(mutex);
      continue;
    }
    if (!must_not_change(inode.spool)) break;
    PLAYFS_CHECK(unfreeze(inode, keep));
  }
  ++inode.writers;
  gate.enter();
  ++inode.generation;
  inode.measured = false;
  changed();
  return inode.spool;
}

void Stage::State::end_change(Inode& inode, bool done) {
  --inode.writers;
  ++inode.generation;
  inode.measured = false;
  changed();
  ++inode.spool->changes;
  if (done) {
    inode.metadata.mtime = inode.metadata.ctime = clock.wall();
    inode.times_ahead = true;
  }
  gate.leave();
}

Status Stage::State::unfreeze(Inode& inode, std::uint64_t keep) {
  PLAYFS_CHECK(measure(inode));
  SpoolFilePtr old = inode.spool;
  std::uint64_t size = std::min(keep, inode.size);
  if (size > 0) PLAYFS_CHECK(AtOnce::may_wait());
  SpoolFilePtr fresh = new_spool_file();
  fresh->is_partial = size > 0;
  const Metadata metadata = inode.metadata;
  inode.switching = true;
  mutex.unlock();
  auto copied = [&]() -> Status {
    if (size == 0) return {};
    PLAYFS_CHECK(spool->clone(*old, *fresh, size));
    // Synced before a row references these bytes: the old ones may have been safe.
    PLAYFS_TRY(SharedFd fd, spool->descriptor(*fresh, false));
    if (fd) PLAYFS_CHECK(store_times(fd->get(), metadata));
    return spool->complete(*fresh);
  }();
  mutex.lock();
  inode.switching = false;
  gate.wake();
  if (!copied) return copied;
  if (inode.spool != old || !must_not_change(old)) return {};  // settled or returned to the stage meanwhile
  if (inode.has_row) {
    Batch batch = rows->begin();
    end_replacement(batch, inode);  // the copy is on disk
    InodeRow row = row_of(inode);
    row.spool = name_spool_file(batch, *fresh);
    rows->put_inode(row);
    if (size > 0) put_size(batch, fresh, size, size);
    PLAYFS_CHECK(batch.commit());
  }
  fresh->keep = inode.has_row;
  if (!frozen.contains(old->number())) old->keep = false;
  inode.spool = fresh;
  inode.measured = inode.times_ahead = false;
  return {};
}

template <class Change>
Status Stage::State::change_bytes(const InodePtr& inode, std::uint64_t keep, const Change& change) {
  SpoolFilePtr file;
  std::uint64_t began = 0;
  bool cuts_synced_bytes = false;
  {
    MutexLock locked(mutex);
    if (inode->is_directory()) return fail(ErrorCode::is_a_directory, "a directory");
    if (inode->kind != Kind::file) return fail(ErrorCode::invalid_argument, "not a regular file");
    PLAYFS_TRY(file, begin_change(*inode, keep));
    auto noted = note_cut(*inode, keep);
    if (!noted) end_change(*inode, false);
    PLAYFS_TRY(cuts_synced_bytes, std::move(noted));
    began = inode->generation;
  }
  auto attempt = [&]() -> Result<std::uint64_t> {
    PLAYFS_TRY(SharedFd fd, spool->descriptor(*file, true));
    if (cuts_synced_bytes) PLAYFS_CHECK(rows->sync());
    return change(fd->get());
  };
  Result<std::uint64_t> length = attempt();
  if (!length && length.error().code == ErrorCode::no_space && AtOnce::may_wait()) {
    static_cast<void>(settle_replacements());
    if (remove_given_up()) length = attempt();
  }
  MutexLock locked(mutex);
  // It cannot have been truncated meanwhile: any concurrent change would have begun or ended.
  const bool was_alone = inode->writers == 1 && inode->generation == began && inode->spool == file;
  end_change(*inode, length.has_value());
  if (!length) return fail(length.error());
  if (was_alone) note_growth(*inode, *length);
  return {};
}

Result<std::size_t> Stage::write(const InodePtr& inode, std::uint64_t offset, std::string_view data) {
  std::size_t written = 0;
  PLAYFS_CHECK(state_->change_bytes(inode, kEverything, [&](int fd) -> Result<std::uint64_t> {
    while (written < data.size()) {
      ssize_t step = pwrite(fd, data.data() + written, data.size() - written, static_cast<off_t>(offset + written));
      if (step < 0 && errno == EINTR) continue;
      // Bytes written before the disk was full count, as with write(2).
      if (step < 0 && written > 0) break;
      if (step < 0) return fail(error_from_errno(errno, "write a staged file"));
      written += static_cast<std::size_t>(step);
    }
    return written == 0 ? 0 : offset + written;
  }));
  return written;
}

Status Stage::allocate(const InodePtr& inode, int mode, std::uint64_t offset, std::uint64_t length) {
  return state_->change_bytes(inode, kEverything, [&](int fd) -> Result<std::uint64_t> {
    while (fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
      if (errno != EINTR) return fail(error_from_errno(errno, "allocate room for a staged file"));
    }
    return (mode & FALLOC_FL_KEEP_SIZE) != 0 ? 0 : offset + length;
  });
}

Status Stage::State::resize(const InodePtr& inode, std::uint64_t size) {
  if (size == 0) {
    MutexLock locked(mutex);
    if (inode->is_directory()) return fail(ErrorCode::is_a_directory, "a directory");
    if (inode->kind != Kind::file) return fail(ErrorCode::invalid_argument, "not a regular file");
    while (gate.is_closed() || inode->switching) {
      PLAYFS_CHECK(AtOnce::may_wait());
      gate.wait(mutex);
    }
    PLAYFS_CHECK(inode->check_may_change());
    // Synced or required bytes are not truncated in place: a power loss could take them while a row still names them.
    const bool has_safe_bytes =
        inode->spool && (inode->spool->noted.synced > 0 || inode->spool->expected > 0 || inode->spool->is_lost);
    if (inode->is_below() || has_safe_bytes || must_not_change(inode->spool)) return empty_out(*inode);
  }
  // Whether replacing bytes are complete is judged by their size, so the replacement must end first.
  bool has_replaced = [&] {
    MutexLock locked(mutex);
    return inode->spool && replacements.contains(inode->spool->number());
  }();
  if (has_replaced) {
    PLAYFS_CHECK(AtOnce::may_wait());
    PLAYFS_CHECK(settle_replacements());
  }
  return change_bytes(inode, size, [&](int fd) -> Result<std::uint64_t> {
    if (ftruncate(fd, static_cast<off_t>(size)) != 0)
      return fail(error_from_errno(errno, "change the size of a staged file"));
    return size;
  });
}

Status Stage::State::empty_out(Inode& inode) {
  SpoolFilePtr fresh = new_spool_file();
  WallTime now = clock.wall();
  if (!is_removed(inode)) {
    Batch batch = rows->begin();
    secure(batch, inode);
    end_replacement(batch, inode);
    InodeRow row = row_of(inode);
    row.spool = name_spool_file(batch, *fresh);
    row.lower_path.clear();
    row.lower_revision.clear();
    row.metadata.mtime = row.metadata.ctime = now;
    rows->put_inode(row);
    PLAYFS_CHECK(batch.commit());
  }
  fresh->keep = inode.has_row;
  inode.lower = {};
  if (inode.spool && !frozen.contains(inode.spool->number())) inode.spool->keep = false;
  inode.spool = fresh;
  inode.metadata.mtime = inode.metadata.ctime = now;
  inode.measured = inode.times_ahead = false;
  ++inode.generation;
  changed();
  return {};
}

Status Stage::copy_up(const InodePtr& inode, const FileRef& from, std::uint64_t size, const Fill& fill) {
  State& state = *state_;
  SpoolFilePtr fresh;
  {
    MutexLock lock(state.mutex);
    if (inode->kind != Kind::file || !inode->lies_at(from)) return {};
    PLAYFS_CHECK(inode->check_may_change());
    fresh = state.new_spool_file();
    fresh->is_partial = size > 0;
  }
  SharedFd fd;
  if (size > 0) {
    PLAYFS_TRY(fd, state.spool->descriptor(*fresh, true));
  }
  if (fd) {
    PLAYFS_CHECK(fill(fd->get()));
    struct stat filled {};
    if (fstat(fd->get(), &filled) != 0) return fail(error_from_errno(errno, "stat a staged file"));
    if (static_cast<std::uint64_t>(filled.st_size) != size)
      return fail(ErrorCode::corrupt, "the published file has the wrong size");
  }
  // Synced before a row references these bytes, so that a power loss never costs what the base has.
  if (fd) PLAYFS_CHECK(state.spool->complete(*fresh));

  MutexLock lock(state.mutex);
  if (!inode->lies_at(from)) return {};
  PLAYFS_CHECK(inode->check_may_change());
  if (fd) PLAYFS_CHECK(store_times(fd->get(), inode->metadata));
  if (!state.is_removed(*inode)) {
    Batch batch = state.rows->begin();
    state.secure(batch, *inode);
    InodeRow row = state.row_of(*inode);
    row.spool = state.name_spool_file(batch, *fresh);
    row.lower_path.clear();
    row.lower_revision.clear();
    state.rows->put_inode(row);
    if (size > 0) state.put_size(batch, fresh, size, size);
    PLAYFS_CHECK(batch.commit());
  }
  fresh->keep = inode->has_row;
  inode->lower = {};
  inode->spool = fresh;
  inode->measured = inode->times_ahead = false;
  ++inode->generation;
  state.changed();
  return {};
}

Status Stage::copy_up_link(const InodePtr& inode, const FileRef& from, std::string target) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  if (inode->kind != Kind::symlink || !inode->lies_at(from)) return {};
  PLAYFS_CHECK(inode->check_may_change());
  if (!state.is_removed(*inode)) {
    Batch batch = state.rows->begin();
    state.secure(batch, *inode);
    InodeRow row = state.row_of(*inode);
    row.target = target;
    row.lower_path.clear();
    row.lower_revision.clear();
    state.rows->put_inode(row);
    PLAYFS_CHECK(batch.commit());
  }
  inode->lower = {};
  inode->target = std::move(target);
  ++inode->generation;
  state.changed();
  return {};
}

Result<std::string> Stage::read(const InodePtr& inode, std::uint64_t offset, std::size_t size) {
  SpoolFilePtr file;
  {
    MutexLock lock(state_->mutex);
    if (inode->is_directory()) return fail(ErrorCode::is_a_directory, "a directory");
    if (inode->kind != Kind::file) return fail(ErrorCode::invalid_argument, "not a regular file");
    if (inode->is_below()) return fail(still_below());
    file = inode->spool;
  }
  PLAYFS_TRY(SharedFd fd, state_->spool->descriptor(*file, false));
  if (!fd) return std::string();
  return read_at(fd->get(), offset, size);
}

Result<std::uint64_t> Stage::seek(const InodePtr& inode, std::uint64_t offset, int whence) {
  if (whence != SEEK_DATA && whence != SEEK_HOLE)
    return fail(ErrorCode::invalid_argument, "neither SEEK_DATA nor SEEK_HOLE");
  SpoolFilePtr file;
  {
    MutexLock lock(state_->mutex);
    if (inode->kind != Kind::file) return fail(ErrorCode::invalid_argument, "not a regular file");
    if (inode->is_below()) return fail(still_below());
    file = inode->spool;
  }
  PLAYFS_TRY(SharedFd fd, state_->spool->descriptor(*file, false));
  if (!fd) return fail(ErrorCode::no_data, "past the end of an empty file");
  off_t found = lseek(fd->get(), static_cast<off_t>(offset), whence);
  if (found < 0) return fail(error_from_errno(errno, "seek in a staged file"));
  return static_cast<std::uint64_t>(found);
}

Status Stage::sync(const InodePtr& inode) {
  State& state = *state_;
  SpoolFilePtr file;
  bool directory = false, has_replaced = false;
  {
    MutexLock lock(state.mutex);
    if (inode->sync_error) return fail(*inode->sync_error);
    directory = inode->is_directory();
    // Times that no caller has read since the last write stay those of the disk: they are as good, and setting exact
    // ones would make every sync wait for the disk's journal.
    file = inode->spool;
  }
  if (file) {
    auto synced = state.spool->sync(*file);
    MutexLock lock(state.mutex);
    if (!synced && !file->is_lost) inode->sync_error = synced.error();
    PLAYFS_CHECK(synced);
    has_replaced = state.replacements.contains(file->number());
    // Only if the log is to be synced anyway: the note must not cause a sync, now or next time.
    if (!state.rows->is_synced()) state.note_synced(*inode);
  }
  // A power loss must leave what was renamed in the directory, or these bytes.
  if (directory || has_replaced) PLAYFS_CHECK(state.settle_replacements());
  return state.rows->sync();
}

Status Stage::check_disk() const { return state_->rows->check_disk(); }

}  // namespace playfs::stage
