// Answers without an end: how they begin, go on and end, what a client that does not read costs, and how many there may
// be.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "http/front.h"
#include "support/eventually.h"
#include "support/manual_time.h"
#include "unit/http/server_fixture.h"

namespace playfs::http {
namespace {

using std::chrono::milliseconds;
using test::eventually;

/// What the live answers of a server are connected to.
class Source {
 public:
  /// The answer to a request; others than GET /watch get an echo.
  Answer handle(const HttpRequest& request, const std::string& peer) {
    if (request.target != "/watch") return echo(request, peer);
    Answer answer(HttpResponse{200, {{"Content-Type", "text/event-stream"}}, "hello\n"});
    answer.live = std::make_unique<Body>(*this);
    return answer;
  }
  std::size_t listening() {
    std::lock_guard lock(mutex_);
    return takers_.size();
  }
  std::size_t waiting() {
    std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  /// Whether the watcher that began as the nth, counted from 0, has taken what came before.
  bool waits(std::size_t nth) {
    std::lock_guard lock(mutex_);
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const Body* body) { return numbers_[body] == nth; });
  }
  /// Sends to all that have taken what came before; returns how many.
  std::size_t send(const std::string& text) {
    const auto shared = std::make_shared<const std::string>(text);
    std::vector<std::function<void(const LiveBody::Text&)>> due;
    {
      std::lock_guard lock(mutex_);
      for (const Body* body : waiting_) due.push_back(takers_[body]);
      waiting_.clear();
    }
    for (auto& take : due) take(shared);
    return due.size();
  }

 private:
  class Body final : public LiveBody {
   public:
    explicit Body(Source& source) : source_(source) {}
    ~Body() override {
      std::lock_guard lock(source_.mutex_);
      source_.takers_.erase(this);
      source_.waiting_.erase(this);
    }
    void start(std::function<void(const Text&)> take) override {
      std::lock_guard lock(source_.mutex_);
      source_.numbers_[this] = source_.begun_++;
      source_.takers_[this] = std::move(take);
      source_.waiting_.insert(this);
    }
    void more() override {
      std::lock_guard lock(source_.mutex_);
      source_.waiting_.insert(this);
    }

   private:
    Source& source_;
  };
  std::mutex mutex_;
  std::map<const Body*, std::function<void(const LiveBody::Text&)>> takers_;
  std::set<const Body*> waiting_;
  std::map<const Body*, std::size_t> numbers_;
  std::size_t begun_ = 0;
};

const std::string kWatch = "GET /watch HTTP/1.1\r\nHost: x\r\n\r\n";

class Watching : public testing::Test {
 protected:
  void serve(ServerOptions options = {}) {
    server = start(std::move(options), [this](const HttpRequest& request, const std::string& peer) {
      return source.handle(request, peer);
    });
  }
  /// Returns once it listens.
  std::unique_ptr<Connection> watcher(const char* from = "127.0.0.1", int window = 0) {
    const std::size_t before = source.listening();
    auto connection = std::make_unique<Connection>(server->port(), from, window);
    connection->send(kWatch);
    EXPECT_TRUE(eventually([&] { return source.listening() == before + 1; }));
    return connection;
  }
  /// Waits until these bytes have come.
  static bool gets(Connection& connection, std::string_view text) {
    while (!contains(connection.received(), text))
      if (connection.take(64 * 1024) == 0) return false;
    return true;
  }

