#include "content/record_line.h"

#include "base/text.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::content {

std::string record_line(const Record& record, const std::string& instead) {
  constexpr std::size_t kLongest = 4 * kMaxRecordSize;
  std::string line = escape_json_for_terminal(wire::to_text(wire::encode_record(record)));
  if (line.size() <= kLongest) return line;
  return wire::to_text(JsonObject{{"id", record.id},
                                  {"created_at", record.created_at},
                                  {"left_out", std::to_string(line.size()) + " bytes: see " + instead}});
}

}  // namespace playfs::content
