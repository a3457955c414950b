// Bytes and attributes of staged files.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <latch>
#include <random>
#include <thread>

#include "stage/store/spool.h"
#include "support/eventually.h"
#include "support/workbench.h"

namespace {
/// The errno of copy_file_range(2); 0: it works.
std::atomic<int> copy_error = 0;
std::atomic<int> copies = 0;
}  // namespace

// For everything in this process.
extern "C" ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at, size_t size, unsigned flags) {
  ++copies;
  if (int error = copy_error; error != 0) {
    errno = error;
    return -1;
  }
  return syscall(SYS_copy_file_range, from, from_at, to, to_at, size, flags);
}

namespace playfs::stage {
namespace {

using test::revision_of;
using test::Texts;

class BytesTest : public testing::Test {
 protected:
  void SetUp() override { bench.open(revision_of("r1", {{"a", "published"}, {"run", {"#!", FileMode::executable}}})); }
  test::Workbench bench;
};

TEST_F(BytesTest, LowerBytesStayBelowUntilTheyAreChanged) {
  auto a = bench.find("a");
  EXPECT_TRUE(bench.stage->lower_content(a));
  EXPECT_EQ(bench.stage->read(a, 0, 9).error().code, ErrorCode::busy);
  EXPECT_EQ(bench.stage->write(a, 0, "x").error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.truncate(a, 0));
  EXPECT_FALSE(bench.stage->lower_content(a));
  EXPECT_EQ(bench.read("a"), "");
  EXPECT_EQ(bench.spool_files(), 0U);
}

TEST_F(BytesTest, AnEmptiedFileIsAChangeOfATreeThatWasLookedAt) {
  ASSERT_TRUE(bench.stage->changes()->empty());
  ASSERT_TRUE(bench.truncate(bench.find("a"), 0));
  auto changes = bench.stage->changes();
  ASSERT_EQ(changes->size(), 1u);
  EXPECT_EQ(changes->front().path, "a");
}

TEST_F(BytesTest, AWriteThatFailsSaysSo) {
  ASSERT_TRUE(bench.put("n", "new"));
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  auto written = bench.stage->write(bench.find("n"), 2 << 20, "x");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, ignored);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::file_too_big) << written.error().message;
  EXPECT_EQ(bench.read("n"), "new");
}

TEST_F(BytesTest, MetadataAloneNeverNeedsTheBytes) {
  ASSERT_TRUE(bench.chmod("a", 0600));
  AttributeChange change;
  change.mtime = WallTime{1'600'000'000'123'456'789};
  change.uid = 77;
  ASSERT_TRUE(bench.stage->set_attributes(bench.find("a"), change));
  ASSERT_TRUE(bench.rename("a", "b"));
  bench.reopen();
  EXPECT_TRUE(bench.stage->lower_content(bench.find("b")));
  EXPECT_EQ(bench.stat("b").permissions, 0600U);
  EXPECT_EQ(bench.stat("b").uid, 77U);
  EXPECT_EQ(bench.stat("b").mtime.nanoseconds, 1'600'000'000'123'456'789);
  EXPECT_EQ(bench.read("b"), "published");
  EXPECT_EQ(bench.spool_files(), 0U);
}

TEST_F(BytesTest, CopyUpKeepsBytesAndTimes) {
  auto before = bench.stat("a");
  bench.clock.advance(std::chrono::seconds(9));
  ASSERT_TRUE(bench.copy_up(bench.find("a")));
  EXPECT_EQ(bench.stat("a").mtime, before.mtime);
  EXPECT_EQ(bench.stat("a").ctime, before.ctime);
  EXPECT_EQ(bench.stat("a").size, 9U);
  EXPECT_TRUE(bench.stage->is_clean());
  bench.reopen();
  EXPECT_EQ(bench.stat("a").mtime, before.mtime);
  EXPECT_EQ(bench.read("a"), "published");
  EXPECT_TRUE(bench.stage->is_clean());
  ASSERT_TRUE(bench.write(bench.find("a"), 9, "!"));
  EXPECT_EQ(bench.stat("a").mtime, bench.clock.wall());
  EXPECT_FALSE(bench.stage->is_clean());
  ASSERT_TRUE(bench.truncate(bench.find("a"), 9));
  EXPECT_TRUE(bench.stage->is_clean());
}

TEST_F(BytesTest, ACopyThatNobodyChangedFollowsItsBase) {
  EXPECT_TRUE(bench.stage->is_clean());
  ASSERT_TRUE(bench.copy_up(bench.find("a")));  // opened for writing, and nothing more
  auto moved = bench.move_base(revision_of("r2", {{"a", "of others"}, {"run", {"#!", FileMode::executable}}}));
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(bench.read("a"), "of others");
}

