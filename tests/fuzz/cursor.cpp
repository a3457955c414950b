// Cursors of lists: a position has only one text, the one that was printed.
#include "fuzz.h"
#include "service/record_text.h"

using namespace playfs::service;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (auto position = parse_cursor(as_text(data, size)))
    FUZZ_CHECK(*position >= 0 && print_cursor(*position) == as_text(data, size));
  Position position = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(size, 8); ++i) position = position << 8 | data[i];
  position &= kNewest;
  FUZZ_CHECK(parse_cursor(print_cursor(position)) == position);
  return 0;
}
