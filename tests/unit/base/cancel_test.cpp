#include "base/cancel.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

TEST(Cancel, RunsEachHookOnceAndLateOnesAtOnce) {
  CancelSource source;
  int early = 0, dropped = 0, late = 0;
  auto kept = source.token().on_cancel([&] { ++early; });
  {
    auto gone = source.token().on_cancel([&] { ++dropped; });
  }
  EXPECT_FALSE(source.token().cancelled());
  source.cancel();
  source.cancel();
  auto after = source.token().on_cancel([&] { ++late; });
  EXPECT_TRUE(source.token().cancelled());
  EXPECT_EQ(early, 1);
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(late, 1);
}

TEST(Cancel, EmptyTokenNeverCancels) {
  CancelToken token;
  auto registration = token.on_cancel([] { FAIL(); });
  EXPECT_FALSE(token.cancelled());
}

}  // namespace
}  // namespace playfs
