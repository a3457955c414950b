#include "model/chunking.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/text.h"
#include "model/json.h"

namespace playfs {
namespace {

using namespace std::string_view_literals;

TEST(Encoding, IsTextWhereRecordsCanHoldIt) {
  EXPECT_EQ(encoding_for(""), ContentEncoding::text);
  EXPECT_EQ(encoding_for("ä\x01\n"), ContentEncoding::text);
  EXPECT_EQ(encoding_for("a\0"sv), ContentEncoding::base64);
  EXPECT_EQ(encoding_for("\xff"), ContentEncoding::base64);
  EXPECT_EQ(decode_content(encode_content("\xff\0"sv, ContentEncoding::base64), ContentEncoding::base64), "\xff\0"sv);
  EXPECT_EQ(decode_content(encode_content("ä", ContentEncoding::text), ContentEncoding::text), "ä");
  EXPECT_FALSE(decode_content("*", ContentEncoding::base64));
}

TEST(CutText, EmptyTextHasNoPieces) { EXPECT_TRUE(cut_text("").empty()); }

TEST(CutText, CutsAtTheLimit) {
  EXPECT_EQ(cut_text(std::string(kMaxChunkText, 'a')).size(), 1u);
  EXPECT_EQ(cut_text(std::string(kMaxChunkText + 1, 'a')).size(), 2u);
  // The emoji would end one byte past the limit.
  std::string text = std::string(kMaxChunkText - 3, 'a') + "😀";
  auto pieces = cut_text(text);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_TRUE(pieces[1].ends_with("😀"));
  EXPECT_LE(pieces[0].size(), pieces[1].size() + 8) << "about equally long";
  // Escapes, not bytes, use up the space.
  std::string control(3 * 1024, '\x01');
  EXPECT_EQ(cut_text(control, 2 + 6 * 1024).size(), 3u);
}

/// Text with many characters whose encoded size differs.
rc::Gen<std::string> text_to_cut() {
  auto piece =
      rc::gen::element<std::string>("a", "\n", "\"", "\\", "\x01", "\x7f", "ä", "€", "😀", std::string(40, 'x'));
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const auto& pieces) {
    std::string text;
    for (const auto& p : pieces) text += p;
    return text;
  });
}

/// The number of pieces if each is as long as possible.
std::size_t fewest_pieces(std::string_view text, std::size_t room) {
  std::size_t count = 0;
  while (!text.empty()) {
    std::size_t length = 0;
    for (std::size_t next = 1; next <= text.size(); ++next) {
      bool is_whole = next == text.size() || (static_cast<unsigned char>(text[next]) & 0xC0) != 0x80;
      if (!is_whole) continue;
      if (json_size_of_string(text.substr(0, next)) > room) break;
      length = next;
    }
    text.remove_prefix(length);
    ++count;
  }
  return count;
}

TEST(CutText, PiecesAreWholeAndTheFewest) {
  EXPECT_TRUE(rc::check([] {
    auto text = *text_to_cut();
    auto room = *rc::gen::inRange<std::size_t>(64, 300);
    std::string joined;
    auto pieces = cut_text(text, room);
    for (auto piece : pieces) {
      RC_ASSERT(!piece.empty());
      RC_ASSERT(is_valid_utf8(piece));
      RC_ASSERT(json_size_of_string(piece) <= room);
      joined += piece;
    }
    RC_ASSERT(joined == text);
    RC_ASSERT(pieces.size() == fewest_pieces(text, room));
  }));
}

TEST(CutText, PiecesAreAboutEquallyLong) {
  auto pieces = cut_text(std::string(200 * 1024, 'x'));
  ASSERT_EQ(pieces.size(), 17u);
  for (auto piece : pieces) EXPECT_NEAR(static_cast<double>(piece.size()), 200 * 1024 / 17.0, 80);
}

}  // namespace
}  // namespace playfs
