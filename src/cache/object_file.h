// The format of an object file: the content, then a trailer that proves it.
//
//   content                     at offset 0, so that reads are aligned and one pread(2) each
//   checksums                   16 bytes for each block of kBlockSize bytes of content, the last one may be short
//   footer                      kFooterSize bytes: magic, version, block size, content size, SHA-256 of the content,
//                               checksum of checksums and footer up to here
//
// A file that was cut off, filled with zeros or mixed from two has no valid footer, or a block that its checksum
// denies. Pure functions, thread-safe.
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

/// The size of the whole file for so many bytes of content.
std::uint64_t file_size_of(std::uint64_t content_size);

/// The length of the trailer of a whole file of `file_size` bytes, from its size alone; nullopt where no content has
/// that size.
std::optional<std::size_t> trailer_size(std::uint64_t file_size);

/// Reads the last trailer_size() bytes of a file; nullopt where they are not the trailer of an object with this hash.
std::optional<Trailer> parse_trailer(std::string_view bytes, std::uint64_t file_size, const ContentHash& hash);

}  // namespace playfs::cache
