// The operations log: what a crash, a power cut or a full disk leaves of it, and that replaying it is harmless.
#include "stage/store/operations_log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "stage/store/row_store.h"
#include "support/eventually.h"
#include "support/workbench.h"

namespace {
/// Bytes that may still be written to files below /operations.*; negative: unlimited.
thread_local long room_left = -1;
/// Once the reserve for a full disk is released, it is the only space left, and cannot be reserved again.
thread_local bool is_kept_room_the_last = false;
}  // namespace

extern "C" int unlink(const char* path) noexcept {
  if (is_kept_room_the_last && std::string_view(path).ends_with("/reserve")) room_left = -1;
  return static_cast<int>(syscall(SYS_unlink, path));
}

extern "C" int posix_fallocate(int fd, off_t offset, off_t size) {
  if (is_kept_room_the_last) return ENOSPC;
  return syscall(SYS_fallocate, fd, 0, offset, size) == 0 ? 0 : errno;
}

// For everything in this process: simulates a full disk.
extern "C" ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  if (room_left >= 0) {
    size = std::min(size, static_cast<size_t>(room_left));
    if (size == 0) {
      errno = ENOSPC;
      return -1;
    }
    room_left -= static_cast<long>(size);
  }
  return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

namespace playfs::stage {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

std::string bytes_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

class OperationsLogTest : public testing::Test {
 protected:
  std::unique_ptr<OperationsLog> open(std::uint64_t stage_id = 7) {
    return std::move(OperationsLog::open(directory_.path(), stage_id).value());
  }
  [[nodiscard]] std::string path(int file) const { return directory_.path() + OperationsLog::kFiles.at(file); }
  static void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static std::vector<std::string> payloads(const std::vector<LogRecord>& records) {
    std::vector<std::string> all;
    for (const auto& record : records) all.push_back(std::to_string(record.number) + record.payload);
    return all;
  }
  std::vector<std::string> found(std::uint64_t after = 0) { return payloads(open()->read(after).value().records); }

