// The interface to the service's records. SqliteStore and PostgresStore implement it.
//
// A store knows nothing of HTTP, JSON or permissions: it keeps the declared fields as text, assigns ids and times, and
// puts all records of a collection in one total order. Implementations are thread-safe, also with several processes on
// the same data.
//
// Every implementation guarantees:
// - Order: a record acknowledged before another insert began precedes it; lists show the newest first; `created_at`
//   strictly increases along that order, whatever the clock does.
// - Paging through a list by `next` shows every record that existed when it began, once.
// - insert and replace are durable when they return, and atomic.
// - Each of them gives its record the next change number, unless it is a file chunk. A reader
//   that has seen a number never sees a lower one appear later, and no number is given twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace playfs::service {

/// The `status` of a new record.
inline constexpr const char* kInitialStatus = "active";

/// The `status` of a record that the steward has hidden: it keeps its place in every list, and nobody is shown its
/// fields.
inline constexpr const char* kHiddenStatus = "hidden";

struct StoredRecord {
  std::string id;
  WallTime created_at;  ///< whole microseconds
  WallTime updated_at;  ///< whole microseconds; grows with every change, so it serves as the record's version
  std::string status;
  std::string owner;   ///< the account that created it; empty for none
  std::string fields;  ///< the declared fields: a compact JSON object
};

/// The fields as everybody may see them.
inline std::string_view shown_fields(const StoredRecord& record) {
  return record.status == kHiddenStatus ? std::string_view("{}") : std::string_view(record.fields);
}

/// A write that counts against a limit of `allowance` in any `window`.
struct Charge {
  std::string bucket;  ///< names the client and what it writes: their writes are counted together
  std::int64_t allowance = 0;
  std::chrono::seconds window{3600};
  std::string what;  ///< the limit in words, for the error
};

/// The part of a record that a writer supplies.
struct Contents {
  std::string fields;      ///< a compact JSON object
  std::string belongs_to;  ///< the id of its parent, by which list_parts finds it; empty: none
};

struct NewRecord {
  std::string collection;
  Contents contents;
  std::string owner;        ///< empty for none
  std::string request_key;  ///< identifies the request (collection, caller, key), which creates one record; empty: none
  std::optional<Charge> charge;  ///< counted with the insert, and only if it inserts
};

/// A position in a collection's order, as returned in Page::next.
using Position = std::int64_t;
inline constexpr Position kNewest = std::numeric_limits<Position>::max();

struct Page {
  std::vector<StoredRecord> records;  ///< newest first
  std::optional<Position> next;       ///< absent on the last page
};

/// The latest change of a record.
struct Change {
  Position number = 0;
  std::string collection;
  std::string id;
  WallTime updated_at;
  std::string belongs_to;  ///< the record's whole; empty: none
};

/// The collection whose changes have no numbers.
inline constexpr std::string_view kUnwatchedCollection = "file_chunks";

class Store {
 public:
  virtual ~Store() = default;

  /// The new record, or the one that an earlier insert with the same request_key created, which is not charged.
  /// Errors: rate_limited.
  virtual Result<StoredRecord> insert(const NewRecord& record) = 0;

  /// The record that an insert with this request_key created, if any.
  virtual Result<std::optional<StoredRecord>> created_by(std::string_view request_key) = 0;

  /// Errors: not_found.
  virtual Result<StoredRecord> get(std::string_view collection, std::string_view id) = 0;

  /// Up to `limit` records older than `before`.
  virtual Result<Page> list(std::string_view collection, std::size_t limit, Position before) = 0;

  /// The same, of those that belong to `whole`. REQUIRES: `whole` is not empty.
  virtual Result<Page> list_parts(std::string_view collection, std::string_view whole, std::size_t limit,
                                  Position before) = 0;

  /// Gives `read` new contents if it is unchanged since it was read; nullopt otherwise.
  /// Errors: not_found, rate_limited.
  virtual Result<std::optional<StoredRecord>> replace(std::string_view collection, const StoredRecord& read,
                                                      Contents contents, const std::optional<Charge>& charge) = 0;

  /// Gives a record another status, as a change like any other. Errors: not_found.
  virtual Result<StoredRecord> set_status(std::string_view collection, std::string_view id,
                                          std::string_view status) = 0;

  /// Whether a write would be acknowledged now: the same as one, but it changes nothing that anybody sees.
  virtual Status try_to_write() = 0;

  /// Up to `limit` changes after that number, oldest first. A record that changed several times is there once. File
  /// chunks are left out: they are content, which nobody waits for.
  virtual Result<std::vector<Change>> changes(Position after, std::size_t limit) = 0;

  /// The newest change whose number is no more than `most`; nullopt: there is none.
  virtual Result<std::optional<Change>> last_change(Position most) = 0;

  /// The number of the newest change; 0: nothing has changed yet.
  virtual Result<Position> newest_change() = 0;

  /// A random name, assigned when the data was created, that stays with it wherever it is moved.
  [[nodiscard]] virtual const std::string& site_id() const = 0;
};

}  // namespace playfs::service
