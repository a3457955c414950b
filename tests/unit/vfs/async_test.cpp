#include "vfs/async.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace playfs::vfs {
namespace {

/// What the driver does with a wait: starts its fetch. The test answers when it likes.
struct Started {
  Callback<void> done;
  CancelToken cancel;
};

Fetch wait_at(Started& here) {
  return [&here](CancelToken cancel, Callback<void> done) { here = {std::move(done), std::move(cancel)}; };
}

/// Starts what `attempt` waits for; `come` is called once that is over.
template <class T>
void start(Attempt<T>& attempt, bool& is_over, CancelToken cancel = {}) {
  ASSERT_FALSE(attempt);
  ASSERT_TRUE(attempt.error().fetch);
  attempt.error().fetch(std::move(cancel), [&is_over](const Status& status) {
    EXPECT_TRUE(status) << "the driver would give up; what a failure means is the coroutine's to judge";
    is_over = true;
  });
}

Async<int> add_after(Started& here, int a, int b) {
  PLAYFS_AWAIT_CHECK(wait_at(here));
  co_return a + b;
}

Async<std::string> told_of(Started& here, int a, int b) {
  auto adding = add_after(here, a, b);
  auto sum = co_await adding;
  if (!sum) co_return sum.error().message;
  co_return std::to_string(*sum);
}

TEST(Async, GoesOnWhereItStopped) {
  Started here;
  auto async = told_of(here, 1, 2);
  EXPECT_FALSE(here.done) << "it is lazy";
  auto first = async.run();
  bool is_over = false;
  start(first, is_over);
  EXPECT_FALSE(is_over);
  here.done({});
  EXPECT_TRUE(is_over);
  auto second = async.run();
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, "3");
}

TEST(Async, TheCallerJudgesAFailedWait) {
  Started here;
  auto async = told_of(here, 1, 2);
  auto first = async.run();
  bool is_over = false;
  start(first, is_over);
  here.done(fail(ErrorCode::interrupted, "the caller left"));
  auto second = async.run();
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, "the caller left");
}

TEST(Async, AnErrorEndsIt) {
  Started here;
  auto async = add_after(here, 1, 2);
  auto first = async.run();
  bool is_over = false;
  start(first, is_over);
  here.done(fail(ErrorCode::corrupt, "damaged"));
  auto second = async.run();
  ASSERT_FALSE(second);
  EXPECT_FALSE(second.error().fetch);
  EXPECT_EQ(second.error().error.code, ErrorCode::corrupt);
}

TEST(Async, TheFetchGetsTheDriversToken) {
  Started here;
  auto async = add_after(here, 1, 2);
  auto first = async.run();
  CancelSource source;
  bool is_over = false;
  start(first, is_over, source.token());
  EXPECT_FALSE(here.cancel.cancelled());
  source.cancel();
  EXPECT_TRUE(here.cancel.cancelled());
}

Async<std::string> asks_for_a_text(Callback<std::string>& here) {
  auto text = answer<std::string>([&here](const CancelToken&, Callback<std::string> done) { here = std::move(done); });
  co_return co_await text;
}

TEST(Async, AnAnswerBringsItsValueOrItsError) {
  for (bool comes : {true, false}) {
    Callback<std::string> here;
    auto async = asks_for_a_text(here);
    auto first = async.run();
    bool is_over = false;
    start(first, is_over);
    if (comes) here(std::string("a text"));
    else here(fail(ErrorCode::not_found, "no such text"));
    EXPECT_TRUE(is_over);
    auto second = async.run();
    ASSERT_EQ(second.has_value(), comes);
    EXPECT_EQ(comes ? *second : second.error().error.message, comes ? "a text" : "no such text");
  }
}

Async<int> asks_by_what_it_owns(std::shared_ptr<int> owned) {
  PLAYFS_AWAIT_CHECK(Fetch([owned](const CancelToken&, Callback<void> done) { done({}); }));
  PLAYFS_AWAIT(const int once, answer<int>([owned](const CancelToken&, Callback<int> done) { done(*owned); }));
  PLAYFS_AWAIT(const int twice, repeat([owned]() -> Attempt<int> { return *owned; }));
  co_return once + twice;
}

// g++ 12 destroys such lambdas twice if they are temporaries of a statement with co_await.
TEST(Async, ReleasesOnceWhatItsFetchesOwn) {
  auto owned = std::make_shared<int>(4);
  auto async = asks_by_what_it_owns(owned);
  for (auto attempt = async.run();; attempt = async.run()) {
    if (attempt) {
      EXPECT_EQ(*attempt, 8);
      break;
    }
    bool is_over = false;
    start(attempt, is_over);
    ASSERT_TRUE(is_over);
  }
  EXPECT_EQ(owned.use_count(), 2) << "ours and the parameter's";
}

Async<int> repeats(Started& here, int& runs) {
  auto repeated = repeat([&]() -> Attempt<int> {
    if (++runs < 3) return missing(wait_at(here));
    return 7;
  });
  co_return co_await repeated;
}

TEST(Async, AnAttemptIsRepeatedUntilNothingIsMissing) {
  Started here;
  int runs = 0;
  auto async = repeats(here, runs);
  for (int wait = 1; wait < 3; ++wait) {
    auto attempt = async.run();
    bool is_over = false;
    start(attempt, is_over);
    EXPECT_EQ(runs, wait);
    here.done({});
  }
  auto last = async.run();
  ASSERT_TRUE(last);
  EXPECT_EQ(*last, 7);
  EXPECT_EQ(runs, 3);
}

Async<int> throws_after(Started& here, std::shared_ptr<int> held) {
  PLAYFS_AWAIT_CHECK(wait_at(here));
  if (*held == 0) throw std::runtime_error("a bug");
  co_return *held;
}

Async<int> calls_what_throws(Started& here, std::shared_ptr<int> held) {
  auto throwing = throws_after(here, held);
  co_return co_await throwing;
}

TEST(Async, AnExceptionReachesTheDriver) {
  Started here;
  auto held = std::make_shared<int>(0);
  {
    auto async = calls_what_throws(here, held);
    auto first = async.run();
    bool is_over = false;
    start(first, is_over);
    here.done({});
    EXPECT_THROW(static_cast<void>(async.run()), std::runtime_error);
  }
  EXPECT_EQ(held.use_count(), 1) << "every frame is destroyed";
}

TEST(Async, ReleasesWhatItHoldsIfDestroyedDuringAWait) {
  Started here;
  auto held = std::make_shared<int>(1);
  {
    auto async = calls_what_throws(here, held);
    auto first = async.run();
    bool is_over = false;
    start(first, is_over);
    EXPECT_GT(held.use_count(), 1);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Async, TheDriverTakesItAsAnAttempt) {
  Started here;
  int begun = 0;
  auto attempt = as_attempt([&](const OperationPtr&) {
    ++begun;
    return add_after(here, 2, 3);
  });
  const auto op = std::make_shared<Operation>(Caller{});
  auto first = attempt(op);
  bool is_over = false;
  start(first, is_over);
  auto moved = std::move(attempt);  // as the driver does while it waits
  here.done({});
  auto second = moved(op);
  ASSERT_TRUE(second);
  EXPECT_EQ(*second, 5);
  EXPECT_EQ(begun, 1);
}

}  // namespace
}  // namespace playfs::vfs
