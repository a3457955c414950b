// What is known of records without asking the service: immutable ones in full, mutable ones as last seen, lists of ids.
//
// One SQLite database in the cache directory, shared by all sites and processes; rows are keyed by site, so that one
// service can never speak for another. Everything in it can be fetched again: damage is answered by forgetting.
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/content_hash.h"

namespace playfs::cache {

struct StoredRecord {
  std::string text;      ///< the record's JSON
  std::string etag;      ///< empty where none is known
  WallTime fetched_at;
};

class RecordIndex {
 public:
  static Result<std::unique_ptr<RecordIndex>> open(const std::string& directory);
  ~RecordIndex();

  [[nodiscard]] std::optional<StoredRecord> record(const std::string& site, const std::string& collection, const std::string& id);
  void store_record(const std::string& site, const std::string& collection, const std::string& id, const StoredRecord& record);

  /// Which object holds the content of a published file whose own hash cannot be trusted as a name. `key` says where
  /// the content came from (chunk ids, or revision and path).
  [[nodiscard]] std::optional<ContentHash> content_of(const std::string& site, const std::string& key);
  void store_content_of(const std::string& site, const std::string& key, const ContentHash& hash);

 private:
  struct State;
  explicit RecordIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace playfs::cache
