// Content to chunks and back: complete, within the size limit, never cut inside a character. The first byte is the
// limit.
#include "base/text.h"
#include "fuzz.h"
#include "model/chunking.h"
#include "model/json.h"

using namespace playfs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::size_t room = 64 + data[0];
  std::string_view content = as_text(data + 1, size - 1);
  ContentEncoding encoding = encoding_for(content);
  std::string text = encode_content(content, encoding);
  std::string joined;
  for (auto piece : cut_text(text, room)) {
    FUZZ_CHECK(!piece.empty() && is_valid_utf8(piece) && json_size_of_string(piece) <= room);
    joined += piece;
  }
  FUZZ_CHECK(joined == text);
  FUZZ_CHECK(decode_content(joined, encoding) == content);
  return 0;
}
