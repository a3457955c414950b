// Records waiting to be written: visible immediately, written in batches.
//
// The first read of a project brings hundreds of records at once; a transaction each would delay readers. Records that
// a killed process had not written are fetched again. If writing fails, the latest records stay in memory and can still
// be found. Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace playfs::cache {

struct RecordKey {
  std::string site, collection, id;
  auto operator<=>(const RecordKey&) const = default;
};

/// An empty `Record` means that the record is to be removed.
template <class Record>
class PendingRecords {
 public:
  using RecordPtr = std::shared_ptr<const std::optional<Record>>;
  using Batch = std::vector<std::pair<RecordKey, RecordPtr>>;

  void put(RecordKey key, std::optional<Record> record, std::size_t size) PLAYFS_EXCLUDES(mutex_) {
    auto shared = std::make_shared<const std::optional<Record>>(std::move(record));
    MutexLock lock(mutex_);
    auto& entry = records_[std::move(key)];
    bytes_ += size;
    bytes_ -= entry.size;
    entry = {std::move(shared), size};
  }
  /// nullptr: nothing is pending for the key.
  [[nodiscard]] RecordPtr find(const RecordKey& key) const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    auto found = records_.find(key);
    return found == records_.end() ? nullptr : found->second.record;
  }
  [[nodiscard]] std::size_t bytes() const PLAYFS_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return bytes_;
  }

  /// Calls `write` with everything pending until nothing is. Runs in one thread at a time; concurrent callers leave
  /// their records to it. Records being written can still be found, as can those for which `write` returned false, up
  /// to kMostUnwritten bytes and kMostUnwrittenRecords.
  template <class Write>
  void write_all(Write write) PLAYFS_EXCLUDES(mutex_) {
    for (bool first = true;; first = false) {
      Batch batch;
      {
        MutexLock lock(mutex_);
        if (first && writing_) return;
        writing_ = !records_.empty();
        if (!writing_) return;
        for (const auto& [key, entry] : records_) batch.emplace_back(key, entry.record);
      }
      const bool written = write(batch);
      MutexLock lock(mutex_);
      const bool stays = !written && bytes_ <= kMostUnwritten && records_.size() <= kMostUnwrittenRecords;
      if (stays) {
        writing_ = false;
        return;
      }
      for (const auto& [key, record] : batch) {
        auto found = records_.find(key);
        if (found == records_.end() || found->second.record != record) continue;
        bytes_ -= found->second.size;
        records_.erase(found);
      }
    }
  }

 private:
  static constexpr std::size_t kMostUnwritten = 16 << 20;
  static constexpr std::size_t kMostUnwrittenRecords = 65'536;
  struct Entry {
    RecordPtr record;
    std::size_t size = 0;
  };

  mutable Mutex mutex_;
  std::map<RecordKey, Entry> records_ PLAYFS_GUARDED_BY(mutex_);
  std::size_t bytes_ PLAYFS_GUARDED_BY(mutex_) = 0;
  bool writing_ PLAYFS_GUARDED_BY(mutex_) = false;
};

}  // namespace playfs::cache
