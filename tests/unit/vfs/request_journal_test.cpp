#include "vfs/control/request_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "support/manual_time.h"
#include "support/temporary_directory.h"

namespace playfs::vfs {
namespace {

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
  EXPECT_THAT(open()->left_behind().requests, IsEmpty());
}

}  // namespace
}  // namespace playfs::vfs
