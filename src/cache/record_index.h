// What is known of records without asking the service: immutable ones in full, mutable ones as last seen, lists of ids,
// and that some do not exist.
//
// One SQLite database in the cache directory, shared by all sites and processes; rows are keyed by site, so that one
// service cannot speak for another. All of it can be fetched again: a row that fails its checksum is dropped, a
// database that is damaged or of another version is recreated. So hardly anything here fails: what cannot be read is
// unknown, what cannot be written is requested again. Thread-safe; calls do local I/O.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/result.h"
#include "model/content_hash.h"

namespace playfs::cache {

struct StoredRecord {
  std::string text;  ///< the record's JSON
  std::string etag;  ///< empty if unknown
  WallTime fetched_at;
};

/// A list entry: a record without its body.
struct ListedRecord {
  std::string id;
  WallTime created_at;
  std::string name;     ///< shown beside the id
  std::string project;  ///< the project or thread it belongs to, if any
  std::string kind = {};
  WallTime updated_at = {};
  WallTime named_at = {};  ///< when it took its name, as far as is known here; says nothing about the record itself
  bool operator==(const ListedRecord& other) const { return is_like(other) && updated_at == other.updated_at; }
  /// Whether it is listed as the same, whenever it was changed.
  [[nodiscard]] bool is_like(const ListedRecord& other) const {
    return id == other.id && created_at == other.created_at && name == other.name && project == other.project &&
           kind == other.kind;
  }
  /// Its approximate memory in a list; the same for equal records, whatever their source.
  [[nodiscard]] std::size_t bytes() const {
    return sizeof(ListedRecord) + id.size() + name.size() + project.size() + kind.size();
  }
};

struct RecordIndexOptions {
  /// Bytes of the database; each writing process may exceed it by up to a sixteenth. The least recently used records
  /// are evicted first, pinned ones never.
  std::uint64_t budget = UINT64_MAX;
  std::uint64_t written_before = 0;  ///< bytes counted as written since the last eviction, see README.md
  const Clock* clock = nullptr;      ///< nullptr: the system clock. Outlives the index
  /// Writes records in batches; nullptr: store_record() writes each. Stopped before the index is destroyed.
  Executor* executor = nullptr;
  bool needs_directory = true;  ///< false: without a usable directory, open() continues in memory, with trouble()
};

struct RecordsUsage {
  struct Collection {
    std::string site;
    std::string collection;
    std::uint64_t records = 0;
  };
  std::uint64_t bytes = 0;  ///< of the database's pages in use
  std::vector<Collection> records;
};

struct RecordsVerified {
  bool sound = false;  ///< the database itself is intact; a damaged one has been removed
  std::uint64_t checked = 0;
  std::uint64_t damaged = 0;  ///< records that failed their checksum and were dropped
};

class RecordIndex {
 public:
  /// Opens or creates the database in `directory` (0700, created if missing). Fails only without a usable directory.
  static Result<std::unique_ptr<RecordIndex>> open(const std::string& directory, RecordIndexOptions options = {});
  ~RecordIndex();

  [[nodiscard]] std::optional<StoredRecord> record(const std::string& site, const std::string& collection,
                                                   const std::string& id);
  void store_record(const std::string& site, const std::string& collection, const std::string& id,
                    const StoredRecord& record);
  void forget_record(const std::string& site, const std::string& collection, const std::string& id);

  /// Exempts this record from eviction, in place of the one previously pinned for `owner`.
  void pin(const std::string& owner, const std::string& site, const std::string& collection, const std::string& id);

  /// Which object holds the content of a published file whose hash claim cannot serve as a name. `key` is the content's
  /// origin (chunk ids, or revision and path).
  [[nodiscard]] std::optional<ContentHash> content_of(const std::string& site, const std::string& key);
  void store_content_of(const std::string& site, const std::string& key, const ContentHash& hash);

  /// A collection's list as last stored, newest first. If it exceeds `most_bytes`, its newest records, up to and
  /// including the one that exceeds it. Fails with `not_found` unless it is complete here, and with `busy` while
  /// another process has the database: then the list may well be there.
  [[nodiscard]] Result<std::vector<ListedRecord>> list(const std::string& site, const std::string& collection,
                                                       std::size_t most_bytes = SIZE_MAX);
  /// Whether the service had older records than that list.
  [[nodiscard]] bool list_goes_on(const std::string& site, const std::string& collection);
  /// Of that list, the records of one owner (ListedRecord::project): reads no others. Fails as list() does, and with
  /// `not_found` unless the list has `with`, the newest record that the caller knows.
  [[nodiscard]] Result<std::vector<ListedRecord>> list_of(const std::string& site, const std::string& collection,
                                                          const std::string& with, const std::string& owner,
                                                          std::size_t most_bytes = SIZE_MAX);
  /// The same of the records with these ids, in any number.
  [[nodiscard]] Result<std::vector<ListedRecord>> listed(const std::string& site, const std::string& collection,
                                                         const std::string& with, std::span<const std::string> ids);
  /// Adds records newer than `after`, newest first; a record already there gets its new name and owner. False if no
  /// complete list with `after` is stored (cleared, or never written), so that adding would leave a hole: replace it.
  [[nodiscard]] bool extend_list(const std::string& site, const std::string& collection, const std::string& after,
                                 std::span<const ListedRecord> newer);
  /// When the record took that name, if it is stored with it: perhaps by another process, which saw it earlier.
  [[nodiscard]] std::optional<WallTime> named_at(const std::string& site, const std::string& collection,
                                                 const std::string& id, const std::string& name);
  /// Replaces the list by this one. False if it could not be stored, or another process is replacing it, too.
  bool replace_list(const std::string& site, const std::string& collection, std::span<const ListedRecord> records,
                    bool goes_on = false);
  /// The site's lists count as incomplete from now on. When their records took their names stays known until they are
  /// replaced. False if that could not be stored.
  [[nodiscard]] bool outdate_lists(const std::string& site);
  /// How many rows of lists were read so far.
  [[nodiscard]] std::uint64_t list_rows_read() const;

  /// Why the last lookup or store was not done, while that lasts. It costs time, not data.
  [[nodiscard]] std::optional<Error> trouble() const;
  [[nodiscard]] RecordsUsage usage();
  /// Reads everything.
  [[nodiscard]] RecordsVerified verify();
  /// Removes the database in `directory`, even while in use.
  static void clear(const std::string& directory);

 private:
  struct State;
  explicit RecordIndex(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace playfs::cache
