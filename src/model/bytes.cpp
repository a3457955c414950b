#include "model/bytes.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/text_check.h"
#include "model/json.h"

namespace playfs {

namespace {

constexpr std::size_t kWindow = 128 << 10;
/// Base64 turns three bytes into four characters.
constexpr std::uint64_t kBytesOfGroup = 3, kCharactersOfGroup = 4;

class StringSource final : public ByteSource {
 public:
  explicit StringSource(std::string text) : text_(std::move(text)) {}
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    return text_.substr(static_cast<std::size_t>(offset), size);
  }

 private:
  const std::string text_;
};

}  // namespace

Bytes::Bytes(std::string in_memory) : size_(in_memory.size()) {
  if (size_ > 0) source_ = std::make_shared<StringSource>(std::move(in_memory));
}

Result<std::string> Bytes::read(std::uint64_t offset, std::size_t size) const {
  if (size == 0) return std::string();
  PLAYFS_TRY(std::string bytes, source_->read(offset, size));
  if (bytes.size() != size) return fail(ErrorCode::corrupt, "the content became shorter");
  return bytes;
}

Status each_piece(const Bytes& bytes, const std::function<Status(std::uint64_t offset, std::string_view piece)>& take) {
  for (std::uint64_t at = 0; at < bytes.size();) {
    PLAYFS_TRY(std::string piece,
               bytes.read(at, static_cast<std::size_t>(std::min<std::uint64_t>(kWindow, bytes.size() - at))));
    PLAYFS_CHECK(take(at, piece));
    at += piece.size();
  }
  return {};
}

Result<Examined> examine(const Bytes& bytes) {
  ContentHasher hasher;
  TextCheck check;
  PLAYFS_CHECK(each_piece(bytes, [&](std::uint64_t, std::string_view piece) -> Status {
    hasher.update(piece);
    check.update(piece);
    return {};
  }));
  return Examined{hasher.finish(), check.is_text() ? ContentEncoding::text : ContentEncoding::base64};
}

std::uint64_t text_size(std::uint64_t bytes, ContentEncoding encoding) {
  if (encoding == ContentEncoding::text) return bytes;
  return (bytes + kBytesOfGroup - 1) / kBytesOfGroup * kCharactersOfGroup;
}

Result<std::string> read_text(const Bytes& bytes, ContentEncoding encoding, std::uint64_t offset, std::size_t size) {
  if (encoding == ContentEncoding::text) return bytes.read(offset, size);
  std::uint64_t first = offset / kCharactersOfGroup;
  std::uint64_t last = (offset + size + kCharactersOfGroup - 1) / kCharactersOfGroup;
  std::uint64_t from = first * kBytesOfGroup, to = std::min(last * kBytesOfGroup, bytes.size());
  if (from >= to) return std::string();
  PLAYFS_TRY(std::string part, bytes.read(from, static_cast<std::size_t>(to - from)));
  return to_base64(part).substr(static_cast<std::size_t>(offset - first * kCharactersOfGroup), size);
}

void Text::move_to(std::size_t offset, std::size_t length) {
  std::size_t wanted = std::min(std::max(length, kWindow), size() - offset);
  begin_ = offset;
  window_.clear();
  if (status_) {
    auto read = read_text(bytes_, encoding_, offset, wanted);
    if (read && read->size() == wanted) window_ = *std::move(read);
    else if (read) status_ = fail(ErrorCode::corrupt, "the content became shorter");
    else status_ = fail(read.error());
  }
  window_.resize(wanted, ' ');
}

namespace {
template <class Take>
void each_part(Text& text, std::size_t begin, std::size_t end, const Take& take) {
  constexpr std::size_t step = 16 << 10;
  for (; begin < end; begin += std::min(step, end - begin)) take(text.view(begin, std::min(step, end - begin)));
}
}  // namespace

ContentHash hash_of(Text& text, std::size_t begin, std::size_t end) {
  ContentHasher hasher;
  each_part(text, begin, end, [&](std::string_view part) { hasher.update(part); });
  return hasher.finish();
}

std::size_t json_inside(Text& text, std::size_t begin, std::size_t end) {
  std::size_t size = 0;
  each_part(text, begin, end, [&](std::string_view part) { size += json_size_of_string(part) - 2; });
  return size;
}

}  // namespace playfs
