#include "cache/lru.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace playfs::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Lru, ForgetsTheLeastRecentlyUsed) {
  Lru<int, std::string> lru(2);
  EXPECT_THAT(lru.insert(1, "one"), IsEmpty());
  EXPECT_THAT(lru.insert(2, "two"), IsEmpty());
  ASSERT_NE(lru.find(1), nullptr);
  EXPECT_THAT(lru.insert(3, "three"), ElementsAre("two"));
  EXPECT_EQ(lru.find(2), nullptr);
  EXPECT_EQ(*lru.find(1), "one");
}

TEST(Lru, CountsCostsAndKeepsTheNewestWhateverItCosts) {
  Lru<int, std::string> lru(10);
  EXPECT_THAT(lru.insert(1, "small", 4), IsEmpty());
  EXPECT_THAT(lru.insert(2, "huge", 100), ElementsAre("small"));
  EXPECT_EQ(*lru.find(2), "huge");
  EXPECT_THAT(lru.insert(3, "small", 4), ElementsAre("huge"));
}

TEST(Lru, ReplacingAKeyGivesItsOldValueAndCostBack) {
  Lru<int, std::string> lru(10);
  EXPECT_THAT(lru.insert(1, "old", 8), IsEmpty());
  EXPECT_THAT(lru.insert(1, "new", 2), ElementsAre("old"));
  EXPECT_THAT(lru.insert(2, "other", 8), IsEmpty());
  EXPECT_EQ(lru.size(), 2U);
}

TEST(Lru, TakesOneOrAll) {
  Lru<int, std::string> lru(10);
  EXPECT_THAT(lru.insert(1, "one"), IsEmpty());
  EXPECT_THAT(lru.insert(2, "two"), IsEmpty());
  EXPECT_THAT(lru.take(1), ElementsAre("one"));
  EXPECT_THAT(lru.take(1), IsEmpty());
  EXPECT_THAT(lru.take_all(), ElementsAre("two"));
  EXPECT_EQ(lru.size(), 0U);
}

}  // namespace
}  // namespace playfs::cache
