// A file that is changed again and again, and rechunked around the stored chunks. The first byte is the size limit of a
// chunk; each field is a version, derived from the previous one as its first bytes say.
#include <map>

#include "base/text.h"
#include "fuzz.h"
#include "model/chunking.h"
#include "model/rechunk.h"
#include "support/known_pieces.h"

using namespace playfs;

namespace {

/// Chunks as the service has them.
struct Stored {
  std::vector<StoredPiece> near;
  test::PiecesInMemory known;
  std::map<ChunkId, std::string> texts;

  /// The number of new chunks that this version costs.
  std::size_t store(const std::string& text, std::size_t room) {
    Text windows(text);
    auto pieces = cut_around(windows, near, &known, room);
    FUZZ_CHECK(pieces);
    std::size_t uploads = 0;
    std::string joined;
    std::vector<StoredPiece> now;
    for (const Piece& piece : *pieces) {
      FUZZ_CHECK(piece.offset == joined.size() && piece.size <= kMaxChunkText &&
                 piece.size <= text.size() - piece.offset);
      const std::string part = text.substr(piece.offset, piece.size);
      FUZZ_CHECK(!part.empty() && is_valid_utf8(part));
      joined += part;
      ChunkId id = piece.stored.value_or(ChunkId());
      if (piece.stored) {
        FUZZ_CHECK(texts.at(id) == part);
      } else {
        FUZZ_CHECK(piece.hash == ContentHash::of(part) && json_size_of_string(part) <= room);
        if (auto there = *known.find(piece.hash)) {
          id = *there;
        } else {
          ++uploads;
          id = ChunkId(std::to_string(texts.size()));
          texts[id] = part;
          known.add(piece.hash, part.size(), id);
        }
      }
      now.push_back(stored_piece(id, part));
    }
    FUZZ_CHECK(joined == text);
    near = std::move(now);
    return uploads;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  const std::size_t room = 64 + std::size_t{input.byte()} * 8;
  Stored stored;
  std::string text;
  for (int versions = 0; versions < 8 && !input.empty(); ++versions) {
    const std::size_t at = input.below(text.size() + 1), taken = input.below(512), times = input.byte() % 32;
    const std::string_view piece = input.field();
    std::string next = text.substr(0, at);
    for (std::size_t i = 0; i < times && next.size() < 16'384; ++i)
      next += std::string(piece) + (piece.ends_with('#') ? std::to_string(i) : "");
    next += text.substr(std::min(text.size(), at + taken));
    if (!is_valid_utf8(next)) continue;
    const std::size_t fresh = cut_text(next, room).size();
    FUZZ_CHECK(stored.store(next, room) <= fresh);
    FUZZ_CHECK(stored.store(next, room) == 0);
    text = std::move(next);
  }
  return 0;
}
