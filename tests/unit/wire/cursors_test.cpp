#include "wire/cursors.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace playfs::wire {
namespace {

RC_GTEST_PROP(CursorsTest, ARoundIsNoticedWithinThreeOfIt, ()) {
  const int before = *rc::gen::inRange(0, 200), round = *rc::gen::inRange(1, 200);
  Cursors cursors;
  int pages = 0;
  for (;; ++pages) {
    const int place = pages < before ? pages : before + (pages - before) % round;
    if (cursors.comes_again(std::to_string(place))) break;
    RC_ASSERT(pages < 3 * (before + round));
  }
  RC_ASSERT(pages >= before + round);
}

TEST(CursorsTest, AListWithoutARoundGoesOn) {
  Cursors cursors;
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(cursors.comes_again(std::to_string(i))) << i;
}

}  // namespace
}  // namespace playfs::wire
