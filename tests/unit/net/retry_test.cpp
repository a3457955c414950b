#include "net/retry.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace playfs::net {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kHighest = ~std::uint64_t{0};

Attempt attempt(int number, ErrorCode code, std::optional<std::chrono::seconds> retry_after = std::nullopt,
                int status = 0) {
  Attempt result;
  result.number = number;
  result.error.code = code;
  result.error.retry_after = retry_after;
  result.error.http_status = status;
  return result;
}

TEST(RetryDelay, OnlyWhatMayPassIsTriedAgain) {
  RetryPolicy policy;
  for (auto code : {ErrorCode::unreachable, ErrorCode::timed_out, ErrorCode::rate_limited})
    EXPECT_TRUE(retry_delay(policy, attempt(1, code), 0)) << name_of(code);
  for (auto code : {ErrorCode::not_found, ErrorCode::permission_denied, ErrorCode::unauthorized, ErrorCode::interrupted,
                    ErrorCode::protocol, ErrorCode::record_too_large, ErrorCode::invalid_argument})
    EXPECT_FALSE(retry_delay(policy, attempt(1, code), 0)) << name_of(code);
  EXPECT_TRUE(retry_delay(policy, attempt(1, ErrorCode::internal, {}, 503), 0));
}

TEST(RetryDelay, WhatMustNotHappenTwiceIsNotRepeated) {
  auto once = attempt(1, ErrorCode::rate_limited, 1s);
  once.repeatable = false;
  EXPECT_FALSE(retry_delay({}, once, 0));
  once.error.code = ErrorCode::unreachable;
  EXPECT_FALSE(retry_delay({}, once, 0));
}

TEST(RetryDelay, DoublesUpToItsLimitAndEnds) {
  RetryPolicy policy{.attempts = 20, .first_delay = 100ms, .longest_delay = 1s, .longest_obeyed = 1s};
  auto shortest = [&](int number) { return *retry_delay(policy, attempt(number, ErrorCode::unreachable), 0); };
  EXPECT_EQ(shortest(1), 50ms);
  EXPECT_EQ(shortest(2), 100ms);
  EXPECT_EQ(shortest(3), 200ms);
  EXPECT_EQ(shortest(19), 500ms);
  EXPECT_FALSE(retry_delay(policy, attempt(20, ErrorCode::unreachable), 0));
  auto longest = *retry_delay(policy, attempt(2, ErrorCode::unreachable), kHighest);
  EXPECT_GT(longest, 199ms);
  EXPECT_LE(longest, 200ms);
}

TEST(RetryDelay, ObeysTheServiceUpToALimit) {
  RetryPolicy policy;
  EXPECT_TRUE(retry_delay(policy, attempt(100, ErrorCode::rate_limited, 20s), kHighest));
  EXPECT_FALSE(retry_delay(policy, attempt(1, ErrorCode::rate_limited, 21s), 0));
  EXPECT_FALSE(retry_delay(policy, attempt(1, ErrorCode::unreachable, 21s, 503), 0));
  auto late = attempt(1, ErrorCode::rate_limited, 5s);
  late.paused = 15s;
  EXPECT_TRUE(retry_delay(policy, late, 0));
  late.paused = 16s;
  EXPECT_FALSE(retry_delay(policy, late, 0));
}

TEST(RetryDelay, IsNeverSoonerThanAskedAndEndsAgainstAnyServer) {
  EXPECT_TRUE(rc::check([](std::uint64_t random) {
    RetryPolicy policy;
    Attempt state = attempt(1, ErrorCode::rate_limited);
    int rounds = 0;
    for (;; ++rounds) {
      RC_ASSERT(rounds < 100);
      if (*rc::gen::arbitrary<bool>()) state.error.retry_after = std::chrono::seconds(*rc::gen::inRange(0, 3));
      else state.error.retry_after.reset();
      auto delay = retry_delay(policy, state, random);
      if (!delay) break;
      if (state.error.retry_after) RC_ASSERT(*delay >= *state.error.retry_after);
      RC_ASSERT(*delay > 0ns);
      state.paused += *delay;
    }
    RC_ASSERT(rounds > 0);
  }));
}

}  // namespace
}  // namespace playfs::net
