// The feed of changes, and the path that begins a watch.
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "changes_fixture.h"
#include "service/change_feed.h"
#include "support/eventually.h"

namespace playfs::service {
namespace {

using std::chrono::milliseconds;
using test::eventually;

/// A subscriber that keeps what it gets.
class Listener {
 public:
  Listener(ChangeFeed& feed, Position after, bool eager = true) : kept_(std::make_shared<Kept>()) {
    std::lock_guard lock(kept_->mutex);  // it may be called before it has its subscription
    kept_->subscription = feed.subscribe(after, [kept = std::weak_ptr(kept_), eager](const ChangeFeed::Text& text) {
      auto self = kept.lock();
      if (!self) return;
      std::lock_guard inner(self->mutex);
      self->texts.push_back(text);
      if (eager) self->subscription->more();
    });
  }

  void more() { kept_->subscription->more(); }
  std::vector<ChangeFeed::Text> texts() {
    std::lock_guard lock(kept_->mutex);
    return kept_->texts;
  }
  /// The ids of the records, in order.
  Ids ids() {
    Ids found;
    for (const auto& text : texts())
      for (std::size_t at = text->find("\"id\":\""); at != std::string::npos; at = text->find("\"id\":\"", at + 1))
        found.push_back(text->substr(at + 6, 20));
    return found;
  }

 private:
  struct Kept {
    std::mutex mutex;
    std::vector<ChangeFeed::Text> texts;
    std::unique_ptr<ChangeFeed::Subscription> subscription;
  };
  std::shared_ptr<Kept> kept_;
};

class FeedTest : public ChangesTest {
 protected:
  /// Looks at nothing by itself for an hour.
  static ChangeFeed::Timing slow() {
    using std::chrono::hours;
    return {milliseconds(1), hours(1), hours(1), milliseconds(1)};
  }
};

TEST_F(FeedTest, WhoIsAheadOfAStoreThatWasPutBackIsTold) {
  ChangeFeed::Timing timing;
  timing.poll = milliseconds(5);
  ChangeFeed feed(*store, timing);
  const auto a = add(*store), b = add(*store), c = add(*store);
  Listener listener(feed, 1), late(feed, 3, false);
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{b.id, c.id}; }));
  {
    auto database = Database::open(directory / "s.db", Database::Durability::normal);
    ASSERT_TRUE(database && database->execute("DELETE FROM records WHERE changed > 1"));
  }
  const std::string reset = print_reset({store->site_id(), 1, a.updated_at});
  ASSERT_TRUE(eventually([&] { return *listener.texts().back() == reset; }));
  ASSERT_TRUE(eventually([&] { return !late.texts().empty(); }));
  EXPECT_EQ(*late.texts().front(), reset);
  const auto d = add(*store);
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{b.id, c.id, d.id}; }));
  EXPECT_EQ(late.texts().size(), 1u) << "it has not asked for more";
}

TEST_F(FeedTest, AStoreThatWasPutBackAndHasGoneOnIsNoticed) {
  ChangeFeed feed(*store, slow());
  const auto a = add(*store), b = add(*store);
  Listener listener(feed, 0), late(feed, 1, false);
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{a.id, b.id} && late.ids() == Ids{b.id}; }));
  {
    auto database = Database::open(directory / "s.db", Database::Durability::normal);
    ASSERT_TRUE(database && database->execute("DELETE FROM records WHERE changed > 1"));
  }
  add(*store);
  const auto d = add(*store);  // the third, though only two were seen
  feed.look();
  const std::string reset = print_reset({store->site_id(), 3, d.updated_at});
  ASSERT_TRUE(eventually([&] { return *listener.texts().back() == reset; }));
  EXPECT_EQ(late.texts().size(), 1u);
  late.more();
  ASSERT_TRUE(eventually([&] { return *late.texts().back() == reset; }));
  const auto e = add(*store);
  feed.look();
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{a.id, b.id, e.id}; }));
}

TEST_F(FeedTest, TellsWhatFollowsAndNothingBefore) {
  ChangeFeed feed(*store, slow());
  const auto a = add(*store), b = add(*store);
  Listener from_start(feed, 0), from_now(feed, *store->newest_change());
  ASSERT_TRUE(eventually([&] { return from_start.ids() == Ids{a.id, b.id}; }));
  const auto c = add(*store);
  feed.look();
  ASSERT_TRUE(eventually([&] { return from_now.ids() == Ids{c.id}; }));
  ASSERT_TRUE(eventually([&] { return from_start.ids() == Ids{a.id, b.id, c.id}; }));
}

TEST_F(FeedTest, NoticesOtherProcessesByItself) {
  auto timing = slow();
  timing.poll = milliseconds(10);
  ChangeFeed feed(*store, timing);
  Listener listener(feed, 0);
  auto other = open();
  const auto a = add(*other);
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{a.id}; }));
}

