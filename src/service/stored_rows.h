// The whole content of a store as rows of plain values, which mean the same in every kind of store: for copying and
// comparing stores. Works while servers use the store. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "service/store.h"

namespace playfs::service {

struct StoredColumn {
  enum class Kind {
    integer,
    word,   ///< text of our own
    text,   ///< text that strangers wrote
    bytes,  ///< of our own
  };
  const char* name;
  Kind kind;
};

struct StoredTable {
  const char* name;
  std::span<const StoredColumn> columns;
  std::size_t keys;  ///< how many of the first columns form the unique key, which gives the order
};

inline constexpr StoredColumn kRecordColumns[] = {{"position", StoredColumn::Kind::integer},
                                                  {"collection", StoredColumn::Kind::word},
                                                  {"id", StoredColumn::Kind::text},
                                                  {"created_at", StoredColumn::Kind::integer},
                                                  {"updated_at", StoredColumn::Kind::integer},
                                                  {"status", StoredColumn::Kind::word},
                                                  {"owner", StoredColumn::Kind::text},
                                                  {"request_key", StoredColumn::Kind::bytes},
                                                  {"fields", StoredColumn::Kind::text},
                                                  {"belongs_to", StoredColumn::Kind::text},
                                                  {"changed", StoredColumn::Kind::integer}};
inline constexpr StoredTable kRecordTable{"records", kRecordColumns, 1};

inline constexpr StoredColumn kAccountColumns[] = {
    {"id", StoredColumn::Kind::text}, {"email", StoredColumn::Kind::text}, {"created_at", StoredColumn::Kind::integer}};
inline constexpr StoredTable kAccountTable{"accounts", kAccountColumns, 1};

inline constexpr StoredColumn kKeyColumns[] = {{"hash", StoredColumn::Kind::bytes},
                                               {"account", StoredColumn::Kind::text},
                                               {"created_at", StoredColumn::Kind::integer}};
inline constexpr StoredTable kKeyTable{"api_keys", kKeyColumns, 1};

/// In an order that tells which codes are the newest.
inline constexpr StoredColumn kCodeColumns[] = {{"expires", StoredColumn::Kind::integer},
                                                {"hash", StoredColumn::Kind::text},
                                                {"email", StoredColumn::Kind::text},
                                                {"client", StoredColumn::Kind::text}};
inline constexpr StoredTable kCodeTable{"sign_in_codes", kCodeColumns, 2};

/// Each kind of store keeps these in tables of its own. `expiries`: when the counted writes expire, in order, separated
/// by commas.
inline constexpr StoredColumn kLimitColumns[] = {{"bucket", StoredColumn::Kind::text},
                                                 {"expiries", StoredColumn::Kind::word}};
inline constexpr StoredTable kLimitTable{"write_limits", kLimitColumns, 1};

/// Keys belong to accounts, so they come later.
inline constexpr const StoredTable* kAllTables[] = {&kRecordTable, &kAccountTable, &kKeyTable, &kCodeTable,
                                                    &kLimitTable};

/// monostate is NULL.
using StoredCell = std::variant<std::monostate, std::int64_t, std::string>;
using StoredRow = std::vector<StoredCell>;

/// The columns of a table for SQL: "a, b".
std::string column_list(std::span<const StoredColumn> columns);

struct StoredSite {
  std::string id;
  std::string closed;  ///< see closed_store.h
  /// Those of the newest record.
  Position position = 0;
  Position changed = 0;
  std::int64_t created_at = 0;
};

class StoredRows {
 public:
  virtual ~StoredRows() = default;

  virtual Result<StoredSite> site() = 0;
  /// Up to `limit` rows in key order, after the row with the key `after`; if that is empty, from the first row on.
  virtual Result<std::vector<StoredRow>> rows(const StoredTable& table, const StoredRow& after, std::size_t limit) = 0;
  /// Removes the rows with the keys in `gone`, then adds `added`; a row that exists already stays as it is. REQUIRES:
  /// an unfinished store. Errors: busy for any other.
  virtual Status change(const StoredTable& table, const std::vector<StoredRow>& gone,
                        const std::vector<StoredRow>& added) = 0;
  /// Sets `closed`, which must be `from`, or is `to` already. When it returns, each write is either done or refused.
  /// Errors: busy, if it is something else.
  virtual Status set_closed(std::string_view from, std::string_view to) = 0;
  /// Sets the numbers from which an unfinished store continues, and opens it. Errors: busy for any other store.
  virtual Status finish(const StoredSite& numbers) = 0;
};

}  // namespace playfs::service
