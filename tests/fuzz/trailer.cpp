// The trailer of an object file, made for some content, then damaged as the input says: it is read as it was made, or
// rejected.
#include "cache/object_file.h"
#include "fuzz.h"

using namespace playfs;
using namespace playfs::cache;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  // Any file size, and any bytes.
  std::uint64_t claimed = 0;
  for (int i = 0; i < 8; ++i) claimed = claimed << 8 | input.byte();
  claimed >>= 1 + input.byte() % 63;
  if (auto length = trailer_size(claimed)) FUZZ_CHECK(*length <= claimed && file_size_of(claimed - *length) == claimed);
  if (claimed < UINT64_MAX / 4) FUZZ_CHECK(trailer_size(file_size_of(claimed)) == file_size_of(claimed) - claimed);

  const std::size_t repeats = 1 + input.below(400), at = input.below(4096);
  const std::uint8_t change = input.byte();
  const std::string_view piece = input.rest();
  std::string content;
  for (std::size_t i = 0; i < repeats && content.size() < 4 * kBlockSize; ++i) content += piece;
  const ContentHash hash = ContentHash::of(content);
  static_cast<void>(parse_trailer(piece, claimed, hash));
  static_cast<void>(parse_trailer(piece, content.size() + piece.size(), hash));

  std::string trailer = make_trailer(hash, content);
  const std::uint64_t whole = content.size() + trailer.size();
  FUZZ_CHECK(whole == file_size_of(content.size()) && trailer_size(whole) == trailer.size());
  auto parsed = parse_trailer(trailer, whole, hash);
  FUZZ_CHECK(parsed && parsed->size == content.size());
  for (std::size_t i = 0; i < parsed->checksums.size(); ++i)
    FUZZ_CHECK(parsed->checksums[i] == checksum_of(std::string_view(content).substr(i * kBlockSize, kBlockSize)));
  FUZZ_CHECK(!parse_trailer(trailer, whole, ContentHash::of(content + "x")));
  FUZZ_CHECK(!parse_trailer(trailer, whole + 1, hash));
  trailer[at % trailer.size()] = static_cast<char>(trailer[at % trailer.size()] ^ change);
  FUZZ_CHECK(parse_trailer(trailer, whole, hash).has_value() == (change == 0));
  return 0;
}