TEST_F(FeedTest, FormatsOnceForAllThatAreUpToDate) {
  ChangeFeed feed(*store, slow());
  std::vector<std::unique_ptr<Listener>> listeners;
  for (int i = 0; i < 10; ++i) listeners.push_back(std::make_unique<Listener>(feed, 0));
  const auto a = add(*store);
  feed.look();
  for (auto& each : listeners) ASSERT_TRUE(eventually([&] { return !each->texts().empty(); }));
  for (auto& each : listeners) EXPECT_EQ(each->texts().front(), listeners.front()->texts().front());
}

TEST_F(FeedTest, WhoAsksForNothingGetsNothingAndThenAllOfItInPages) {
  ChangeFeed feed(*store, slow());
  Listener idle(feed, 0, false), eager(feed, 0);
  Ids expected;
  expected.push_back(add(*store).id);
  feed.look();
  ASSERT_TRUE(eventually([&] { return idle.ids() == expected && eager.ids() == expected; }));
  auto changing = add(*store);
  for (int i = 0; i < 600; ++i) {
    const auto record = add(*store, "messages", std::string(200, 'x'));
    expected.push_back(record.id);
    changing = touch(*store, changing);
  }
  expected.push_back(changing.id);
  feed.look();
  ASSERT_TRUE(eventually([&] { return eager.ids().back() == changing.id; }));
  EXPECT_EQ(idle.texts().size(), 1u);
  std::size_t known = 1;
  while (idle.ids().back() != changing.id) {
    idle.more();
    ASSERT_TRUE(eventually([&] { return idle.texts().size() == known + 1; }));
    ++known;
    EXPECT_LE(idle.texts().back()->size(), 66u * 1024);
  }
  EXPECT_EQ(idle.ids(), expected);  // what changed 600 times is there once
  EXPECT_GT(known, 2u);
}

/// More distinct positions than are read in one go, all of which end where the store ends.
TEST_F(FeedTest, ManyThatAreBehindAllCatchUp) {
  for (int i = 0; i < 100; ++i) add(*store);
  ChangeFeed feed(*store, slow());
  std::vector<std::unique_ptr<Listener>> listeners;
  for (int i = 0; i < 100; ++i) listeners.push_back(std::make_unique<Listener>(feed, i));
  const auto all = ids(*store);
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(eventually([&] {
      return listeners[static_cast<std::size_t>(i)]->ids() == Ids(all.begin() + i, all.end());
    })) << i;
}

TEST_F(FeedTest, AChangeAfterSilenceDoesNotWait) {
  auto timing = slow();
  timing.rest = std::chrono::hours(1);
  ChangeFeed feed(*store, timing);
  Listener listener(feed, 0);
  const auto a = add(*store);
  feed.look();
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{a.id}; }));
}

TEST_F(FeedTest, ChangesOfABurstShareTexts) {
  auto timing = slow();
  timing.rest = milliseconds(300);
  ChangeFeed feed(*store, timing);
  Listener listener(feed, 0);
  const auto begin = std::chrono::steady_clock::now();
  Ids expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(add(*store).id);
    feed.look();
  }
  ASSERT_TRUE(eventually([&] { return listener.ids() == expected; }));
  const auto rests = (std::chrono::steady_clock::now() - begin) / timing.rest;
  EXPECT_LE(listener.texts().size(), static_cast<std::size_t>(rests) + 1);
}

TEST_F(FeedTest, SilenceIsFilledWithComments) {
  auto timing = slow();
  timing.poll = milliseconds(5);
  timing.heartbeat = milliseconds(20);
  ChangeFeed feed(*store, timing);
  Listener listener(feed, 0);
  ASSERT_TRUE(eventually([&] { return listener.texts().size() >= 3; }));
  for (const auto& text : listener.texts()) EXPECT_EQ(*text, ":\n\n");
}

TEST_F(FeedTest, SubscribersComeAndGoWhileOthersWrite) {
  ChangeFeed feed(*store);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) add(*store), feed.look();
  });
  std::vector<std::thread> visitors;
  for (int i = 0; i < 4; ++i)
    visitors.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        auto got = std::make_shared<std::atomic<bool>>(false);  // a last call may come later
        auto subscription = feed.subscribe(0, [got](const ChangeFeed::Text&) { *got = true; });
        EXPECT_TRUE(eventually([&] { return got->load(); }));
      }
    });
  for (auto& visitor : visitors) visitor.join();
  stop = true;
  writer.join();
}

TEST_F(FeedTest, ASubscriptionMayOutliveIt) {
  auto feed = std::make_unique<ChangeFeed>(*store);
  Listener listener(*feed, 0, false);
  feed.reset();
  listener.more();
}

class EventsRoute : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    feed = std::make_unique<ChangeFeed>(*store);
    with_events({});
  }
  void with_events(ServiceOptions options) {
    options.site_hosts = {"play.test", "play.example.org"};
    service = std::make_unique<Service>(*store, *store, std::move(options), nullptr, feed.get());
  }
  Watch watch(const std::string& query = {}, HttpHeaders headers = {}, const std::string& method = "GET") {
    if (!headers.get("Host")) headers.add("Host", "play.test");
    const HttpRequest request{method, "/.site/events" + query, std::move(headers), {}};
    EXPECT_TRUE(service->is_watch(request));
    return service->watch(request);
  }
  std::string cursor(Position number) {
    const auto change = number > 0 ? *store->last_change(number) : std::nullopt;
    return print_change_cursor({store->site_id(), number, change ? std::optional(change->updated_at) : std::nullopt});
  }
  std::string greeting(const std::string& kind, Position number) {
    return "retry: 1000\nid: " + cursor(number) + "\nevent: " + kind + "\ndata: {}\n\n";
  }
  std::unique_ptr<ChangeFeed> feed;
};

