// The bytes of a published file for a page: put together from the manifest and its chunks, and compared with what the
// manifest says of them. A page shows what is there even where it is not what was promised, and says so; a mount
// would refuse to read it.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "http/pages/reader.h"
#include "model/manifest.h"

namespace playfs::http {

struct Content {
  std::string bytes;
  std::string mismatch;   ///< what is not as the manifest says, in words for a person; empty where everything is
  bool verified = false;  ///< the manifest's hash has the form of SHA-256, and is that of the bytes
};

/// Errors: file_too_big past `ceiling` bytes or for want of reads, not_found for a chunk that does not exist,
/// refused_input for what cannot be decoded.
Result<Content> read_content(Reader& reader, const FileEntry& entry, std::size_t ceiling);

/// Valid UTF-8 without NUL.
bool is_text(std::string_view bytes);

}  // namespace playfs::http
