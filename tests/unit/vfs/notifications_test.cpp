// Invalidations of names in directories that operations hold.
#include "vfs/notifications.h"

#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "fixture.h"

namespace playfs::vfs::test {
namespace {

using std::chrono::milliseconds;

/// Counts what the kernel is told. Without `knows_all_names` it is older than Linux 6.16.
class Kernel final : public KernelNotifier {
 public:
  explicit Kernel(bool knows_all_names) : knows_all_names_(knows_all_names) {}
  void entry_changed(NodeId, const std::string&) override { ++names; }
  bool all_names_changed() override {
    ++all;
    return knows_all_names_;
  }
  void node_changed(NodeId, std::int64_t) override {}
  std::atomic<int> names = 0, all = 0;

 private:
  const bool knows_all_names_;
};

TEST(Notifications, NamesThatAreHeldShortlyWaitForTheirDirectory) {
  Kernel kernel(true);
  Notifications notifications;
  notifications.set_receiver(&kernel);
  auto held = notifications.hold({{1}, true, false}, std::nullopt);
  notifications.entry_changed(1, "a");
  std::this_thread::sleep_for(milliseconds(50));
  held.reset();
  EXPECT_TRUE(eventually([&] { return kernel.names == 1; }));
  EXPECT_EQ(kernel.all, 0) << "that would undo what is mounted inside";
  notifications.set_receiver(nullptr);
}

TEST(Notifications, NamesThatAreHeldForLongAreToldOtherwise) {
  Kernel kernel(true);
  Notifications notifications;
  notifications.set_receiver(&kernel);
  auto held = notifications.hold({{1}, true, false}, std::nullopt);
  for (const char* name : {"a", "b", "c"}) notifications.entry_changed(1, name);
  EXPECT_TRUE(eventually([&] { return kernel.all == 3; }));
  EXPECT_EQ(kernel.names, 0);
  held.reset();
  notifications.set_receiver(nullptr);
}

TEST(Notifications, OlderKernelsAreToldOnceTheDirectoriesAreFree) {
  Kernel kernel(false);
  Notifications notifications;
  notifications.set_receiver(&kernel);
  auto one = notifications.hold({{1}, true, false}, std::nullopt);
  auto other = notifications.hold({{2}, true, false}, std::nullopt);
  notifications.entry_changed(1, "a");
  std::this_thread::sleep_for(milliseconds(300));
  notifications.entry_changed(2, "b");
  EXPECT_TRUE(eventually([&] { return kernel.all >= 1; }));
  std::this_thread::sleep_for(milliseconds(1500));  // by now the other has waited as long
  EXPECT_EQ(kernel.names, 0);
  one.reset();
  other.reset();
  EXPECT_TRUE(eventually([&] { return kernel.names == 2; }));
  notifications.set_receiver(nullptr);
}

}  // namespace
}  // namespace playfs::vfs::test
