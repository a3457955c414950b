#include "http/fair_queue.h"

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/fair_pool.h"
#include "http/held_bytes.h"

namespace playfs::http {
namespace {

using testing::ElementsAre;

std::vector<std::string> all(FairQueue<std::string>& queue) {
  std::vector<std::string> jobs;
  while (auto turn = queue.next()) jobs.push_back(turn->job);
  return jobs;
}

TEST(FairQueue, ClientsTakeTurns) {
  FairQueue<std::string> queue(100);
  for (const char* job : {"a1", "a2", "a3", "b1", "c1", "b2"}) EXPECT_FALSE(queue.add(std::string(job, 1), job));
  EXPECT_THAT(all(queue), ElementsAre("a1", "b1", "c1", "a2", "b2", "a3"));
}

TEST(FairQueue, ALatecomerWaitsForOneJobOfEachClient) {
  FairQueue<std::string> queue(100);
  for (const char* job : {"a1", "a2", "a3", "a4"}) EXPECT_FALSE(queue.add("a", job));
  EXPECT_EQ(queue.next()->job, "a1");
  EXPECT_FALSE(queue.add("b", "b1"));
  EXPECT_EQ(queue.next()->job, "a2");
  EXPECT_EQ(queue.next()->job, "b1");
}

TEST(FairQueue, WithoutRoomTheClientWithTheMostGivesWay) {
  FairQueue<std::string> queue(3);
  for (const char* job : {"a1", "a2", "a3"}) EXPECT_FALSE(queue.add("a", job));
  EXPECT_EQ(queue.add("a", "a4"), "a4");
  EXPECT_EQ(queue.add("b", "b1"), "a3");
  EXPECT_EQ(queue.add("c", "c1"), "a2");
  EXPECT_EQ(queue.add("d", "d1"), "d1") << "nobody has more than the one who comes";
  EXPECT_THAT(all(queue), ElementsAre("a1", "b1", "c1"));
  EXPECT_FALSE(queue.add("a", "a5")) << "there is room again";
}

TEST(FairQueue, AStartedJobIsNeverRefused) {
  FairQueue<std::string> queue(1);
  for (const char* job : {"a1", "a2", "a3"}) queue.go_on("a", job);
  EXPECT_FALSE(queue.add("a", "a4"));
  queue.go_on("a", "a5");
  EXPECT_EQ(queue.add("a", "a6"), "a6");
  EXPECT_EQ(queue.add("b", "b1"), "b1");
  EXPECT_THAT(all(queue), ElementsAre("a1", "a2", "a3", "a4", "a5"));
}

constexpr std::chrono::milliseconds kLittle{2}, kMuch{900};

TEST(FairQueue, LightClientsComeBeforeNewOnesAndHeavyOnesLast) {
  FairQueue<std::string> queue(100);
  queue.note_cost("d", kMuch);
  queue.note_cost("l", kLittle);
  for (const char* job : {"d1", "u1", "l1"}) EXPECT_FALSE(queue.add(std::string(job, 1), job));
  EXPECT_THAT(all(queue), ElementsAre("l1", "u1", "d1"));
  queue.note_cost("l", kMuch);
  for (const char* job : {"l2", "u2"}) EXPECT_FALSE(queue.add(std::string(job, 1), job));
  EXPECT_THAT(all(queue), ElementsAre("u2", "l2")) << "what it was does not help who has become dear";
}

TEST(FairQueue, TheLightestClientGetsTheLightTurn) {
  FairQueue<std::string> queue(100);
  for (const char* client : {"a", "b", "c"}) queue.note_cost(client, 20 * kLittle);
  queue.note_cost("l", kLittle);
  for (const char* job : {"u1", "a1", "b1", "l1", "c1"}) EXPECT_FALSE(queue.add(std::string(job, 1), job));
  EXPECT_EQ(queue.next_light()->job, "l1");
  EXPECT_EQ(queue.next_light()->job, "a1") << "who came first, among equals";
  EXPECT_EQ(queue.next()->job, "b1");
  EXPECT_EQ(queue.next_light()->job, "c1");
  EXPECT_FALSE(queue.next_light()) << "the other is not known";
}

TEST(FairQueue, CheapJobsDoNotHideCostlyOnes) {
  FairQueue<std::string> queue(100);
  queue.note_cost("u", kMuch);
  auto is_dear = [&] {
    EXPECT_FALSE(queue.add("u", "u"));
    EXPECT_FALSE(queue.add("v", "v"));
    return all(queue) == std::vector<std::string>{"v", "u"};
  };
  for (int i = 0; i < 10; ++i) queue.note_cost("u", kLittle);
  EXPECT_TRUE(is_dear());
  for (int i = 0; i < 20; ++i) queue.note_cost("u", kLittle);
  EXPECT_FALSE(is_dear()) << "it is forgotten in the end";
  queue.note_cost("u", kMuch);
  EXPECT_TRUE(is_dear()) << "and counts at once";
}

TEST(FairQueue, LightClientsDoNotStarveOthers) {
  FairQueue<std::string> queue(100);
  queue.note_cost("d", kMuch);
  EXPECT_FALSE(queue.add("d", "d"));
  EXPECT_FALSE(queue.add("u", "u"));
  for (int i = 0; i < 20; ++i) {
    const std::string client = "l" + std::to_string(i);
    queue.note_cost(client, kLittle);
    EXPECT_FALSE(queue.add(client, "l"));
  }
  auto jobs = all(queue);
  jobs.resize(8);
  EXPECT_THAT(jobs, ElementsAre("l", "l", "l", "u", "l", "l", "l", "d"));
}

TEST(FairQueue, WithOneJobEachTheHeaviestClientGivesWay) {
  FairQueue<std::string> queue(2);
  queue.note_cost("d", kMuch);
  queue.note_cost("l", kLittle);
  EXPECT_FALSE(queue.add("d", "d1"));
  EXPECT_FALSE(queue.add("u", "u1"));
  EXPECT_EQ(queue.add("v", "v1"), "d1") << "who is not known pushes out who is known for worse";
  EXPECT_EQ(queue.add("w", "w1"), "w1");
  EXPECT_TRUE(queue.add("l", "l1"));
  EXPECT_EQ(queue.add("d", "d2"), "d2");
  EXPECT_EQ(queue.next()->job, "l1");
}

TEST(FairQueue, AnIdleClientIsForgotten) {
  FairQueue<std::string> queue(100);
  queue.note_cost("d", kMuch);
  for (int i = 0; i < 5000; ++i) queue.note_cost("client " + std::to_string(i), kLittle);
  for (const char* job : {"u1", "d1"}) EXPECT_FALSE(queue.add(std::string(job, 1), job));
  EXPECT_THAT(all(queue), ElementsAre("u1", "d1"));
}

TEST(FairPool, RunsQueuedJobsBeforeItEndsAndRefusesExcess) {
  std::mutex mutex;
  std::condition_variable changed;
  bool inside = false, open = false;
  std::vector<std::string> said;
  auto say = [&](const std::string& word) {
    return [&, word](bool has_turn) {
      std::lock_guard lock(mutex);
      said.push_back(has_turn ? word : "no " + word);
    };
  };
  FairPool pool(1, 2);
  pool.go_on("a", [&](bool) {
    std::unique_lock lock(mutex);
    inside = true;
    changed.notify_all();
    changed.wait(lock, [&] { return open; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return inside; });
  }
  for (const char* job : {"a1", "a2"}) pool.offer("a", say(job));
  pool.offer("b", say("b1"));
  pool.go_on("a", say("rest of a"));
  {
    std::lock_guard lock(mutex);
    EXPECT_THAT(said, ElementsAre("no a2"));
    open = true;
    changed.notify_all();
  }
  pool.join();
  EXPECT_THAT(said, ElementsAre("no a2", "a1", "b1", "rest of a"));
}

TEST(FairPool, ACheapClientFindsAThreadWhileTheOthersAreBusy) {
  std::promise<void> cheap, begun, end, done;
  FairPool pool(1, 10, 1);
  pool.offer("cheap", [&](bool) { cheap.set_value(); });
  cheap.get_future().wait();
  pool.offer("dear", [&](bool) {
    begun.set_value();
    end.get_future().wait();
  });
  begun.get_future().wait();
  pool.offer("dear", [](bool) {});
  pool.offer("cheap", [&](bool) { done.set_value(); });
  const auto outcome = done.get_future().wait_for(std::chrono::seconds(20));
  end.set_value();
  EXPECT_EQ(outcome, std::future_status::ready);
}

TEST(HeldBytes, AClientHasAShareAndAtLeastOneItem) {
  int one = 0, two = 0;
  HeldBytes<int> held(100'000, 40'000);
  EXPECT_TRUE(held.room_for(&one, "a", 60'000).fits);
  held.hold(&one, "a", 30'000, true);
  EXPECT_TRUE(held.room_for(&two, "a", 10'000).fits);
  EXPECT_FALSE(held.room_for(&two, "a", 10'001).fits);
  EXPECT_EQ(held.room_for(&two, "a", 10'001).in_the_way, nullptr) << "its own trouble";
  EXPECT_TRUE(held.room_for(&one, "a", 60'000).fits) << "in place of what it holds";
  held.release(&one);
  EXPECT_TRUE(held.room_for(&two, "a", 60'000).fits);
}

TEST(HeldBytes, TheLongestStalledClientGoesUnlessItIsBeingServed) {
  int served = 0, drips = 0, reads = 0, other = 0;
  HeldBytes<int> held(100, 100);
  held.hold(&served, "a", 40, false);
  held.hold(&drips, "b", 20, true);
  held.hold(&reads, "c", 40, true);
  EXPECT_EQ(held.room_for(&other, "d", 1).in_the_way, &drips);
  held.moved(&drips, 1);
  EXPECT_EQ(held.room_for(&other, "d", 1).in_the_way, &drips) << "a byte is no movement";
  held.moved(&drips, HeldBytes<int>::kStep);
  EXPECT_EQ(held.room_for(&other, "d", 1).in_the_way, &reads);
  EXPECT_EQ(held.room_for(&reads, "c", 50).in_the_way, &drips) << "not itself";
  held.hold(&reads, "c", 10, true);
  EXPECT_TRUE(held.room_for(&other, "d", 30).fits);
  held.release(&drips);
  held.release(&reads);
  EXPECT_FALSE(held.room_for(&other, "d", 61).fits);
  EXPECT_EQ(held.room_for(&other, "d", 61).in_the_way, nullptr);
}

}  // namespace
}  // namespace playfs::http
