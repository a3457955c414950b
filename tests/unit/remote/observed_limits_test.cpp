#include "remote/observed_limits.h"

#include "support.h"

namespace playfs::remote {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Headers = std::map<std::string, std::string>;

class ObservedLimitsTest : public ::testing::Test {
 protected:
  void write(int status, HttpHeaders headers = {}, std::optional<seconds> retry_after = {}) {
    HttpResponse response{status, std::move(headers), {}};
    limits.note("file_chunks", true, &response, retry_after, clock);
  }
  ObservedLimit chunks() { return limits.seen(clock.steady())["file_chunks"]; }

  test::ManualClock clock;
  ObservedLimits limits;
};

TEST_F(ObservedLimitsTest, WritesOfTheLastHourAreCounted) {
  write(200);
  clock.advance(minutes(30));
  write(200);
  write(500);
  write(429);
  limits.note("file_chunks", true, nullptr, {}, clock);
  limits.note("file_chunks", false, nullptr, {}, clock);
  EXPECT_EQ(chunks().writes_last_hour, 4u) << "what may have been carried out counts, what was refused does not";
  clock.advance(minutes(31));
  EXPECT_EQ(chunks().writes_last_hour, 3u);
  write(200);
  clock.advance(minutes(61));
  EXPECT_EQ(chunks().writes_last_hour, 0u);
}

TEST_F(ObservedLimitsTest, RefusalsAreKept) {
  write(200);
  EXPECT_EQ(chunks().refused, 0u);
  EXPECT_FALSE(chunks().last_refused);
  write(429, {}, seconds(30));
  auto at = clock.wall();
  write(429, {}, seconds(20));
  clock.advance(minutes(5));
  write(200);
  EXPECT_EQ(chunks().refused, 2u);
  EXPECT_EQ(chunks().last_refused, at);
  EXPECT_EQ(chunks().retry_after, seconds(20));
  EXPECT_EQ(limits.seen(clock.steady()).size(), 1u) << "each kind of request by itself";
}

TEST_F(ObservedLimitsTest, WhatTheServiceAnnouncesIsKeptAsItSaysIt) {
  write(200, {{"X-RateLimit-Remaining", "7"}, {"RateLimit-Policy", "60;w=3600"}, {"Content-Type", "text/plain"}});
  EXPECT_EQ(chunks().announced, (Headers{{"x-ratelimit-remaining", "7"}, {"ratelimit-policy", "60;w=3600"}}));
  write(200);
  EXPECT_EQ(chunks().announced.size(), 2u) << "an answer without any says nothing";
  write(200,
        {{"X-RateLimit-Remaining", "6"}, {"X-RateLimit-Limit", "\x1b[2J"}, {"X-RateLimit-X", std::string(5000, 'x')}});
  EXPECT_EQ(chunks().announced, (Headers{{"x-ratelimit-remaining", "6"}}));
}

TEST_F(ObservedLimitsTest, StrangeNamesDoNotFillMemory) {
  for (int i = 0; i < 1000; ++i) limits.note("c" + std::to_string(i), true, nullptr, {}, clock);
  EXPECT_LE(limits.seen(clock.steady()).size(), 64u);
}

TEST_F(ClientTest, TellsWhatItHasSeenOfTheLimits) {
  auto created = create("key");
  transport.answer(0, 429, R"({"code":"rate_limited","retry_after":3599})");
  auto patched = patch();
  transport.answer(1, 200, R"({"id":"a","latest_revision":"r"})");
  auto seen = client().limits();
  EXPECT_EQ(seen["threads"].refused, 1u);
  EXPECT_EQ(seen["threads"].retry_after, seconds(3599));
  EXPECT_EQ(seen["threads"].writes_last_hour, 0u);
  EXPECT_EQ(seen["projects"].writes_last_hour, 1u);
}

}  // namespace
}  // namespace playfs::remote
