#include "publish/backoff.h"

#include <gtest/gtest.h>

namespace playfs::publish {
namespace {

using namespace std::chrono_literals;

TEST(Rest, GrowsToALimitAndIsNeverShorterThanAsked) {
  Error away;
  away.code = ErrorCode::unreachable;
  EXPECT_EQ(backoff_after(away, 1, 1s, 10s), 1s);
  EXPECT_EQ(backoff_after(away, 3, 1s, 10s), 4s);
  EXPECT_EQ(backoff_after(away, 1000, 1s, 10s), 10s);
  away.retry_after = 600s;
  EXPECT_EQ(backoff_after(away, 1, 1s, 10s), 600s);
  away.retry_after = 0s;
  EXPECT_EQ(backoff_after(away, 2, 1s, 10s), 2s);
}

TEST(Rest, AnUnexpectedResponseLeavesTheOutcomeUnknown) {
  EXPECT_TRUE(may_heal(ErrorCode::protocol));
  EXPECT_TRUE(may_heal(ErrorCode::rate_limited));
  EXPECT_FALSE(may_heal(ErrorCode::permission_denied));
  EXPECT_FALSE(may_heal(ErrorCode::record_too_large));
  EXPECT_FALSE(may_heal(ErrorCode::file_too_big));
}

}  // namespace
}  // namespace playfs::publish
