#include "model/size_claim.h"

#include "base/text.h"

namespace playfs {

bool is_size_of(std::uint64_t claim, std::string_view content, ContentEncoding encoding) {
  if (claim == content.size()) return true;
  if (encoding != ContentEncoding::text || !is_valid_utf8(content)) return false;
  SizeCount count(encoding);
  count.add(content);
  return count.is(claim);
}

void SizeCount::add(std::string_view piece) {
  bytes_ += piece.size();
  if (encoding_ != ContentEncoding::text) return;
  code_points_ += count_code_points(piece);
  utf16_units_ += count_utf16_units(piece);
}

bool SizeCount::is(std::uint64_t claim) const {
  return claim == bytes_ || (encoding_ == ContentEncoding::text && (claim == code_points_ || claim == utf16_units_));
}

}  // namespace playfs