  Source source;  // outlives the server
  std::unique_ptr<Server> server;
};

TEST_F(Watching, SendsWhatComesUntilTheClientGoes) {
  serve();
  auto client = watcher();
  ASSERT_TRUE(gets(*client, "hello\n"));
  const std::string head = client->received();
  EXPECT_TRUE(contains(head, "200 OK"));
  EXPECT_TRUE(contains(head, "Connection: close"));
  EXPECT_FALSE(contains(head, "Content-Length"));
  for (int i = 0; i < 5; ++i) {
    const std::string text = "event " + std::to_string(i) + "\n";
    ASSERT_TRUE(eventually([&] { return source.waiting() == 1; }));
    EXPECT_EQ(source.send(text), 1u);
    ASSERT_TRUE(gets(*client, text));
  }
  client.reset();
  ASSERT_TRUE(eventually([&] { return source.listening() == 0; })) << "its end is noticed without sending anything";
}

TEST_F(Watching, EndsIfTheClientSpeaks) {
  serve();
  auto client = watcher();
  client->send(kGet);
  EXPECT_TRUE(client->closed_by_server());
  EXPECT_FALSE(contains(client->received(), "GET /a"));
}

TEST_F(Watching, TakesNoThread) {
  ServerOptions options;
  options.read_threads = options.light_threads = 1;
  serve(options);
  std::vector<std::unique_ptr<Connection>> clients;
  for (int i = 0; i < 50; ++i) clients.push_back(watcher());
  Connection other(server->port());
  other.send(kGet);
  EXPECT_TRUE(contains(other.receive(), "200 OK"));
}

TEST_F(Watching, OneThatDoesNotReadDelaysNobodyAndIsCutOff) {
  ServerOptions options;
  options.watch_time = milliseconds(300);
  serve(options);
  auto deaf = watcher("127.0.0.2", 4096);
  auto client = watcher();
  const std::string text(60 * 1024, 'x');
  std::size_t sent = 0;
  while (source.listening() == 2) {
    source.send(text + std::to_string(++sent) + "\n");
    ASSERT_TRUE(gets(*client, "x" + std::to_string(sent) + "\n"));
    ASSERT_LT(sent, 10'000u);
    ASSERT_TRUE(eventually([&] { return source.waits(1); }));
  }
  EXPECT_TRUE(deaf->closed_by_server());
  EXPECT_LT(deaf->received().size(), 8u << 20);
}

TEST_F(Watching, WhatIsNotReadIsCountedAndItsWatcherClosedForOthers) {
  ServerOptions options;
  // Room for one text, and not for what the kernel leaves of two.
  options.share_of_held = options.most_held = 1500 * 1024;
  serve(options);
  std::vector<std::unique_ptr<Connection>> deaf;
  for (int i = 0; i < 4; ++i) deaf.push_back(watcher("127.0.0.2", 4096));
  const std::string text(1024 * 1024, 'x');
  // A client holds one text at most: of these four, only one may keep its rest.
  ASSERT_TRUE(eventually([&] { return source.send(text), source.listening() <= 1; }));
  Connection other(server->port());
  other.send(kGet);
  EXPECT_TRUE(contains(other.receive(), "200 OK"));
}

TEST_F(Watching, AreLimitedByClientAndInAll) {
  ServerOptions options;
  options.watchers_of_client = 2;
  options.most_watchers = 3;
  serve(options);
  auto first = watcher("127.0.0.2"), second = watcher("127.0.0.2");
  auto refused = [&](const char* from) {
    Connection connection(server->port(), from);
    connection.send(kWatch);
    const std::string answer = connection.receive();
    return contains(answer, "503 ") && contains(answer, "Retry-After: 30");
  };
  EXPECT_TRUE(refused("127.0.0.2"));
  auto third = watcher("127.0.0.3");
  EXPECT_TRUE(refused("127.0.0.4"));
  first.reset();
  ASSERT_TRUE(eventually([&] { return source.listening() == 2; }));
  auto fourth = watcher("127.0.0.4");
  EXPECT_EQ(source.listening(), 3u);
}

TEST_F(Watching, LeaveRoomForOthersAndDoNotGiveWay) {
  ServerOptions options;
  options.connection_limit = 6;
  serve(options);
  std::vector<std::unique_ptr<Connection>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(watcher());
  Connection refused(server->port());
  refused.send(kWatch);
  EXPECT_TRUE(contains(refused.receive(), "503 ")) << "two thirds are for watchers";
  std::vector<Connection> others;
  for (int i = 0; i < 10; ++i) {
    others.emplace_back(server->port());
    others.back().send(kGet);
    EXPECT_TRUE(contains(others.back().receive(), "200 OK"));
  }
  EXPECT_EQ(source.listening(), 4u);
}

TEST_F(Watching, StopEndsThemAtOnce) {
  ServerOptions options;
  options.stop_time = std::chrono::seconds(40);
  serve(options);
  std::vector<std::unique_ptr<Connection>> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(watcher());
  const auto begin = std::chrono::steady_clock::now();
  server->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, options.stop_time) << "nobody waited for them";
  EXPECT_EQ(source.listening(), 0u);
  for (auto& each : clients) EXPECT_TRUE(each->closed_by_server());
  source.send("late\n");
}

TEST_F(Watching, ArrivingTextsAndLeavingClientsDoNotMeetBadly) {
  serve();
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop) source.send(std::string(1000, 'x'));
  });
  for (int i = 0; i < 200; ++i) {
    Connection client(server->port());
    client.send(kWatch);
    if (i % 2) client.take(1);
    if (i % 3) client.reset();
  }
  server.reset();
  stop = true;
  sender.join();
  EXPECT_EQ(source.listening(), 0u);
}

TEST_F(Watching, IsNeverCompressed) {
  test::ManualClock clock;
  Health health(clock);
  health.open([] { return Status(); });
  Front front(
      [this](const HttpRequest& request, const std::string& peer) {
        auto answer = source.handle(request, peer);
        answer.response.body.assign(5000, 'x');
        return answer;
      },
      health, {}, clock);
  auto answer = front.handle({"GET", "/watch", {{"Accept-Encoding", "gzip"}}, {}}, "127.0.0.1");
  EXPECT_EQ(answer.response.body.size(), 5000u);
  EXPECT_TRUE(answer.live);
  EXPECT_FALSE(answer.response.headers.get("Content-Encoding"));
}

}  // namespace
}  // namespace playfs::http
