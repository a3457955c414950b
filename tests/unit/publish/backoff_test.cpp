#include "publish/backoff.h"

#include <gtest/gtest.h>

namespace playfs::publish {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, GrowsToALimitAndIsNeverShorterThanAsked) {
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

}  // namespace
}  // namespace playfs::publish
