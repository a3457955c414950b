#include "http/pages/content.h"

#include <functional>
#include <utility>

#include "base/text.h"
#include "base/text_check.h"
#include "model/size_claim.h"
#include "wire/records.h"

namespace playfs::http {

namespace {

constexpr std::size_t kGroup = 4;  // characters of base64

Result<Verdict> examine(Reader& reader, const FileEntry& entry, std::size_t ceiling,
                        const std::function<void(std::string_view)>& take) {
  if (!reader.may_read(entry.chunks.size())) return fail(ErrorCode::file_too_big, "it has too many chunks to show");
  ContentPieces pieces(entry);
  ContentHasher hasher;
  TextCheck text;
  SizeCount sizes(entry.encoding);  // text chunks are UTF-8, each by itself
  for (;;) {
    PLAYFS_TRY(std::string piece, pieces.next(reader));
    if (piece.empty()) break;
    hasher.update(piece);
    text.update(piece);
    sizes.add(piece);
    if (sizes.bytes() > ceiling) return fail(ErrorCode::file_too_big, "it is too large to show");
    take(piece);
  }
  Verdict verdict{sizes.bytes(), hasher.finish(), text.is_text(), {}, false};
  if (auto claim = ContentHash::parse(entry.hash_claim)) {
    verdict.verified = verdict.hash == *claim;
    if (!verdict.verified)
      verdict.mismatch =
          "the SHA-256 of these bytes is " + verdict.hash.hex() + ", but the manifest promises " + claim->hex();
  }
  if (verdict.mismatch.empty() && entry.size_claim && !sizes.is(*entry.size_claim)) {
    verdict.verified = false;
    verdict.mismatch = "these are " + std::to_string(sizes.bytes()) + " bytes, but the manifest promises " +
                       std::to_string(*entry.size_claim);
  }
  return verdict;
}

}  // namespace

ContentPieces::ContentPieces(const FileEntry& entry)
    : encoding_(entry.encoding), inline_text_(entry.inline_text), chunks_(entry.chunks) {}

Result<std::string> ContentPieces::next(Reader& reader) {
  while (inline_text_ || read_ < chunks_.size()) {
    PLAYFS_TRY(std::string bytes, next_text(reader));
    if (encoding_ == ContentEncoding::base64) {
      PLAYFS_TRY(bytes, decode(std::move(bytes)));
    }
    if (!bytes.empty()) return bytes;
  }
  if (!undecoded_.empty()) return fail(ErrorCode::refused_input, "its text is not valid base64");
  return std::string();
}

Result<std::string> ContentPieces::next_text(Reader& reader) {
  if (inline_text_) return *std::exchange(inline_text_, std::nullopt);
  const std::string& id = chunks_[read_++].text();
  auto record = reader.get("file_chunks", id);
  if (!record) return fail(record.error().while_doing("chunk " + id));
  PLAYFS_TRY(FileChunk chunk, wire::decode_chunk(*std::move(record)));
  return std::move(chunk.content);
}

Result<std::string> ContentPieces::decode(std::string text) {
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r'; });
  undecoded_ += text;
  const std::string groups = undecoded_.substr(0, undecoded_.size() / kGroup * kGroup);
  undecoded_.erase(0, groups.size());
  auto bytes = from_base64(groups);
  if (!bytes || (padded_ && !groups.empty())) return fail(ErrorCode::refused_input, "its text is not valid base64");
  padded_ = padded_ || groups.ends_with('=');
  return *std::move(bytes);
}

Result<Content> read_content(Reader& reader, const FileEntry& entry, std::size_t ceiling) {
  Content content;
  PLAYFS_TRY(static_cast<Verdict&>(content),
             examine(reader, entry, ceiling, [&](std::string_view piece) { content.bytes += piece; }));
  return content;
}

Result<Verdict> examine_content(Reader& reader, const FileEntry& entry, std::size_t ceiling) {
  return examine(reader, entry, ceiling, [](std::string_view) {});
}

}  // namespace playfs::http
