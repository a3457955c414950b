// Operations on names: lookup, listing, creating, linking, removing and renaming.
#include <algorithm>

#include "stage/stage_state.h"

namespace playfs::stage {

InodePtr Stage::root() const {
  MutexLock lock(state_->mutex);
  return state_->root;
}

Result<InodePtr> Stage::lookup(const InodePtr& directory, std::string_view name) {
  MutexLock lock(state_->mutex);
  PLAYFS_TRY(InodePtr inode, state_->existing(*directory, name));
  if (state_->is_hidden(*directory, name, *inode)) return fail(ErrorCode::not_found, "no such file or directory");
  return inode;
}

InodePtr Stage::find(std::string_view path) {
  MutexLock lock(state_->mutex);
  return state_->find(path).inode;
}

Result<std::vector<DirectoryEntry>> Stage::list(const InodePtr& directory, std::uint64_t after_cookie,
                                                std::size_t most) {
  MutexLock lock(state_->mutex);
  if (!directory->is_directory()) return fail(ErrorCode::not_a_directory, "not a directory");
  state_->load_directory(*directory);
  const Directory& in = *directory->directory;
  std::vector<DirectoryEntry> entries;
  for (auto at = in.by_cookie.upper_bound(after_cookie); at != in.by_cookie.end() && entries.size() < most; ++at) {
    const InodePtr& inode = in.children.find(*at->second)->second.inode;
    if (!state_->is_hidden(*directory, *at->second, *inode)) entries.push_back({*at->second, inode, at->first});
  }
  return entries;
}

std::optional<std::string> Stage::path_of(const InodePtr& inode) const {
  MutexLock lock(state_->mutex);
  return state_->path(*inode);
}

InodePtr Stage::find_recorded(std::uint64_t ino) {
  MutexLock lock(state_->mutex);
  auto found = state_->by_ino.find(ino);
  // Inodes with a row are always loaded.
  auto path = found == state_->by_ino.end() ? std::nullopt : state_->path(*found->second);
  return path ? state_->find(*path).inode : nullptr;
}

std::vector<std::string> Stage::paths_of(const InodePtr& inode) const {
  MutexLock lock(state_->mutex);
  std::vector<std::string> paths;
  for (const Name& name : inode->names) {
    if (auto directory = state_->path(*name.directory)) paths.push_back(join_path(*directory, name.text));
  }
  return paths;
}

Result<InodePtr> Stage::State::make(const InodePtr& directory, std::string_view name, Kind kind,
                                    const Creation& creation, std::string_view target, dev_t device) {
  PLAYFS_CHECK(check_directory(*directory, name));
  PLAYFS_CHECK(directory->check_may_change());
  if (is_removed(*directory)) return fail(ErrorCode::not_found, "the directory was removed");
  PLAYFS_CHECK(check_not_hidden(*directory, name));
  if (find(*directory, name)) return fail(ErrorCode::already_exists, "the name already exists");

  Batch batch = rows->begin();
  std::uint64_t ino = numbers.take_ino(batch);
  auto inode = std::make_shared<Inode>(ino, kind);
  WallTime now = clock.wall();
  inode->metadata = {creation.permissions & 07777, creation.uid, creation.gid, now, now, now};
  if ((directory->metadata.permissions & 02000) != 0) {
    inode->metadata.gid = directory->metadata.gid;
    if (kind == Kind::directory) inode->metadata.permissions |= 02000;
  }
  inode->target = target;
  inode->device = device;
  if (kind == Kind::directory) {
    inode->directory = std::make_unique<Directory>();
    inode->directory->opaque = inode->directory->loaded = true;
  }
  // The row names the spool file already, so that the first write needs no row.
  if (kind == Kind::file) {
    inode->spool = new_spool_file();
    name_spool_file(batch, *inode->spool);
  }
  touch(batch, *directory, now);
  rows->put_inode(row_of(*inode));
  rows->put_entry(directory->ino, name, ino);
  PLAYFS_CHECK(batch.commit());
  inode->has_row = true;
  if (inode->spool) inode->spool->keep = true;
  attach(*directory, name, inode);
  changed();
  return inode;
}

namespace {
/// Creates it, making space on a full disk if possible.
Result<InodePtr> make_in(Stage::State& state, const InodePtr& directory, std::string_view name, Kind kind,
                         const Creation& creation, std::string_view target = {}, dev_t device = 0) {
  return state.with_room(false, [&] {
    state.mutex.assert_held();
    return state.make(directory, name, kind, creation, target, device);
  });
}
}  // namespace

Result<InodePtr> Stage::make_file(const InodePtr& directory, std::string_view name, const Creation& creation) {
  return make_in(*state_, directory, name, Kind::file, creation);
}

Result<InodePtr> Stage::make_directory(const InodePtr& directory, std::string_view name, const Creation& creation) {
  return make_in(*state_, directory, name, Kind::directory, creation);
}

Result<InodePtr> Stage::make_symlink(const InodePtr& directory, std::string_view name, std::string_view target,
                                     const Creation& creation) {
  if (target.empty()) return fail(ErrorCode::not_found, "the symbolic link's target is empty");
  if (target.size() > kMaxPathLength) return fail(ErrorCode::name_too_long, "the target is longer than 4095 bytes");
  return make_in(*state_, directory, name, Kind::symlink, creation, target);
}

Result<InodePtr> Stage::make_special(const InodePtr& directory, std::string_view name, Kind kind,
                                     const Creation& creation, dev_t device) {
  if (kind == Kind::file || kind == Kind::directory || kind == Kind::symlink)
    return fail(ErrorCode::invalid_argument, "neither a fifo nor a socket nor a device");
  return make_in(*state_, directory, name, kind, creation, {}, device);
}

Result<InodePtr> Stage::State::make_unnamed(FileMode mode) {
  Batch batch = rows->begin();
  std::uint64_t ino = numbers.take_ino(batch);
  PLAYFS_CHECK(batch.commit());
  auto inode = std::make_shared<Inode>(ino, mode == FileMode::symlink ? Kind::symlink : Kind::file);
  WallTime now = clock.wall();
  const Metadata& owner = root->metadata;
  unsigned permissions = mode == FileMode::regular ? 0666 : 0777;
  if (mode != FileMode::symlink) permissions &= ~options.umask;
  inode->metadata = {permissions, owner.uid, owner.gid, now, now, now};
  if (mode != FileMode::symlink) inode->spool = new_spool_file();
  return inode;
}

Result<InodePtr> Stage::prepare(const Bytes& content, FileMode mode) {
  State& state = *state_;
  InodePtr inode;
  std::string target;
  if (mode == FileMode::symlink) {
    PLAYFS_TRY(target, content.all());
  }
  {
    MutexLock lock(state.mutex);
    PLAYFS_TRY(inode, state.make_unnamed(mode));
    if (inode->spool) inode->spool->is_partial = content.size() > 0;
  }
  inode->target = std::move(target);
  // No other thread knows the inode: neither lock nor gate is needed.
  if (!inode->spool || content.size() == 0) return inode;
  PLAYFS_TRY(SharedFd fd, state.spool->descriptor(*inode->spool, true));
  PLAYFS_CHECK(each_piece(
      content, [&](std::uint64_t at, std::string_view piece) { return write_all_at(fd->get(), piece, at); }));
  PLAYFS_CHECK(state.spool->complete(*inode->spool));
  return inode;
}

Status Stage::link(const InodePtr& inode, const InodePtr& directory, std::string_view name) {
  return state_->with_room(false, [&] {
    state_->mutex.assert_held();
    return state_->link(inode, directory, name);
  });
}

Status Stage::State::link(const InodePtr& inode, const InodePtr& directory, std::string_view name) {
  PLAYFS_CHECK(check_directory(*directory, name));
  if (inode->is_directory()) return fail(ErrorCode::not_permitted, "a directory cannot be hard-linked");
  PLAYFS_CHECK(directory->check_may_change());
  PLAYFS_CHECK(inode->check_may_change());
  if (is_removed(*directory)) return fail(ErrorCode::not_found, "the directory was removed");
  if (is_removed(*inode)) return fail(ErrorCode::not_found, "the file was removed");
  PLAYFS_CHECK(check_not_hidden(*directory, name));
  if (find(*directory, name)) return fail(ErrorCode::already_exists, "the name already exists");
  WallTime now = clock.wall();
  Batch batch = rows->begin();
  touch(batch, *directory, now);
  secure(batch, *inode);
  InodeRow row = row_of(*inode);
  row.metadata.ctime = now;
  rows->put_inode(row);
  rows->put_entry(directory->ino, name, inode->ino);
  PLAYFS_CHECK(batch.commit());
  inode->metadata.ctime = now;
  inode->has_row = true;
  if (inode->spool) inode->spool->keep = true;
  attach(*directory, name, inode);
  changed();
  return {};
}

Status Stage::unlink(const InodePtr& directory, std::string_view name) {
  return state_->with_room(true, [&] {
    state_->mutex.assert_held();
    return state_->unlink(directory, name);
  });
}

Status Stage::State::unlink(const InodePtr& directory, std::string_view name) {
  PLAYFS_TRY(InodePtr inode, existing(*directory, name));
  if (inode->is_directory()) return fail(ErrorCode::is_a_directory, "a directory");
  return remove_name(directory, name, *inode);
}

Status Stage::State::remove_name(const InodePtr& directory, std::string_view name, Inode& inode) {
  WallTime now = clock.wall();
  Batch batch = rows->begin();
  touch(batch, *directory, now);
  drop_name(batch, *directory, name);
  drop_link(batch, inode, now);
  PLAYFS_CHECK(batch.commit());
  detach(*directory, name);
  changed();
  return {};
}

Status Stage::remove_directory(const InodePtr& directory, std::string_view name) {
  return state_->with_room(true, [&] {
    state_->mutex.assert_held();
    return state_->remove_directory(directory, name);
  });
}

Status Stage::State::remove_directory(const InodePtr& directory, std::string_view name) {
  PLAYFS_TRY(InodePtr inode, existing(*directory, name));
  if (!inode->is_directory()) return fail(ErrorCode::not_a_directory, "not a directory");
  load_directory(*inode);
  if (!inode->directory->children.empty()) return fail(not_empty(*inode));
  return remove_name(directory, name, *inode);
}

Status Stage::rename(const InodePtr& from, std::string_view name, const InodePtr& to, std::string_view new_name,
                     RenameMode mode) {
  if (mode == RenameMode::replace) PLAYFS_CHECK(state_->prepare_replacement(from, name, to, new_name));
  Status renamed = state_->with_room(true, [&] {
    state_->mutex.assert_held();
    return state_->rename(from, name, to, new_name, mode);
  });
  state_->look_after_replacements();
  return renamed;
}

namespace {
/// Whether `inside` is `directory` or anywhere below it.
bool is_within(const Inode* inside, const Inode& directory) {
  for (; inside; inside = inside->names.empty() ? nullptr : inside->names[0].directory) {
    if (inside == &directory) return true;
  }
  return false;
}
}  // namespace

Status Stage::State::rename(const InodePtr& from, std::string_view name, const InodePtr& to, std::string_view new_name,
                            RenameMode mode) {
  PLAYFS_TRY(InodePtr moved, existing(*from, name));
  PLAYFS_CHECK(check_directory(*to, new_name));
  PLAYFS_CHECK(to->check_may_change());
  if (is_removed(*to)) return fail(ErrorCode::not_found, "the directory was removed");
  PLAYFS_CHECK(check_not_hidden(*to, new_name));
  InodePtr target = find(*to, new_name);
  if (mode == RenameMode::exchange) return exchange(from, name, to, new_name);
  if (target && mode == RenameMode::no_replace) return fail(ErrorCode::already_exists, "the name already exists");
  if (target == moved) return {};  // two names of one file: POSIX requires a no-op
  if (moved->is_directory() && is_within(to.get(), *moved))
    return fail(ErrorCode::invalid_argument, "a directory cannot be moved into itself");
  if (target && moved->is_directory()) {
    if (!target->is_directory()) return fail(ErrorCode::not_a_directory, "a file is in the way of a directory");
    load_directory(*target);
    if (!target->directory->children.empty()) return fail(ErrorCode::not_empty, "the directory is not empty");
  } else if (target && target->is_directory()) {
    return fail(ErrorCode::is_a_directory, "a directory is in the way of a file");
  }

  std::optional<Replacement> replaces;
  if (target) {
    PLAYFS_TRY(replaces, replacement(*moved, *target));
  }
  WallTime now = clock.wall();
  Batch batch = rows->begin();
  touch(batch, *from, now);
  touch(batch, *to, now);
  secure(batch, *moved);
  if (moved->is_directory()) {
    secure_tree(batch, *moved);
    notes.move_conflicts(batch, {{join_path(*path(*from), name), join_path(*path(*to), new_name)}});
  }
  rows->touch(moved->ino, moved->metadata.mtime, now);
  if (target) {
    drop_link(batch, *target, now);
    notes.hand_on_conflicts(batch, *target, *moved);
  }
  drop_name(batch, *from, name);
  rows->put_entry(to->ino, new_name, moved->ino);
  if (replaces || (moved->spool && moved->spool->is_safe())) end_replacement(batch, *moved);
  if (replaces) rows->put_replacement(replaces->row);
  PLAYFS_CHECK(batch.commit());
  if (replaces) {
    if (replaces->old) replaces->old->keep = true;
    replacements.insert_or_assign(replaces->row.spool, std::move(*replaces));
  }
  moved->metadata.ctime = now;
  std::uint64_t place = 0;
  if (target) {
    place = to->directory->children.find(new_name)->second.cookie;
    detach(*to, new_name);
  }
  detach(*from, name);
  attach(*to, new_name, moved);
  if (place != 0) keep_place(*to, new_name, place);
  changed();
  return {};
}

Status Stage::State::exchange(const InodePtr& from, std::string_view name, const InodePtr& to,
                              std::string_view new_name) {
  PLAYFS_TRY(InodePtr one, existing(*from, name));
  PLAYFS_TRY(InodePtr other, existing(*to, new_name));
  if (one == other) return {};
  if ((one->is_directory() && is_within(to.get(), *one)) || (other->is_directory() && is_within(from.get(), *other)))
    return fail(ErrorCode::invalid_argument, "a directory cannot be moved into itself");

  WallTime now = clock.wall();
  Batch batch = rows->begin();
  touch(batch, *from, now);
  touch(batch, *to, now);
  for (const auto& inode : {one, other}) {
    secure(batch, *inode);
    if (inode->is_directory()) secure_tree(batch, *inode);
    rows->touch(inode->ino, inode->metadata.mtime, now);
  }
  const std::string here = join_path(*path(*from), name), there = join_path(*path(*to), new_name);
  notes.move_conflicts(batch, {{here, there}, {there, here}});
  rows->put_entry(from->ino, name, other->ino);
  rows->put_entry(to->ino, new_name, one->ino);
  PLAYFS_CHECK(batch.commit());
  one->metadata.ctime = other->metadata.ctime = now;
  std::uint64_t place = from->directory->children.find(name)->second.cookie;
  std::uint64_t other_place = to->directory->children.find(new_name)->second.cookie;
  detach(*from, name);
  detach(*to, new_name);
  attach(*from, name, other);
  attach(*to, new_name, one);
  keep_place(*from, name, place);
  keep_place(*to, new_name, other_place);
  changed();
  return {};
}

}  // namespace playfs::stage
