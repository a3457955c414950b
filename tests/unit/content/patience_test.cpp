// How long news of what is known is waited for.
#include <gtest/gtest.h>

#include "content/patience.h"
#include "support/manual_time.h"

namespace playfs::content {
namespace {

using std::chrono::milliseconds;

class PatienceTest : public testing::Test {
 protected:
  test::ManualClock clock_;
  Patience patience_{clock_};
};

TEST_F(PatienceTest, IsCountedFromTheFirstWhoAsked) {
  EXPECT_EQ(patience_.left_for("a"), Patience::kLongest);
  auto first = patience_.ask("a");
  clock_.advance(milliseconds(300));
  auto second = patience_.ask("a");
  EXPECT_EQ(patience_.left_for("a"), Patience::kLongest - milliseconds(300));
  EXPECT_EQ(patience_.left_for("b"), Patience::kLongest);
  clock_.advance(milliseconds(700));
  EXPECT_EQ(patience_.left_for("a"), std::nullopt);
  first.reset();
  EXPECT_EQ(patience_.left_for("a"), std::nullopt);
  second.reset();
  EXPECT_EQ(patience_.left_for("a"), Patience::kLongest);
}

TEST_F(PatienceTest, IsNoneWhereSomebodyWaitedInVainAndOneQuestionServesAll) {
  auto asked = patience_.ask("a");
  patience_.ran_out("b");
  EXPECT_EQ(patience_.left_for("b"), Patience::kLongest) << "b was answered just in time";
  patience_.ran_out("a");
  EXPECT_EQ(patience_.left_for("b"), std::nullopt);
  asked.reset();  // without an answer
  EXPECT_EQ(patience_.left_for("b"), milliseconds(0)) << "somebody has to ask, and nobody waits";
  auto probe = patience_.ask("b");
  EXPECT_EQ(patience_.left_for("c"), std::nullopt);
  clock_.advance(std::chrono::seconds(10));
  EXPECT_EQ(patience_.left_for("c"), milliseconds(0)) << "the first one may never be answered";
  auto next = patience_.ask("c");
  EXPECT_EQ(patience_.left_for("a"), std::nullopt);
  patience_.answered();
  EXPECT_EQ(patience_.left_for("a"), Patience::kLongest);
}

TEST_F(PatienceTest, QuestionsMayOutliveIt) {
  Patience::Question question;
  {
    Patience other(clock_);
    question = other.ask("a");
  }
  question.reset();
}

}  // namespace
}  // namespace playfs::content
