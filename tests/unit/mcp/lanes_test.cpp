#include "mcp/lanes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace playfs::mcp {
namespace {

constexpr std::chrono::seconds kLong{60};

TEST(Lanes, KeepTheOrderOfEach) {
  std::vector<int> ran;
  Lanes lanes(1, {});
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(lanes.add(0, {}, 1, [&ran, i] { ran.push_back(i); }));
  ASSERT_TRUE(lanes.wait_until_idle(kLong));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ran.at(static_cast<std::size_t>(i)), i);
}

TEST(Lanes, DoNotWaitForEachOtherUnlessTold) {
  Lanes lanes(2, {});
  std::promise<void> go;
  std::promise<void> free_ran;
  std::atomic<bool> is_first_done = false, was_first_done = false;
  EXPECT_TRUE(lanes.add(0, {}, 1, [&] {
    go.get_future().wait();
    is_first_done = true;
  }));
  EXPECT_TRUE(lanes.add(1, {}, 1, [&] { free_ran.set_value(); }));
  EXPECT_EQ(free_ran.get_future().wait_for(kLong), std::future_status::ready);
  EXPECT_TRUE(lanes.add(1, 0, 1, [&] { was_first_done = is_first_done.load(); }));
  EXPECT_FALSE(lanes.wait_until_idle(std::chrono::milliseconds(20)));
  go.set_value();
  EXPECT_TRUE(lanes.wait_until_idle(kLong));
  EXPECT_TRUE(was_first_done);
}

TEST(Lanes, TakeNoMoreThanTheirLimits) {
  std::promise<void> go, started;
  Lanes lanes(1, {2, 100});
  EXPECT_TRUE(lanes.add(0, {}, 1, [&] {
    started.set_value();
    go.get_future().wait();
  }));
  started.get_future().wait();
  EXPECT_TRUE(lanes.add(0, {}, 500, [] {})) << "one that is large comes alone";
  EXPECT_FALSE(lanes.add(0, {}, 1, [] {})) << "of bytes";
  go.set_value();
  EXPECT_TRUE(lanes.wait_until_idle(kLong));
  EXPECT_TRUE(lanes.add(0, {}, 1, [] {}));
}

}  // namespace
}  // namespace playfs::mcp
