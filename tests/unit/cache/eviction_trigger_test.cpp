#include "cache/eviction_trigger.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/manual_time.h"

namespace playfs::cache {
namespace {

constexpr std::uint64_t kShare = 100;

Error busy() { return {ErrorCode::busy, "another process is making room", ""}; }

TEST(EvictionTrigger, MakesRoomAfterEachShare) {
  int passes = 0;
  auto keeper = EvictionTrigger::make(kShare, 40, nullptr, [&]() -> Status {
    ++passes;
    return {};
  });
  keeper->wrote(59);
  EXPECT_EQ(passes, 0);
  keeper->wrote(1);
  EXPECT_EQ(passes, 1);
  keeper->wrote(99);
  EXPECT_EQ(passes, 1);
  keeper->wrote(500);
  EXPECT_EQ(passes, 2);
  keeper->finish();
  EXPECT_EQ(passes, 2) << "nothing is due";
}

TEST(EvictionTrigger, WritesDuringAPassCountForTheNextOne) {
  for (bool with_executor : {false, true}) {
    test::ManualClock clock;
    test::ManualExecutor executor(clock);
    std::uint64_t written = 0;
    std::vector<std::uint64_t> seen;
    std::shared_ptr<EvictionTrigger> keeper;
    keeper = EvictionTrigger::make(kShare, 0, with_executor ? &executor : nullptr, [&]() -> Status {
      seen.push_back(written);  // a pass measures what is there...
      // ...and before it ends, another thread has written more than a share.
      if (seen.size() == 1)
        std::thread([&] {
          written += 250;
          keeper->wrote(250);
        }).join();
      return {};
    });
    written += 100;
    keeper->wrote(100);
    executor.run_due();
    EXPECT_EQ(seen, (std::vector<std::uint64_t>{100, 350})) << with_executor;
  }
}

TEST(EvictionTrigger, AFailedPassIsRetriedWithoutFurtherWrites) {
  test::ManualClock clock;
  test::ManualExecutor executor(clock);
  int passes = 0;
  auto keeper = EvictionTrigger::make(kShare, 0, &executor, [&]() -> Status {
    if (++passes <= 3) return fail(busy());
    return {};
  });
  keeper->wrote(100);
  keeper->wrote(100);
  executor.run_due();
  EXPECT_EQ(passes, 1) << "not over and over while the other one is at it";
  keeper->wrote(100);
  executor.run_due();
  EXPECT_EQ(passes, 1);
  executor.advance(std::chrono::minutes(1));
  EXPECT_EQ(passes, 4);
  keeper->wrote(99);
  executor.advance(std::chrono::minutes(1));
  EXPECT_EQ(passes, 4) << "what was written before is answered for";
  keeper->wrote(1);
  executor.run_due();
  EXPECT_EQ(passes, 5);
}

TEST(EvictionTrigger, WithoutAnExecutorTheNextWriteRetries) {
  int passes = 0;
  auto keeper = EvictionTrigger::make(kShare, 0, nullptr, [&]() -> Status {
    if (++passes == 1) return fail(busy());
    return {};
  });
  keeper->wrote(100);
  keeper->wrote(1);
  EXPECT_EQ(passes, 2);
  keeper->wrote(1);
  EXPECT_EQ(passes, 2);
}

TEST(EvictionTrigger, APassDueAtTheEndRunsOnce) {
  test::ManualClock clock;
  test::ManualExecutor executor(clock);
  int passes = 0;
  auto keeper = EvictionTrigger::make(kShare, 0, &executor, [&]() -> Status {
    ++passes;
    return {};
  });
  keeper->wrote(100);
  keeper->finish();
  EXPECT_EQ(passes, 1);
  executor.advance(std::chrono::minutes(1));
  EXPECT_EQ(passes, 1) << "what its passes need may be gone";
}

TEST(EvictionTrigger, AtTheEndItWaitsForItsTurn) {
  int passes = 0;
  auto keeper = EvictionTrigger::make(kShare, 0, nullptr, [&]() -> Status {
    if (++passes <= 3) return fail(busy());
    return {};
  });
  keeper->wrote(100);
  keeper->finish();
  EXPECT_EQ(passes, 4);
}

TEST(EvictionTrigger, NoWriteOfAnyThreadIsForgotten) {
  constexpr int kThreads = 4, kWrites = 20'000;
  std::atomic<std::uint64_t> written = 0, answered_for = 0;
  std::atomic<int> at_once = 0, most_at_once = 0, passes = 0;
  {
    ThreadPool pool(2);
    auto keeper = EvictionTrigger::make(kShare, 0, &pool, [&]() -> Status {
      if (++at_once > 1) most_at_once = 2;
      answered_for = written.load();
      --at_once;
      ++passes;
      return {};
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        for (int n = 0; n < kWrites; ++n) {
          ++written;
          keeper->wrote(1);
        }
      });
    for (std::thread& thread : threads) thread.join();
    pool.stop();
    keeper->finish();
  }
  EXPECT_LT(written - answered_for, kShare);
  EXPECT_EQ(most_at_once, 0);
  EXPECT_GT(passes, 0);
}

}  // namespace
}  // namespace playfs::cache
