// Reading a log that has grown by tens of thousands of others' revisions: each record is read once, even if the scan is
// interrupted.
#include "publish/log_scan.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/publish_world.h"
#include "support/running_clock.h"

namespace playfs::publish {
namespace {

const ProjectId kProject("ours");

/// A service that has only a log. A cursor names the record to resume after.
class LogOnly final : public Upstream {
 public:
  void add(const std::string& project, std::int64_t second) {
    Record record;
    record.id = fmt::format("r{:06}", records_.size());
    record.created_at = format_iso8601(WallTime{second * 1'000'000'000});
    record.fields = JsonObject{{"project", project}};
    records_.push_back(std::move(record));
  }
  void forget(std::size_t from, std::size_t to) {
    records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(from),
                   records_.begin() + static_cast<std::ptrdiff_t>(to));
  }
  [[nodiscard]] std::size_t size() const { return records_.size(); }

  Result<Project> project() override {
    Project project;
    project.id = kProject;
    return project;
  }
  Result<Look> look() override {
    PLAYFS_TRY(auto newest, page("revisions", ""));
    return Look{*project(), std::move(newest)};
  }
  Result<wire::RecordPage> page(const std::string&, const std::string& cursor) override {
    ++pages;
    if (before) PLAYFS_CHECK(before(cursor));
    auto at = records_.rbegin();
    if (!cursor.empty()) {
      auto named = std::lower_bound(records_.begin(), records_.end(), cursor,
                                    [](const Record& record, const std::string& id) { return record.id < id; });
      if (named == records_.end() || named->id != cursor) return fail(ErrorCode::invalid_argument, "no such cursor");
      at = std::make_reverse_iterator(named);
    }
    wire::RecordPage page;
    for (; at != records_.rend() && page.records.size() < 100; ++at) page.records.push_back(*at);
    if (at != records_.rend()) page.next_cursor = page.records.back().id;
    if (after) after(page);
    return page;
  }
  void learn(const std::string&, const Record& record) override { learned.push_back(record.id); }

  Result<Record> get(const std::string&, const std::string&) override { return nothing(); }
  Result<std::string> holder_of(const std::string&, const std::string&) override { return nothing(); }
  bool may_carry(const std::string&, const std::string&, const std::string&) override { return false; }
  Result<RevisionTreePtr> revision(const RevisionId&) override { return nothing(); }
  Result<Bytes> content(const RevisionTreePtr&, const std::string&, const FileEntry&) override { return nothing(); }
  Result<std::vector<FileChunk>> chunks(const std::vector<ChunkId>&) override { return nothing(); }
  Result<Record> create(const std::string&, const Json&, const std::string&) override { return nothing(); }
  Status upload(const std::vector<Upload>&, const Acknowledged&) override { return nothing(); }
  Status move_head(const RevisionId&) override { return nothing(); }

  int pages = 0;
  std::function<Status(const std::string& cursor)> before;
  std::function<void(wire::RecordPage&)> after;
  std::vector<std::string> learned;

 private:
  static tl::unexpected<Error> nothing() { return fail(ErrorCode::not_supported, "a log and nothing else"); }
  std::vector<Record> records_;  // oldest first
};

class LogScanTest : public testing::Test {
 protected:
  static constexpr std::int64_t kDay = 86'400;

