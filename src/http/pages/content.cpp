#include "http/pages/content.h"

#include <utility>

#include "base/text.h"
#include "model/chunking.h"
#include "model/content_hash.h"
#include "model/size_claim.h"
#include "wire/records.h"

namespace playfs::http {

namespace {

Result<std::string> text_of_chunks(Reader& reader, const FileEntry& entry, std::size_t ceiling) {
  if (!reader.may_read(entry.chunks.size())) return fail(ErrorCode::file_too_big, "it has too many chunks to show");
  std::string text;
  for (const ChunkId& id : entry.chunks) {
    auto record = reader.get("file_chunks", id.text());
    if (!record) return fail(record.error().while_doing("chunk " + id.text()));
    PLAYFS_TRY(FileChunk chunk, wire::decode_chunk(*std::move(record)));
    text += chunk.content;
    if (text.size() > ceiling) return fail(ErrorCode::file_too_big, "it is too large to show");
  }
  return text;
}

}  // namespace

Result<Content> read_content(Reader& reader, const FileEntry& entry, std::size_t ceiling) {
  // base64 is four characters for three bytes, and line breaks.
  std::size_t text_ceiling = entry.encoding == ContentEncoding::base64 ? ceiling * 2 : ceiling;
  std::string text;
  if (entry.inline_text) text = *entry.inline_text;
  else {
    PLAYFS_TRY(text, text_of_chunks(reader, entry, text_ceiling));
  }
  auto bytes = decode_content(std::move(text), entry.encoding);
  if (!bytes) return fail(ErrorCode::refused_input, "its text is not valid base64");
  if (bytes->size() > ceiling) return fail(ErrorCode::file_too_big, "it is too large to show");

  Content content;
  content.bytes = *std::move(bytes);
  if (auto claim = ContentHash::parse(entry.hash_claim)) {
    auto hash = ContentHash::of(content.bytes);
    content.verified = hash == *claim;
    if (!content.verified)
      content.mismatch = "the SHA-256 of these bytes is " + hash.hex() + ", but the manifest promises " + claim->hex();
  }
  if (content.mismatch.empty() && entry.size_claim && !is_size_of(*entry.size_claim, content.bytes, entry.encoding)) {
    content.verified = false;
    content.mismatch = "these are " + std::to_string(content.bytes.size()) + " bytes, but the manifest promises " +
                       std::to_string(*entry.size_claim);
  }
  return content;
}

bool is_text(std::string_view bytes) { return bytes.find('\0') == std::string_view::npos && is_valid_utf8(bytes); }

}  // namespace playfs::http
