// A file that replaces another: the old bytes go once the new ones are on disk.
//
// A program that writes a new file and renames it over the old one, without fsync, expects one or the other after a
// power loss, as on ext4. Any sync may bring the record of the rename to disk before the new bytes. So that record also
// notes which bytes were replaced, and these are kept. The housekeeper syncs the new bytes, drops the note, and only
// then gives up the old ones. A stage that finds a note after a reboot returns to the old bytes; what exists of the new
// ones goes to lost+found. If only this process crashed, the new bytes are there, since they were written. A rename
// costs just a few bytes of its record.
//
// A note covers one inode with one name that replaces one with one name. In the few other cases, and if the new file
// was synced before and changed since, so that neither version may be lost, the new bytes are synced before the rename.
#include <sys/stat.h>

#include <cerrno>

#include "stage/stage_state.h"

namespace playfs::stage {

namespace {
bool has_unsafe_bytes(const Inode& inode) { return inode.kind == Kind::file && inode.spool && !inode.spool->is_safe(); }
}  // namespace

Result<std::optional<Stage::State::Replacement>> Stage::State::replacement(Inode& moved, const Inode& target) {
  if (!has_unsafe_bytes(moved) || target.kind != Kind::file) return std::optional<Replacement>();
  Replacement found{moved.spool, nullptr, moved.spool->changes, {}};
  found.row.spool = moved.spool->number();
  found.row.boot = boot;
  auto before = target.spool ? replacements.find(target.spool->number()) : replacements.end();
  if (before != replacements.end()) {
    // What was replaced before is the safe version.
    found.old = before->second.old;
    found.row.old_spool = before->second.row.old_spool;
    found.row.old_path = before->second.row.old_path;
  } else if (target.is_below() && target.lower.revision == base) {
    found.row.old_path = target.lower.path;
  } else if (target.spool && target.spool->was_synced()) {
    found.old = target.spool;
    found.row.old_spool = target.spool->number();
  } else {
    return std::optional<Replacement>();
  }
  PLAYFS_TRY(SharedFd fd, spool->descriptor(*moved.spool, false));
  struct stat attributes {};
  if (fd && fstat(fd->get(), &attributes) != 0) return fail(error_from_errno(errno, "stat a staged file"));
  found.row.size = static_cast<std::uint64_t>(attributes.st_size);
  if (found.row.size == 0) return std::optional<Replacement>();
  return std::optional(std::move(found));
}

Status Stage::State::prepare_replacement(const InodePtr& from, std::string_view name, const InodePtr& to,
                                         std::string_view new_name) {
  SpoolFilePtr file;
  {
    MutexLock locked(mutex);
    auto child_of = [](const Inode& directory, std::string_view text) -> const Inode* {
      if (!directory.is_directory()) return nullptr;
      auto child = directory.directory->children.find(text);
      return child == directory.directory->children.end() ? nullptr : child->second.inode.get();
    };
    const Inode *moved = child_of(*from, name), *target = child_of(*to, new_name);
    if (!moved || !target || moved == target || !has_unsafe_bytes(*moved)) return {};
    bool can_be_noted = !moved->spool->was_synced() && moved->names.size() == 1 && target->kind == Kind::file &&
                        target->names.size() == 1 && !(target->is_below() && target->lower.revision != base) &&
                        !replacements.contains(moved->spool->number());
    if (can_be_noted) return {};
    file = moved->spool;
  }
  PLAYFS_CHECK(AtOnce::may_wait());
  return spool->sync(*file);
}

void Stage::State::end_replacement(Batch& batch, std::uint64_t number) {
  rows->drop_replacement(number);
  batch.after_commit([this, number]() PLAYFS_REQUIRES(mutex) {
    auto over = replacements.extract(number);
    if (over && over.mapped().old) over.mapped().old->keep = frozen.contains(over.mapped().old->number());
  });
}

Status Stage::State::settle_replacements() {
  std::vector<SpoolFilePtr> files;
  {
    MutexLock locked(mutex);
    for (const auto& [number, each] : replacements) files.push_back(each.fresh);
  }
  if (files.empty()) return {};
  auto synced = spool->sync(files);
  MutexLock locked(mutex);
  Batch batch = rows->begin();
  for (const auto& [number, each] : replacements) {
    if (each.fresh->synced_changes() >= each.changes) end_replacement(batch, number);
  }
  PLAYFS_CHECK(batch.commit());
  return synced;
}

Status Stage::State::settle_replacements(Batch& batch) {
  for (const auto& [number, each] : replacements) {
    if (each.fresh->synced_changes() < each.changes) PLAYFS_CHECK(spool->sync(*each.fresh));
    end_replacement(batch, number);
  }
  return {};
}

void Stage::State::look_after_replacements() {
  std::size_t waiting = 0;
  {
    MutexLock locked(mutex);
    waiting = replacements.size();
  }
  if (waiting == 0) return;
  bool at_once = waiting >= options.housekeeping.removals;
  if (housekeeper->has_thread()) return housekeeper->want_removal(at_once);
  if (at_once) settle_or_warn();
}

}  // namespace playfs::stage
