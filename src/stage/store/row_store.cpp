#include "stage/store/row_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "stage/store/begun.h"

namespace playfs::stage {

namespace {

// After a crash numbering continues this far beyond, so that no torn record can have the number of a new one.
constexpr std::uint64_t kNumbersOfARun = std::uint64_t{1} << 32;

std::uint64_t size_of(const std::string& path) {
  struct stat attributes {};
  return stat(path.c_str(), &attributes) == 0 ? static_cast<std::uint64_t>(attributes.st_size) : 0;
}

constexpr const char* kChangedLast = "changed_last";
constexpr const char* kRepair = "playfs doctor --repair";

bool has_spool_files(const std::string& directory) {
  std::error_code problem;
  return std::filesystem::directory_iterator(directory + "/spool", problem) != std::filesystem::directory_iterator();
}

/// Applies changes in order, but only the last of an inode's times: every name that comes or goes touches its
/// directory.
class Checkpointer {
 public:
  explicit Checkpointer(Tables& tables) : tables_(tables) {}

  Status add(const RowChange& change) {
    if (const auto* touch = std::get_if<Touch>(&change)) {
      touched_[touch->ino] = *touch;
      return {};
    }
    if (const auto* put = std::get_if<PutInode>(&change)) touched_.erase(put->row.ino);
    if (const auto* drop = std::get_if<DropInode>(&change)) touched_.erase(drop->ino);
    return tables_.apply(change);
  }
  Status finish() {
    for (const auto& [ino, touch] : touched_) PLAYFS_CHECK(tables_.apply(touch));
    return {};
  }

