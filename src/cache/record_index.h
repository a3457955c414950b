// What is known of records without asking the service: immutable ones in full, mutable ones as last seen, lists of ids.
//
// One SQLite database in the cache directory, shared by all sites and processes; rows are keyed by site, so that one
// service can never speak for another. Everything in it can be fetched again: a row that its checksum denies is
// forgotten, a database that is damaged, or of another version, is made anew. So nothing here fails: what cannot be
// read is not known, what cannot be written will be asked for again. Thread-safe; calls do local I/O.
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
  std::string etag;  ///< empty where none is known
  WallTime fetched_at;
};

/// A record of a list without its body.
struct ListedRecord {
  std::string id;
  WallTime created_at;
  std::string name;     ///< what the list shows of it beside the id
  std::string project;  ///< the project or thread it belongs to, where it does
  bool operator==(const ListedRecord&) const = default;
  /// What it takes of a list in memory, about: the same for the same record, wherever it comes from.
  [[nodiscard]] std::size_t bytes() const { return sizeof(ListedRecord) + id.size() + name.size() + project.size(); }
};

struct RecordIndexOptions {
  /// Bytes of the database, kept to within a sixteenth for each process that writes: records that were used longest
  /// ago go first, pinned ones never.
  std::uint64_t budget = UINT64_MAX;
  std::uint64_t written_before = 0;  ///< bytes that count as written since room was made last, see README.md
  const Clock* clock = nullptr;      ///< nullptr: the machine's. Outlives the index
  /// Where records are written down, some at a time; nullptr: each in its store_record(). Is stopped before the index
  /// goes.
  Executor* executor = nullptr;
  bool needs_directory = true;  ///< false: where there is none to work in, open() goes on in memory, with trouble()
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
  bool sound = false;  ///< the database itself is; one that is not has been removed
  std::uint64_t checked = 0;
  std::uint64_t damaged = 0;  ///< records that their checksum denied; forgotten now
};

class RecordIndex {
 public:
  /// Opens or creates the database in `directory` (0700, made where it is missing). Fails only where there is no
  /// directory to work in.
  static Result<std::unique_ptr<RecordIndex>> open(const std::string& directory, RecordIndexOptions options = {});
  ~RecordIndex();

  [[nodiscard]] std::optional<StoredRecord> record(const std::string& site, const std::string& collection,
                                                   const std::string& id);
  void store_record(const std::string& site, const std::string& collection, const std::string& id,
                    const StoredRecord& record);
  void forget_record(const std::string& site, const std::string& collection, const std::string& id);

  /// From now on this record stays when room is made, and no longer the one that was pinned for `owner` before.
  void pin(const std::string& owner, const std::string& site, const std::string& collection, const std::string& id);

  /// Which object holds the content of a published file whose own hash cannot be trusted as a name. `key` says where
  /// the content came from (chunk ids, or revision and path).
  [[nodiscard]] std::optional<ContentHash> content_of(const std::string& site, const std::string& key);
  void store_content_of(const std::string& site, const std::string& key, const ContentHash& hash);

  /// A collection's list, newest first, as it was when it was stored last; empty where it is not here as a whole. Of
  /// one that takes more than `most_bytes` the newest records, down to the one that is too many.
  [[nodiscard]] std::vector<ListedRecord> list(const std::string& site, const std::string& collection,
                                               std::size_t most_bytes = SIZE_MAX);
  /// Adds what is newer than `after`, newest first. A record that is there already gets its new name. False where no
  /// whole list with `after` is stored (it was cleared, or never written), so that adding would leave a hole: replace
  /// it.
  [[nodiscard]] bool extend_list(const std::string& site, const std::string& collection, const std::string& after,
                                 std::span<const ListedRecord> newer);
  /// Forgets the list and stores this one instead.
  void replace_list(const std::string& site, const std::string& collection, std::span<const ListedRecord> records);

  /// Why the last lookup or store was not done, while that lasts: nothing is lost by it but time.
  [[nodiscard]] std::optional<Error> trouble() const;
  [[nodiscard]] RecordsUsage usage();
  /// Reads everything.
  [[nodiscard]] RecordsVerified verify();
  /// Removes the database in `directory`, also from under those who use it.
  static void clear(const std::string& directory);

 private:
  struct State;
  explicit RecordIndex(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace playfs::cache
