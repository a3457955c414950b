// A disk that fails: what a sync could not write is never reported safe afterwards, although the next sync succeeds.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "base/sqlite.h"
#include "stage/store/operations_log.h"
#include "stage/store/repair.h"
#include "support/workbench.h"

namespace {

/// Called before every sync, with the file's path; a result other than 0 is the error.
std::function<int(const std::string& path)> before_sync;
std::mutex asking;

int answer(int fd) {
  std::function<int(const std::string&)> ask;
  {
    std::lock_guard lock(asking);
    ask = before_sync;
  }
  if (ask) {
    char path[4096];
    ssize_t size = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
    if (int error = ask(std::string(path, static_cast<std::size_t>(std::max<ssize_t>(size, 0)))); error != 0) {
      errno = error;
      return -1;
    }
  }
  return 0;
}

}  // namespace

// For everything in this process, SQLite included. Nothing is really synced: no test here cuts the power.
extern "C" {
int fsync(int fd) { return answer(fd); }
int fdatasync(int fd) { return answer(fd); }
int syncfs(int fd) noexcept { return answer(fd); }
}

namespace playfs::stage {
namespace {

namespace fs = std::filesystem;

class SyncTest : public testing::Test {
 protected:
  void SetUp() override {
    bench.housekeeping.log_bytes = 1 << 20;
    bench.open(base);
  }
  void TearDown() override { set({}); }
  static void set(std::function<int(const std::string&)> ask) {
    std::lock_guard lock(asking);
    before_sync = std::move(ask);
  }
  /// Makes the next sync of a file whose path ends so fail, once, as the kernel does.
  void fail_once(const std::string& end) {
    failed = false;
    set([this, end](const std::string& path) { return path.ends_with(end) && !failed.exchange(true) ? EIO : 0; });
  }
  /// The same for the operations log, whichever of its files is in use.
  void fail_log_once() {
    failed = false;
    set([this](const std::string& path) {
      return path.find("/operations.") != std::string::npos && !failed.exchange(true) ? EIO : 0;
    });
  }
  std::string number_of(std::string_view path) {
    std::string highest;
    std::uint64_t most = 0;
    for (const auto& file : fs::directory_iterator(bench.spool())) {
      if (std::stoull(file.path().filename()) < most) continue;
      most = std::stoull(file.path().filename());
      highest = file.path().filename();
    }
    EXPECT_TRUE(bench.find(path));
    return highest;
  }

  RevisionTreePtr base = test::revision_of("r1", {{"a", "one"}});
  test::Workbench bench;
  std::atomic<bool> failed = false;
};

TEST_F(SyncTest, AFileThatCouldNotBeSyncedIsNotFrozenLater) {
  for (int files : {1, 40}) {  // one by one; the whole file system at once
    test::Workbench other;
    other.open(base);
    for (int i = 0; i < files; ++i) ASSERT_TRUE(other.put("f" + std::to_string(i), "text"));
    fail_once(files == 1 ? "/spool/1" : "/spool");
    EXPECT_FALSE(other.stage->freeze("tx")) << files;
    EXPECT_TRUE(failed);
    auto again = other.stage->freeze("tx");
    ASSERT_FALSE(again) << files;
    EXPECT_EQ(again.error().code, ErrorCode::io);
    EXPECT_FALSE(other.stage->sync(other.find("f0"))) << files;
    set({});
  }
}

TEST_F(SyncTest, FsyncFailsAfterAFreezeThatCouldNotSync) {
  ASSERT_TRUE(bench.put("f", "text"));
  fail_once("/spool/" + number_of("f"));
  ASSERT_FALSE(bench.stage->freeze("tx"));
  EXPECT_FALSE(bench.stage->sync(bench.find("f")));
  // Other files have errors of their own.
  ASSERT_TRUE(bench.put("g", "text"));
  EXPECT_TRUE(bench.stage->sync(bench.find("g")));
}

TEST_F(SyncTest, ACopyThatCouldNotBeSyncedIsNotUsed) {
  ASSERT_TRUE(bench.put("f", "frozen"));
  ASSERT_TRUE(bench.stage->freeze("tx").value());
  const std::string frozen = number_of("f");
  fail_once("/spool/" + std::to_string(std::stoull(frozen) + 1) + "~");
  EXPECT_FALSE(bench.write(bench.find("f"), 0, "x"));
  EXPECT_TRUE(failed);
  EXPECT_EQ(bench.read("f"), "frozen");
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "x"));  // another copy
  EXPECT_EQ(bench.read("f"), "xrozen");

