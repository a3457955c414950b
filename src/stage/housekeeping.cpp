// Work that follows an answered operation: checkpointing the log, removing spool files; and making room on a full disk.
#include "base/log.h"
#include "stage/stage_state.h"

namespace playfs::stage {

namespace {
// With this much space free, removal can wait a few seconds.
constexpr std::uint64_t kPlenty = std::uint64_t{1} << 30;
}  // namespace

void Stage::State::begin_housekeeping() {
  const Housekeeping& how = options.housekeeping;
  checkpoint_at = how.log_bytes;
  // Without a worker thread, removal may run under the mutex, which settling takes; look_after_replacements() settles
  // then.
  Housekeeper::Work remove = [this] { remove_given_up(); };
  if (how.own_thread) {
    remove = [this] {
      settle_or_warn();
      remove_given_up();
    };
  }
  housekeeper =
      std::make_shared<Housekeeper>([this] { checkpoint_log(); }, std::move(remove), how.patience, how.own_thread);
  // Any remaining SpoolFile keeps the spool alive, perhaps longer than the stage.
  spool->on_given_up([keeper = housekeeper, most = how.removals, from = spool.get()](std::size_t waiting) {
    bool at_once = waiting >= most || (waiting == 1 && keeper->has_thread() && from->free_room() < kPlenty);
    if (at_once || keeper->has_thread()) keeper->want_removal(at_once);
  });
}

void Stage::State::look_after_log() {
  if (rows->log_size() >= checkpoint_at) housekeeper->want_checkpoint();
}

void Stage::State::checkpoint_log() {
  auto checkpointed = rows->checkpoint();
  if (!checkpointed)
    log_warning(options.directory + ": cannot checkpoint the operations log: " + checkpointed.error().message);
  checkpoint_at = (checkpointed ? 0 : rows->log_size()) + options.housekeeping.log_bytes;
}

void Stage::State::settle_or_warn() {
  if (auto settled = settle_replacements(); !settled)
    log_warning(options.directory + ": cannot free the bytes of replaced files: " + settled.error().message);
}

bool Stage::State::remove_given_up() {
  MutexLock only(removing);  // so that a caller short of space waits for a removal in progress
  snapshots.remove_dropped();
  auto numbers = spool->take_given_up();
  if (numbers.empty()) return false;
  if (auto synced = rows->sync(); !synced) {
    log_warning(options.directory + ": removed files are kept until the next start: " + synced.error().message);
    spool->put_back(numbers);
    return false;
  }
  spool->remove(numbers);
  rows->forget_given_up(numbers);
  rows->forget_sizes(numbers);
  return true;
}

bool Stage::State::make_room(bool for_removal) {
  {
    MutexLock locked(mutex);
    reserve.give_up();
  }
  static_cast<void>(settle_replacements());
  // SQLite's log after a failed checkpoint, and spool files, may hold the space that the next checkpoint needs.
  for (int tries = 0; tries < 2; ++tries) {
    auto checkpointed = rows->checkpoint_all();
    auto emptied = rows->empty_database_log();
    remove_given_up();
    if (checkpointed && emptied) break;
    log_debug("checkpoint on a full disk: " + (checkpointed ? emptied : checkpointed).error().message);
  }
  if (for_removal) return true;
  MutexLock locked(mutex);
  if (reserve.keep(*rows)) return true;
  reserve.give_up();
  return false;
}

Status Stage::State::wait_for_gate() {
  while (gate.is_closed()) {
    PLAYFS_CHECK(AtOnce::may_wait());
    gate.wait(mutex);
  }
  return {};
}

void Stage::State::end_housekeeping() {
  if (!housekeeper) return;  // open() failed half-way
  housekeeper->stop();
  settle_or_warn();
  spool->on_given_up({});
  if (auto checkpointed = rows->checkpoint_all(); !checkpointed)
    log_warning(options.directory + ": the operations log is kept for the next start: " + checkpointed.error().message);
  remove_given_up();
}

}  // namespace playfs::stage
