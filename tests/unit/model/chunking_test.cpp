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
  EXPECT_EQ(pieces[1], "😀");
  // Escapes, not bytes, fill the room.
  std::string control(3 * 1024, '\x01');
  EXPECT_EQ(cut_text(control, 2 + 6 * 1024).size(), 3u);
}

/// Text in which everything that counts differently is frequent.
rc::Gen<std::string> text_to_cut() {
  auto piece =
      rc::gen::element<std::string>("a", "\n", "\"", "\\", "\x01", "\x7f", "ä", "€", "😀", std::string(40, 'x'));
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const auto& pieces) {
    std::string text;
    for (const auto& p : pieces) text += p;
    return text;
  });
}

TEST(CutText, PiecesAreMaximalAndWhole) {
  EXPECT_TRUE(rc::check([] {
    auto text = *text_to_cut();
    auto room = *rc::gen::inRange<std::size_t>(64, 300);
    std::string joined;
    auto pieces = cut_text(text, room);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      RC_ASSERT(!pieces[i].empty());
      RC_ASSERT(is_valid_utf8(pieces[i]));
      RC_ASSERT(json_size_of_string(pieces[i]) <= room);
      joined += pieces[i];
      if (i + 1 == pieces.size()) continue;
      std::string longer(pieces[i]);  // with one more character it would not have fitted
      std::size_t n = 1;
      while (n < pieces[i + 1].size() && !is_valid_utf8(pieces[i + 1].substr(0, n))) ++n;
      longer += pieces[i + 1].substr(0, n);
      RC_ASSERT(json_size_of_string(longer) > room);
    }
    RC_ASSERT(joined == text);
  }));
}

}  // namespace
}  // namespace playfs
