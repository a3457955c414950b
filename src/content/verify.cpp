#include "content/verify.h"

#include "base/text.h"
#include "model/chunking.h"
#include "model/content_hash.h"
#include "model/size_claim.h"

namespace playfs::content {

Status check_content(const FileEntry& entry, std::string_view content) {
  if (auto claim = ContentHash::parse(entry.hash_claim)) {
    if (const auto hash = ContentHash::of(content); hash != *claim)
      return fail(ErrorCode::corrupt, "its SHA-256 is " + hash.hex() + ", but the manifest promises " + claim->hex());
  }
  if (!entry.size_claim || is_size_of(*entry.size_claim, content, entry.encoding)) return {};
  return fail(ErrorCode::corrupt, "it has " + std::to_string(content.size()) + " bytes, but the manifest promises " +
                                      std::to_string(*entry.size_claim));
}

namespace {

Status check_chunk_hashes(const FileEntry& entry, std::span<const FileChunk* const> chunks, std::string_view content) {
  if (ContentHash::parse(entry.hash_claim)) return {};  // checked against the whole content, which decides
  std::optional<ContentHash> whole;
  for (const FileChunk* chunk : chunks) {
    auto claim = ContentHash::parse(chunk->hash_claim);
    if (!claim || *claim == ContentHash::of(chunk->content)) continue;
    if (!whole) whole = ContentHash::of(content);
    if (*claim != *whole)
      return fail(ErrorCode::corrupt, "the SHA-256 of chunk " + escape_for_terminal(chunk->id.text()) +
                                          " differs from what its record promises");
  }
  return {};
}

}  // namespace

std::uint64_t text_ceiling(const FileEntry& entry, std::uint64_t ceiling) {
  // base64 takes 4 characters per 3 bytes, plus line breaks, as many as its writer chose.
  return entry.encoding == ContentEncoding::base64 ? ceiling * 2 + 4 : ceiling;
}

Result<std::string> assemble(const FileEntry& entry, std::span<const FileChunk* const> chunks, std::uint64_t ceiling) {
  std::size_t size = 0;
  for (const FileChunk* chunk : chunks) {
    size += chunk->content.size();
    if (size > text_ceiling(entry, ceiling))
      return fail(ErrorCode::refused_input, "it is larger than " + std::to_string(ceiling) + " bytes");
  }
  std::string text;
  text.reserve(size);
  for (const FileChunk* chunk : chunks) text += chunk->content;
  auto content = decode_content(std::move(text), entry.encoding);
  if (!content) return fail(ErrorCode::corrupt, "its text is not valid base64");
  if (content->size() > ceiling)
    return fail(ErrorCode::refused_input, "it is larger than " + std::to_string(ceiling) + " bytes");
  PLAYFS_CHECK(check_content(entry, *content));
  PLAYFS_CHECK(check_chunk_hashes(entry, chunks, *content));
  return std::move(*content);
}

std::string origin_key(const FileEntry& entry) {
  // Length-prefixed, so that no id can imitate the end of another.
  std::string origin = entry.encoding == ContentEncoding::base64 ? "base64" : "text";
  auto append = [&](std::string_view part) {
    origin += ' ' + std::to_string(part.size()) + ':';
    origin += part;
  };
  auto hash = ContentHash::parse(entry.hash_claim);
  append(hash ? hash->hex() : "");
  append(entry.size_claim ? std::to_string(*entry.size_claim) : "");
  for (const auto& chunk : entry.chunks) append(chunk.text());
  return ContentHash::of(origin).hex();
}

std::string subject_of(const FileRef& file) {
  const Revision& revision = file.revision->revision;
  return "projects/" + revision.project.text() + "/revisions/" + revision.id.text() + "/" + file.path;
}

}  // namespace playfs::content
