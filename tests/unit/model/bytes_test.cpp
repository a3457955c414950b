// Content read in pieces equals content read at once, wherever a piece ends.
#include "model/bytes.h"

#include <gtest/gtest.h>

#include "model/chunking.h"
#include "model/json.h"

namespace playfs {
namespace {

constexpr std::size_t kLarge = 300'000;  // several windows

std::string binary(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * i * 31 + i / 7);
  return bytes;
}

/// Bytes that cannot be read from some offset on.
class Broken final : public ByteSource {
 public:
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    if (offset + size > kLarge / 2) return fail(ErrorCode::io, "a bad block");
    return std::string(size, 'x');
  }
};

TEST(Bytes, AnyPartOfTheTextIsThatOfTheWhole) {
  for (std::size_t size : {0u, 1u, 2u, 3u, 4u, 299'998u, 299'999u, 300'000u}) {
    const std::string content = binary(size);
    const std::string text = encode_content(content, ContentEncoding::base64);
    ASSERT_EQ(text_size(size, ContentEncoding::base64), text.size());
    Text windows(content, ContentEncoding::base64);
    for (std::size_t at = 0; at < text.size(); at += 1 + at % 997 + at / 3) {
      for (std::size_t length : {1u, 5u, 4096u, 16'000u}) {
        length = std::min(length, text.size() - at);
        EXPECT_EQ(*read_text(content, ContentEncoding::base64, at, length), text.substr(at, length)) << at;
        EXPECT_EQ(windows.view(at, length), text.substr(at, length)) << at;
      }
    }
    EXPECT_EQ(hash_of(windows, 0, text.size()), ContentHash::of(text));
    EXPECT_EQ(json_inside(windows, 0, text.size()) + 2, json_size_of_string(text));
    EXPECT_TRUE(windows.status());
  }
}

TEST(Bytes, TextIsToldFromBinaryWhereverACharacterStands) {
  for (std::size_t before = (128 << 10) - 5; before < (128 << 10) + 2; ++before) {
    std::string text = std::string(before, 'a') + "😀" + std::string(10, 'b');
    EXPECT_EQ(examine(text)->encoding, ContentEncoding::text) << before;
    EXPECT_EQ(examine(text)->hash, ContentHash::of(text)) << before;
    text.erase(before + 3, 1);
    EXPECT_EQ(examine(text)->encoding, ContentEncoding::base64) << before;
    text.resize(before + 2);
    EXPECT_EQ(examine(text)->encoding, ContentEncoding::base64) << "ends in a character";
  }
}

TEST(Bytes, AnErrorIsToldOnceTheTextWasWorkedThrough) {
  Bytes broken(std::make_shared<Broken>(), kLarge);
  EXPECT_FALSE(examine(broken));
  Text text(broken, ContentEncoding::text);
  EXPECT_FALSE(cut_text(text, 0, text.size(), kMaxChunkJson).empty());
  ASSERT_FALSE(text.status());
  EXPECT_EQ(text.status().error().code, ErrorCode::io);
}

}  // namespace
}  // namespace playfs
