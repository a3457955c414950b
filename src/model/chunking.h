// From bytes to the text that records can hold, and back. Pure functions.
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

/// Content that is valid UTF-8 without NUL travels as text; everything else as base64.
ContentEncoding encoding_for(std::string_view content);

/// The most text in one chunk, in bytes: "about 12 KB".
inline constexpr std::size_t kMaxChunkText = 12 * 1024;
/// What else a file_chunks record may need beside its text, in bytes of JSON: path, ids, hash, times, names.
/// The worst case is held down by cutting chunks shorter, see cut_text.
inline constexpr std::size_t kMaxChunkJson = 15 * 1024;

/// The largest file that is shown, in bytes: whoever reads it puts it together whole. So none is published that is
/// larger.
inline constexpr std::uint64_t kMaxFileSize = 64 << 20;

/// Cuts text into the fewest pieces of at most kMaxChunkText bytes whose JSON form stays within `json_room` bytes,
/// never inside a UTF-8 sequence. They are about equally long: what is left of the room takes up what is inserted there
/// later. Concatenated they are `text`. Views into it. Empty text gives no pieces. REQUIRES: valid UTF-8,
/// json_room >= 64.
std::vector<std::string_view> cut_text(std::string_view text, std::size_t json_room = kMaxChunkJson);
/// The same of the part from `begin` to `end` of a text that is not in memory: how long each piece is.
std::vector<std::size_t> cut_text(Text& text, std::size_t begin, std::size_t end, std::size_t json_room);

/// The text of a file's content in the given encoding.
std::string encode_content(std::string_view content, ContentEncoding encoding);
/// The inverse; nullopt where base64 is not valid.
std::optional<std::string> decode_content(std::string text, ContentEncoding encoding);

}  // namespace playfs
