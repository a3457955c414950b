// How text is cut around chunks that are stored already, so that as little as can be is uploaded again. Pure
// functions.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/content_hash.h"
#include "model/ids.h"

namespace playfs {

/// A stored chunk with its text.
struct StoredPiece {
  ChunkId id;
  std::string text;
};

/// Stored chunks of which no more than hash and length is at hand.
struct KnownPieces {
  std::unordered_map<ContentHash, ChunkId> chunks;  ///< by SHA-256 of the chunk's text
  std::set<std::size_t> sizes;                      ///< of texts that are looked for wherever a cut is, in bytes
};

/// A part of a text that is one chunk.
struct Piece {
  std::string_view text;
  std::optional<ChunkId> stored;  ///< engaged: this chunk has exactly this text
  ContentHash hash;               ///< of `text`; only where `stored` is not engaged
};

/// Cuts text so that the fewest pieces are not stored, and among such cuts, the fewest pieces. `near` are chunks that
/// the text probably has most of, in their order: those of the file before it was changed. Such a chunk is found
/// wherever it stands in the text; one of `known` only where a cut is anyway. Views into `text`.
/// REQUIRES: as cut_text; texts in `near` are valid UTF-8.
std::vector<Piece> cut_around(std::string_view text, std::span<const StoredPiece> near, const KnownPieces& known,
                              std::size_t json_room);

}  // namespace playfs
