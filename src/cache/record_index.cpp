#include "cache/record_index.h"

#include <algorithm>
#include <atomic>

#include "base/fd.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cache/checksum.h"
#include "cache/eviction_trigger.h"
#include "cache/object_store.h"
#include "cache/pending_records.h"
#include "cache/record_database.h"
#include "cache/record_lists.h"

namespace playfs::cache {

namespace {

/// Uses collected in memory before they are written together.
constexpr std::size_t kMostTouched = 64;
/// Bytes of pending records beyond which the caller of store_record() writes them itself.
constexpr std::size_t kMostPending = 4 << 20;
/// Backoff after a failed write.
constexpr std::chrono::seconds kWrittenAgainAfter{1};
/// The most rows removed, or list entries added, in one transaction, since others wait for it.
constexpr std::size_t kRemovedAtOnce = 256;
constexpr std::size_t kListedAtOnce = 2'000;
/// How long to wait while another process has the database: for a lookup, which may run on a FUSE thread and can ask
/// the service instead, and for a store.
constexpr std::chrono::milliseconds kReadPatience{100}, kWritePatience{2'000};

std::int64_t record_checksum(const std::string& site, const std::string& collection, const std::string& id,
                             std::string_view text, std::string_view etag, std::int64_t fetched_at) {
  return checksum_of_row({site, collection, id, text, etag, std::to_string(fetched_at)});
}

}  // namespace

/// Two connections, so that a lookup never waits behind a store that waits for another process or selects rows to
/// evict.
struct RecordIndex::State : std::enable_shared_from_this<State> {
  State(const std::string& directory, const RecordIndexOptions& options)
      : budget(options.budget),
        clock(options.clock ? *options.clock : system_clock),
        reading(directory, kReadPatience),
        writing(directory, kWritePatience),
        executor(options.executor),
        // The executor is stopped before this state is destroyed.
        eviction(EvictionTrigger::make(options.budget / kShareBetweenTrims, options.written_before, options.executor,
                                       [this] { return trim(); })) {}
  ~State() {
    write_records();
    write_touches();
    eviction->finish();
  }

  using Key = RecordKey;
  using Work = std::function<Status(RecordDatabase&)>;

  /// File locks would make the two connections poll each other, as between processes; in here they take turns.
  Status try_read(const Work& work) {
    Status done = reading.attempt([&](RecordDatabase& on) {
      MutexLock lock(turn);
      return work(on);
    });
    if (!done) look_again_soon();
    return done;
  }
  bool read(const Work& work) { return try_read(work).has_value(); }
  bool write(const Work& work) {
    const bool done = writing.attempt([&](RecordDatabase& on) { return transact(on, work); }).has_value();
    if (!done) look_again_soon();
    return done;
  }
  /// Clears the trouble once the database is usable again, even if nothing uses it meanwhile.
  void look_again_soon() {
    if (!executor || looks_again.exchange(true)) return;
    executor->post_after(kWrittenAgainAfter, [weak = weak_from_this()] {
      if (auto self = weak.lock()) self->look_again();
    });
  }
  void look_again() {
    looks_again = false;
    if (reading.trouble())
      read([](RecordDatabase& on) -> Status {
        PLAYFS_TRY([[maybe_unused]] const auto used, on.used_bytes());
        return {};
      });
    // Only the next record can show whether there is space again.
    auto trouble = writing.trouble();
    if (trouble && trouble->code != ErrorCode::no_space) write([](RecordDatabase&) { return Status(); });
  }
  Status transact(RecordDatabase& on, const Work& work) {
    MutexLock lock(turn);
    PLAYFS_TRY(Transaction transaction, Transaction::begin(on.database));
    PLAYFS_CHECK(work(on));
    return transaction.commit();
  }

  const std::uint64_t budget;
  const SystemClock system_clock;
  const Clock& clock;
  RecordChannel reading;
  RecordChannel writing;
  Executor* const executor;
  PendingRecords<StoredRecord> pending;
  std::atomic<bool> write_due = false;    ///< a task to write pending records is posted
  std::atomic<bool> unwritable = false;   ///< the last write of pending records failed
  std::atomic<bool> looks_again = false;  ///< look_again() is posted
  const std::shared_ptr<EvictionTrigger> eviction;
  Mutex turn;  ///< taken after a channel's mutex
  Mutex mutex;
  std::vector<Key> touched PLAYFS_GUARDED_BY(mutex);  ///< read, but not recently marked as used

