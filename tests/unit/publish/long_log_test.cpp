// A commit in a project that was not used while 25,000 revisions of others were published.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using test::Fault;
using test::WorkTree;

constexpr std::size_t kForeign = 25'000;
constexpr std::size_t kPage = 100;
constexpr int kForeignPages = kForeign / kPage + 1;

/// The list of revisions as if 25,000 others had been published after `base`, with the real ones around them.
class LongLog {
 public:
  LongLog(test::World& world, std::string base) : world_(world), base_(std::move(base)) {}

  HttpResponse answer(const std::string& target) {
    auto real = world_.all("revisions");
    auto base = std::find_if(real.begin(), real.end(), [&](const Record& record) { return record.id == base_; });
    auto newer = static_cast<std::size_t>(base - real.begin());
    auto at = target.find("cursor=");
    std::size_t from_end = at == std::string::npos ? real.size() + kForeign : std::stoul(target.substr(at + 7));
    std::string records;
    std::size_t position = real.size() + kForeign - from_end;
    for (std::size_t i = 0; i < kPage && from_end > 0; ++i, ++position, --from_end) {
      if (!records.empty()) records += ',';
      if (position < newer) records += text(real[position]);
      else if (position < newer + kForeign) records += foreign(position - newer, base->created_at);
      else records += text(real[position - kForeign]);
    }
    // Counted from the end of the log, which does not change when more are added in front.
    auto cursor = from_end > 0 ? '"' + std::to_string(from_end) + '"' : "null";
    return {200, {}, R"({"records":[)" + records + R"(],"nextCursor":)" + cursor + "}"};
  }

 private:
  static std::string text(const Record& record) { return wire::to_text(wire::encode_record(record)); }
  static std::string foreign(std::size_t number, const std::string& time) {
    return fmt::format(R"({{"id":"foreign{}","created_at":"{}","project":"another"}})", number, time);
  }
  test::World& world_;
  const std::string base_;
};

class LongLogTest : public testing::Test {
 protected:
  LongLogTest() : project(world.create("projects", R"({"name":"p"})").id) {
    auto body = JsonObject{{"project", project},
                           {"parents", Json::Array{}},
                           {"manifest", JsonObject{{"files", JsonObject{{"base", JsonObject{{"inline", "0"}}}}}}}};
    base = world.create("revisions", wire::to_text(body)).id;
    world.set_head(project, base);
    log = std::make_unique<LongLog>(world, base);
    begin();
  }
  void begin() {
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree",
                                      [this](const HttpRequest& request) { return fate(request); });
    publisher = work->publisher.get();
  }
  void end() {
    publisher = nullptr;
    work.reset();
  }
  void at(int list, std::function<Fault()> fate) {
    std::lock_guard lock(mutex);
    stop_at = list;
    at_list = std::move(fate);
  }
  /// Called on the publisher's threads.
  Fault fate(const HttpRequest& request) {
    if (request.method == "POST" && request.target.ends_with("/revisions") && loses_reply.exchange(false))
      return test::lose_reply();
    if (request.method != "GET" || request.target.find("/revisions?") == std::string::npos) return {};
    ++lists;
    auto* opened = publisher.load();
    auto reading = opened ? opened->progress().reading : std::nullopt;
    if (reading) most_told = std::max<std::uint64_t>(most_told, reading->records);
    std::function<Fault()> here;
    {
      std::lock_guard lock(mutex);
      if (lists == stop_at) here = std::exchange(at_list, nullptr);
    }
    if (here) return here();
    return {Fault::Kind::answer, log->answer(request.target)};
  }
  void begin_commit() {
    work->publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                            [](const Result<CommitResult>&) {});
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project, base;
  std::unique_ptr<LongLog> log;
  std::unique_ptr<WorkTree> work;
  std::atomic<bool> loses_reply = false;
  std::atomic<Publisher*> publisher = nullptr;  ///< once it is open
  std::atomic<int> lists = 0;
  std::atomic<std::uint64_t> most_told = 0;
  std::mutex mutex;
  int stop_at = 0;
  std::function<Fault()> at_list;
};

TEST_F(LongLogTest, ItIsPublishedAndEachRecordReadOnce) {
  loses_reply = true;  // so that it is searched for, too
  at(60, [] { return test::lose_request(); });
  work->write("file", "1");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.head(project), result->revision.text());
  EXPECT_LE(lists, kForeignPages + 16);
  EXPECT_GT(most_told, kForeign - 1'000) << "status tells how far it is";
  lists = 0;
  work->write("file", "2");
  ASSERT_TRUE(work->commit());
  EXPECT_LE(lists, 8) << "the log up to there is known";
}

TEST_F(LongLogTest, ItCanBeInterruptedAndGoesOnAfterARestart) {
  std::promise<void> reached;
  at(100, [&] {
    reached.set_value();
    return test::hang();
  });
  work->write("file", "1");
  begin_commit();
  reached.get_future().wait();
  // A cancel request is answered although a request hangs: the commit was sent, and continues.
  std::promise<Result<Cancelled>> answer;
  std::promise<void> again;
  at(150, [&] {
    again.set_value();
    return test::hang();
  });
  work->publisher->cancel([&](Result<Cancelled> cancelled) { answer.set_value(std::move(cancelled)); });
  auto cancelled = answer.get_future().get();
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_TRUE(cancelled->too_late);
  again.get_future().wait();
  end();
  begin();
  work->wait_until_idle();
  ASSERT_TRUE(work->publisher->last());
  ASSERT_TRUE(*work->publisher->last());
  EXPECT_EQ((*work->publisher->last())->outcome, Outcome::published);
  EXPECT_EQ(world.contents(world.head(project)), (test::Contents{{"base", "0"}, {"file", "1"}}));
  EXPECT_LE(lists, kForeignPages + 24);
}

TEST_F(LongLogTest, AReconcileReadsItOnceToo) {
  end();
  work = std::make_unique<WorkTree>(
      world, project, directory.path() + "/tree", [this](const HttpRequest& request) { return fate(request); },
      JournalProbe(), true);
  ASSERT_TRUE(test::eventually([&] { return lists >= kForeignPages; }, std::chrono::minutes(4)));
  work->write("file", "1");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_LE(lists, kForeignPages + 24);
}

}  // namespace
}  // namespace playfs::publish
