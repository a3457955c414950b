#include "vfs/spare_memory.h"

#include <gtest/gtest.h>

#include "support/manual_time.h"

namespace playfs::vfs {
namespace {

TEST(SpareMemory, IsGivenBackOnceAfterMuchWasLetGoAndItIsQuiet) {
  playfs::test::ManualClock clock;
  playfs::test::ManualExecutor executor(clock);
  int given_back = 0;
  SpareMemory memory([&](auto delay, Task task) { executor.post_after(delay, std::move(task)); },
                     [&] { ++given_back; });
  auto let_go = [&](std::uint64_t count) {
    for (; count > 0; --count) memory.let_go();
  };
  auto pass = [&] { executor.advance(SpareMemory::kQuiet); };

  let_go(SpareMemory::kMany - 1);
  pass();
  EXPECT_EQ(given_back, 0) << "not much";
  let_go(1);
  for (int i = 0; i < 5; ++i) {
    let_go(SpareMemory::kMany);
    pass();
    EXPECT_EQ(given_back, 0) << "the storm goes on";
  }
  let_go(SpareMemory::kMany / 2);  // a trickle does not count
  pass();
  EXPECT_EQ(given_back, 1);
  pass();
  EXPECT_EQ(given_back, 1) << "nobody looks any more";

  let_go(SpareMemory::kMany);
  pass();
  EXPECT_EQ(given_back, 2);
}

TEST(SpareMemory, WhatIsLetGoMeanwhileCountsForTheNextTime) {
  for (const std::uint64_t meanwhile : {SpareMemory::kMany - 1, SpareMemory::kMany + 1}) {
    playfs::test::ManualClock clock;
    playfs::test::ManualExecutor executor(clock);
    int given_back = 0;
    std::function<void()> give_back;
    SpareMemory memory([&](auto delay, Task task) { executor.post_after(delay, std::move(task)); },
                       [&] { give_back(); });
    give_back = [&] {
      if (++given_back > 1) return;
      for (std::uint64_t i = 0; i < meanwhile; ++i) memory.let_go();
    };
    for (std::uint64_t i = 0; i < SpareMemory::kMany; ++i) memory.let_go();
    executor.advance(SpareMemory::kQuiet);
    ASSERT_EQ(given_back, 1);
    if (meanwhile < SpareMemory::kMany) memory.let_go();
    executor.advance(SpareMemory::kQuiet);
    EXPECT_EQ(given_back, 2) << meanwhile;
  }
}

}  // namespace
}  // namespace playfs::vfs
