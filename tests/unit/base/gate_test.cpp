#include "base/gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/eventually.h"

namespace playfs {
namespace {

TEST(Gate, RefusesLatecomersAndWaitsForThoseInside) {
  auto gate = std::make_shared<Gate>();
  int runs = 0;
  auto guarded = Gate::guard(gate, [&](int by) { runs += by; });
  guarded(1);
  auto inside = gate->enter();
  std::atomic<bool> closed = false;
  std::thread closer([&] {
    gate->close();
    closed = true;
  });
  EXPECT_TRUE(test::eventually([&] { return !gate->enter(); }));
  EXPECT_FALSE(closed) << "somebody is inside";
  guarded(10);
  EXPECT_TRUE(test::eventually([&] { return gate->closing().cancelled(); }));
  inside.reset();
  closer.join();
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace playfs
