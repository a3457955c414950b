#include "cache/object_file.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace playfs::cache {

namespace {
constexpr std::string_view kMagic = "playfsOb";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksumSize = sizeof(BlockChecksum);

std::uint64_t blocks_of(std::uint64_t size) { return (size + kBlockSize - 1) / kBlockSize; }

// Numbers are little-endian on every machine, so that a shared home directory works.
void append_number(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

std::uint64_t read_number(std::string_view from, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(from[static_cast<std::size_t>(i)]);
  return value;
}

std::string raw_bytes(const ContentHash& hash) { return from_hex(hash.hex()).value_or(""); }

void append_checksum(std::string& out, const BlockChecksum& checksum) {
  out.append(reinterpret_cast<const char*>(checksum.data()), checksum.size());
}
}  // namespace

std::string make_trailer(const ContentHash& hash, std::string_view content) {
  std::string trailer;
  trailer.reserve(file_size_of(content.size()) - content.size());
  for (std::size_t at = 0; at < content.size(); at += kBlockSize)
    append_checksum(trailer, checksum_of(content.substr(at, kBlockSize)));
  trailer += kMagic;
  append_number(trailer, kVersion, 4);
  append_number(trailer, kBlockSize, 4);
  append_number(trailer, content.size(), 8);
  trailer += raw_bytes(hash);
  append_checksum(trailer, checksum_of(trailer));
  return trailer;
}

std::uint64_t file_size_of(std::uint64_t content_size) {
  return content_size + blocks_of(content_size) * kChecksumSize + kFooterSize;
}

std::optional<std::size_t> trailer_size(std::uint64_t file_size) {
  if (file_size < kFooterSize) return std::nullopt;
  const std::uint64_t rest = file_size - kFooterSize;
  const std::uint64_t full = kBlockSize + kChecksumSize;
  const std::uint64_t blocks = (rest + full - 1) / full;
  const std::uint64_t checksums = blocks * kChecksumSize;
  if (rest < checksums || blocks_of(rest - checksums) != blocks) return std::nullopt;
  return static_cast<std::size_t>(checksums + kFooterSize);
}

std::optional<Trailer> parse_trailer(std::string_view bytes, std::uint64_t file_size, const ContentHash& hash) {
  if (trailer_size(file_size) != bytes.size()) return std::nullopt;
  const std::uint64_t size = file_size - bytes.size();
  const std::size_t proven = bytes.size() - kChecksumSize;
  const BlockChecksum own = checksum_of(bytes.substr(0, proven));
  if (std::memcmp(own.data(), bytes.data() + proven, own.size()) != 0) return std::nullopt;

  std::string_view footer = bytes.substr(bytes.size() - kFooterSize);
  if (footer.substr(0, 8) != kMagic || read_number(footer.substr(8), 4) != kVersion ||
      read_number(footer.substr(12), 4) != kBlockSize || read_number(footer.substr(16), 8) != size ||
      footer.substr(24, 32) != raw_bytes(hash))
    return std::nullopt;

  Trailer trailer;
  trailer.size = size;
  trailer.checksums.resize(blocks_of(size));
  for (std::size_t i = 0; i < trailer.checksums.size(); ++i)
    std::memcpy(trailer.checksums[i].data(), bytes.data() + i * kChecksumSize, kChecksumSize);
  return trailer;
}

}  // namespace playfs::cache
