// A disk that fails to sync a publication's changes to the work tree: the publication does not end before they are on
// disk.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "support/publish_world.h"

namespace {
std::atomic<bool> fails_to_sync_the_log = false;
}

extern "C" int fdatasync(int fd) {
  char path[4096];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  const std::string_view name(path, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (fails_to_sync_the_log && name.find("/operations.") != std::string_view::npos) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace playfs::publish {
namespace {

using test::Fault;
using test::WorkTree;

class UnsafeDiskTest : public testing::Test {
 protected:
  ~UnsafeDiskTest() override { fails_to_sync_the_log = false; }
  std::unique_ptr<WorkTree> open(test::FaultyTransport::Plan plan = {}) {
    return std::make_unique<WorkTree>(world, project, directory.path() + "/tree", std::move(plan));
  }
  /// The disk fails from the moment when the revision becomes head.
  std::unique_ptr<WorkTree> open_with_failing_disk() {
    return open([](const HttpRequest& request) {
      if (request.method == "PATCH") fails_to_sync_the_log = true;
      return Fault();
    });
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project = world.create("projects", R"({"name":"p"})").id;
};

TEST_F(UnsafeDiskTest, ACommitEndsOnceItsOutcomeIsOnDisk) {
  auto work = open_with_failing_disk();
  work->write("f", "text");
  auto committed = work->commit();
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::io);
  EXPECT_NE(committed.error().message.find("is published, but is not safe on this disk"), std::string::npos)
      << committed.error().message;
  EXPECT_EQ(id_of(work->stage->base()), RevisionId(world.head(project)));
  // The next sync would succeed, although the data of the first one was never written.
  fails_to_sync_the_log = false;
  work->write("g", "text");
  EXPECT_EQ(work->commit().error().code, ErrorCode::io) << "nothing waits for a disk that has failed";
  EXPECT_EQ(work->publisher->progress().phase, Phase::verifying);

  work.reset();
  work = open();
  work->wait_until_idle();
  auto last = work->publisher->last();
  ASSERT_TRUE(last && *last);
  EXPECT_EQ((*last)->outcome, Outcome::published);
  EXPECT_EQ((*last)->revision.text(), world.head(project));
  ASSERT_TRUE(work->commit());
  EXPECT_EQ(world.contents(world.head(project)), (test::Contents{{"f", "text"}, {"g", "text"}}));
}

TEST_F(UnsafeDiskTest, QueuedCommitsDoNotWaitEither) {
  std::atomic<bool> is_held = true;
  auto work = open([&](const HttpRequest& request) {
    if (request.method == "PATCH") {
      EXPECT_TRUE(test::eventually([&] { return !is_held; }));
      fails_to_sync_the_log = true;
    }
    return Fault();
  });
  work->write("f", "text");
  std::atomic<int> refused = 0, queued = 0;
  for (int i = 0; i < 2; ++i) {
    work->publisher->commit({.agent = "tester", .message = "m", .wait = true, .allow_merge = true}, {},
                            [&](const Result<CommitResult>& result) {
                              if (!result && result.error().message.starts_with("revision ")) ++refused;
                              if (!result && result.error().message.starts_with("the commit stays queued")) ++queued;
                            });
  }
  work->wait_until_queued(2);
  is_held = false;
  EXPECT_TRUE(test::eventually([&] { return refused + queued == 2; }));
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(queued, 1);
  work.reset();
  fails_to_sync_the_log = false;
  work = open();
  work->wait_until_idle();
  EXPECT_TRUE(work->stage->is_clean());
  EXPECT_EQ(world.contents(world.head(project)), (test::Contents{{"f", "text"}}));
}

}  // namespace
}  // namespace playfs::publish