TEST_F(EventsRoute, BeginsWhereTheClientLeftOff) {
  for (int i = 0; i < 3; ++i) send("POST", "/threads", "{}");
  auto now = watch("", {{"Host", "play.example.org"}});
  EXPECT_EQ(now.response.status, 200);
  EXPECT_EQ(now.response.headers.get("Content-Type"), "text/event-stream");
  EXPECT_EQ(now.response.headers.get("Cache-Control"), "no-store");
  EXPECT_EQ(now.response.headers.get("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(now.response.body, greeting("hello", 3));
  EXPECT_EQ(now.after, Position(3));
  EXPECT_EQ(watch("?after=").after, Position(3));
  EXPECT_EQ(watch("?after=" + cursor(1)).response.body, greeting("hello", 1));
  EXPECT_EQ(watch("?after=" + cursor(1)).after, Position(1));
  EXPECT_EQ(watch("?after=" + cursor(1), {{"Last-Event-ID", cursor(2)}}).after, Position(2));
  EXPECT_EQ(watch("?after=" + cursor(4)).response.body, greeting("reset", 3)) << "newer than the store";
  EXPECT_EQ(watch("?after=another.1").response.body, greeting("reset", 3));
  const std::string untimed = store->site_id() + ".2";
  EXPECT_EQ(watch("?after=" + untimed).response.body, "retry: 1000\nid: " + untimed + "\nevent: hello\ndata: {}\n\n")
      << "as an earlier version printed it";
  EXPECT_EQ(watch("?after=" + untimed + ".1").response.body, greeting("reset", 3)) << "of another history";
  EXPECT_EQ(watch("?after=another.1").after, Position(3));
}

TEST_F(EventsRoute, RefusesLikeEveryOtherPath) {
  for (const char* query : {"?after=x", "?after=p1f", "?after=a.b", "?after=%0a.1"}) {
    auto refused = watch(query);
    expect_problem(refused.response, 400, "invalid_request");
    EXPECT_FALSE(refused.after);
  }
  expect_problem(watch("", {{"Last-Event-ID", "nonsense"}}).response, 400, "invalid_request");
  expect_problem(watch("?%zz").response, 400, "invalid_request");
  expect_problem(watch("", {{"Host", "evil.test"}}).response, 421, "misdirected");
  for (const char* method : {"HEAD", "POST", "PATCH", "DELETE"}) {
    auto refused = watch("", {}, method);
    expect_problem(refused.response, 405, "method_not_allowed");
    EXPECT_EQ(refused.response.headers.get("Allow"), "GET, OPTIONS");
  }
  EXPECT_EQ(watch("", {}, "OPTIONS").response.status, 204);
  EXPECT_FALSE(watch("", {}, "OPTIONS").after);
  EXPECT_FALSE(watch("", {{"Host", "127.0.0.1"}}).response.headers.get("Access-Control-Allow-Origin"));
}

TEST_F(EventsRoute, AreAdvertisedWhereTheyExist) {
  EXPECT_EQ(text(json(send("GET", "")), "events"), "/.site/events");
  EXPECT_EQ(service->handle({"GET", "/.site/events", {{"Host", "play.test"}}, {}}, {"x"}).body, greeting("hello", 0));
  ServiceOptions elsewhere;
  elsewhere.base_path = "/data";
  with_events(elsewhere);
  EXPECT_TRUE(service->is_watch({"GET", "/events?after=", {}, {}}));
  EXPECT_FALSE(service->is_watch({"GET", "/.site/events", {}, {}}));
  serve({});  // without a feed
  EXPECT_EQ(json(send("GET", "")).find("events"), nullptr);
  EXPECT_FALSE(service->is_watch({"GET", "/.site/events", {}, {}}));
  EXPECT_EQ(service->handle({"GET", "/.site/events", {{"Host", "play.test"}}, {}}, {"x"}).status, 404);
}

TEST_F(EventsRoute, EveryWriteWakesTheFeed) {
  // It would find out by itself only after an hour.
  feed = std::make_unique<ChangeFeed>(
      *store, ChangeFeed::Timing{milliseconds(1), std::chrono::hours(1), std::chrono::hours(1), milliseconds(1)});
  with_events({});
  Listener listener(*feed, 0);
  const std::string id = text(record(send("POST", "/threads", "{}")), "id");
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{id}; }));
  record(send("PATCH", "/threads/" + id, R"({"title":"t"})"));
  ASSERT_TRUE(eventually([&] { return listener.ids() == Ids{id, id}; }));
}

}  // namespace
}  // namespace playfs::service
