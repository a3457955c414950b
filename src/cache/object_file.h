// The object file format: the content, then a trailer to verify it.
//
//   content                     at offset 0, so that each read is one aligned pread(2)
//   checksums                   16 bytes per block of kBlockSize bytes of content; the last block may be short
//   footer                      kFooterSize bytes: magic, version, block size, content size, SHA-256 of the content,
//                               checksum of checksums and footer up to here
//
// A file that was truncated, zero-filled or mixed from two has no valid footer, or a block that fails its checksum.
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/checksum.h"
#include "model/content_hash.h"

namespace playfs::cache {

inline constexpr std::size_t kBlockSize = 16 * 1024;
inline constexpr std::size_t kFooterSize = 72;

struct Trailer {
  std::uint64_t size = 0;  ///< bytes of content
  std::vector<BlockChecksum> checksums;
};

/// Checksums and footer for this content.
std::string make_trailer(const ContentHash& hash, std::string_view content);

/// The file size for `content_size` bytes of content.
std::uint64_t file_size_of(std::uint64_t content_size);

/// The trailer's length, derived from the size of the whole file; nullopt if no object has that size.
std::optional<std::size_t> trailer_size(std::uint64_t file_size);

/// Parses the last trailer_size() bytes of a file; nullopt unless they are a valid trailer for this hash.
std::optional<Trailer> parse_trailer(std::string_view bytes, std::uint64_t file_size, const ContentHash& hash);

}  // namespace playfs::cache