  fail_once("/spool/" + std::to_string(std::stoull(number_of("f")) + 1) + "~");
  EXPECT_FALSE(bench.copy_up(bench.find("a")));
  EXPECT_TRUE(failed);
  EXPECT_TRUE(bench.stage->lower_content(bench.find("a")));
  EXPECT_TRUE(bench.copy_up(bench.find("a")));
}

TEST_F(SyncTest, NamesThatCouldNotBeSyncedStayUnsafe) {
  ASSERT_TRUE(bench.put("f", "text") && bench.put("g", "text"));
  fail_once("/spool");
  EXPECT_FALSE(bench.stage->sync(bench.find("f")));
  EXPECT_FALSE(bench.stage->sync(bench.find("g"))) << "its name was covered by the sync that failed";
  EXPECT_FALSE(bench.stage->sync(bench.find("f")));
}

TEST_F(SyncTest, AConcurrentSyncIsAwaited) {
  ASSERT_TRUE(bench.put("f", "text") && bench.put("g", "text"));
  auto f = bench.find("f"), g = bench.find("g");
  std::mutex mutex;
  std::condition_variable moved;
  bool began = false, ended = false, second_returned = false, second_was_early = false;
  set([&](const std::string& path) {
    if (!path.ends_with("/spool")) return 0;
    std::unique_lock lock(mutex);
    if (began) return 0;
    began = true;
    moved.notify_all();
    // A correct second call never returns meanwhile, so this only determines how long the test takes.
    second_was_early = moved.wait_for(lock, std::chrono::milliseconds(300), [&] { return second_returned; });
    ended = true;
    return EIO;
  });
  std::thread first([&] { EXPECT_FALSE(bench.stage->sync(f)); });
  {
    std::unique_lock lock(mutex);
    moved.wait(lock, [&] { return began; });
  }
  EXPECT_FALSE(bench.stage->sync(g)) << "its name is not on disk";
  {
    std::lock_guard lock(mutex);
    second_returned = true;
    EXPECT_TRUE(ended);
  }
  moved.notify_all();
  first.join();
  EXPECT_FALSE(second_was_early);
}

TEST_F(SyncTest, TheBaseDoesNotMoveWhileBytesAreChanged) {
  ASSERT_TRUE(bench.put("a", "one"));  // as published, with bytes of its own
  ASSERT_TRUE(bench.stage->sync(bench.find("a")));
  bool has_tried = false, has_moved = false;
  // Before synced bytes are truncated, the log is synced.
  set([&](const std::string& path) {
    if (path.find("/operations.") != std::string::npos && !std::exchange(has_tried, true))
      has_moved = bench.move_base(test::revision_of("r2", {{"a", "of others"}})).has_value();
    return 0;
  });
  ASSERT_TRUE(bench.truncate(bench.find("a"), 1));
  EXPECT_TRUE(has_tried);
  EXPECT_FALSE(has_moved);
  EXPECT_EQ(bench.read("a"), "o");
}

TEST_F(SyncTest, APublicationStepFailsIfTheLogCannotBeSynced) {
  ASSERT_TRUE(bench.put("f", "text"));
  set([](const std::string& path) { return path.find("/operations.") != std::string::npos ? EIO : 0; });
  // Each is done in memory, so that the next one can be tried.
  EXPECT_FALSE(bench.stage->freeze("tx"));
  EXPECT_FALSE(bench.stage->thaw("tx"));
  EXPECT_FALSE(bench.stage->freeze("tx"));
  EXPECT_FALSE(bench.stage->settle("tx", test::revision_of("r2", {{"a", "one"}, {"f", "text"}})));
  EXPECT_EQ(bench.stage->base()->revision.id, RevisionId("r2"));
  EXPECT_FALSE(bench.stage->integrate(test::revision_of("r3", {{"a", "one"}}), {}, {}));
  EXPECT_EQ(bench.stage->base()->revision.id, RevisionId("r3"));
  EXPECT_FALSE(bench.stage->record_conflicted({{.path = "a", .reason = "both", .left = {}}}));
  EXPECT_FALSE(bench.stage->accept_conflicted("tx2"));
  EXPECT_TRUE(bench.stage->is_accepted_by("tx2"));
}

