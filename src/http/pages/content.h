// The bytes of a published file for a page: assembled from the manifest and its chunks, and compared with the
// manifest's claims. Where a mount would refuse a mismatched file, a page shows it and says so. For one thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/pages/reader.h"
#include "model/content_hash.h"
#include "model/manifest.h"

namespace playfs::http {

/// A file's bytes, about a chunk at a time.
class ContentPieces {
 public:
  explicit ContentPieces(const FileEntry& entry);

  /// The next bytes; empty at the end.
  /// Errors: not_found for a missing chunk, refused_input for content that cannot be decoded, quota_exceeded.
  Result<std::string> next(Reader& reader);

 private:
  Result<std::string> next_text(Reader& reader);
  Result<std::string> decode(std::string text);

  const ContentEncoding encoding_;
  std::optional<std::string> inline_text_;
  const std::vector<ChunkId> chunks_;
  std::size_t read_ = 0;   // chunks
  std::string undecoded_;  // an incomplete group of base64
  bool padded_ = false;    // base64 has ended
};

/// The result of reading a whole file.
struct Verdict {
  std::uint64_t size = 0;
  ContentHash hash;
  bool is_text = false;   ///< valid UTF-8 without NUL
  std::string mismatch;   ///< how the file differs from its manifest, for people; empty if it does not
  bool verified = false;  ///< the manifest's hash is a SHA-256, and is that of the bytes
};

struct Content : Verdict {
  std::string bytes;
};

/// Errors: as ContentPieces::next(), and file_too_big past `ceiling` bytes or the reader's limit.
Result<Content> read_content(Reader& reader, const FileEntry& entry, std::size_t ceiling);
/// The same, without keeping the bytes.
Result<Verdict> examine_content(Reader& reader, const FileEntry& entry, std::size_t ceiling);

}  // namespace playfs::http