 private:
  Tables& tables_;
  std::unordered_map<std::uint64_t, Touch> touched_;
};

}  // namespace

Batch::Batch(Rows& rows) : rows_(&rows) { rows.has_batch_ = true; }

Batch::~Batch() {
  if (!rows_) return;
  rows_->batch_.clear();
  rows_->has_batch_ = false;
}

Status Batch::commit() {
  if (!rows_->batch_.empty()) PLAYFS_CHECK(rows_->log_->append(rows_->batch_));
  rows_->batch_.clear();
  std::exchange(rows_, nullptr)->has_batch_ = false;
  for (auto& action : then_) action();
  return {};
}

Batch Rows::begin() { return Batch(*this); }

Status Rows::check_database(const std::string& directory) {
  if (size_of(directory + kDatabase) > 0) return {};
  std::string beside;
  for (const char* file : {"/stage.db-wal", OperationsLog::kFiles[0], OperationsLog::kFiles[1]}) {
    if (size_of(directory + file) > 0) beside = file + 1;
  }
  if (has_spool_files(directory)) beside = "spool";
  if (beside.empty() && is_begun(directory))
    return fail(ErrorCode::corrupt, "stage.db is missing or empty, and the staged changes with it", kRepair);
  if (beside.empty()) return {};
  return fail(ErrorCode::corrupt, "stage.db is missing or empty, and " + beside + " holds parts of it", kRepair);
}

Result<std::unique_ptr<Rows>> Rows::open(const std::string& directory, Damage damage) {
  PLAYFS_CHECK(check_database(directory));
  bool is_new = size_of(directory + OperationsLog::kFiles[0]) == 0 &&
                size_of(directory + OperationsLog::kFiles[1]) == 0 && !has_spool_files(directory);
  PLAYFS_TRY(Tables tables, Tables::open(directory + kDatabase, is_new));
  PLAYFS_CHECK(check_begun(directory, tables));
  PLAYFS_TRY(Tables::LogState state, tables.log_state());
  std::unique_ptr<Rows> rows(new Rows(directory, std::move(tables)));
  PLAYFS_TRY(rows->log_, OperationsLog::open(directory, state.stage_id));
  PLAYFS_CHECK(rows->replay(state, damage));
  return rows;
}

Status Rows::replay(const Tables::LogState& state, Damage damage) {
  MutexLock lock(checkpointing_);
  checkpointed_ = state.checkpointed;
  if (log_->size() > 0) {
    PLAYFS_TRY(LogContent found, log_->read(checkpointed_));
    torn_ = found.torn;
    // Recorded with the checkpoint: if recorded_base() did that one, the log no longer shows it at the next open().
    PLAYFS_TRY(auto noted, tables_.value(kChangedLast));
    has_changed_last_ = found.has_changed_last || noted;
    if (found.is_damaged && damage == Damage::refuse)
      return fail(ErrorCode::corrupt,
                  "the operations log is damaged: record " + std::to_string(checkpointed_ + found.records.size() + 1) +
                      " was changed or lost, but records follow it",
                  kRepair);
    // Do not write into a damaged database.
    PLAYFS_CHECK(tables_.check_integrity());
    std::uint64_t next = checkpointed_ + found.records.size() + kNumbersOfARun;
    PLAYFS_CHECK(tables_.checkpoint(next, [&]() -> Status {
      if (found.has_changed_last) PLAYFS_CHECK(tables_.apply(PutValue{kChangedLast, "1"}));
      return apply(found.records);
    }));
    // All the way into the database file: SQLite's log may have pages in memory that an earlier process failed to sync
    // and that a sync now would take for written.
    PLAYFS_CHECK(tables_.empty_log());
    checkpointed_ = next;
  }
  measure_database();
  return {};
}

Status Rows::start() {
  MutexLock lock(checkpointing_);
  if (std::exchange(has_changed_last_, false)) PLAYFS_CHECK(tables_.apply(DropValue{kChangedLast}));
  return log_->start(checkpointed_ + 1);
}

void Rows::forget_given_up(const std::vector<std::uint64_t>& numbers) {
  MutexLock lock(removed_mutex_);
  removed_.insert(removed_.end(), numbers.begin(), numbers.end());
}

void Rows::forget_sizes(const std::vector<std::uint64_t>& numbers) {
  MutexLock lock(removed_mutex_);
  sizes_.insert(sizes_.end(), numbers.begin(), numbers.end());
}

Status Rows::apply(const std::vector<LogRecord>& records) {
  Checkpointer folder(tables_);
  for (const LogRecord& record : records) {
    std::string_view left = record.payload;
    while (!left.empty()) {
      auto change = decode(left);
      if (!change) return fail(ErrorCode::corrupt, "an operation in the log cannot be decoded");
      PLAYFS_CHECK(folder.add(*change));
    }
  }
  return folder.finish();
}

Status Rows::checkpoint() {
  MutexLock lock(checkpointing_);
  PLAYFS_TRY(std::vector<LogRecord> records, log_->begin_checkpoint());
  if (records.empty()) return {};
  // If only emptying the log failed, they are in the database already.
  if (std::uint64_t last = records.back().number; last > checkpointed_) {
    std::vector<std::uint64_t> removed, sizes;
    {
      MutexLock only(removed_mutex_);
      removed.swap(removed_);
      sizes.swap(sizes_);
    }
    auto checkpointed = tables_.checkpoint(last, [&]() -> Status {
      PLAYFS_CHECK(apply(records));
      PLAYFS_CHECK(tables_.forget_sizes(sizes));
      return tables_.forget_given_up(removed);
    });
    if (!checkpointed) {
      forget_given_up(removed);
      forget_sizes(sizes);
    }
    PLAYFS_CHECK(checkpointed);
    checkpointed_ = last;
  }
  PLAYFS_CHECK(tables_.sync());
  measure_database();
  return log_->end_checkpoint();
}

Status Rows::checkpoint_all() {
  // What an earlier checkpoint left, then what came since.
  for (int part = 0; part < 2 && log_->size() > 0; ++part) PLAYFS_CHECK(checkpoint());
  return {};
}

Status Rows::empty_database_log() {
  MutexLock lock(checkpointing_);
  PLAYFS_CHECK(tables_.empty_log());
  measure_database();
  return {};
}

void Rows::measure_database() {
  const std::string path = directory_ + kDatabase;
  database_size_ = size_of(path);
  database_log_size_ = size_of(path + "-wal");
}

std::uint64_t Rows::checkpoint_space() const {
  // Changed pages are written to SQLite's log as well: a few per operation of some hundred bytes, or all there are. New
  // pages are in both files, and those already in SQLite's log may be new.
  constexpr std::uint64_t page_bytes_per_byte = 128, new_bytes_per_byte = 4;
  const std::uint64_t log = log_->size();
  return std::min<std::uint64_t>(database_size_, page_bytes_per_byte * log) + new_bytes_per_byte * log +
         database_log_size_;
}

}  // namespace playfs::stage