TEST_F(SyncTest, InvalidationsAreReportedEvenIfTheSyncFails) {
  ASSERT_TRUE(bench.put("f", "text") && bench.stage->freeze("tx").value());
  std::vector<std::string> names;
  const Told told = [&](const std::vector<Invalidation>& changed) {
    for (const auto& each : changed) names.push_back(each.name);
  };
  EXPECT_TRUE(bench.stage->check_disk());
  fail_log_once();
  auto settled = bench.stage->settle("tx", test::revision_of("r2", {{"a", "theirs"}, {"f", "text"}}), {}, told);
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().code, ErrorCode::io);
  EXPECT_TRUE(failed);
  EXPECT_EQ(names, std::vector<std::string>{"a"});
  EXPECT_FALSE(bench.stage->integrate(test::revision_of("r3", {{"a", "theirs"}}), {}, {}, told));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "f"}));
}

TEST_F(SyncTest, AFailedSyncIsNotReportedAsDone) {
  const auto next = test::revision_of("r2", {{"a", "one"}, {"f", "text"}});
  const std::vector<Conflicted> conflicted = {{.path = "a", .reason = "both", .left = {}}};
  ASSERT_TRUE(bench.put("f", "text") && bench.stage->freeze("tx").value());
  fail_log_once();
  ASSERT_FALSE(bench.stage->settle("tx", next));
  EXPECT_FALSE(bench.stage->settle("tx", next));
  EXPECT_FALSE(bench.stage->record_conflicted(conflicted));
  EXPECT_FALSE(bench.stage->record_conflicted(conflicted));
  EXPECT_FALSE(bench.stage->check_disk());
  bench.reopen();
  EXPECT_TRUE(bench.stage->settle("tx", next));
  EXPECT_TRUE(bench.stage->record_conflicted(conflicted));
  EXPECT_TRUE(bench.stage->check_disk());
}

TEST_F(SyncTest, WhatIsSetAsideIsSaidToBeOnceItIsOnDisk) {
  bench.stage.reset();
  for (const char* folder : {"/stage", "/lost+found/now"}) {
    std::ofstream(bench.spool() + "/4711") << "orphan";
    fail_once(folder);
    EXPECT_FALSE(repair(bench.options().directory, "now")) << folder;
    EXPECT_TRUE(failed) << folder;
    fs::remove_all(bench.options().directory + "/lost+found");
  }
}

TEST_F(SyncTest, TheLogIsNeverEmptiedIntoADatabaseThatIsNotOnDisk) {
  bench.stage.reset();
  bench.housekeeping.log_bytes = 1;  // checkpoints at every operation
  bench.open(base);
  ASSERT_TRUE(bench.mkdir("before"));
  const std::string database_log = bench.options().directory + "/stage.db-wal";
  const auto safe = fs::file_size(database_log);
  fail_once("/stage.db-wal");
  ASSERT_TRUE(bench.mkdir("d"));
  ASSERT_TRUE(failed);
  ASSERT_TRUE(bench.mkdir("e"));
  ASSERT_TRUE(bench.stage->sync(bench.stage->root()));
  auto log_size = [&] {
    std::uintmax_t size = 0;
    for (const char* file : OperationsLog::kFiles) size += fs::file_size(bench.options().directory + file);
    return size;
  };
  const auto kept = log_size();
  EXPECT_GT(kept, 0U);
  bench.stage.reset();
  EXPECT_EQ(log_size(), kept) << "nor when it is closed";
  // The pages that were never written are gone, as after a power cut.
  ASSERT_GT(fs::file_size(database_log), safe);
  fs::resize_file(database_log, safe);
  bench.open(base);
  EXPECT_TRUE(bench.find("before") && bench.find("d") && bench.find("e"));
  // SQLite's log may be in memory only, and a sync now would count it as written.
  EXPECT_EQ(fs::file_size(database_log), 0U);
}

}  // namespace
}  // namespace playfs::stage
