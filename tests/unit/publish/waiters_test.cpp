#include "publish/waiters.h"

#include <vector>

#include <gtest/gtest.h>

namespace playfs::publish {
namespace {

class WaitersTest : public testing::Test {
 protected:
  Waiters::Id add(const std::string& tx, bool waits = true) {
    return waiters.add(tx, waits, [this](Result<CommitResult> result) { answers.push_back(std::move(result)); });
  }
  static CommitResult of(Outcome outcome) {
    CommitResult result;
    result.outcome = outcome;
    return result;
  }

  Waiters waiters;
  std::vector<Result<CommitResult>> answers;
};

TEST_F(WaitersTest, EachIsAnsweredOnceByWhateverComesFirst) {
  auto first = add("one");
  add("one");
  add("two");
  waiters.answer(first, of(Outcome::pending));
  waiters.answer(first, of(Outcome::published));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0]->outcome, Outcome::pending);
  waiters.answer_all("one", of(Outcome::merged));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1]->outcome, Outcome::merged);
}

TEST_F(WaitersTest, ACallerThatDoesNotWaitIsAnsweredEarly) {
  add("one");
  add("one", false);
  waiters.answer_hasty("one", of(Outcome::pending));
  EXPECT_EQ(answers.size(), 1u);
  waiters.answer_all("one", of(Outcome::published));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1]->outcome, Outcome::published);
}

TEST_F(WaitersTest, JournalledCommitsContinueWhenOthersAreRefused) {
  for (const char* tx : {"not on disk", "on disk"}) {
    waiters.begin(tx);
    add(tx);
  }
  waiters.is_journalled("on disk");
  waiters.refuse_journalled([](const std::string& tx) { return Error{ErrorCode::io, tx}; });
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].error().message, "on disk");
  EXPECT_TRUE(waiters.is_under_way("on disk"));
  EXPECT_FALSE(waiters.outcome_of("on disk"));
}

TEST_F(WaitersTest, AtShutdownOnlyJournalledCommitsArePending) {
  for (const char* tx : {"not on disk", "on disk"}) {
    waiters.begin(tx);
    add(tx);
  }
  waiters.is_journalled("on disk");
  waiters.answer_rest();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].error().code, ErrorCode::interrupted);
  EXPECT_EQ(answers[1]->outcome, Outcome::pending);
}

TEST_F(WaitersTest, AskingAgainReturnsThatCommit) {
  waiters.begin("one");
  EXPECT_TRUE(waiters.is_under_way("one"));
  EXPECT_FALSE(waiters.outcome_of("one"));
  waiters.answer_all("one", of(Outcome::merged));
  EXPECT_FALSE(waiters.is_under_way("one"));
  ASSERT_TRUE(waiters.outcome_of("one"));
  EXPECT_EQ((*waiters.outcome_of("one"))->outcome, Outcome::merged);
  for (std::size_t i = 0; i < Waiters::kMostEnded; ++i) waiters.answer_all(std::to_string(i), of(Outcome::published));
  EXPECT_FALSE(waiters.outcome_of("one")) << "what is forgotten is not known, and no other is told in its place";
}

}  // namespace
}  // namespace playfs::publish
