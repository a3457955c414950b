#include "service/group_queue.h"

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/eventually.h"

namespace playfs::service {
namespace {

struct Item {
  int number = 0;
  int worked_on = 0;
};
using Queue = GroupQueue<Item>;

TEST(GroupQueueTest, WorksOnEachItemOnceAndOnOneGroupAtATime) {
  constexpr int threads = 16, each = 500;
  constexpr std::size_t largest = 5;
  std::atomic<int> at_work = 0, items = 0;
  std::atomic<bool> overlapped = false, too_large = false;
  Queue queue(largest, [&](const Queue::Group& group) {
    if (++at_work > 1) overlapped = true;
    if (group.empty() || group.size() > largest) too_large = true;
    for (Item* item : group) ++item->worked_on;
    items += static_cast<int>(group.size());
    --at_work;
  });
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < threads; ++i)
    callers.emplace_back([&] {
      for (int turn = 0; turn < each; ++turn) {
        Item item;
        queue.run(item);
        if (item.worked_on != 1) ++wrong;
      }
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(items, threads * each);
  EXPECT_FALSE(overlapped);
  EXPECT_FALSE(too_large);
}

/// What gathers while a group is worked on is the next group.
TEST(GroupQueueTest, TakesTogetherWhatHasGathered) {
  constexpr int waiting = 7;
  std::atomic<bool> may_go_on = false;
  std::vector<std::vector<int>> groups;
  std::atomic<int> begun = 0;
  Queue queue(100, [&](const Queue::Group& group) {
    groups.emplace_back();
    for (const Item* item : group) groups.back().push_back(item->number);
    ++begun;
    while (!may_go_on) std::this_thread::yield();
  });
  std::vector<std::thread> callers;
  auto call = [&](int number) {
    callers.emplace_back([&queue, number] {
      Item item{number};
      queue.run(item);
    });
  };
  call(0);
  ASSERT_TRUE(test::eventually([&] { return begun == 1; }));
  for (int number = 1; number <= waiting; ++number) call(number);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  may_go_on = true;
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(groups.front(), std::vector{0});
  std::set<int> numbers;
  for (const auto& group : groups) numbers.insert(group.begin(), group.end());
  EXPECT_EQ(numbers.size(), waiting + 1u);
  EXPECT_LT(groups.size(), waiting + 1u) << "nothing was taken together";
}

}  // namespace
}  // namespace playfs::service
