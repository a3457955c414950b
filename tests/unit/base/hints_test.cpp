#include "base/hints.h"

#include <gtest/gtest.h>

#include <cctype>
#include <set>

namespace playfs {
namespace {

TEST(Hints, EachKindOfErrorHasItsOwnWhichIsOneShortLine) {
  std::set<std::string_view> hints;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    const std::string_view hint = usual_hint(code);
    ASSERT_FALSE(hint.empty()) << name_of(code);
    EXPECT_TRUE(hints.insert(hint).second) << name_of(code) << " has that of another: " << hint;
    EXPECT_LE(hint.size(), 120U) << hint;
    EXPECT_EQ(hint.find('\n'), std::string_view::npos) << hint;
    EXPECT_NE(hint.back(), '.') << hint;
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(hint.front()))) << hint << ": it follows \"Try: \"";
  }
}

TEST(Hints, AnErrorsOwnCountsMore) {
  EXPECT_EQ(hint_of(Error{ErrorCode::busy, "in use", "playfs umount DIR"}), "playfs umount DIR");
  EXPECT_EQ(hint_of(Error{ErrorCode::busy, "in use"}), usual_hint(ErrorCode::busy));
}

}  // namespace
}  // namespace playfs
