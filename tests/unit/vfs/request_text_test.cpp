// The text of one request: what it may contain, and when it is complete.
#include "vfs/control/request_text.h"

#include <gtest/gtest.h>

namespace playfs::vfs {
namespace {

ErrorCode code_of(const Status& status) { return status ? ErrorCode::internal : status.error().code; }

class RequestTextTest : public testing::Test {
 protected:
  bool put(std::uint64_t offset, std::string_view data) {
    if (!text.may_take(offset, data)) return false;
    text.take(offset, data);
    return true;
  }
  RequestText text{Caller{}};
};

TEST_F(RequestTextTest, CollectsWhatFollowsAndWhatOverwrites) {
  ASSERT_TRUE(put(100, "abc"));  // `>>` begins where the file ended
  ASSERT_TRUE(put(103, "def"));
  ASSERT_TRUE(put(101, "XY"));
  EXPECT_EQ(text.whole().value_or(""), "aXYdef");
  EXPECT_EQ(text.end(), 106u);
  EXPECT_EQ(text.bytes(102, 2), "Yd");
  EXPECT_EQ(code_of(text.may_take(99, "z")), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(text.may_take(107, "z")), ErrorCode::invalid_argument);
  text.resize(102);
  EXPECT_EQ(text.whole().value_or(""), "aX");
  text.resize(0);
  ASSERT_TRUE(put(0, "anew"));
  EXPECT_EQ(text.whole().value_or(""), "anew");
}

TEST_F(RequestTextTest, IsBounded) {
  ASSERT_TRUE(put(0, std::string(64 * 1024, 'x')));
  EXPECT_EQ(code_of(text.may_take(64 * 1024, "x")), ErrorCode::file_too_big);
}

TEST_F(RequestTextTest, AnObjectIsCompleteWithItsLastBrace) {
  const std::string object = R"( {"a": "}\"{", "b": [{}, "]"]})";
  for (std::size_t at = 0; at < object.size(); ++at) {
    EXPECT_EQ(text.completes(at, object.substr(at, 1)), at + 1 == object.size()) << at;
    EXPECT_TRUE(text.may_take(at, object.substr(at) + "\n")) << at;
    EXPECT_FALSE(text.may_take(at, object.substr(at) + "\nx")) << at;
    ASSERT_TRUE(put(at, object.substr(at, 1)));
    EXPECT_EQ(text.whole().has_value(), at == 0 || at + 1 == object.size()) << at;
  }
}

TEST_F(RequestTextTest, ACharacterMayComeInPieces) {
  ASSERT_TRUE(put(0, "\xe2"));
  ASSERT_TRUE(put(1, "\x82"));
  EXPECT_FALSE(put(2, "x"));
  ASSERT_TRUE(put(2, "\xac"));
  EXPECT_FALSE(put(3, "\xff"));
  EXPECT_FALSE(put(3, "\x80"));
  EXPECT_EQ(text.whole().value_or(""), "€");
}

TEST_F(RequestTextTest, WaitersAreAnsweredOnce) {
  ASSERT_TRUE(put(0, "text"));
  int answered = 0, interrupted = 0;
  auto count = [&](Status status) { ++(status ? answered : interrupted); };
  CancelSource source;
  text.wait(source.token(), count);
  text.wait({}, count);
  source.cancel();
  EXPECT_EQ(interrupted, 1);
  EXPECT_TRUE(text.start(1));
  EXPECT_FALSE(text.start(2));
  EXPECT_EQ(text.order(), 1);
  EXPECT_EQ(code_of(text.may_take(4, "more")), ErrorCode::busy);
  EXPECT_TRUE(text.may_take(4, "\n"));
  text.finish(fail(ErrorCode::busy, "no"), std::string("document"));
  text.finish({}, std::string("another"));
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(text.document(), ShownText(std::string("document")));
  text.wait({}, count);
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(text.may_take(4, "more").error().message, "no");
}

}  // namespace
}  // namespace playfs::vfs