TEST_F(BytesTest, ACopyThatEndsEarlyChangesNothing) {
  auto a = bench.find("a");
  auto from = *bench.stage->lower_content(a);
  auto broken = bench.stage->copy_up(a, from, 9, [](int fd) { return write_all_at(fd, "publ", 0); });
  EXPECT_EQ(broken.error().code, ErrorCode::corrupt);
  auto failed = bench.stage->copy_up(a, from, 9, [](int) -> Status { return fail(ErrorCode::unreachable, "no"); });
  EXPECT_EQ(failed.error().code, ErrorCode::unreachable);
  EXPECT_EQ(bench.read("a"), "published");
  EXPECT_EQ(bench.spool_files(), 0U);
}

TEST_F(BytesTest, ACopyForWhatIsNoLongerBelowIsThrownAway) {
  auto a = bench.find("a");
  auto from = *bench.stage->lower_content(a);
  auto copied = bench.stage->copy_up(a, from, 9, [&](int fd) {
    // Another thread is faster.
    EXPECT_TRUE(bench.write(a, 0, "PUBLISHED"));
    return write_all_at(fd, "published", 0);
  });
  EXPECT_TRUE(copied);
  EXPECT_EQ(bench.read("a"), "PUBLISHED");
  EXPECT_EQ(bench.spool_files(), 1U);
}

TEST_F(BytesTest, ACopyOfWhatAnotherBaseReplacedIsThrownAway) {
  auto a = bench.find("a");
  auto from = *bench.stage->lower_content(a);
  auto copied = bench.stage->copy_up(a, from, 9, [&](int fd) {
    EXPECT_TRUE(bench.move_base(test::revision_of("r2", {{"a", "something else"}})));
    return write_all_at(fd, "published", 0);
  });
  EXPECT_EQ(bench.read("a"), "something else");
  EXPECT_EQ(bench.spool_files(), 0U);
  EXPECT_TRUE(bench.stage->is_clean());
}

TEST_F(BytesTest, RulesWithoutBytesNeedNoSpoolFile) {
  ASSERT_TRUE(bench.put(".gitignore", "") && bench.put("f", ""));
  EXPECT_EQ(bench.changes(), (std::vector<std::string>{"A .gitignore", "A f"}));
  EXPECT_EQ(bench.spool_files(), 0U);
}

TEST_F(BytesTest, AsManyFilesStayOpenAsTheSpoolMayHold) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(bench.put("f" + std::to_string(i), "text"));
  std::size_t open = 0;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    open += std::filesystem::read_symlink(fd.path(), closed).string().starts_with(bench.spool() + "/");
  }
  EXPECT_EQ(open, bench.options().descriptors);
}

TEST_F(BytesTest, TheSpoolKnowsWhatRoomItsDiskHas) {
  auto spool = Spool::open(bench.spool(), 1);
  ASSERT_TRUE(spool);
  EXPECT_EQ((*spool)->free_room() > 0, std::filesystem::space(bench.spool()).available > 0);
}

TEST_F(BytesTest, ACopyFallsBackToUserSpace) {
  const std::string text(3'000'000, 'x');
  ASSERT_TRUE(bench.put("f", text));
  ASSERT_TRUE(bench.stage->freeze("tx").value());
  copies = 0;
  copy_error = EIO;
  Status failed = bench.write(bench.find("f"), 1, "y");
  copy_error = EXDEV;
  Status copied = bench.write(bench.find("f"), 1, "y");
  copy_error = 0;
  if (copies == 0) GTEST_SKIP() << "the disk shares the bytes";
  EXPECT_FALSE(failed);
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(bench.stage->read(bench.find("f"), 0, text.size() + 1), "xy" + text.substr(2));
}

