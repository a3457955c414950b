// Converts bytes to the text that records hold, and back. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/bytes.h"
#include "model/manifest.h"

namespace playfs {

/// Valid UTF-8 without NUL is stored as text, everything else as base64.
ContentEncoding encoding_for(std::string_view content);

/// The most text in one chunk, in bytes: the specification's "about 12 KB".
inline constexpr std::size_t kMaxChunkText = 12 * 1024;
/// The most JSON that a chunk's text may take, in bytes with quotes; the rest of the record is for path, ids, hash,
/// times and field names. Text with many escapes is cut shorter to stay within it, see cut_text.
inline constexpr std::size_t kMaxChunkJson = 15 * 1024;

/// The largest file that is shown, in bytes, since readers assemble files whole. Larger files are not published either.
inline constexpr std::uint64_t kMaxFileSize = 64 << 20;

/// Cuts text into the fewest pieces of at most kMaxChunkText bytes and `json_room` bytes of JSON, never inside a UTF-8
/// sequence. Pieces are about equally long, so that each has slack for later insertions. They are views into `text` and
/// concatenate to it; empty text yields none. REQUIRES: valid UTF-8, json_room >= 64.
std::vector<std::string_view> cut_text(std::string_view text, std::size_t json_room = kMaxChunkJson);
/// The same for [begin, end) of a text that need not be in memory; returns the length of each piece.
std::vector<std::size_t> cut_text(Text& text, std::size_t begin, std::size_t end, std::size_t json_room);

/// Encodes a file's content as record text.
std::string encode_content(std::string_view content, ContentEncoding encoding);
/// The inverse; nullopt for invalid base64.
std::optional<std::string> decode_content(std::string text, ContentEncoding encoding);

}  // namespace playfs
