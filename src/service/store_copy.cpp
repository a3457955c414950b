#include "service/store_copy.h"

#include <utility>

#include "model/content_hash.h"
#include "service/closed_store.h"

namespace playfs::service {

namespace {

constexpr std::size_t kRowsAtOnce = 256;  // with the largest records, four megabytes
/// Two are enough for a store that nobody writes; expired limits may still be swept meanwhile.
constexpr int kCopyPasses = 8;

/// Hashes an unambiguous text of the cell, so that different rows have different hashes.
void hash_cell(ContentHasher& hasher, const StoredCell& cell) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) hasher.update("i" + std::to_string(*number));
  else if (const auto* text = std::get_if<std::string>(&cell); !text) hasher.update("n");
  else hasher.update("t" + std::to_string(text->size()) + ":"), hasher.update(*text);
}

/// The rows of one table one by one, with their number and hash so far.
class RowReader {
 public:
  RowReader(StoredRows& store, const StoredTable& table) : store_(store), table_(table) {}

  /// nullptr at the end. Valid until next().
  Result<const StoredRow*> row() {
    if (at_ == read_.size() && !is_last_) {
      PLAYFS_TRY(read_, store_.rows(table_, after_, kRowsAtOnce));
      at_ = 0;
      is_last_ = read_.size() < kRowsAtOnce;
      if (!read_.empty()) after_ = keys_of(read_.back());
    }
    return at_ == read_.size() ? nullptr : &read_[at_];
  }

  /// REQUIRES: row() has returned one.
  void next() {
    for (const StoredCell& cell : read_[at_]) hash_cell(hasher_, cell);
    ++at_;
    ++count_;
  }

  [[nodiscard]] StoredRow keys_of(const StoredRow& row) const {
    return {row.begin(), row.begin() + static_cast<std::ptrdiff_t>(table_.keys)};
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] std::string hash() { return hasher_.so_far().hex(); }

 private:
  StoredRows& store_;
  const StoredTable& table_;
  std::vector<StoredRow> read_;
  std::size_t at_ = 0;
  bool is_last_ = false;
  StoredRow after_;
  std::uint64_t count_ = 0;
  ContentHasher hasher_;
};

/// One table of both stores, side by side.
class TablePass {
 public:
  TablePass(StoredRows& from, StoredRows& to, const StoredTable& table)
      : to_(to), table_(table), ours_(from, table), theirs_(to, table) {}

  /// Repairs the rows of `to` that differ; of the records, only those up to the position `last`.
  Status run(Position last, std::atomic<std::int64_t>& position);

  RowReader& ours() { return ours_; }
  RowReader& theirs() { return theirs_; }
  [[nodiscard]] std::uint64_t mended() const { return mended_; }

 private:
  /// Below 0: the next row is only in `from`; above: only in `to`.
  [[nodiscard]] int which(const StoredRow* ours, const StoredRow* theirs) const;
  Status mend(int side, const StoredRow* ours, const StoredRow* theirs);
  Status flush();

  StoredRows& to_;
  const StoredTable& table_;
  RowReader ours_, theirs_;
  std::vector<StoredRow> gone_, added_;
  std::uint64_t mended_ = 0;
};

Status TablePass::run(Position last, std::atomic<std::int64_t>& position) {
  const bool is_records = &table_ == &kRecordTable;
  for (;;) {
    PLAYFS_TRY(const StoredRow* ours, ours_.row());
    PLAYFS_TRY(const StoredRow* theirs, theirs_.row());
    if (is_records && ours) {
      position = std::get<std::int64_t>(ours->front());
      if (position > last) return flush();
    }
    if (!ours && !theirs) return flush();
    const int side = which(ours, theirs);
    if (side != 0 || *ours != *theirs) PLAYFS_CHECK(mend(side, ours, theirs));
    if (side <= 0) ours_.next();
    if (side >= 0) theirs_.next();
  }
}

int TablePass::which(const StoredRow* ours, const StoredRow* theirs) const {
  if (!ours || !theirs) return ours ? -1 : 1;
  for (std::size_t i = 0; i < table_.keys; ++i)
    if ((*ours)[i] != (*theirs)[i]) return (*ours)[i] < (*theirs)[i] ? -1 : 1;
  return 0;
}

Status TablePass::mend(int side, const StoredRow* ours, const StoredRow* theirs) {
  if (side > 0 && &table_ == &kRecordTable)  // none is ever removed
    return fail(ErrorCode::already_exists,
                "the copy has a record that its original lacks, at position " +
                    std::to_string(std::get<std::int64_t>(theirs->front())),
                "remove the copy, and begin anew");
  if (side >= 0) gone_.push_back(theirs_.keys_of(*theirs));
  if (side <= 0) added_.push_back(*ours);
  ++mended_;
  return gone_.size() + added_.size() < kRowsAtOnce ? Status() : flush();
}

