// What is staged: those differences of which the bytes are known to differ too.
#include "stage/stage_state.h"

namespace playfs::stage {

namespace {
bool has_known_bytes(const Inode& inode, const FileEntry& entry) {
  auto known = hash_of(inode);
  return known && known == hash_of(entry);
}
}  // namespace

bool Stage::State::equals(const Inode& inode, const FileEntry& entry) const {
  if (!is_publishable(inode)) return false;
  if (published_mode(inode) != entry.mode) return false;
  if (inode.is_below()) return inode.lower.entry->same_content(entry);
  return has_known_bytes(inode, entry);
}

Status Stage::State::settle_doubts(std::vector<Difference>& differences) {
  auto is_none = [&](Difference& difference) -> Result<bool> {
    if (!difference.uncertain && !difference.may_be_frozen) return false;
    Inode& inode = *difference.inode;
    SpoolFilePtr file;
    {
      MutexLock locked(mutex);
      if (inode.generation != difference.generation || inode.writers > 0 || !inode.spool) return false;
      file = inode.spool;
    }
    auto digested = digest(*spool, *file);
    if (!digested && file->is_lost) return false;  // the bytes there now are not what was published
    PLAYFS_TRY(FileDigest found, std::move(digested));
    MutexLock locked(mutex);
    if (inode.generation != difference.generation) return false;
    inode.hashed = {inode.generation, found.size, found.hash};
    return difference.uncertain && is_content_of(found.hash, *difference.base);
  };
  std::vector<Difference> kept;
  for (auto& difference : differences) {
    PLAYFS_TRY(bool none, is_none(difference));
    if (!none) kept.push_back(std::move(difference));
  }
  differences = std::move(kept);
  return {};
}

bool Stage::State::has_bytes_of(const Inode& inode, const std::string& path, const FileEntry& entry) const {
  auto expected = hash_of(entry);
  if (auto known = hash_of(inode)) return known == expected;
  if (!pending) return false;
  auto as = pending->files.find(path);
  if (as == pending->files.end() || as->second.published || as->second.hash != expected) return false;
  if (as->second.spool != 0) return inode.spool && inode.spool->number() == as->second.spool;
  return inode.spool && inode.measured && inode.size == 0 && as->second.size == 0;
}

bool Stage::State::is_as_frozen(const std::string& path, const Inode* inode) const {
  if (pending) {
    if (pending->deletions.contains(path)) return !inode;
    if (auto file = pending->files.find(path); file != pending->files.end()) {
      const FrozenFile& as = file->second;
      if (!inode || !is_publishable(*inode)) return false;
      if (published_mode(*inode) != as.mode) return false;
      if (as.published && inode->is_below()) return inode->lower.entry->same_content(*as.published);
      if (as.published) return has_known_bytes(*inode, *as.published);
      if (inode->is_below()) return false;
      if (as.spool != 0 && inode->spool && inode->spool->number() == as.spool) return true;
      if (as.size == 0 && inode->kind == Kind::file) return inode->measured && inode->size == 0;
      return hash_of(*inode) == as.hash;
    }
  }
  const FileEntry* tracked = base ? base->tree.file_at(path) : nullptr;
  if (!tracked || !inode) return !tracked && !inode;
  return equals(*inode, *tracked);
}

Result<std::vector<Change>> Stage::State::changes() {
  Survey found;
  std::uint64_t seen = 0;
  {
    MutexLock locked(mutex);
    if (changes_generation == generation) return known_changes;
    found = unhurried_survey();
    seen = generation;
  }
  PLAYFS_CHECK(settle_doubts(found.differences));
  MutexLock locked(mutex);
  std::map<std::string, Change> changes;
  for (const auto& difference : found.differences) {
    ChangeKind kind = !difference.inode ? ChangeKind::deleted
                      : difference.base ? ChangeKind::modified
                                        : ChangeKind::added;
    if (difference.inode) static_cast<void>(measure(*difference.inode));
    bool as_frozen = pending && is_as_frozen(difference.path, difference.inode.get());
    changes.emplace(difference.path, Change{difference.path, kind, as_frozen});
  }
  // What was frozen and then reverted to the base is a change again once the pending layer is the base.
  if (pending) {
    for (const auto& [path, file] : pending->files) {
      bool tracked = base && base->tree.file_at(path);
      changes.emplace(path, Change{path, tracked ? ChangeKind::modified : ChangeKind::deleted, false});
    }
    for (const auto& path : pending->deletions) changes.emplace(path, Change{path, ChangeKind::added, false});
  }
  std::vector<Change> listed;
  for (auto& [path, change] : changes) listed.push_back(std::move(change));
  if (generation == seen) {
    changes_generation = seen;
    known_changes = listed;
  }
  return listed;
}

Result<std::vector<Change>> Stage::changes() const { return state_->changes(); }

bool Stage::is_clean() const {
  {
    MutexLock lock(state_->mutex);
    if (state_->pending || state_->freezing || state_->staged_state || !state_->notes.parents.empty()) return false;
  }
  auto changes = state_->changes();
  return changes && changes->empty();
}

Result<std::vector<std::string>> Stage::unpublished() const {
  MutexLock lock(state_->mutex);
  return state_->unhurried_survey().unpublished;
}

std::vector<FileRef> Stage::rules_needed() const {
  MutexLock lock(state_->mutex);
  return state_->unhurried_survey().missing_rules;
}

RevisionTreePtr Stage::base() const {
  MutexLock lock(state_->mutex);
  return state_->base;
}

std::optional<std::string> Stage::staged_state() const {
  MutexLock lock(state_->mutex);
  return state_->staged_state;
}

Status Stage::stage_state(std::string text) {
  State& state = *state_;
  MutexLock lock(state.mutex);
  Batch batch = state.rows->begin();
  state.rows->put_value("state", text);
  PLAYFS_CHECK(batch.commit());
  state.staged_state = std::move(text);
  state.changed();
  return {};
}

}  // namespace playfs::stage
