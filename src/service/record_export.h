// A collection as lines of JSON, newest first, for those who want all of it. Used by one thread at a time.
//
// Each record is a line {"record": …}. Each part ends with a line {"nextCursor": "…"}: a client that was cut off
// resumes with the last one it received, and drops what came after it. The last line is {"nextCursor": null}, so that
// an export that was cut short does not pass for a whole one.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "service/collections.h"
#include "service/store.h"

namespace playfs::service {

class RecordExport {
 public:
  /// A part has about as many bytes, or one record.
  static constexpr std::size_t kPart = 64 * 1024;

  /// `store` must outlive it.
  RecordExport(Store& store, const Collection& collection, Position before)
      : store_(store), collection_(collection), before_(before) {}

  /// The next lines; empty after the last.
  Result<std::string> next();

 private:
  Store& store_;
  const Collection& collection_;
  Position before_;
  std::size_t records_ = 16;  ///< to read for the next part; grows while records are small
  bool is_done_ = false;
};

}  // namespace playfs::service
