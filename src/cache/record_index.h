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
};

class RecordIndex {
 public:
  /// Opens or creates the database in `directory` (0700, made where it is missing). Fails only where there is no
  /// directory to work in.
  static Result<std::unique_ptr<RecordIndex>> open(const std::string& directory);
  ~RecordIndex();

  [[nodiscard]] std::optional<StoredRecord> record(const std::string& site, const std::string& collection,
                                                   const std::string& id);
  void store_record(const std::string& site, const std::string& collection, const std::string& id,
                    const StoredRecord& record);
  void forget_record(const std::string& site, const std::string& collection, const std::string& id);

  /// Which object holds the content of a published file whose own hash cannot be trusted as a name. `key` says where
  /// the content came from (chunk ids, or revision and path).
  [[nodiscard]] std::optional<ContentHash> content_of(const std::string& site, const std::string& key);
  void store_content_of(const std::string& site, const std::string& key, const ContentHash& hash);

  /// A collection's list as far as it was read, newest first.
  [[nodiscard]] std::vector<ListedRecord> list(const std::string& site, const std::string& collection);
  /// Adds what is newer than all that is stored, newest first. A record that is there already gets its new name.
  void extend_list(const std::string& site, const std::string& collection, std::span<const ListedRecord> newer);
  /// Forgets the list and stores this one instead.
  void replace_list(const std::string& site, const std::string& collection, std::span<const ListedRecord> records);

 private:
  struct State;
  explicit RecordIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace playfs::cache
