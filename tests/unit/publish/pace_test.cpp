#include "publish/upload_pace.h"

#include <gtest/gtest.h>

namespace playfs::publish {
namespace {

using namespace std::chrono_literals;

struct PaceTest : testing::Test {
  SteadyTime now{100h};
  Pace pace;
  void store(std::uint32_t count, std::chrono::seconds later) { pace.has_stored(count, now += later); }
};

TEST_F(PaceTest, NoEstimateWithoutData) {
  EXPECT_FALSE(pace.left(10, now));
  store(0, 0s);
  EXPECT_FALSE(pace.left(10, now)) << "it has only begun";
}

TEST_F(PaceTest, WithoutLimitsTheSpeedDecides) {
  store(0, 0s);
  store(8, 4s);
  store(8, 4s);
  EXPECT_EQ(pace.left(10, now), 5s);
  EXPECT_EQ(pace.left(0, now), 0s);
}

TEST_F(PaceTest, TheLastHoursWritesAreTheEstimate) {
  store(0, 0s);
  store(100, 100s);
  pace.is_refused(now, now + 3500s);
  EXPECT_EQ(pace.left(50, now), 3500s + 50s) << "all of it fits into the next hour";
  EXPECT_EQ(pace.left(150, now), 3500s + 3600s + 50s);
  now += 3500s;
  store(60, 60s);
  EXPECT_EQ(pace.left(40, now), 40s);
  EXPECT_EQ(pace.left(90, now), 3600s - 60s + 50s);
}

TEST_F(PaceTest, AskingSoonerThanTheServiceSaysTellsNothing) {
  store(0, 0s);
  store(240, 60s);
  pace.is_refused(now, now + 3540s);
  EXPECT_EQ(pace.left(480, now), 3540s + 3600s + 60s);
  now += 900s;
  pace.is_refused(now, now + 2640s);  // asked after a quarter of an hour
  EXPECT_EQ(pace.left(480, now), 2640s + 3600s + 60s);
}

TEST_F(PaceTest, WithoutAcceptedWritesTheDocumentedLimitsApply) {
  pace.is_refused(now, now + 600s);
  EXPECT_EQ(pace.left(240, now), 600s);
  EXPECT_EQ(pace.left(241, now), 600s + 3600s);
}

}  // namespace
}  // namespace playfs::publish
