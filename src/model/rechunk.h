// Cuts text around chunks that are already stored, to upload as little as possible again. Neither the text nor the
// chunks need be in memory.
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

/// A stored chunk that may occur anywhere in a text: what is needed to find it, without its text.
struct StoredPiece {
  ChunkId id;
  std::size_t size = 0;         ///< of its text, in bytes
  ContentHash hash;             ///< of its text
  std::uint64_t beginning = 0;  ///< weak hashes of its first and last bytes; 0 if too short to search for
  std::uint64_t ending = 0;
};
StoredPiece stored_piece(ChunkId id, std::string_view text);

/// Stored chunks of which only hash and length are at hand. There may be very many.
class KnownPieces {
 public:
  virtual ~KnownPieces() = default;
  /// Finds a chunk by the SHA-256 of its text.
  [[nodiscard]] virtual Result<std::optional<ChunkId>> find(const ContentHash& text) const = 0;
  /// The text lengths, in bytes, to look for at each cut; ascending.
  [[nodiscard]] virtual const std::set<std::size_t>& sizes() const = 0;
};

/// A part of a text that is one chunk.
struct Piece {
  std::size_t offset = 0, size = 0;
  std::optional<ChunkId> stored;  ///< if set: this chunk has exactly this text
  ContentHash hash;               ///< of the part; only if `stored` is not set
};

/// Cuts text into few pieces that are not stored, never more than cut_text makes, and then into few pieces overall.
/// `near` are chunks likely to make up most of the text, in order: those of the file before its change. They are found
/// anywhere in the text, but chunks of `known` (may be nullptr) only where a cut happens anyway. Fails if `known` does
/// or the text cannot be read. REQUIRES: as cut_text; texts in `near` are valid UTF-8.
Result<std::vector<Piece>> cut_around(Text& text, std::span<const StoredPiece> near, const KnownPieces* known,
                                      std::size_t json_room);

}  // namespace playfs
