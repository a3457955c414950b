// The connection on which a site tells of changes: what is told, and what happens to a site that fails or misbehaves.
#include "remote/event_stream.h"

#include "remote/event_feed.h"
#include "support.h"

namespace playfs::remote {
namespace {

using namespace std::chrono_literals;

class EventStreamTest : public ClientTest {
 protected:
  EventStreamTest() {
    EventListener listener;
    listener.changed = [this](const std::vector<wire::Change>& changes) {
      for (const auto& change : changes) told += change.collection + "/" + change.id + " ";
    };
    listener.reset = [this](Reset why) { told += why == Reset::another ? "another " : "reset "; };
    listener.up = [this](bool is_up) { told += is_up ? "up " : "down "; };
    listener.gave_up = [this](const Error& error) { gave_up.push_back(error.message); };
    stream = std::make_unique<EventStream>(client(), executor, clock, random, std::move(listener));
  }

  void describe(std::size_t request = 0, std::string body = R"({"events":"/.site/events"})") {
    ASSERT_EQ(transport.count(), request + 1);
    EXPECT_EQ(transport.request(request).target, "/.site/data");
    transport.answer(request, 200, std::move(body));
  }
  void open(std::size_t index, std::string first = "retry: 1000\nid: s.1\nevent: hello\ndata: {}\n\n") {
    ASSERT_EQ(transport.streams(), index + 1);
    transport.begin(index, 200, {{"Content-Type", "text/event-stream; charset=utf-8"}});
    transport.push(index, first);
  }
  static std::string change(const std::string& id, const std::string& cursor) {
    return "id: " + cursor + "\nevent: change\ndata: {\"collection\":\"messages\",\"id\":\"" + id +
           "\",\"updated_at\":\"t\",\"thread\":\"h\"}\n\n";
  }
  std::string take() { return std::exchange(told, ""); }
  std::string query(std::size_t index) {
    const std::string& target = transport.stream_request(index).target;
    const auto at = target.find('?');
    return at == std::string::npos ? "" : target.substr(at + 1);
  }

