// Which thread does the work that a stage defers, and when.
#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "stage/store/housekeeper.h"

namespace playfs::stage {
namespace {

constexpr std::chrono::hours kNever{1};

TEST(HousekeeperTest, ACheckpointBeginsByItself) {
  std::promise<void> checkpointed;
  Housekeeper keeper([&] { checkpointed.set_value(); }, [] {}, kNever, true);
  keeper.want_checkpoint();
  checkpointed.get_future().wait();
}

TEST(HousekeeperTest, ARemovalWaitsForMoreUnlessItIsWantedAtOnce) {
  std::promise<void> removed, checkpointed;
  Housekeeper keeper([&] { checkpointed.set_value(); }, [&] { removed.set_value(); }, kNever, true);
  auto is_removed = removed.get_future();
  keeper.want_removal(false);
  keeper.want_checkpoint();
  checkpointed.get_future().wait();
  EXPECT_EQ(is_removed.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  keeper.want_removal(true);
  is_removed.wait();
}

TEST(HousekeeperTest, WithoutAThreadTheCallerDoesIt) {
  int checkpoints = 0, removals = 0;
  Housekeeper keeper([&] { ++checkpoints; }, [&] { ++removals; }, kNever, false);
  keeper.want_checkpoint();
  keeper.want_removal(false);
  EXPECT_EQ(checkpoints, 1);
  EXPECT_EQ(removals, 1);
  keeper.stop();
  keeper.want_checkpoint();
  EXPECT_EQ(checkpoints, 1);
}

}  // namespace
}  // namespace playfs::stage
