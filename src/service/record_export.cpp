#include "service/record_export.h"

#include <algorithm>
#include <utility>

#include "service/operations.h"
#include "service/record_text.h"

namespace playfs::service {

namespace {

/// How many of the page's first records fit into one part; at least one.
std::size_t records_of_part(const Page& page, std::size_t most) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const StoredRecord& record : page.records) {
    bytes += record.fields.size();
    if (count > 0 && bytes > most) break;
    ++count;
  }
  return count;
}

}  // namespace

Result<std::string> RecordExport::next() {
  std::string lines;
  if (is_done_) return lines;
  PLAYFS_TRY(Page page, store_.list(collection_.name, records_, before_));
  // Only the store can give the cursor after fewer records, so it is asked again. Parts must stay small: a connection
  // whose client does not read holds one.
  if (const std::size_t fitting = records_of_part(page, kPart); fitting < page.records.size()) {
    records_ = fitting;
    PLAYFS_TRY(page, store_.list(collection_.name, records_, before_));
  }
  for (const StoredRecord& record : page.records) {
    lines += R"({"record":)";
    print_record(record, lines);
    lines += "}\n";
  }
  lines += R"({"nextCursor":)";
  if (page.next) lines += '"' + print_cursor(*page.next) + '"';
  else lines += "null";
  lines += "}\n";
  if (lines.size() < kPart / 2) records_ = std::min(2 * records_, kLargestPage);
  is_done_ = !page.next;
  before_ = page.next.value_or(before_);
  return lines;
}

}  // namespace playfs::service