  void touch(Key key) {
    {
      MutexLock lock(mutex);
      touched.push_back(std::move(key));
      if (touched.size() < kMostTouched) return;
    }
    write_touches();
  }
  /// Writes pending records, shortly or now.
  void write_soon(const std::shared_ptr<State>& self);
  void write_records();
  void write_touches();
  /// Rows of a list that is complete and, unless that is nullptr, has `with`.
  Result<std::vector<ListedRecord>> rows(const std::string& site, const std::string& collection,
                                         const std::string* with,
                                         const std::function<Result<StoredList::Rows>(StoredList&)>& select);
  bool replace(const std::string& site, const std::string& collection, std::span<const ListedRecord> records,
               bool goes_on);
  Status remove_rows(RecordDatabase& on, std::span<const std::int64_t> rows);
  Status trim();
};

RecordIndex::RecordIndex(std::shared_ptr<State> state) : state_(std::move(state)) {}
RecordIndex::~RecordIndex() = default;

Result<std::unique_ptr<RecordIndex>> RecordIndex::open(const std::string& directory, RecordIndexOptions options) {
  if (auto made = make_private_directory(directory); !made && options.needs_directory) return fail(made.error());
  return std::unique_ptr<RecordIndex>(new RecordIndex(std::make_shared<State>(directory, options)));
}

std::optional<StoredRecord> RecordIndex::record(const std::string& site, const std::string& collection,
                                                const std::string& id) {
  if (auto pending = state_->pending.find({site, collection, id})) return *pending;
  std::optional<StoredRecord> found;
  bool damaged = false;
  std::int64_t used_at = 0;
  state_->read([&](RecordDatabase& on) -> Status {
    Statement& select = on.select_record;
    PLAYFS_TRY(const bool row, select.bind(1, site).bind(2, collection).bind(3, id).step());
    if (!row) return {};
    StoredRecord record{std::string(select.text(0)), std::string(select.text(1)), WallTime{select.integer(2)}};
    damaged = select.integer(3) !=
              record_checksum(site, collection, id, record.text, record.etag, record.fetched_at.nanoseconds);
    used_at = select.integer(4);
    select.reset();
    if (!damaged) found = std::move(record);
    return {};
  });
  if (damaged) forget_record(site, collection, id);
  const std::int64_t old = std::chrono::nanoseconds(kUsedGranularity).count();
  if (found && state_->clock.wall().nanoseconds - used_at >= old) state_->touch({site, collection, id});
  return found;
}

void RecordIndex::store_record(const std::string& site, const std::string& collection, const std::string& id,
                               const StoredRecord& record) {
  state_->pending.put({site, collection, id}, record, record.text.size());
  state_->write_soon(state_);
}

void RecordIndex::forget_record(const std::string& site, const std::string& collection, const std::string& id) {
  state_->pending.put({site, collection, id}, std::nullopt, 0);
  state_->write_soon(state_);
}

void RecordIndex::State::write_soon(const std::shared_ptr<State>& self) {
  if (!executor || (!unwritable && pending.bytes() > kMostPending)) return write_records();
  if (write_due.exchange(true)) return;
  if (unwritable) executor->post_after(kWrittenAgainAfter, [self] { self->write_records(); });
  else executor->post([self] { self->write_records(); });
}

void RecordIndex::State::write_records() {
  write_due = false;
  pending.write_all([this](const PendingRecords<StoredRecord>::Batch& batch) {
    std::uint64_t bytes = 0;  // counted once they are in the database, where eviction sees them
    for (const auto& [key, record] : batch)
      if (*record) bytes += (*record)->text.size();
    const bool written = write([&](RecordDatabase& on) -> Status {
      for (const auto& [key, record] : batch) {
        if (!*record) {
          PLAYFS_CHECK(on.delete_record.bind(1, key.site).bind(2, key.collection).bind(3, key.id).run());
          continue;
        }
        const StoredRecord& stored = **record;
        const std::int64_t time = stored.fetched_at.nanoseconds;
        Statement& upsert = on.upsert_record;
        upsert.bind(1, key.site).bind(2, key.collection).bind(3, key.id).bind(4, stored.text).bind(5, stored.etag);
        upsert.bind(6, time)
            .bind(7, record_checksum(key.site, key.collection, key.id, stored.text, stored.etag, time))
            .bind(8, clock.wall().nanoseconds)
            .bind(9, static_cast<std::int64_t>(stored.text.size()));
        PLAYFS_CHECK(upsert.run());
      }
      return {};
    });
    unwritable = !written;
    if (written) eviction->wrote(bytes);
    return written;
  });
}

void RecordIndex::State::write_touches() {
  std::vector<Key> keys;
  {
    MutexLock lock(mutex);
    keys.swap(touched);
  }
  if (keys.empty()) return;
  const std::int64_t now = clock.wall().nanoseconds;
  write([&](RecordDatabase& on) -> Status {
    for (const Key& key : keys)
      PLAYFS_CHECK(on.touch_record.bind(1, now).bind(2, key.site).bind(3, key.collection).bind(4, key.id).run());
    return {};
  });
}

namespace {

/// The least recently used unpinned rows that together free `excess` bytes, or all of them.
Result<std::vector<std::int64_t>> oldest_rows(Database& database, std::uint64_t excess) {
  PLAYFS_TRY(Statement oldest,
             database.prepare("SELECT rowid, size FROM records WHERE NOT EXISTS (SELECT 1 FROM pins WHERE pins.site = "
                              "records.site AND pins.collection = records.collection AND pins.id = records.id) "
                              "ORDER BY used_at"));
  std::vector<std::int64_t> rows;
  for (std::uint64_t given_back = 0; given_back < excess;) {
    PLAYFS_TRY(const bool row, oldest.step());
    if (!row) break;
    rows.push_back(oldest.integer(0));
    given_back += static_cast<std::uint64_t>(oldest.integer(1));
  }
  return rows;
}

}  // namespace

Status RecordIndex::State::remove_rows(RecordDatabase& on, std::span<const std::int64_t> rows) {
  PLAYFS_TRY(Statement remove, on.database.prepare("DELETE FROM records WHERE rowid = ?"));
  while (!rows.empty()) {
    const auto some = rows.first(std::min(kRemovedAtOnce, rows.size()));
    rows = rows.subspan(some.size());
    PLAYFS_CHECK(transact(on, [&](RecordDatabase&) -> Status {
      for (const std::int64_t row : some) PLAYFS_CHECK(remove.bind(1, row).run());
      return {};
    }));
  }
  return {};
}

Status RecordIndex::State::trim() {
  write_touches();
  Status trimmed = fail(ErrorCode::busy, "the record database is not available");  // already logged
  static_cast<void>(writing.attempt([&](RecordDatabase& on) -> Status {
    PLAYFS_TRY(const std::uint64_t used, on.used_bytes());
    if (used > budget) {
      // Frees a little more than necessary, so that it need not run again at once.
      const std::uint64_t excess = used - budget + budget / kShareBetweenTrims;
      PLAYFS_TRY(const auto rows, oldest_rows(on.database, excess));
      PLAYFS_CHECK(remove_rows(on, rows));
      PLAYFS_TRY(const std::uint64_t left, on.used_bytes());
      // The rest are lists and content names, which can be requested again.
      if (left > budget)
        PLAYFS_CHECK(transact(on, [](RecordDatabase& all) {
          return all.database.execute(
              "DELETE FROM contents; DELETE FROM listed; UPDATE whole_lists SET records = -1, version = version + 1");
        }));
    }
    trimmed = {};
    return {};
  }));
  return trimmed;
}

void RecordIndex::pin(const std::string& owner, const std::string& site, const std::string& collection,
                      const std::string& id) {
  state_->write([&](RecordDatabase& on) -> Status {
    PLAYFS_TRY(Statement insert,
               on.database.prepare("INSERT OR REPLACE INTO pins (owner, site, collection, id) VALUES (?, ?, ?, ?)"));
    return insert.bind(1, owner).bind(2, site).bind(3, collection).bind(4, id).run();
  });
}

RecordsUsage RecordIndex::usage() {
  state_->write_records();
  RecordsUsage usage;
  state_->read([&](RecordDatabase& on) -> Status {
    usage = {};
    PLAYFS_TRY(usage.bytes, on.used_bytes());
    PLAYFS_TRY(Statement count,
               on.database.prepare("SELECT site, collection, count(*) FROM records GROUP BY site, collection"));
    for (;;) {
      PLAYFS_TRY(const bool row, count.step());
      if (!row) return {};
      usage.records.push_back(
          {std::string(count.text(0)), std::string(count.text(1)), static_cast<std::uint64_t>(count.integer(2))});
    }
  });
  return usage;
}

RecordsVerified RecordIndex::verify() {
  state_->write_records();
  RecordsVerified verified;
  std::vector<State::Key> damaged;
  state_->read([&](RecordDatabase& on) -> Status {
    verified = {};
    damaged.clear();
    PLAYFS_CHECK(on.database.check_integrity());
    PLAYFS_TRY(Statement all,
               on.database.prepare("SELECT site, collection, id, text, etag, fetched_at, checksum FROM records"));
    for (;;) {
      PLAYFS_TRY(const bool row, all.step());
      if (!row) break;
      ++verified.checked;
      State::Key key{std::string(all.text(0)), std::string(all.text(1)), std::string(all.text(2))};
      if (record_checksum(key.site, key.collection, key.id, all.text(3), all.text(4), all.integer(5)) != all.integer(6))
        damaged.push_back(std::move(key));
    }
    verified.sound = true;
    return {};
  });
  for (const State::Key& key : damaged) forget_record(key.site, key.collection, key.id);
  verified.damaged = damaged.size();
  return verified;
}

void RecordIndex::clear(const std::string& directory) { remove_record_database(directory); }

std::optional<ContentHash> RecordIndex::content_of(const std::string& site, const std::string& key) {
  std::optional<ContentHash> found;
  state_->read([&](RecordDatabase& on) -> Status {
    Statement& select = on.select_content;
    PLAYFS_TRY(const bool row, select.bind(1, site).bind(2, key).step());
    if (!row) return {};
    if (select.integer(1) == checksum_of_row({site, key, select.text(0)})) found = ContentHash::parse(select.text(0));
    select.reset();
    return {};
  });
  return found;
}

void RecordIndex::store_content_of(const std::string& site, const std::string& key, const ContentHash& hash) {
  const std::string hex = hash.hex();
  state_->write([&](RecordDatabase& on) {
    return on.upsert_content.bind(1, site).bind(2, key).bind(3, hex).bind(4, checksum_of_row({site, key, hex})).run();
  });
}

Result<std::vector<ListedRecord>> RecordIndex::list(const std::string& site, const std::string& collection,
                                                    std::size_t most_bytes) {
  return state_->rows(site, collection, nullptr, [&](StoredList& list) { return list.rows(most_bytes); });
}

bool RecordIndex::list_goes_on(const std::string& site, const std::string& collection) {
  bool goes_on = false;
  state_->read([&](RecordDatabase& on) -> Status {
    PLAYFS_TRY(const StoredList::State state, StoredList(on, site, collection).state());
    goes_on = state.goes_on;
    return {};
  });
  return goes_on;
}

Result<std::vector<ListedRecord>> RecordIndex::list_of(const std::string& site, const std::string& collection,
                                                       const std::string& with, const std::string& owner,
                                                       std::size_t most_bytes) {
  return state_->rows(site, collection, &with, [&](StoredList& list) { return list.rows_of(owner, most_bytes); });
}

Result<std::vector<ListedRecord>> RecordIndex::listed(const std::string& site, const std::string& collection,
                                                      const std::string& with, std::span<const std::string> ids) {
  return state_->rows(site, collection, &with, [&](StoredList& list) { return list.rows_with(ids); });
}

Result<std::vector<ListedRecord>> RecordIndex::State::rows(
    const std::string& site, const std::string& collection, const std::string* with,
    const std::function<Result<StoredList::Rows>(StoredList&)>& select) {
  std::optional<StoredList::Rows> found;
  const Status done = try_read([&](RecordDatabase& on) -> Status {
    found.reset();
    StoredList list(on, site, collection);
    PLAYFS_TRY(const StoredList::State before, list.state());
    PLAYFS_TRY(const bool has_it, with ? list.has(*with) : Result<bool>(true));
    if (!before.is_whole() || !has_it) return {};
    PLAYFS_TRY(StoredList::Rows rows, select(list));
    // Another process may have added to it meanwhile, or replaced it.
    PLAYFS_TRY(const StoredList::State after, list.state());
    if (after.version != before.version || !after.is_whole()) return {};
    const auto count = static_cast<std::int64_t>(rows.records.size());
    rows.is_damaged = rows.is_damaged || (rows.is_all && (count < before.records || count > after.records));
    found = std::move(rows);
    return {};
  });
  if (!done) return fail(done.error());
  if (found && !found->is_damaged) return std::move(found->records);
  // A list with a hole would never be completed, since its newest records are known.
  if (found) static_cast<void>(replace(site, collection, {}, false));
  return fail(ErrorCode::not_found, "no complete list of " + collection + " is stored");
}

bool RecordIndex::extend_list(const std::string& site, const std::string& collection, const std::string& after,
                              std::span<const ListedRecord> newer) {
  bool extended = false;
  const bool done = state_->write([&](RecordDatabase& on) -> Status {
    StoredList list(on, site, collection);
    PLAYFS_TRY(const StoredList::State state, list.state());
    PLAYFS_TRY(extended, list.has(after));
    extended = extended && state.is_whole();
    if (!extended) return {};
    PLAYFS_TRY(const std::int64_t added, list.add(newer));
    return list.set_records(state.records + added);
  });
  return done && extended;
}

std::optional<WallTime> RecordIndex::named_at(const std::string& site, const std::string& collection,
                                              const std::string& id, const std::string& name) {
  std::optional<WallTime> time;
  state_->read([&](RecordDatabase& on) -> Status {
    time.reset();
    Statement& select = on.select_named;
    PLAYFS_TRY(const bool row, select.bind(1, site).bind(2, collection).bind(3, id).bind(4, name).step());
    if (row) time = WallTime{select.integer(0)};
    select.reset();
    return {};
  });
  return time;
}

bool RecordIndex::replace_list(const std::string& site, const std::string& collection,
                               std::span<const ListedRecord> records, bool goes_on) {
  return state_->replace(site, collection, records, goes_on);
}

bool RecordIndex::State::replace(const std::string& site, const std::string& collection,
                                 std::span<const ListedRecord> records, bool goes_on) {
  std::int64_t version = 0, count = 0;
  bool done = write([&](RecordDatabase& on) -> Status {
    PLAYFS_TRY(version, StoredList(on, site, collection).begin_anew(goes_on));
    return {};
  });
  // In several transactions: another process that begins to replace it meanwhile completes it.
  bool is_ours = true, is_complete = records.empty();
  while (done && is_ours && !is_complete) {
    const auto oldest = records.last(std::min(kListedAtOnce, records.size()));
    records = records.first(records.size() - oldest.size());
    done = write([&](RecordDatabase& on) -> Status {
      StoredList list(on, site, collection);
      PLAYFS_TRY(const StoredList::State state, list.state());
      is_ours = state.version == version && !state.is_whole();
      if (!is_ours) return {};
      PLAYFS_TRY(const std::int64_t added, list.add(oldest));
      count += added;
      return records.empty() ? list.set_records(count) : Status();
    });
    is_complete = records.empty();
  }
  return done && is_ours;
}

bool RecordIndex::outdate_lists(const std::string& site) {
  return state_->write([&](RecordDatabase& on) -> Status {
    PLAYFS_TRY(Statement outdate,
               on.database.prepare("UPDATE whole_lists SET records = -1, version = version + 1 WHERE site = ?"));
    return outdate.bind(1, site).run();
  });
}

std::uint64_t RecordIndex::list_rows_read() const { return state_->reading.list_rows_read(); }

std::optional<Error> RecordIndex::trouble() const {
  auto trouble = state_->reading.trouble();
  return trouble ? trouble : state_->writing.trouble();
}

}  // namespace playfs::cache
