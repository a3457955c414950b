// Keeps what is staged as a checkpoint: see store/snapshots.h.
#include <algorithm>
#include <unordered_map>

#include "stage/stage_state.h"

namespace playfs::stage {

namespace {
constexpr std::size_t kLongestMessage = 4095;

FrozenFile described(const Difference& difference) {
  const Inode& inode = *difference.inode;
  FrozenFile file;
  file.path = difference.path;
  file.mode = published_mode(inode);
  if (inode.is_below()) {
    file.published = *inode.lower.entry;
    file.published->mode = file.mode;
  } else if (inode.kind == Kind::symlink) {
    file.target = inode.target;
    file.size = inode.target.size();
  }
  return file;
}

RescuedRow place_of(const FileRef& file) {
  const Revision& revision = file.revision->revision;
  return {revision.id.text(), revision.project.text(), file.revision->tree.manifest().tx, file.path, *file.entry};
}

}  // namespace

/// Without sizes and bytes; `bytes` are the spool files to be shared, by path.
Snapshot Stage::State::describe_staged(const Survey& found, std::map<std::string, SpoolFilePtr>& bytes) const {
  Snapshot snapshot;
  snapshot.head.made = clock.wall();
  snapshot.head.base = id_of(base);
  snapshot.parents = notes.parents;
  snapshot.tracked = notes.tracked;
  snapshot.conflicted = notes.conflicted;
  snapshot.state = staged_state;
  for (const Difference& difference : found.differences) {
    if (difference.base) snapshot.base_contents.emplace(difference.path, base_content(difference.base));
    if (!difference.inode) {
      snapshot.deletions.insert(difference.path);
      continue;
    }
    const Inode& inode = *difference.inode;
    if (instructions.concealed().contains(inode.ino)) snapshot.concealed.insert(difference.path);
    snapshot.files.emplace(difference.path, described(difference));
    if (inode.kind == Kind::file) snapshot.permissions.emplace(difference.path, inode.metadata.permissions & 0777);
    if (inode.is_below()) snapshot.published.emplace(difference.path, place_of(inode.lower));
    else if (inode.spool && inode.spool->is_made) bytes.emplace(difference.path, inode.spool);
  }
  return snapshot;
}

Result<std::optional<Checkpoint>> Stage::State::take_snapshot(const std::string& message) {
  if (message.size() > kLongestMessage)
    return fail(ErrorCode::invalid_argument,
                "the checkpoint's message is longer than " + std::to_string(kLongestMessage) + " bytes");
  std::map<std::string, SpoolFilePtr> bytes;
  Snapshot snapshot = [&] {
    MutexLock locked(mutex);
    const Survey found = unhurried_survey();
    return describe_staged(found, bytes);
  }();
  snapshot.head.message = message;
  if (snapshot.is_empty()) return std::optional<Checkpoint>();
  auto taken = [&]() -> Result<Checkpoint> {
    PLAYFS_TRY(const UniqueFd folder, snapshots.begin());
    std::unordered_map<std::uint64_t, std::uint64_t> shared;  // sizes: a file may have several names
    for (const auto& [path, from] : bytes) {
      auto known = shared.find(from->number());
      if (known == shared.end()) {
        auto size = spool->share(*from, folder.get());
        // Its bytes are lost, which a discard is the remedy for.
        if (!size && from->is_lost) {
          snapshot.files.erase(path);
          continue;
        }
        if (!size) return fail(size.error());
        known = shared.emplace(from->number(), *size).first;
        snapshot.head.bytes += *size;
      }
      FrozenFile& file = snapshot.files.find(path)->second;
      file.size = known->second;
      if (file.size > 0) file.spool = from->number();
    }
    snapshot.head.paths = snapshot.files.size() + snapshot.deletions.size() + (snapshot.state ? 1 : 0);
    return snapshots.finish(folder, std::move(snapshot));
  }();
  if (!taken) snapshots.abandon();
  if (!taken) return fail(taken.error().while_doing("make a checkpoint"));
  return std::optional(*std::move(taken));
}

Result<std::optional<Checkpoint>> Stage::checkpoint(const std::string& message) {
  // Afterwards, what was rewritten with equal bytes is known to be equal.
  PLAYFS_TRY([[maybe_unused]] auto changes, state_->changes());
  const auto hold = hold_writers();
  return checkpoint(message, *hold);
}

Result<std::optional<Checkpoint>> Stage::checkpoint(const std::string& message, const Hold&) {
  auto kept = state_->keep_staged(message);
  if (kept && *kept) state_->drop_old_snapshots();
  return kept;
}

Result<std::optional<Checkpoint>> Stage::State::keep_staged(const std::string& message) {
  auto taken = take_snapshot(message);
  if (!taken && taken.error().code == ErrorCode::no_space && make_room(false)) taken = take_snapshot(message);
  return taken;
}

void Stage::State::drop_old_snapshots(std::uint64_t used) {
  snapshots.drop_old(clock.wall(), used);
  housekeeper->want_removal(false);
}

Status Stage::drop_checkpoint(std::uint64_t id) {
  State& state = *state_;
  {
    const auto hold = hold_writers();
    const auto all = state.snapshots.list();
    if (std::none_of(all.begin(), all.end(), [&](const Checkpoint& each) { return each.id == id; }))
      return fail(ErrorCode::not_found, "there is no checkpoint " + std::to_string(id), "playfs checkpoint list");
    PLAYFS_CHECK(state.snapshots.drop(id));
  }
  state.remove_given_up();  // at once, since the caller may need the room
  return {};
}

std::vector<Checkpoint> Stage::checkpoints() const { return state_->snapshots.list(); }

}  // namespace playfs::stage
