#include "base/executor.h"

#include <atomic>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include "support/eventually.h"

namespace playfs {
namespace {

using namespace std::chrono_literals;
using test::eventually;

std::size_t threads_here() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

/// A thread may be listed for a moment after it was joined.
bool are_here(std::size_t threads) {
  return eventually([&] { return threads_here() == threads; });
}

/// Counts threads of this process.
class ThreadPoolThreads : public testing::Test {
 protected:
  // ThreadSanitizer adds a thread of its own to the first one.
  static void SetUpTestSuite() {
    std::thread([] {}).join();
  }
};

TEST_F(ThreadPoolThreads, StartForTasksThatNoThreadWaitsFor) {
  const std::size_t before = threads_here();
  ThreadPool pool(8);
  EXPECT_EQ(threads_here(), before);
  for (int i = 0; i < 5; ++i) {
    std::promise<void> ran;
    pool.post([&] { ran.set_value(); });
    ran.get_future().wait();
    std::this_thread::sleep_for(5ms);  // until it waits again
  }
  EXPECT_LT(threads_here(), before + 5) << "before + 1, unless it was slow to wait";
  pool.stop();
  EXPECT_TRUE(are_here(before));
}

TEST(ThreadPool, TasksWaitForNoneThatIsAtWork) {
  std::promise<void> is_awake, end;
  std::atomic<int> ran = 0;
  ThreadPool pool(2);
  pool.post([&] { is_awake.set_value(); });
  is_awake.get_future().wait();
  std::this_thread::sleep_for(5ms);  // until it waits again
  // The one thread waits for the first task to be due, but the second one comes sooner, and waits for the first.
  pool.post_after(20ms, [&] {
    end.set_value();
    ++ran;
  });
  pool.post([&, ended = end.get_future().share()] {
    ended.wait();
    ++ran;
  });
  EXPECT_TRUE(eventually([&] { return ran == 2; }, 20s));
  if (ran != 2) std::_Exit(1);  // the pool would never stop
}

TEST_F(ThreadPoolThreads, AreNoMoreThanAllowed) {
  const std::size_t before = threads_here();
  std::promise<void> end;
  ThreadPool pool(2);
  const std::shared_future<void> ended = end.get_future().share();
  for (int i = 0; i < 10; ++i) pool.post([ended] { ended.wait(); });
  EXPECT_TRUE(are_here(before + 2));
  end.set_value();
}

TEST_F(ThreadPoolThreads, AllStartAtOnceWhenAskedFor) {
  const std::size_t before = threads_here();
  ThreadPool pool(4);
  pool.start();
  EXPECT_EQ(threads_here(), before + 4);
  pool.stop();
  pool.start();
  pool.post([] { FAIL() << "it has been stopped"; });
  EXPECT_TRUE(are_here(before));
}

}  // namespace
}  // namespace playfs
