// Minimum sizes of spool files.
//
// A file that was never written has no spool file, and one whose spool file was deleted looks the same. So the size
// that must be there is recorded: with a file's first bytes and each time it has doubled, when it is copied, frozen or
// synced, exactly when the stage is closed, and before it is truncated. That costs some sixty bytes of log now and
// then, and no sync: synced sizes are recorded when the log is synced anyway. Records err on the low side. After a
// power loss only synced sizes count, and a record is never ahead of the disk: before synced bytes are truncated the
// smaller size is synced, and a file truncated to nothing gets another spool file.
//
// Opening a stage of many files is no slower: missing files show in the list of the spool, and a size is checked when
// its file is first opened (Spool::descriptor).
#include <sys/stat.h>

#include <algorithm>

#include "base/log.h"
#include "stage/stage_state.h"

namespace playfs::stage {

void Stage::State::put_size(Batch& batch, const SpoolFilePtr& file, std::uint64_t size, std::uint64_t synced) {
  rows->put_size({file->number(), size, boot, synced});
  batch.after_commit([file, size, synced] { file->noted = {size, synced, 0}; });
}

void Stage::State::note_growth(const Inode& inode, std::uint64_t size) {
  const SpoolFile::Noted noted = inode.spool->noted;
  if (!inode.has_row || size == 0 || size < 2 * noted.size) return;
  // A caller that appends and syncs in turns would have the log synced for this record alone.
  if (noted.size > 0 && inode.spool->was_synced() && rows->is_synced()) return;
  Batch batch = rows->begin();
  put_size(batch, inode.spool, size, noted.synced);
  // Without space for the record a later loss may go unnoticed; the bytes themselves are written.
  static_cast<void>(batch.commit());
  look_after_log();
}

Result<bool> Stage::State::note_cut(const Inode& inode, std::uint64_t size) {
  const SpoolFile::Noted noted = inode.spool->noted;
  if (!inode.has_row || size >= std::max(noted.size, noted.synced)) return false;
  const bool cuts_synced_bytes = size < noted.synced;
  if (cuts_synced_bytes) PLAYFS_CHECK(AtOnce::may_wait());
  Batch batch = rows->begin();
  put_size(batch, inode.spool, std::min(size, noted.size), std::min(size, noted.synced));
  PLAYFS_CHECK(batch.commit());
  return cuts_synced_bytes;
}

void Stage::State::note_synced(Inode& inode) {
  const SpoolFilePtr& file = inode.spool;
  if (!file || !file->is_made || !inode.has_row || inode.writers > 0 || !file->is_safe()) return;
  auto fd = spool->descriptor(*file, false);
  struct stat found {};
  if (!fd || !*fd || fstat((*fd)->get(), &found) != 0) return;
  const auto size = static_cast<std::uint64_t>(found.st_size);
  if (size <= file->noted.synced) return;
  Batch batch = rows->begin();
  put_size(batch, file, size, size);
  static_cast<void>(batch.commit());
}

Status Stage::State::note_sizes(const std::vector<InodePtr>& inodes) {
  constexpr std::size_t of_a_batch = 4096;
  for (std::size_t at = 0; at < inodes.size(); at += of_a_batch) {
    Batch batch = rows->begin();
    for (std::size_t i = at; i < std::min(inodes.size(), at + of_a_batch); ++i) {
      Inode& inode = *inodes[i];
      if (!inode.has_row || !inode.spool || !inode.spool->is_made || inode.spool->is_lost) continue;
      const SpoolFilePtr& file = inode.spool;
      if (file->noted.changes == file->changes || !measure(inode)) continue;
      const std::uint64_t synced = file->is_safe() ? inode.size : file->noted.synced;
      if (inode.size != file->noted.size || synced != file->noted.synced) put_size(batch, file, inode.size, synced);
    }
    PLAYFS_CHECK(batch.commit());
  }
  return {};
}

std::vector<LostFile> Stage::State::lost_files() {
  struct Suspect {
    std::uint64_t ino;  ///< 0: only the pending layer needs the file, under `path`
    std::string path;
    SpoolFilePtr file;
  };
  auto is_doubtful = [](const SpoolFilePtr& file) { return file && (file->expected > 0 || file->is_lost); };
  std::vector<Suspect> suspects;
  std::map<std::string, std::string> found;
  {
    MutexLock locked(mutex);
    for (const auto& [ino, inode] : by_ino) {
      if (is_doubtful(inode->spool)) suspects.push_back({ino, {}, inode->spool});
    }
    for (const auto& [noted, from] : noted_gone) {
      auto inode = noted.lock();
      auto name = inode && inode->lies_at(from) ? path(*inode) : std::nullopt;
      if (name)
        found.emplace(*name, "the service no longer has revision " + from.revision->revision.id.text() +
                                 ", and there is no copy of its bytes here");
    }
    if (pending) {
      for (const auto& [name, file] : pending->files) {
        auto bytes = frozen.find(file.spool);
        if (bytes != frozen.end() && is_doubtful(bytes->second)) suspects.push_back({0, name, bytes->second});
      }
    }
  }
  for (auto& [ino, name, file] : suspects) {
    auto fd = spool->descriptor(*file, false);
    if (fd || !file->is_lost) continue;
    if (ino != 0) {
      MutexLock locked(mutex);
      auto inode = by_ino.find(ino);
      if (inode == by_ino.end() || inode->second->spool != file) continue;
      name = path(*inode->second).value_or("");
    }
    found.emplace(std::move(name), fd.error().message);
  }
  std::vector<LostFile> listed;
  for (auto& [name, reason] : found) listed.push_back({name, std::move(reason)});
  return listed;
}

std::vector<LostFile> Stage::lost_files() const { return state_->lost_files(); }

std::vector<LowerFile> Stage::lower_files() const {
  MutexLock lock(state_->mutex);
  std::vector<LowerFile> files;
  for (const auto& [ino, inode] : state_->by_ino) {
    if (!inode->has_row || !inode->is_below()) continue;
    const Name& name = inode->names.front();
    files.push_back({name.directory->directory->children.find(name.text)->second.inode, inode->lower});
  }
  return files;
}

void Stage::note_gone(const std::vector<LowerFile>& gone) {
  MutexLock lock(state_->mutex);
  state_->noted_gone.clear();
  for (const auto& [inode, from] : gone) state_->noted_gone.emplace_back(inode, from);
}

}  // namespace playfs::stage