  std::string told;
  std::vector<std::string> gave_up;
  std::unique_ptr<EventStream> stream;
};

TEST_F(EventStreamTest, AsksOnceAndThenOnlyListens) {
  executor.advance(1h);
  EXPECT_EQ(transport.count(), 0u) << "nothing is sent before the first use";
  stream->begin();
  stream->begin();
  describe();
  EXPECT_EQ(transport.stream_request(0).target, "/.site/events");
  EXPECT_EQ(take(), "");
  open(0);
  EXPECT_EQ(take(), "reset up ");
  EXPECT_TRUE(stream->state().is_live);
  transport.push(0, change("a", "s.2") + change("b", "s.3"));
  EXPECT_EQ(take(), "messages/a messages/b ");
  executor.advance(24h);
  EXPECT_EQ(transport.count(), 1u);
  EXPECT_EQ(transport.streams(), 1u);
}

TEST_F(EventStreamTest, GoesOnWhereItsConnectionEnded) {
  stream->begin();
  describe();
  open(0);
  transport.push(0, change("a", "s.2"));
  executor.advance(1min);
  transport.end(0);
  EXPECT_EQ(take(), "reset up messages/a down ");
  EXPECT_FALSE(stream->state().is_live);
  executor.advance(1s);
  ASSERT_EQ(transport.streams(), 2u) << "within the delay that the site asked for";
  EXPECT_EQ(query(1), "after=s.2");
  open(1, "id: s.2\nevent: hello\ndata: {}\n\n" + change("b", "s.3"));
  EXPECT_EQ(take(), "up messages/b ") << "nothing was missed";
}

TEST_F(EventStreamTest, AnotherSiteResetsEverything) {
  stream->begin();
  describe();
  open(0);
  executor.advance(1min);
  transport.end(0, fail(ErrorCode::unreachable, "reset by peer"));
  executor.advance(1s);
  take();
  open(1, "id: x.9\nevent: reset\ndata: {}\n\n");
  EXPECT_EQ(take(), "another up ");
  executor.advance(1min);
  transport.end(1);
  executor.advance(2s);
  EXPECT_EQ(query(2), "after=x.9");
  transport.begin(2, 400, {});
  take();
  executor.advance(2min);
  ASSERT_EQ(transport.streams(), 4u);
  EXPECT_EQ(query(3), "") << "a position that the site refuses is dropped";
  open(3);
  EXPECT_EQ(take(), "another up ");
}

TEST_F(EventStreamTest, ASiteMayBePutBackWhileItTells) {
  stream->begin();
  describe();
  open(0);
  transport.push(0, change("a", "s.9"));
  EXPECT_EQ(take(), "reset up messages/a ");
  transport.push(0, "id: s.2\nevent: reset\ndata: {}\n\n" + change("b", "s.3"));
  EXPECT_EQ(take(), "another messages/b ");
  executor.advance(1min);
  transport.end(0);
  executor.advance(1s);
  EXPECT_EQ(query(1), "after=s.3");
}

TEST_F(EventStreamTest, ADeadSiteIsTriedLessAndLessOften) {
  stream->begin();
  describe();
  std::vector<std::chrono::nanoseconds> delays;
  for (std::size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(transport.streams(), i + 1);
    transport.end(i, fail(ErrorCode::timed_out, "silence"));
    delays.push_back(*executor.until_next());
    executor.advance(delays.back());
  }
  EXPECT_LE(delays.front(), 1s);
  EXPECT_GE(delays.front(), 500ms);
  EXPECT_GE(delays.back(), 30s);
  EXPECT_LE(delays.back(), 60s);
  // A connection that is lost at once is no better.
  open(10);
  transport.end(10);
  EXPECT_GE(*executor.until_next(), 30s);
  stream->recovered();
  executor.run_due();
  EXPECT_EQ(transport.streams(), 12u) << "the site answers other requests again";
}

TEST_F(EventStreamTest, ASiteThatIsBusyDecidesWhenToReturn) {
  stream->begin();
  describe();
  transport.begin(0, 503, {{"Retry-After", "120"}});
  EXPECT_EQ(*executor.until_next(), 120s);
  executor.advance(120s);
  transport.begin(1, 429, {{"Retry-After", "86400"}});
  EXPECT_EQ(*executor.until_next(), 600s);
}

TEST_F(EventStreamTest, ASiteWithoutEventsIsAskedAgainRarely) {
  stream->begin();
  describe(0, R"({"collections":[]})");
  EXPECT_EQ(stream->state().why_not, "the site offers none");
  executor.advance(59min);
  EXPECT_EQ(transport.count(), 1u);
  executor.advance(1min);
  describe(1);
  transport.begin(0, 404, {});
  executor.advance(59min);
  EXPECT_EQ(transport.count(), 2u);
  stream->recovered();
  executor.run_due();
  describe(2);
  transport.begin(1, 404, {});
  stream->recovered();
  executor.run_due();
  EXPECT_EQ(transport.count(), 3u) << "recoveries may be many";
}

TEST_F(EventStreamTest, OnlyAPathOfTheSameHostIsFollowed) {
  auto path = [](std::string_view events) {
    return path_of("events", {{"events", std::string(events)}}, "https://play.example.org");
  };
  EXPECT_EQ(path("/.site/events"), "/.site/events");
  EXPECT_EQ(path("https://play.example.org/e"), "/e");
  for (const char* events : {"", "e", "//evil.example/e", "https://evil.example/e", "https://play.example.org:8/e",
                             "https://play.example.org@evil/e", "https://play.example.org.evil/e", "/e?x", "/e#x",
                             "/e x", "/e\r\nX: y", "/e\\x", "/\xc3\xa4"})
    EXPECT_EQ(path(events), "") << events;
  EXPECT_EQ(path("/" + std::string(512, 'e')), "");
  EXPECT_EQ(path_of("events", {{"events", true}}, "https://play.example.org"), "");
}

TEST_F(EventStreamTest, GarbageEndsInPollingForAWhile) {
  stream->begin();
  describe();
  open(0);
  for (int i = 0; i < 200 && !transport.has_ended(0); ++i) transport.push(0, "event: change\ndata: {\n\n");
  EXPECT_TRUE(transport.has_ended(0));
  EXPECT_EQ(take(), "reset up down ");
  ASSERT_EQ(gave_up.size(), 1u);
  EXPECT_NE(gave_up[0].find("make no sense"), std::string::npos);
  executor.advance(9min);
  EXPECT_EQ(transport.streams(), 1u);
  executor.advance(1min);
  ASSERT_EQ(transport.streams(), 2u);
  EXPECT_EQ(query(1), "");
}

TEST_F(EventStreamTest, AFloodEndsInPollingForAWhile) {
  for (const std::string& piece : {": " + std::string(16 << 10, 'x') + "\n", std::string(16 << 10, 'x')}) {
    gave_up.clear();
    stream->begin();
    if (transport.streams() == 0) describe();
    const std::size_t last = transport.streams() - 1;
    open(last);
    int pieces = 0;
    for (; !transport.has_ended(last); ++pieces) transport.push(last, piece);
    EXPECT_LT(pieces, 1000);
    EXPECT_EQ(gave_up.size(), 1u);
    executor.advance(10min);
  }
}

TEST_F(EventStreamTest, ManyEventsOfABusySiteAreNoFlood) {
  stream->begin();
  describe();
  open(0);
  std::string events;
  for (int i = 0; i < 500; ++i) events += change("m", "s.2");
  for (int second = 0; second < 200; ++second) {
    transport.push(0, events);
    executor.advance(1s);
  }
  EXPECT_TRUE(stream->state().is_live);
}

TEST_F(EventStreamTest, AnEventThatWasTooLargeMayHaveSaidAnything) {
  stream->begin();
  describe();
  open(0);
  take();
  transport.push(0, "data: " + std::string(100'000, 'x') + "\n\n" + change("a", "s.3"));
  EXPECT_EQ(take(), "reset messages/a ");
}

TEST_F(EventStreamTest, APositionThatCannotBeSentBackIsNotUsed) {
  stream->begin();
  describe();
  open(0, "id: " + std::string(201, '7') + "\nevent: hello\ndata: {}\n\n");
  transport.push(0, "id: a b\nevent: other\ndata: {}\n\n");
  executor.advance(1min);
  transport.end(0);
  executor.advance(1s);
  ASSERT_EQ(transport.streams(), 2u);
  EXPECT_EQ(query(1), "");
}

TEST_F(EventStreamTest, SomethingElseThanEventsIsNotRead) {
  stream->begin();
  describe();
  transport.begin(0, 200, {{"Content-Type", "text/html"}});
  EXPECT_TRUE(transport.has_ended(0));
  EXPECT_EQ(gave_up.size(), 1u);
  EXPECT_EQ(take(), "");
}

TEST_F(EventStreamTest, WithoutTheServiceItIsTriedAgain) {
  stream->begin();
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_EQ(transport.count(), i + 1);
    transport.answer(i, fail(ErrorCode::unreachable, "nobody"));
    executor.advance(10s);
  }
  ASSERT_EQ(transport.count(), 5u);
  describe(4);
  EXPECT_EQ(transport.streams(), 1u);
}

TEST_F(EventStreamTest, EndsItsConnectionWithItself) {
  stream->begin();
  describe();
  open(0);
  take();
  stream.reset();
  EXPECT_TRUE(transport.has_ended(0));
  EXPECT_EQ(take(), "");
  EXPECT_TRUE(executor.until_next() == std::nullopt);
}

}  // namespace
}  // namespace playfs::remote
