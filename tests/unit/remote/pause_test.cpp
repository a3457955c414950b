// Pauses that a service requests: when to probe it.
#include "remote/pause.h"

#include <gtest/gtest.h>

namespace playfs::remote {
namespace {

using namespace std::chrono_literals;

const SteadyTime kBegin{std::chrono::hours(1)};

TEST(PauseTest, AShortOneIsSatOut) {
  Pause pause;
  pause.asked(kBegin, kBegin, 10s);
  EXPECT_EQ(pause.left(kBegin), 10s);
  EXPECT_EQ(pause.left(kBegin + 4s), 6s);
  EXPECT_EQ(pause.left(kBegin + 10s), 0s);
}

TEST(PauseTest, ALongOneIsLookedAtNowAndThen) {
  Pause pause;
  pause.asked(kBegin, kBegin, 24h);
  EXPECT_EQ(pause.left(kBegin), 60s);
  SteadyTime now = kBegin;
  int looked = 0;
  for (; now < kBegin + 24h; now += 1s) {
    if (pause.left(now) > 0s) continue;
    ++looked;
    pause.asked(now, now, kBegin + 24h - now);  // the response: the pause still holds
  }
  EXPECT_GT(looked, 24 * 3);
  EXPECT_LT(looked, 24 * 6);
  EXPECT_EQ(pause.left(now), 0s);
}

TEST(PauseTest, OneCallLooksAndTheOthersWait) {
  Pause pause;
  pause.asked(kBegin, kBegin, 24h);
  EXPECT_EQ(pause.left(kBegin + 60s), 0s);
  EXPECT_GT(pause.left(kBegin + 60s), 0s);
}

TEST(PauseTest, WhoAsksByNameIsLetThrough) {
  Pause pause;
  pause.asked(kBegin, kBegin, 24h);
  pause.open(kBegin + 1s);
  EXPECT_EQ(pause.left(kBegin + 1s), 0s) << "another's call";
  EXPECT_EQ(pause.left(kBegin + 2s), 0s) << "theirs";
  pause.asked(kBegin, kBegin + 3s, 24h);
  EXPECT_EQ(pause.left(kBegin + 3s), 0s) << "sent before";
  pause.asked(kBegin + 2s, kBegin + 4s, 24h);
  EXPECT_GT(pause.left(kBegin + 4s), 0s);
  pause.open(kBegin + 5s);
  EXPECT_EQ(pause.left(kBegin + 3min), 0s) << "nothing was answered: one call looks again";
  EXPECT_GT(pause.left(kBegin + 3min), 0s);
}

TEST(PauseTest, WhatWasSentSinceHasTheLastWord) {
  Pause pause;
  pause.asked(kBegin, kBegin + 1s, 24h);
  EXPECT_FALSE(pause.ends(kBegin)) << "sent before the pause was asked for";
  EXPECT_TRUE(pause.ends(kBegin + 2s));
  pause.asked(kBegin, kBegin + 2s, 5s);
  EXPECT_GT(pause.until(), kBegin + 23h);
  pause.asked(kBegin + 3s, kBegin + 4s, 5s);
  EXPECT_EQ(pause.until(), kBegin + 9s);
}

}  // namespace
}  // namespace playfs::remote
