// A list in a RecordIndex's database. Internal to this module. Each call runs in its caller's transaction, or only
// reads. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/record_database.h"
#include "cache/record_index.h"

namespace playfs::cache {

class StoredList {
 public:
  StoredList(RecordDatabase& on, const std::string& site, const std::string& collection)
      : on_(on), site_(site), collection_(collection) {}

  struct State {
    std::int64_t records = kUnfinished;  ///< of a complete list
    std::int64_t version = 0;            ///< of the replacement that made it, or is making it
    bool goes_on = false;                ///< the service has older records
    [[nodiscard]] bool is_whole() const { return records != kUnfinished; }
  };
  struct Rows {
    std::vector<ListedRecord> records;  ///< newest first
    bool is_damaged = false;
    bool is_all = false;  ///< the whole list
  };

  Result<State> state();
  Result<bool> has(const std::string& id);
  Result<Rows> rows(std::size_t most_bytes);
  Result<Rows> rows_of(const std::string& owner, std::size_t most_bytes);
  Result<Rows> rows_with(std::span<const std::string> ids);

  /// Returns the version of the replacement that begins.
  Result<std::int64_t> begin_anew(bool goes_on);
  /// Adds records on top; one that is there already keeps its place. Returns how many are new.
  Result<std::int64_t> add(std::span<const ListedRecord> newer);
  Status set_records(std::int64_t count);

 private:
  static constexpr std::int64_t kUnfinished = -1;

  Statement& bound(Statement& statement) { return statement.bind(1, site_).bind(2, collection_); }
  Result<bool> next(Statement& select, Rows& rows);
  Result<Rows> selected(Statement& select, std::size_t most_bytes);

  RecordDatabase& on_;
  const std::string& site_;
  const std::string& collection_;
};

}  // namespace playfs::cache
