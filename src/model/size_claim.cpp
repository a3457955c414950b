#include "model/size_claim.h"

#include "base/text.h"

namespace playfs {

bool is_size_of(std::uint64_t claim, std::string_view content, ContentEncoding encoding) {
  if (claim == content.size()) return true;
  return encoding == ContentEncoding::text && is_valid_utf8(content) &&
         (claim == count_code_points(content) || claim == count_utf16_units(content));
}

}  // namespace playfs
