// How text is cut around chunks that are stored already, so that as little as can be is uploaded again. Neither the
// text nor the chunks need be in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/bytes.h"
#include "model/content_hash.h"
#include "model/ids.h"

namespace playfs {

/// A stored chunk that may stand anywhere in a text: what it takes to find it there, without its text.
struct StoredPiece {
  ChunkId id;
  std::size_t size = 0;         ///< of its text, in bytes
  ContentHash hash;             ///< of its text
  std::uint64_t beginning = 0;  ///< weak hashes of its first and last bytes; 0 where it is too short to be searched for
  std::uint64_t ending = 0;
};
StoredPiece stored_piece(ChunkId id, std::string_view text);

/// Stored chunks of which no more than hash and length is at hand. There may be very many.
class KnownPieces {
 public:
  virtual ~KnownPieces() = default;
  /// By SHA-256 of the chunk's text.
  [[nodiscard]] virtual Result<std::optional<ChunkId>> find(const ContentHash& text) const = 0;
  /// Of texts that are looked for wherever a cut is, in bytes; ascending.
  [[nodiscard]] virtual const std::set<std::size_t>& sizes() const = 0;
};

/// A part of a text that is one chunk.
struct Piece {
  std::size_t offset = 0, size = 0;
  std::optional<ChunkId> stored;  ///< engaged: this chunk has exactly this text
  ContentHash hash;               ///< of the part; only where `stored` is not engaged
};

/// Cuts text so that few pieces are not stored, never more than cut_text makes, and among such cuts, so that there are
/// few pieces. `near` are chunks that the text probably has most of, in their order: those of the file before it was
/// changed. Such a chunk is found wherever it stands in the text; one of `known` (nullptr: none) only where a cut is
/// anyway. Fails where `known` does, or the text cannot be read. REQUIRES: as cut_text; texts in `near` are valid UTF-8.
Result<std::vector<Piece>> cut_around(Text& text, std::span<const StoredPiece> near, const KnownPieces* known,
                                      std::size_t json_room);

}  // namespace playfs