Status TablePass::flush() {
  if (gone_.empty() && added_.empty()) return {};
  PLAYFS_CHECK(to_.change(table_, gone_, added_));
  gone_.clear();
  added_.clear();
  return {};
}

/// Returns the number of rows that differed.
Result<std::uint64_t> mend_all(StoredRows& from, StoredRows& to, CopyProgress& progress, CopiedStore& seen) {
  std::uint64_t mended = 0;
  seen.records = seen.others = 0;
  std::string ours, theirs;
  for (const StoredTable* table : kAllTables) {
    TablePass pass(from, to, *table);
    PLAYFS_CHECK(pass.run(kNewest, progress.position));
    mended += pass.mended();
    (table == &kRecordTable ? seen.records : seen.others) += pass.theirs().count();
    ours += pass.ours().hash();
    theirs += pass.theirs().hash();
  }
  if (mended == 0 && ours != theirs) return fail(ErrorCode::internal, "equal rows have different hashes");
  seen.hash = ContentHash::of(theirs).hex();
  seen.changed += mended;
  return mended;
}

/// Opens `to`, which is equal to `from`.
Status open_copy(StoredRows& from, StoredRows& to) {
  PLAYFS_TRY(const StoredSite numbers, from.site());
  if (auto finished = to.finish(numbers); !finished) {
    // Its answer may have been lost, or another call has compared the stores too, and was first.
    const auto copy = to.site();
    if (!copy || copy->closed != kOpenStore) return finished;
  }
  // Another call that failed, or the operator, may have opened `from` since the stores were compared.
  PLAYFS_TRY(const StoredSite now, from.site());
  if (now.closed == kMovedStore) return {};
  PLAYFS_CHECK(to.set_closed(kOpenStore, kUnfinishedStore));
  return fail(changed_by_another());
}

/// With `from` closed.
Status finish_copy(StoredRows& from, StoredRows& to, CopyProgress& progress, CopiedStore& copied) {
  for (int pass = 0; pass < kCopyPasses; ++pass) {
    PLAYFS_TRY(const std::uint64_t mended, mend_all(from, to, progress, copied));
    if (mended == 0) return open_copy(from, to);
  }
  return fail(ErrorCode::busy, "the store is still being written, though it is closed",
              "stop its servers of older versions, and copy once more");
}

/// Lets `from` be written again, unless somebody may serve `to` by now: whatever is written then would be lost.
Error give_up(StoredRows& from, StoredRows& to, Error why) {
  std::string closed_since;
  if (const auto copy = to.site(); !copy) closed_since = "it is unknown whether its copy is open";
  else if (copy->closed != kUnfinishedStore) closed_since = "its copy is open";
  else if (auto open = from.set_closed(kMovedStore, kOpenStore); !open) closed_since = open.error().message;
  if (closed_since.empty()) return why;
  why.message += "; the store stays closed for writing: " + closed_since;
  why.hint = "playfs serve copy FROM TO, once more; to give it up: playfs serve reopen --store FROM";
  return why;
}

/// Whether there is anything to do.
Result<bool> can_be_copied(const StoredSite& from, const StoredSite& to) {
  PLAYFS_CHECK(require_finished(from.closed));
  if (from.id != to.id)
    return fail(ErrorCode::already_exists, "the store to copy into holds another playground", "name an empty one");
  if (to.closed == kUnfinishedStore) return true;
  if (to.closed == kOpenStore && from.closed == kMovedStore) return false;
  return fail(ErrorCode::already_exists, "the store to copy into holds this playground, and may have gone on",
              "name an empty one");
}

}  // namespace

Result<CopiedStore> copy_store(StoredRows& from, StoredRows& to, CopyProgress& progress) {
  PLAYFS_TRY(const StoredSite source, from.site());
  PLAYFS_TRY(const StoredSite target, to.site());
  CopiedStore copied;
  PLAYFS_TRY(copied.is_new, can_be_copied(source, target));
  if (!copied.is_new) return copied;
  progress.newest = source.position;
  const bool was_open = source.closed == kOpenStore;
  if (was_open) {
    TablePass pass(from, to, kRecordTable);
    PLAYFS_CHECK(pass.run(source.position, progress.position));
    copied.changed = pass.mended();
    PLAYFS_CHECK(from.set_closed(kOpenStore, kMovedStore));
  }
  progress.is_closed = true;
  if (auto done = finish_copy(from, to, progress, copied); !done)
    return fail(was_open ? give_up(from, to, std::move(done).error()) : std::move(done).error());
  return copied;
}

Status reopen_store(StoredRows& store) { return store.set_closed(kMovedStore, kOpenStore); }

}  // namespace playfs::service
