#include "content/single_flight.h"

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace playfs::content {
namespace {

using Flight = SingleFlight<std::string, int>;

struct Outcome {
  std::shared_ptr<Result<int>> result = std::make_shared<Result<int>>(fail(ErrorCode::internal, "not answered"));
  std::shared_ptr<int> calls = std::make_shared<int>(0);
  Callback<int> callback() {
    return [*this](Result<int> answer) {
      *result = std::move(answer);
      ++*calls;
    };
  }
};

TEST(SingleFlight, TheFirstLeadsAndAllAreAnswered) {
  Flight flight;
  Outcome a, b, other;
  EXPECT_TRUE(flight.join("k", {}, a.callback()));
  EXPECT_FALSE(flight.join("k", {}, b.callback()));
  EXPECT_TRUE(flight.join("other", {}, other.callback()));
  flight.land("k", 7);
  EXPECT_EQ(**a.result, 7);
  EXPECT_EQ(**b.result, 7);
  EXPECT_EQ(*other.calls, 0);
  Outcome later;
  EXPECT_TRUE(flight.join("k", {}, later.callback())) << "a flight that landed is over";
}

TEST(SingleFlight, ACancelledWaiterIsAnsweredAtOnceAndOnlyOnce) {
  Flight flight;
  CancelSource cancel;
  Outcome leader, waiter;
  EXPECT_TRUE(flight.join("k", cancel.token(), leader.callback()));
  EXPECT_FALSE(flight.join("k", {}, waiter.callback()));
  cancel.cancel();
  EXPECT_EQ(leader.result->error().code, ErrorCode::interrupted);
  EXPECT_EQ(*waiter.calls, 0);
  flight.land("k", 7);
  EXPECT_EQ(*leader.calls, 1);
  EXPECT_EQ(**waiter.result, 7);
}

TEST(SingleFlight, ATokenThatWasCancelledBeforeStillLeads) {
  Flight flight;
  CancelSource cancel;
  cancel.cancel();
  Outcome outcome;
  EXPECT_TRUE(flight.join("k", cancel.token(), outcome.callback()));
  EXPECT_EQ(outcome.result->error().code, ErrorCode::interrupted);
}

TEST(SingleFlight, IsAbandonedOnlyWhenNobodyWaits) {
  Flight flight;
  CancelSource cancel;
  Outcome a, b;
  EXPECT_TRUE(flight.join("k", cancel.token(), a.callback()));
  EXPECT_FALSE(flight.abandon("k"));
  cancel.cancel();
  EXPECT_TRUE(flight.abandon("k"));
  EXPECT_TRUE(flight.join("k", {}, b.callback())) << "who comes later leads anew";
  flight.land("k", 7);
  EXPECT_EQ(**b.result, 7);
}

TEST(SingleFlight, ClosingAnswersCurrentAndLaterCallers) {
  Flight flight;
  Outcome before, after;
  EXPECT_TRUE(flight.join("k", {}, before.callback()));
  flight.close();
  EXPECT_EQ(before.result->error().code, ErrorCode::interrupted);
  EXPECT_FALSE(flight.join("k", {}, after.callback()));
  EXPECT_EQ(after.result->error().code, ErrorCode::interrupted);
  flight.land("k", 7);
  EXPECT_EQ(*before.calls, 1);
}

TEST(SingleFlight, AWaiterMayAskAgainFromItsCallback) {
  Flight flight;
  Outcome second;
  bool leads = false;
  EXPECT_TRUE(flight.join("k", {}, [&](Result<int>) { leads = flight.join("k", {}, second.callback()); }));
  flight.land("k", 1);
  EXPECT_TRUE(leads);
  flight.land("k", 2);
  EXPECT_EQ(**second.result, 2);
}

TEST(SingleFlight, CancellingAndLandingRaceToOneAnswer) {
  for (int round = 0; round < 200; ++round) {
    Flight flight;
    CancelSource cancel;
    std::atomic<int> calls = 0;
    EXPECT_TRUE(flight.join("k", cancel.token(), [&](Result<int>) { ++calls; }));
    std::thread canceller([&] { cancel.cancel(); });
    flight.land("k", 1);
    canceller.join();
    EXPECT_EQ(calls, 1);
  }
}

}  // namespace
}  // namespace playfs::content
