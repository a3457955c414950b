// How long a caller waits for news about known data.
#include <gtest/gtest.h>

#include <vector>

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

TEST_F(PatienceTest, IsNoneAfterSomebodyWaitedInVain) {
  auto asked = patience_.ask("a");
  patience_.ran_out("b");
  EXPECT_EQ(patience_.left_for("b"), Patience::kLongest) << "b was answered just in time";
  patience_.ran_out("a");
  EXPECT_EQ(patience_.left_for("a"), std::nullopt);
  EXPECT_EQ(patience_.left_for("b"), Patience::kLongest) << "it is another thing, which the service may have";
  asked.reset();  // without a response
  EXPECT_EQ(patience_.left_for("a"), milliseconds(0)) << "somebody has to ask, and nobody waits";
  patience_.answered();
  EXPECT_EQ(patience_.left_for("a"), Patience::kLongest);
}

TEST_F(PatienceTest, IsNoneForASilentServiceAndOneQuestionServesAll) {
  std::vector<Patience::Question> asked;
  for (const char* what : {"a", "b", "c"}) {
    EXPECT_EQ(patience_.left_for(what), Patience::kLongest);
    asked.push_back(patience_.ask(what));
    clock_.advance(Patience::kLongest);
    patience_.ran_out(what);
  }
  EXPECT_EQ(patience_.left_for("d"), Patience::kLongest) << "the first who asks for something else tries his luck";
  EXPECT_EQ(patience_.left_for("e"), std::nullopt) << "and not everybody after him";
  asked.resize(1);
  EXPECT_EQ(patience_.left_for("b"), std::nullopt) << "the question that is under way serves";
  asked.clear();
  EXPECT_EQ(patience_.left_for("b"), milliseconds(0)) << "somebody has to ask, and nobody waits";
  auto probe = patience_.ask("b");
  EXPECT_EQ(patience_.left_for("c"), std::nullopt);
  clock_.advance(std::chrono::seconds(10));
  EXPECT_EQ(patience_.left_for("c"), milliseconds(0)) << "the first one may never be answered";
  EXPECT_EQ(patience_.left_for("f"), Patience::kLongest) << "now and then somebody tries his luck again";
  patience_.answered();
  EXPECT_EQ(patience_.left_for("a"), Patience::kLongest);
  EXPECT_EQ(patience_.left_for("e"), Patience::kLongest);
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