TEST_F(BytesTest, SizesHolesAndTimes) {
  ASSERT_TRUE(bench.put("f", "abc"));
  auto f = bench.find("f");
  bench.clock.advance(std::chrono::seconds(1));
  ASSERT_TRUE(bench.truncate(f, 1 << 20));
  EXPECT_EQ(bench.stat("f").size, 1U << 20);
  EXPECT_EQ(bench.stat("f").mtime, bench.clock.wall());
  EXPECT_EQ(bench.stage->read(f, 1, 4), std::string("bc\0\0", 4));
  ASSERT_TRUE(bench.write(f, 900'000, "end"));
  EXPECT_LT(bench.stat("f").blocks, (1U << 20) / 512);
  auto hole = bench.stage->seek(f, 0, SEEK_HOLE);
  ASSERT_TRUE(hole);
  EXPECT_LT(*hole, 900'000U);
  EXPECT_GT(bench.stage->seek(f, *hole, SEEK_DATA).value(), *hole);
  EXPECT_EQ(bench.stage->seek(f, 1 << 20, SEEK_DATA).error().code, ErrorCode::no_data);
  ASSERT_TRUE(bench.put("empty", ""));
  EXPECT_EQ(bench.stage->seek(bench.find("empty"), 0, SEEK_HOLE).error().code, ErrorCode::no_data);
  EXPECT_EQ(bench.stage->seek(f, 0, SEEK_SET).error().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(bench.stage->allocate(f, FALLOC_FL_KEEP_SIZE, 0, 2 << 20));
  EXPECT_EQ(bench.stat("f").size, 1U << 20);
  ASSERT_TRUE(bench.stage->allocate(f, 0, 0, 2 << 20));
  EXPECT_EQ(bench.stat("f").size, 2U << 20);
  ASSERT_TRUE(bench.stage->allocate(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 3));
  EXPECT_EQ(bench.stage->read(f, 0, 3), std::string(3, '\0'));
  ASSERT_TRUE(bench.truncate(f, 0));
  EXPECT_EQ(bench.read("f"), "");
}

TEST_F(BytesTest, AFrozenFileThatEndsInAHoleCanBeWritten) {
  ASSERT_TRUE(bench.put("f", "abc") && bench.truncate(bench.find("f"), 1 << 20));
  auto layer = bench.stage->freeze("tx").value();
  ASSERT_TRUE(layer);
  auto written = bench.write(bench.find("f"), 0, "ABC");
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(bench.read("f"), "ABC" + std::string((1 << 20) - 3, '\0'));
  EXPECT_EQ(bench.stage->read_frozen(layer->files.at(0)), "abc" + std::string((1 << 20) - 3, '\0'));
}

TEST_F(BytesTest, OnlyRegularFilesHaveBytes) {
  ASSERT_TRUE(bench.mkdir("d"));
  ASSERT_TRUE(bench.symlink("a", "l"));
  EXPECT_EQ(bench.stage->write(bench.find("d"), 0, "x").error().code, ErrorCode::is_a_directory);
  EXPECT_EQ(bench.stage->read(bench.find("d"), 0, 1).error().code, ErrorCode::is_a_directory);
  EXPECT_EQ(bench.truncate(bench.find("d"), 0).error().code, ErrorCode::is_a_directory);
  EXPECT_EQ(bench.stage->write(bench.find("l"), 0, "x").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(bench.stage->symlink_target(bench.find("a")).error().code, ErrorCode::invalid_argument);
}

TEST_F(BytesTest, TimesSurviveARemountToTheNanosecond) {
  ASSERT_TRUE(bench.put("f", "text"));
  AttributeChange change;
  change.atime = WallTime{1'000'000'000'000'000'001};
  change.mtime = WallTime{-5};
  ASSERT_TRUE(bench.stage->set_attributes(bench.find("f"), change));
  auto before = bench.stat("f");
  bench.reopen();
  auto after = bench.stat("f");
  EXPECT_EQ(after.atime, *change.atime);
  EXPECT_EQ(after.mtime.nanoseconds, -5);
  EXPECT_EQ(after.ctime, before.ctime);
  bench.clock.advance(std::chrono::seconds(1));
  ASSERT_TRUE(bench.link("f", "g"));
  EXPECT_EQ(bench.stat("f").ctime, bench.clock.wall());
  EXPECT_EQ(bench.stat("f").mtime.nanoseconds, -5);
  bench.reopen();
  EXPECT_EQ(bench.stat("f").ctime, bench.clock.wall());
  EXPECT_EQ(bench.stat("f").mtime.nanoseconds, -5);
}

/// When the disk last changed the times of the only spool file.
timespec times_set(const test::Workbench& bench) {
  struct stat found {};
  for (const auto& file : std::filesystem::directory_iterator(bench.spool())) stat(file.path().c_str(), &found);
  return found.st_ctim;
}

TEST_F(BytesTest, SyncSetsNoTimesThatNobodyAskedFor) {
  ASSERT_TRUE(bench.put("f", "text"));
  auto f = bench.find("f");
  ASSERT_TRUE(bench.write(f, 0, "TEXT"));
  auto written = times_set(bench);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than a tick of the disk's clock
  ASSERT_TRUE(bench.stage->sync(f));
  auto synced = times_set(bench);
  EXPECT_EQ(std::pair(synced.tv_sec, synced.tv_nsec), std::pair(written.tv_sec, written.tv_nsec));
  EXPECT_EQ(bench.stat("f").mtime, bench.clock.wall());
  auto shown = times_set(bench);
  EXPECT_NE(std::pair(shown.tv_sec, shown.tv_nsec), std::pair(written.tv_sec, written.tv_nsec));
}

TEST_F(BytesTest, ManyFilesShareAFewDescriptors) {
  // The workbench's pool keeps four descriptors; all files stay readable and writable.
  std::vector<InodePtr> open;
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(bench.put("f" + std::to_string(i), std::to_string(i)));
    open.push_back(bench.find("f" + std::to_string(i)));
  }
  auto descriptors = [] {
    auto listing = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(listing), end(listing));
  };
  auto before = descriptors();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(bench.unlink("f" + std::to_string(i)));
  for (int i = 499; i >= 0; --i) {
    ASSERT_TRUE(bench.write(open[static_cast<std::size_t>(i)], 3, "x"));
    EXPECT_EQ(bench.read(open[static_cast<std::size_t>(i)])->substr(0, 1), std::to_string(i).substr(0, 1));
  }
  EXPECT_LE(descriptors(), before + 4);
  EXPECT_LT(before, 100);
}

TEST_F(BytesTest, SyncAnswersForFilesAndDirectories) {
  ASSERT_TRUE(bench.put("f", "text"));
  EXPECT_TRUE(bench.stage->sync(bench.find("f")));
  EXPECT_TRUE(bench.stage->sync(bench.find("")));
  EXPECT_TRUE(bench.stage->sync(bench.find("a")));
}

TEST_F(BytesTest, AFailedSyncStaysFailed) {
  ASSERT_TRUE(bench.put("f", "text"));
  auto f = bench.find("f");
  // The descriptor pool evicts f; then its file is made unreachable.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(bench.put("g" + std::to_string(i), "x"));
  std::filesystem::path file = bench.spool() + "/1";
  ASSERT_TRUE(std::filesystem::exists(file));
  ASSERT_TRUE(bench.stat("f").size == 4);
  for (int i = 0; i < 5; ++i) bench.stat("g" + std::to_string(i));
  std::filesystem::rename(file, file.string() + ".away");
  std::filesystem::create_directory(file);
  EXPECT_FALSE(bench.stage->sync(f));
  std::filesystem::remove(file);
  std::filesystem::rename(file.string() + ".away", file);
  EXPECT_FALSE(bench.stage->sync(f));
  EXPECT_TRUE(bench.stage->sync(bench.find("g0")));
}

TEST_F(BytesTest, WritersOfManyFilesWhileLayersFreeze) {
  // Two threads append numbered lines, each line to its two files in turn; a third freezes and thaws. A freeze must be
  // one moment: the second file never has a line that the first one lacks.
  ASSERT_TRUE(bench.put("one", ""));
  ASSERT_TRUE(bench.put("two", ""));
  auto one = bench.find("one"), two = bench.find("two");
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (std::uint64_t i = 0; !stop && i < 20'000; ++i) {
      ASSERT_TRUE(bench.stage->write(one, i, "x"));
      ASSERT_TRUE(bench.stage->write(two, i, "x"));
    }
  });
  for (int round = 0; round < 40; ++round) {
    auto layer = bench.stage->freeze("tx" + std::to_string(round));
    ASSERT_TRUE(layer);
    if (!*layer) continue;
    std::map<std::string, std::uint64_t> sizes;
    for (const auto& file : (*layer)->files) {
      sizes[file.path] = file.size;
      EXPECT_EQ(ContentHash::of(*bench.stage->read_frozen(file)), file.hash);
    }
    EXPECT_GE(sizes["one"], sizes["two"]);
    EXPECT_LE(sizes["one"], sizes["two"] + 1);
    ASSERT_TRUE(bench.stage->thaw("tx" + std::to_string(round)));
  }
  stop = true;
  writer.join();
  EXPECT_EQ(bench.stat("one").size, bench.stat("two").size);
}

TEST_F(BytesTest, WaitersContinueAfterAFreeze) {
  for (int round = 0; round < 20; ++round) {
    const std::string tx = "tx" + std::to_string(round);
    constexpr int kWriters = 3;
    std::latch begun(kWriters + 1);
    std::atomic<int> done = 0;
    std::vector<std::thread> writers;
    for (int i = 0; i < kWriters; ++i) {
      const std::string name = std::to_string(i);
      ASSERT_TRUE(bench.put(name, tx));
      writers.emplace_back([&, file = bench.find(name)] {
        begun.arrive_and_wait();
        for (int at = 0; at < 300; ++at) EXPECT_TRUE(bench.stage->write(file, 0, "x"));
        ++done;
      });
    }
    begun.arrive_and_wait();
    EXPECT_TRUE(bench.stage->freeze(tx));
    // Not only when the publication ends, which may take hours.
    EXPECT_TRUE(test::eventually([&] { return done == kWriters; }));
    ASSERT_TRUE(bench.stage->thaw(tx));
    for (auto& writer : writers) writer.join();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace playfs::stage
