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

TEST_F(WaitersTest, WhoDoesNotWaitIsAnsweredEarly) {
  add("one");
  add("one", false);
  waiters.answer_hasty("one", of(Outcome::pending));
  EXPECT_EQ(answers.size(), 1u);
  waiters.answer_all("one", of(Outcome::published));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[1]->outcome, Outcome::published);
}

TEST_F(WaitersTest, AtTheEndOnlyWhatIsOnDiskIsPending) {
  add("not on disk");
  waiters.is_journalled(add("on disk"));
  waiters.answer_rest();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].error().code, ErrorCode::interrupted);
  EXPECT_EQ(answers[1]->outcome, Outcome::pending);
}

}  // namespace
}  // namespace playfs::publish
