// The store's records as values for one page, with a bound on how many, and how many bytes, are read for it. For one
// thread at a time: each request has its own.
//
// Anyone may write records, so what is asked for may lead anywhere: a log that refers to thousands of records, a
// thread whose replies lie between millions of others. Every record that is read counts, and past the bound reading
// fails with `quota_exceeded`; pages that can be shown in part ask `may_read` before.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/records.h"
#include "service/store.h"

namespace playfs::http {

struct RecordList {
  std::vector<Record> records;  ///< newest first
  std::string next;             ///< the cursor of the next page; empty on the last one
};

class Reader {
 public:
  /// The most records that are read for one page.
  static constexpr std::size_t kMostRecords = 2000;

  /// And the most bytes of them, but for those of the last call.
  static constexpr std::size_t kMostBytes = 4 << 20;

  explicit Reader(service::Store& store, std::size_t most_bytes = kMostBytes)
      : store_(store), most_bytes_(most_bytes) {}

  /// Errors: not_found, quota_exceeded.
  Result<Record> get(std::string_view collection, std::string_view id);
  Result<Project> project(std::string_view id);
  Result<Revision> revision(std::string_view id);

  /// A page of a collection. `cursor` is empty or an earlier page's `next`; anything else is invalid_argument.
  Result<RecordList> list(std::string_view collection, std::size_t limit, std::string_view cursor);

  /// A page of the revisions of a project, of the messages of a thread: of what belongs to record `whole`.
  Result<RecordList> parts(std::string_view collection, std::string_view whole, std::size_t limit,
                           std::string_view cursor);

  [[nodiscard]] bool may_read(std::size_t records) const {
    return records_ + records <= kMostRecords && bytes_ < most_bytes_;
  }

 private:
  Result<RecordList> take(Result<service::Page> page);

  Result<Record> decode(service::StoredRecord stored);

  service::Store& store_;
  const std::size_t most_bytes_;
  std::size_t records_ = 0;
  std::size_t bytes_ = 0;
};

/// A field that is text, or a number, as text; empty for anything else.
std::string text_field(const JsonObject& fields, std::string_view name);

}  // namespace playfs::http
