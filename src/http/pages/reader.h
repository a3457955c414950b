// Reads the store's records for one page, within bounds on their number and bytes. For one thread at a time: each
// request has its own.
//
// Anyone may write records, so a page may lead anywhere: to a log that refers to thousands of records, or a thread
// whose replies lie between millions of others. Every record read counts, and past the bound reading fails with
// `quota_exceeded`; pages that can be shown in part ask `may_read` first.
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
  /// The most records read for one page.
  static constexpr std::size_t kMostRecords = 2000;

  /// The bytes of records after which nothing more is read.
  static constexpr std::size_t kMostBytes = 4 << 20;

  /// A part of a page that leaves the rest of the budget to the others: while it exists, at most this much more is
  /// read.
  class Part {
   public:
    Part(Reader& reader, std::size_t records, std::size_t bytes);
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    Reader& reader_;
    const std::size_t most_records_, most_bytes_;  // of the whole page
  };

  explicit Reader(service::Store& store, std::size_t most_bytes = kMostBytes)
      : store_(store), most_bytes_(most_bytes) {}

  /// Errors: not_found, quota_exceeded.
  Result<Record> get(std::string_view collection, std::string_view id);
  Result<Project> project(std::string_view id);
  Result<Revision> revision(std::string_view id);

  /// A page of a collection. `cursor` is empty or an earlier page's `next`; anything else is invalid_argument.
  Result<RecordList> list(std::string_view collection, std::size_t limit, std::string_view cursor);

  /// A page of the records that belong to `whole`: a project's revisions, a thread's messages.
  Result<RecordList> parts(std::string_view collection, std::string_view whole, std::size_t limit,
                           std::string_view cursor);

  [[nodiscard]] bool may_read(std::size_t records) const {
    return records_ + records <= most_records_ && bytes_ < most_bytes_;
  }

 private:
  Result<RecordList> take(Result<service::Page> page);

  Result<Record> decode(service::StoredRecord stored);

  service::Store& store_;
  std::size_t most_records_ = kMostRecords;
  std::size_t most_bytes_;
  std::size_t records_ = 0;
  std::size_t bytes_ = 0;
};

/// The value of a text or number field as text; empty for anything else.
std::string text_field(const JsonObject& fields, std::string_view name);

}  // namespace playfs::http