  LogScanTest() {
    log.add("ours", 10 * kDay);  // the base
    for (int i = 0; i < 25'000; ++i) log.add(i % 5'000 == 77 ? "ours" : "theirs", 11 * kDay + i);
    restart();
  }
  void restart() {
    scan.reset();
    journal.reset();
    journal = *Journal::open(directory.path());
    scan = std::make_unique<LogScan>(LogScan::Parts{kProject, log, *journal, events, clock,
                                                    [this](std::optional<LogReading> reading) {
                                                      if (reading) told.push_back(*reading);
                                                    }},
                                     limits);
  }
  Status look() {
    auto project = scan->look(WallTime{10 * kDay * 1'000'000'000});
    if (!project) return fail(project.error());
    return {};
  }
  void expect_all_found(std::size_t count = 6) {
    EXPECT_EQ(scan->found().size(), count);
    std::sort(log.learned.begin(), log.learned.end());
    EXPECT_EQ(std::unique(log.learned.begin(), log.learned.end()), log.learned.end()) << "each was taken in once";
  }

  test::RunningClock clock;
  test::TemporaryDirectory directory;
  content::EventLog events{clock};
  LogOnly log;
  LogScan::Limits limits;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<LogScan> scan;
  std::vector<LogReading> told;
};

constexpr int kPages = 251;

TEST_F(LogScanTest, AGapBetweenPagesIsReadAgainOnceReadsHaveCaughtUp) {
  ASSERT_TRUE(look());
  for (int i = 0; i < 650; ++i) log.add(i == 200 ? "ours" : "theirs", 12 * kDay);
  // The fifth page comes from a node that lags behind.
  int pages = 0;
  log.after = [&](wire::RecordPage& page) {
    if (++pages == 5) page.records.clear();
  };
  ASSERT_TRUE(look());
  expect_all_found();
  log.after = nullptr;
  for (int i = 0; i < 3; ++i) {
    if (i == 1) {
      ASSERT_TRUE(scan->save());
      restart();
    }
    log.pages = 0;
    clock.advance(std::chrono::seconds(50));
    ASSERT_TRUE(look());
    EXPECT_LE(log.pages, 3) << "nothing is read again too early";
  }
  clock.advance(std::chrono::seconds(120));
  ASSERT_TRUE(look());
  expect_all_found(7);
  log.pages = 0;
  clock.advance(std::chrono::seconds(120));
  ASSERT_TRUE(look());
  EXPECT_LE(log.pages, 3) << "nor more than once";
}

TEST_F(LogScanTest, AGapThatComesShortlyBeforeOthersAreReadAgainIsReadAgainToo) {
  ASSERT_TRUE(look());
  for (int i = 0; i < 250; ++i) log.add("theirs", 12 * kDay);
  ASSERT_TRUE(look());
  clock.advance(std::chrono::seconds(119));
  for (int i = 0; i < 650; ++i) log.add(i == 200 ? "ours" : "theirs", 12 * kDay + 119);
  int pages = 0;
  log.after = [&](wire::RecordPage& page) {
    if (++pages == 5) page.records.clear();
  };
  ASSERT_TRUE(look());
  expect_all_found();
  // The first gap is read again while the node lags on.
  clock.advance(std::chrono::seconds(2));
  pages = 0;
  ASSERT_TRUE(look());
  expect_all_found();
  log.after = nullptr;
  clock.advance(std::chrono::seconds(121));
  ASSERT_TRUE(look());
  expect_all_found(7);
}

TEST_F(LogScanTest, TheNextLookReadsOnlyWhatIsNew) {
  ASSERT_TRUE(look());
  EXPECT_LE(log.pages, kPages + 3);
  expect_all_found();
  ASSERT_FALSE(told.empty());
  EXPECT_GT(told.back().records, 24'000u);
  const std::size_t words = told.size();
  for (int i = 0; i < 5; ++i) {
    log.pages = 0;
    log.add(i == 3 ? "ours" : "theirs", 12 * kDay + i);
    if (i == 2) restart();
    ASSERT_TRUE(look());
    EXPECT_LE(log.pages, 3) << "the newest page, and what overlaps";
  }
  EXPECT_EQ(told.size(), words) << "which is nothing to tell of";
  expect_all_found(7);
}

TEST_F(LogScanTest, WhatWasReadIsNotReadAgainWhateverInterrupts) {
  int attempts = 1;
  log.before = [&](const std::string&) -> Status {
    if (log.pages % 40 != 0) return {};
    return fail(log.pages % 80 == 0 ? ErrorCode::interrupted : ErrorCode::unreachable, "not now");
  };
  while (!look()) ++attempts;
  EXPECT_GT(attempts, 5);
  EXPECT_LE(log.pages, kPages + attempts + 3);
  expect_all_found();
}

TEST_F(LogScanTest, ARestartGoesOnWhereItStopped) {
  int restarts = 0;
  log.before = [&](const std::string&) -> Status {
    if (log.pages % 50 != 0) return {};
    return fail(ErrorCode::unreachable, "not now");
  };
  for (; !look(); ++restarts) {
    // As after kill -9 in the middle: anything not journalled separately is gone.
    log.before = [&, at = log.pages + 50](const std::string&) -> Status {
      if (log.pages < at) return {};
      return fail(ErrorCode::unreachable, "not now");
    };
    log.add("theirs", 12 * kDay);  // newer than what was read
    restart();
  }
  EXPECT_GT(restarts, 3);
  EXPECT_LE(log.pages, kPages + restarts + 4);
  expect_all_found();
}

TEST_F(LogScanTest, KilledAtAnyPageItLosesAFewPages) {
  // The storage is copied away during the scan, as kill -9 would leave it.
  test::TemporaryDirectory killed;
  int pages_then = 0;
  log.before = [&](const std::string&) -> Status {
    if (log.pages != 133) return {};
    pages_then = log.pages;
    test::copy_directory(directory.path(), killed.path() + "/journal");
    return {};
  };
  ASSERT_TRUE(look());
  auto left = *Journal::open(killed.path() + "/journal");
  LogScan next({kProject, log, *left, events, clock, [](std::optional<LogReading>) {}}, limits);
  log.pages = 0;
  ASSERT_TRUE(next.look(WallTime{10 * kDay * 1'000'000'000}));
  EXPECT_LE(pages_then + log.pages, kPages + limits.unsaved_pages + 4);
  EXPECT_EQ(next.found().size(), 6u);
}

TEST_F(LogScanTest, IfEachPageIsSavedNoneIsReadAgain) {
  limits.unsaved_pages = 1;
  restart();
  ASSERT_TRUE(look());
  restart();
  log.pages = 0;
  ASSERT_TRUE(look());
  const int after_a_restart = std::exchange(log.pages, 0);
  ASSERT_TRUE(look());
  EXPECT_EQ(after_a_restart, log.pages);
}

TEST_F(LogScanTest, RecordsAddedMeanwhileAreReadToo) {
  log.before = [&](const std::string&) -> Status {
    if (log.pages == 100) log.add("ours", 12 * kDay);
    return {};
  };
  ASSERT_TRUE(look());
  expect_all_found(7);
}

TEST_F(LogScanTest, AVerifiedHeadEndsWhatHasToBeKnown) {
  ASSERT_TRUE(look());
  ASSERT_TRUE(scan->verified(WallTime{12 * kDay * 1'000'000'000}));
  EXPECT_TRUE(scan->found().empty());
  restart();
  log.pages = 0;
  log.add("ours", 12 * kDay + 1);
  auto project = scan->look(WallTime{12 * kDay * 1'000'000'000});
  ASSERT_TRUE(project);
  EXPECT_EQ(log.pages, 1);
  EXPECT_TRUE(scan->found().contains(RevisionId(fmt::format("r{:06}", log.size() - 1))));
}

TEST_F(LogScanTest, AnExpiredCursorRestartsTheScan) {
  log.before = [&](const std::string&) -> Status {
    if (log.pages == 100) return fail(ErrorCode::unreachable, "not now");
    return {};
  };
  ASSERT_FALSE(look());
  restart();
  log.before = [&, is_first = true](const std::string&) mutable -> Status {
    if (std::exchange(is_first, false)) return fail(ErrorCode::invalid_argument, "that cursor has expired");
    return {};
  };
  ASSERT_TRUE(look());
  expect_all_found();
  EXPECT_NE(events.events_text().find("log_read_anew"), std::string::npos);
  EXPECT_NE(events.events_text().find("that cursor has expired"), std::string::npos);
}

TEST_F(LogScanTest, ACursorThatBeginsAgainAtTheTopIsNoticed) {
  log.before = [&](const std::string&) -> Status {
    if (log.pages == 100) return fail(ErrorCode::unreachable, "not now");
    return {};
  };
  ASSERT_FALSE(look());
  restart();
  log.before = {};
  log.after = [&, is_first = true](wire::RecordPage& page) mutable {
    if (std::exchange(is_first, false)) page = *log.page("revisions", "");
  };
  ASSERT_TRUE(look());
  expect_all_found();
  EXPECT_NE(events.events_text().find("jumped back to newer ones"), std::string::npos);
}

TEST_F(LogScanTest, ALogThatLostWhatWasReadIsReadAgain) {
  // Restored from a backup: the newest record is gone, and another one was inserted below it.
  ASSERT_TRUE(look());
  log.forget(24'000, log.size());
  log.add("ours", 11 * kDay + 24'000);
  ASSERT_TRUE(look());
  EXPECT_EQ(scan->found().size(), 7u);
}

TEST_F(LogScanTest, LostRevisionsAreForgottenDespiteInterruptions) {
  ASSERT_TRUE(look());
  log.add("ours", 12 * kDay);
  ASSERT_TRUE(look());
  expect_all_found(7);
  log.forget(24'000, log.size());
  log.add("theirs", 12 * kDay + 1);
  int restarts = 0;
  auto fail_after_pages = [&](int pages) {
    log.before = [&, at = log.pages + pages](const std::string&) -> Status {
      if (log.pages < at) return {};
      return fail(ErrorCode::unreachable, "not now");
    };
  };
  for (fail_after_pages(50); !look(); fail_after_pages(50)) {
    restart();
    ++restarts;
  }
  EXPECT_GT(restarts, 3);
  EXPECT_EQ(scan->found().size(), 6u) << "what was published last is gone";
}

TEST_F(LogScanTest, ARepeatedCursorEndsTheScan) {
  log.after = [&](wire::RecordPage& page) { page.next_cursor = "r024000"; };
  auto failed = look();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::protocol);
  EXPECT_NE(failed.error().message.find("a cursor was repeated"), std::string::npos) << failed.error().message;
  log.after = {};
  ASSERT_TRUE(look());
  expect_all_found();
}

TEST_F(LogScanTest, EmptyPagesEndTheScan) {
  log.after = [&](wire::RecordPage& page) {
    page.records.clear();
    page.next_cursor = fmt::format("r{:06}", log.size() - static_cast<std::size_t>(log.pages));
  };
  auto failed = look();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("had nothing new"), std::string::npos) << failed.error().message;
  EXPECT_EQ(log.pages, limits.most_idle_pages);
}

TEST_F(LogScanTest, AnEndlessListEndsTheScan) {
  limits.most_pages = 100;
  restart();
  auto failed = look();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("100 pages were read"), std::string::npos) << failed.error().message;
}

TEST_F(LogScanTest, TooManyRevisionsEndTheScan) {
  limits.most_found_bytes = 10'000;
  restart();
  for (int i = 0; i < 2'000; ++i) log.add("ours", 12 * kDay + i);
  for (int again = 0; again < 2; ++again) {
    auto failed = look();
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message.find("revisions of the project"), std::string::npos) << failed.error().message;
    EXPECT_LT(scan->found().size(), 500u);
  }
}

}  // namespace
}  // namespace playfs::publish
