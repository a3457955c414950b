// Freezing what is staged as a layer to publish, reading that layer, and returning it to the stage.
#include <algorithm>

#include "model/plan.h"
#include "stage/stage_state.h"

namespace playfs::stage {

Result<std::optional<Frozen>> Stage::freeze(const std::string& tx, const std::optional<std::vector<Conflicted>>& seen) {
  PLAYFS_CHECK(state_->settle_replacements());
  return state_->freeze(tx, seen);
}

Result<std::optional<Frozen>> Stage::State::freeze(const std::string& tx,
                                                   const std::optional<std::vector<Conflicted>>& seen) {
  Survey found;
  std::map<std::string, Candidate> candidates;
  Frozen layer;
  {
    MutexLock locked(mutex);
    if (pending && pending->tx == tx) return std::optional(pending_layer());
    if (pending || freezing) return fail(ErrorCode::busy, "another publication has started");
    PLAYFS_CHECK(check_seen(seen, notes.conflicted));
    freezing = true;  // from here on, no discard changes that list
    // Answers most questions now, so that little is left once everyone has to wait.
    static_cast<void>(unhurried_survey());
    // One moment for all files: writes in progress end, new ones wait.
    gate.close(mutex);
    found = unhurried_survey();
    for (auto& difference : found.differences) {
      if (difference.inode) candidates.emplace(difference.path, candidate_of(*difference.inode));
    }
    layer.tx = tx;
    layer.base = id_of(base);
    layer.state = staged_state;
    layer.merge_parents = notes.parents;
    gate.open();
  }
  auto result = freeze_candidates(std::move(layer), found, candidates);
  MutexLock locked(mutex);
  freezing = false;
  if (!pending) frozen.clear();
  changed();
  return result;
}

Stage::State::Candidate Stage::State::candidate_of(Inode& inode) {
  Candidate candidate;
  candidate.file.mode = published_mode(inode);
  if (inode.is_below()) {
    candidate.file.published = *inode.lower.entry;
    candidate.file.published->mode = candidate.file.mode;
  } else if (inode.kind == Kind::symlink) {
    candidate.file.target = inode.target;
    candidate.file.size = inode.target.size();
    candidate.file.hash = ContentHash::of(inode.target);
  } else {
    candidate.bytes = inode.spool;
    if (measure(inode)) candidate.file.size = inode.size;
    frozen.emplace(inode.spool->number(), inode.spool);
  }
  return candidate;
}

Result<std::optional<Frozen>> Stage::State::freeze_candidates(Frozen layer, const Survey& found,
                                                              std::map<std::string, Candidate>& candidates) {
  if (found.unread_rules) return fail(*found.unread_rules);  // local-only files could be published
  if (!found.missing_rules.empty())
    return fail(ErrorCode::offline,
                "the ignore rules in " + found.missing_rules.front().path + " have not been fetched yet");
  std::vector<SpoolFilePtr> files;
  std::vector<std::pair<std::uint64_t, ContentHash>> instructing;  // by inode
  for (const auto& difference : found.differences) {
    if (!difference.inode) {
      layer.deletions.push_back(difference.path);
      continue;
    }
    Candidate& candidate = candidates.find(difference.path)->second;
    if (candidate.bytes) {
      PLAYFS_CHECK(check_file_size(difference.path, candidate.file.size));  // hashing it could take hours
      auto digested = digest(*spool, *candidate.bytes);
      if (!digested) return fail(digested.error().while_doing(difference.path));
      const FileDigest& bytes = *digested;
      candidate.file.size = bytes.size;
      candidate.file.hash = bytes.hash;
      if (difference.uncertain && is_content_of(bytes.hash, *difference.base)) continue;
      if (bytes.size > 0) {
        candidate.file.spool = candidate.bytes->number();
        files.push_back(candidate.bytes);
      }
    }
    candidate.file.path = difference.path;
    if (!candidate.file.published && gives_instructions(difference.path))
      instructing.emplace_back(difference.inode->ino, candidate.file.mode == FileMode::symlink
                                                          ? instructions_identity_of_link(candidate.file.target)
                                                          : candidate.file.hash);
    layer.files.push_back(candidate.file);
  }
  if (layer.files.empty() && layer.deletions.empty() && !layer.state && layer.merge_parents.empty())
    return std::optional<Frozen>();
  PLAYFS_CHECK(spool->sync(files));

  {
    MutexLock locked(mutex);
    Batch batch = rows->begin();
    PLAYFS_CHECK(settle_replacements(batch));
    rows->put_value("pending_tx", layer.tx);
    rows->put_value("pending_base", layer.base.text());
    if (layer.state) rows->put_value("pending_state", *layer.state);
    for (const auto& file : layer.files) rows->put_pending(file);
    for (const auto& [path, each] : candidates) {
      if (each.file.spool != 0) put_size(batch, each.bytes, each.file.size, each.file.size);
    }
    for (const auto& path : layer.deletions) rows->put_pending_deletion(path);
    for (const auto& [ino, content] : instructing)
      if (!instructions.concealed().contains(ino)) instructions.publish(batch, content);
    PLAYFS_CHECK(batch.commit());
    pending = Pending{layer.tx, layer.base, {}, {layer.deletions.begin(), layer.deletions.end()}, layer.state};
    for (const auto& file : layer.files) pending->files.emplace(file.path, file);
    frozen.clear();
    for (auto& file : files) {
      file->keep = true;
      frozen.emplace(file->number(), file);
    }
  }
  PLAYFS_CHECK(rows->sync());
  return std::optional(std::move(layer));
}

Frozen Stage::State::pending_layer() const {
  // Nothing is merged in while a layer is pending, so the current parents belong to it.
  Frozen layer{pending->tx,    pending->base, {}, {pending->deletions.begin(), pending->deletions.end()},
               pending->state, notes.parents};
  for (const auto& [path, file] : pending->files) layer.files.push_back(file);
  return layer;
}

Result<std::optional<Frozen>> Stage::pending() const {
  MutexLock lock(state_->mutex);
  if (!state_->pending) return std::optional<Frozen>();
  return std::optional(state_->pending_layer());
}

Result<std::string> Stage::read_frozen(const FrozenFile& file) const {
  PLAYFS_TRY(std::string data, read_frozen(file, 0, file.size));
  if (data.size() != file.size) return fail(ErrorCode::corrupt, file.path + ": its staged bytes are truncated");
  return data;
}

Result<std::string> Stage::read_frozen(const FrozenFile& file, std::uint64_t offset, std::size_t size) const {
  if (file.published) return fail(ErrorCode::invalid_argument, file.path + ": its bytes are in the base");
  if (offset >= file.size) return std::string();
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, file.size - offset));
  if (file.mode == FileMode::symlink) return file.target.substr(static_cast<std::size_t>(offset), size);
  SpoolFilePtr bytes;
  {
    MutexLock lock(state_->mutex);
    auto found = state_->frozen.find(file.spool);
    if (found == state_->frozen.end()) return fail(ErrorCode::not_found, file.path + ": not part of the publication");
    bytes = found->second;
  }
  PLAYFS_TRY(SharedFd fd, state_->spool->descriptor(*bytes, false));
  if (!fd) return fail(ErrorCode::corrupt, file.path + ": its staged bytes are missing");
  return read_at(fd->get(), offset, size);
}

void Stage::State::drop_pending() {
  rows->drop_pending();
  rows->drop_value("pending_tx");
  rows->drop_value("pending_base");
  rows->drop_value("pending_state");
}

void Stage::State::forget_pending() {
  std::unordered_set<const SpoolFile*> in_use;
  for (const auto& [ino, inode] : by_ino) {
    if (inode->has_row && inode->spool) in_use.insert(inode->spool.get());
  }
  for (const auto& [number, each] : replacements) in_use.insert(each.old.get());
  for (auto& [number, file] : frozen) file->keep = in_use.contains(file.get());
  frozen.clear();
  pending.reset();
  changed();
}

Status Stage::thaw(const std::string& tx) {
  State& state = *state_;
  {
    MutexLock lock(state.mutex);
    if (!state.pending) return {};
    if (state.pending->tx != tx) return fail(ErrorCode::not_found, "there is no pending publication " + tx);
    Batch batch = state.rows->begin();
    state.drop_pending();
    PLAYFS_CHECK(batch.commit());
    state.forget_pending();
    state.gate.wake();
  }
  return state.rows->sync();
}

}  // namespace playfs::stage
