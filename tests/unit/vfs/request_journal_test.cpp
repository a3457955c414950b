#include "vfs/control/request_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/manual_time.h"
#include "support/temporary_directory.h"

namespace playfs::vfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RequestJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<RequestJournal> open() {
    return std::make_unique<RequestJournal>(home.path() + "/=requests", clock, random);
  }
  static std::vector<RequestStep> hello() { return {{"messages", {{"body", "hello"}}}}; }

  playfs::test::TemporaryDirectory home;
  playfs::test::ManualClock clock;
  SystemRandom random;
};

TEST_F(RequestJournalTest, WhoRepeatsAnothersRequestMakesANewOne) {
  auto journal = open();
  auto told = [&](const std::string& caller) {
    auto request = journal->begin("threads/t/reply", hello(), 0, caller);
    request->is_told = true;
    EXPECT_TRUE(journal->record(*request));
    return *request;
  };
  const auto first = told("account ann@example.org");
  EXPECT_NE(told("account bob@example.org").steps[0].key, first.steps[0].key);
  EXPECT_NE(told("").steps[0].key, first.steps[0].key);
  journal.reset();
  journal = open();
  EXPECT_THAT(journal->left_behind().requests, IsEmpty());
  const auto again = journal->begin("threads/t/reply", hello(), 0, "account ann@example.org");
  EXPECT_EQ(again->steps[0].key, first.steps[0].key);
  EXPECT_EQ(again->caller, "account ann@example.org");
}

TEST_F(RequestJournalTest, WhatNobodyInParticularWroteKeepsItsKeyAfterALogin) {
  auto journal = open();
  auto request = journal->begin("threads/t/reply", hello());
  request->is_told = true;
  ASSERT_TRUE(journal->record(*request));
  const auto again = journal->begin("threads/t/reply", hello(), 0, "account ann@example.org");
  EXPECT_EQ(again->steps[0].key, request->steps[0].key);
  EXPECT_EQ(again->caller, "");
}

TEST_F(RequestJournalTest, ARequestOfAMountThatIsGoneIsTakenOverOnce) {
  auto first = open();
  const auto sent = first->begin("threads/t/reply", hello());
  ASSERT_TRUE(sent);
  auto other = open();
  EXPECT_THAT(other->left_behind().requests, IsEmpty()) << "its mount is alive";
  first.reset();
  auto left = other->left_behind();
  ASSERT_THAT(left.requests, SizeIs(1));
  EXPECT_EQ(left.requests[0].steps[0].key, sent->steps[0].key);
  EXPECT_EQ(left.requests[0].steps[0].body, sent->steps[0].body);
  EXPECT_THAT(open()->left_behind().requests, IsEmpty());
  other->end(left.requests[0]);
  other.reset();
  EXPECT_THAT(open()->left_behind().requests, IsEmpty());
}

TEST_F(RequestJournalTest, WhoRepeatsAFailedRequestRepeatsItsKey) {
  auto journal = open();
  auto request = journal->begin("threads/t/reply", hello()).value();
  EXPECT_NE(journal->begin("threads/t/reply", hello())->steps[0].key, request.steps[0].key) << "that one is under way";
  request.is_told = true;
  request.steps[0].made = "id";
  ASSERT_TRUE(journal->record(request));
  EXPECT_NE(journal->begin("threads/other/reply", hello())->steps[0].key, request.steps[0].key);
  const auto again = journal->begin("threads/t/reply", hello()).value();
  EXPECT_EQ(again.steps[0].key, request.steps[0].key);
  EXPECT_EQ(again.steps[0].made, "id");
  EXPECT_NE(journal->begin("threads/t/reply", hello())->steps[0].key, request.steps[0].key);
}

TEST_F(RequestJournalTest, WhoRepeatsWhatIsResumedJoinsItsKey) {
  auto journal = open();
  const auto sent = journal->begin("threads/t/reply", hello(), 1).value();
  ASSERT_TRUE(journal->begin("threads/t/reply", {{"messages", {{"body", "later"}}}}, 2));
  journal.reset();
  journal = open();
  auto left = journal->left_behind();
  ASSERT_THAT(left.requests, SizeIs(2));
  EXPECT_EQ(left.requests[0].steps[0].key, sent.steps[0].key) << "in their order";
  const auto joined = journal->begin("threads/t/reply", hello(), 3).value();
  EXPECT_EQ(joined.steps[0].key, sent.steps[0].key);
  EXPECT_TRUE(journal->is_unfinished(left.requests[0]));
  journal->end(joined);
  EXPECT_FALSE(journal->is_unfinished(left.requests[0]));
  EXPECT_NE(journal->begin("threads/t/reply", hello(), 4)->steps[0].key, sent.steps[0].key)
      << "its writer has the answer";
  journal->end(left.requests[1]);
  const std::vector<RequestStep> later{{"messages", {{"body", "later"}}}};
  EXPECT_EQ(journal->begin("threads/t/reply", later, 5)->steps[0].key, left.requests[1].steps[0].key)
      << "just answered";
  EXPECT_NE(journal->begin("threads/t/reply", later, 6)->steps[0].key, left.requests[1].steps[0].key) << "lent once";
}

TEST_F(RequestJournalTest, AnOldRequestIsNotSentAgain) {
  auto journal = open();
  ASSERT_TRUE(journal->begin("threads/t/reply", hello()));
  journal.reset();
  clock.advance(RequestJournal::kLongest + std::chrono::minutes(1));
  auto left = open()->left_behind();
  EXPECT_THAT(left.requests, IsEmpty());
  EXPECT_THAT(left.too_old, SizeIs(1));
  EXPECT_THAT(open()->left_behind().too_old, IsEmpty());
}

TEST_F(RequestJournalTest, IsBounded) {
  auto journal = open();
  auto told = journal->begin("threads/t/reply", hello()).value();
  told.is_told = true;
  ASSERT_TRUE(journal->record(told));
  for (std::size_t at = 0; at < RequestJournal::kMost; ++at) ASSERT_TRUE(journal->begin("a", {{"agents", {}}}));
  EXPECT_EQ(journal->begin("a", {{"agents", {}}}).error().code, ErrorCode::busy);
}

TEST_F(RequestJournalTest, ADamagedFileIsNotSent) {
  auto journal = open();
  const auto request = journal->begin("threads/t/reply", hello()).value();
  journal.reset();
  std::ofstream(home.path() + "/=requests/" + request.name) << "{\"steps\": [";
  const auto left = open()->left_behind();
  EXPECT_THAT(left.requests, IsEmpty());
  EXPECT_THAT(left.damaged, ElementsAre("{\"steps\": ["));
}

}  // namespace
}  // namespace playfs::vfs