  test::TemporaryDirectory directory_;
};

TEST_F(OperationsLogTest, RecordsComeBackInOrderAndOnlyThoseThatFollow) {
  {
    auto log = open();
    ASSERT_TRUE(log->append("a") && log->append("") && log->append(std::string(100'000, 'c')));
    ASSERT_TRUE(log->sync());
  }
  EXPECT_THAT(found(), ElementsAre("1a", "2", "3" + std::string(100'000, 'c')));
  EXPECT_THAT(found(2), ElementsAre("3" + std::string(100'000, 'c')));
  EXPECT_THAT(found(3), IsEmpty());
}

TEST_F(OperationsLogTest, ATornLogIsReadUpToTheTear) {
  std::vector<std::size_t> ends = {0};
  {
    auto log = open();
    for (const char* payload : {"first", "second", "third"}) {
      ASSERT_TRUE(log->append(payload));
      ends.push_back(fs::file_size(path(0)));
    }
  }
  const std::string whole = bytes_of(path(0));
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    std::size_t records = 0;
    while (records + 1 < ends.size() && ends[records + 1] <= size) ++records;
    write(path(0), whole.substr(0, size));
    auto cut = open()->read(0).value();
    EXPECT_EQ(cut.records.size(), records) << size;
    EXPECT_EQ(cut.torn, size - ends[records]) << size;
    if (size == whole.size()) break;
    std::string damaged = whole;
    damaged[size] ^= 0x10;
    write(path(0), damaged);
    EXPECT_EQ(open()->read(0).value().records.size(), records) << "damaged at " << size;
  }
}

TEST_F(OperationsLogTest, RecordsOfAnotherStageAreNone) {
  ASSERT_TRUE(open(8)->append("theirs"));
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_EQ(open()->read(0)->torn, fs::file_size(path(0)));
  EXPECT_EQ(OperationsLog::parse(bytes_of(path(0)), std::nullopt).records.size(), 1U);
}

TEST_F(OperationsLogTest, WhatIsAppendedDuringACheckpointFollowsOnIt) {
  auto log = open();
  ASSERT_TRUE(log->append("a") && log->append("b"));
  EXPECT_THAT(payloads(log->begin_checkpoint().value()), ElementsAre("1a", "2b"));
  ASSERT_TRUE(log->append("c"));
  EXPECT_THAT(found(), ElementsAre("1a", "2b", "3c")) << "a crash during the checkpoint";
  EXPECT_THAT(found(2), ElementsAre("3c")) << "a crash between the checkpoint and its end";
  // A failed one is repeated, whatever came since.
  EXPECT_THAT(payloads(log->begin_checkpoint().value()), ElementsAre("1a", "2b"));
  ASSERT_TRUE(log->end_checkpoint());
  EXPECT_THAT(found(2), ElementsAre("3c")) << "a crash after it";
  EXPECT_THAT(payloads(log->begin_checkpoint().value()), ElementsAre("3c"));
  ASSERT_TRUE(log->append("d") && log->end_checkpoint());
  EXPECT_THAT(payloads(log->begin_checkpoint().value()), ElementsAre("4d"));
  ASSERT_TRUE(log->end_checkpoint());
  EXPECT_THAT(log->begin_checkpoint().value(), IsEmpty());
  EXPECT_EQ(log->size(), 0U);
}

TEST_F(OperationsLogTest, WithoutItsFirstPartTheSecondIsNotRead) {
  auto log = open();
  ASSERT_TRUE(log->append("a") && log->begin_checkpoint() && log->append("b"));
  write(path(0), "");
  EXPECT_THAT(found(), IsEmpty());
  EXPECT_GT(open()->read(0)->torn, 0U);
}

TEST_F(OperationsLogTest, RemnantsOfEarlierRecordsAreNotRead) {
  auto log = open();
  ASSERT_TRUE(log->append("a") && log->append("b"));
  const std::string old = bytes_of(path(0));
  ASSERT_TRUE(log->start(1000));
  ASSERT_TRUE(log->append("x"));
  // The disk forgot that the file was emptied: the old records follow the new one, or replace it.
  write(path(0), bytes_of(path(0)) + old.substr(old.size() / 2));
  EXPECT_THAT(found(999), ElementsAre("1000x"));
  write(path(0), old);
  EXPECT_THAT(found(999), IsEmpty());
}

TEST_F(OperationsLogTest, AFullDiskLeavesNothingOfARecord) {
  auto log = open();
  ASSERT_TRUE(log->append("a"));
  const std::string before = bytes_of(path(0));
  for (long room : {0, 5, 40}) {
    room_left = room;
    auto appended = log->append(std::string(100, 'x'));
    room_left = -1;
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().code, ErrorCode::no_space);
    EXPECT_EQ(bytes_of(path(0)), before);
  }
  ASSERT_TRUE(log->append("b"));
  EXPECT_THAT(found(), ElementsAre("1a", "2b"));
}

/// A stage and its log: the directory is copied away at some moment and opened there, as after kill -9.
class ReplayTest : public testing::Test {
 protected:
  ReplayTest() { bench.housekeeping.log_bytes = 1 << 20; }
  [[nodiscard]] std::string directory() const { return bench.options().directory; }
  [[nodiscard]] std::string copied() const { return directory() + "-copied"; }
  /// The file that operations go to; "" if both are empty.
  [[nodiscard]] std::string log_file() const {
    for (const char* file : OperationsLog::kFiles)
      if (fs::file_size(directory() + file) > 0) return directory() + file;
    return {};
  }
  void copy_away() {
    fs::remove_all(copied());
    fs::copy(directory(), copied(), fs::copy_options::recursive);
  }
  void put_back(const std::string& from, const std::string& file) {
    fs::copy_file(from + file, directory() + file, fs::copy_options::overwrite_existing);
  }
  RevisionTreePtr base = test::revision_of("r1", {{"a", "one"}});
  test::Workbench bench;
};

TEST_F(ReplayTest, AFullDiskLeavesMemoryAsItWas) {
  bench.open(base);
  ASSERT_TRUE(bench.put("f", "kept"));
  auto before = bench.stat("");
  bench.clock.advance(std::chrono::seconds(1));
  room_left = 0;
  auto unlinked = bench.unlink("f");
  auto renamed = bench.rename("a", "b");
  auto made = bench.mkdir("d");
  room_left = -1;
  for (const Status& status : {unlinked, renamed, made}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::no_space);
  }
  EXPECT_THAT(bench.list(""), ElementsAre("a", "f"));
  EXPECT_EQ(bench.stat("").mtime, before.mtime);
  EXPECT_EQ(bench.read("f"), "kept");
  ASSERT_TRUE(bench.mkdir("d"));
  bench.reopen();
  EXPECT_THAT(bench.list(""), ElementsAre("a", "d", "f"));
}

TEST_F(ReplayTest, WhatIsKeptForAFullDiskIsThereToEmptyAFile) {
  bench.open(base);
  room_left = 0;
  is_kept_room_the_last = true;
  auto emptied = bench.truncate(bench.find("a"), 0);
  room_left = -1;
  is_kept_room_the_last = false;
  ASSERT_TRUE(emptied) << emptied.error().message;
  EXPECT_EQ(bench.read("a"), "");
}

TEST_F(ReplayTest, OperationsGoToTheLogAndAreCheckpointedAtTheEnd) {
  bench.open(base);
  ASSERT_TRUE(bench.mkdir("d"));
  EXPECT_NE(log_file(), "");
  bench.stage.reset();
  EXPECT_EQ(log_file(), "");
  bench.open(base);
  EXPECT_THAT(bench.list(""), ElementsAre("a", "d"));
}

TEST_F(ReplayTest, ALogThatWasCheckpointedAndNotEmptiedChangesNothing) {
  bench.open(base);
  ASSERT_TRUE(bench.mkdir("d") && bench.put("d/f", "text") && bench.rename("d", "e") && bench.unlink("a"));
  copy_away();
  bench.stage.reset();
  // The database after the checkpoint, the log before it; and again, after more operations.
  for (const char* name : {"g", "h"}) {
    put_back(copied(), "/operations.0");
    put_back(copied(), "/operations.1");
    bench.open(base);
    EXPECT_EQ(bench.read("e/f"), "text");
    EXPECT_EQ(bench.find("a"), nullptr);
    ASSERT_TRUE(bench.mkdir(name));
    bench.stage.reset();
  }
  bench.open(base);
  EXPECT_THAT(bench.list(""), ElementsAre("e", "g", "h"));
}

TEST_F(ReplayTest, WhatACrashTookFromTheLogDoesNotComeBack) {
  bench.open(base);
  ASSERT_TRUE(bench.mkdir("d") && bench.mkdir("lost"));
  copy_away();
  bench.stage.reset();
  fs::remove_all(directory());
  fs::rename(copied(), directory());
  // Its last record is torn: the next one does not get that one's number.
  const std::string log = log_file();
  const auto size = fs::file_size(log);
  fs::resize_file(log, size - 1);
  bench.open(base);
  EXPECT_THAT(bench.list(""), ElementsAre("a", "d"));
  ASSERT_TRUE(bench.mkdir("new"));
  auto records = OperationsLog::parse(bytes_of(log_file()), std::nullopt).records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_GT(records[0].number, std::uint64_t{1} << 32);
}

TEST_F(ReplayTest, WhileOthersWorkTheLogIsCheckpointedAndSpoolFilesAreRemoved) {
  bench.housekeeping = {
      .log_bytes = 2000, .removals = 10, .patience = std::chrono::milliseconds(1), .own_thread = true};
  bench.open(base);
  constexpr int kThreads = 4, kRounds = 100;
  std::vector<std::thread> workers;
  for (int id = 0; id < kThreads; ++id) {
    workers.emplace_back([&, name = "t" + std::to_string(id)] {
      InodePtr root = bench.stage->root();
      for (int round = 0; round < kRounds; ++round) {
        auto file = bench.stage->make_file(root, name + "~", {});
        EXPECT_TRUE(file && bench.stage->write(*file, 0, std::to_string(round)));
        EXPECT_TRUE(bench.stage->rename(root, name + "~", root, name, RenameMode::replace));
        if (round % 20 == 0) {
          EXPECT_TRUE(bench.stage->sync(*file));
        }
      }
    });
  }
  for (auto& worker : workers) worker.join();
  auto log_size = [&] {
    std::uintmax_t size = 0;
    for (const char* file : OperationsLog::kFiles) size += fs::file_size(directory() + file);
    return size;
  };
  // Soon, and without another operation.
  EXPECT_TRUE(test::eventually([&] { return log_size() <= 2000 && bench.spool_files() <= kThreads; }));
  EXPECT_EQ(bench.spool_files(), std::size_t{kThreads});
  bench.reopen();
  for (int id = 0; id < kThreads; ++id) EXPECT_EQ(bench.read("t" + std::to_string(id)), std::to_string(kRounds - 1));
}

}  // namespace
}  // namespace playfs::stage
