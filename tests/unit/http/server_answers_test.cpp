// How responses leave the listener: in turns by client, bodies piece by piece, memory within bounds.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "unit/http/server_fixture.h"

namespace playfs::http {
namespace {

using std::chrono::milliseconds;

std::string get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"; }

/// One thread for each kind of request.
ServerOptions one_thread_each() {
  ServerOptions options;
  options.read_threads = options.write_threads = options.page_threads = 1;
  options.is_page = [](const HttpRequest& request) { return request.target.starts_with("/page"); };
  options.is_check = [](const HttpRequest& request) { return request.target == "/check"; };
  return options;
}

/// Returns once everything that other connections sent has been read: one thread reads all of them, in a few steps
/// each.
void settle(Connection& connection) {
  for (int i = 0; i < 5; ++i) {
    connection.send(get("/check"));
    EXPECT_TRUE(contains(connection.receive(), "200 OK"));
  }
}

/// `count` pieces of a given size; counts the pieces requested.
class Pieces final : public BodySource {
 public:
  Pieces(std::size_t count, std::size_t bytes, std::atomic<int>& asked, std::size_t there)
      : count_(count), bytes_(bytes), asked_(asked), there_(there) {}
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return count_ * bytes_; }
  Result<std::string> next() override {
    ++asked_;
    if (given_ == there_) return fail(ErrorCode::io, "the disk broke");
    return given_++ < count_ ? std::string(bytes_, 'x') : std::string();
  }

 private:
  const std::size_t count_, bytes_;
  std::atomic<int>& asked_;
  const std::size_t there_;
  std::size_t given_ = 0;
};

constexpr std::size_t kAll = 1'000'000;

Answer stream(std::size_t count, std::size_t bytes, std::atomic<int>& asked, std::size_t there = kAll) {
  Answer answer(HttpResponse{200, {}, {}});
  answer.source = std::make_unique<Pieces>(count, bytes, asked, there);
  return answer;
}

const std::vector<std::string> kKinds = {"GET /page", "GET /read", "POST /write"};

std::string request_of(const std::string& kind, const std::string& fields = {}) {
  return kind + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
}

TEST(Turns, NoKindOfRequestWaitsForAnother) {
  for (const std::string& kind : kKinds) {
    Gate gate;
    auto server = start(one_thread_each(), [&](const HttpRequest& request, const std::string& peer) {
      return request.method + ' ' + request.target == kind ? gate() : echo(request, peer);
    });
    std::vector<Connection> waiting;
    for (int i = 0; i < 40; ++i) {
      waiting.emplace_back(server->port());
      waiting.back().send(request_of(kind));
    }
    gate.await_inside(1);
    Connection other(server->port());
    for (int i = 0; i < 40; ++i) {
      settle(other);
      for (const std::string& another : kKinds) {
        if (another == kind) continue;
        other.send(request_of(another));
        EXPECT_TRUE(contains(other.receive(), "200 OK")) << another;
      }
    }
    gate.open();
    for (auto& each : waiting) EXPECT_TRUE(contains(each.receive(), "through")) << kind;
  }
}

TEST(Turns, AnotherClientsComesNextHoweverManyWait) {
  for (const std::string& kind : kKinds) {
    Gate gate;
    std::atomic<int> made = 0;
    auto server = start(one_thread_each(), [&](const HttpRequest& request, const std::string&) {
      if (request.target.ends_with("/first")) return gate();
      if (request.target == "/check") return echo(request, "");
      return HttpResponse{200, {}, "number " + std::to_string(++made)};
    });
    Connection first(server->port());
    first.send(request_of(kind + "/first"));
    gate.await_inside(1);
    std::vector<Connection> greedy;
    for (int i = 0; i < 20; ++i) {
      greedy.emplace_back(server->port());
      greedy.back().send(request_of(kind));
    }
    Connection other(server->port()), honest(server->port(), "127.0.0.2");
    settle(other);
    honest.send(request_of(kind));
    settle(other);
    gate.open();
    std::string answer = honest.receive();
    EXPECT_TRUE(answer.ends_with("number 1") || answer.ends_with("number 2")) << kind << ": " << answer;
  }
}

TEST(Turns, PastTheirNumberTheGreediestIsToldToTryAgain) {
  for (const std::string& kind : kKinds) {
    Gate gate;
    ServerOptions options = one_thread_each();
    options.most_waiting = options.most_waiting_pages = 2;
    // Simulates a proxy in front: the request says which client it counts for.
    options.client = [](const HttpRequest& request, const std::string&) {
      return std::string(request.headers.get("X-Client").value_or("192.0.2.1"));
    };
    auto server = start(options, [&](const HttpRequest& request, const std::string& peer) {
      return request.target == "/check" ? echo(request, peer) : gate();
    });
    auto ask_as = [&](const std::string& client) { return request_of(kind, "X-Client: " + client + "\r\n"); };
    Connection first(server->port()), honest(server->port()), other(server->port());
    first.send(ask_as("2001:db8::1"));
    gate.await_inside(1);
    std::vector<Connection> theirs;
    for (int i = 2; i < 5; ++i) {
      theirs.emplace_back(server->port());
      theirs.back().send(ask_as("2001:db8::" + std::to_string(i)));
      settle(other);
    }
    // One of the three of that /64 does not fit; the other client displaces another.
    honest.send(ask_as("192.0.2.7"));
    settle(other);
    gate.open();
    EXPECT_TRUE(contains(honest.receive(), "through"));
    int refused = 0;
    for (Connection& each : theirs) {
      std::string answer = each.receive();
      if (!answer.starts_with("HTTP/1.1 503 ")) continue;
      ++refused;
      EXPECT_TRUE(contains(answer, "Retry-After: ")) << answer;
      EXPECT_TRUE(contains(answer, "too many requests are waiting")) << answer;
    }
    EXPECT_EQ(refused, 2) << kind;
  }
}

TEST(Turns, WhatNobodyWaitsForIsNotServed) {
  for (const std::string& kind : kKinds) {
    Gate gate;
    std::atomic<int> served = 0;
    auto server = start(one_thread_each(), [&](const HttpRequest& request, const std::string& peer) {
      if (request.target.ends_with("/first")) return gate();
      if (request.target != "/check") ++served;
      return echo(request, peer);
    });
    Connection first(server->port()), other(server->port()), honest(server->port());
    first.send(request_of(kind + "/first"));
    gate.await_inside(1);
    std::vector<Connection> given_up;
    for (int i = 0; i < 20; ++i) {
      given_up.emplace_back(server->port());
      given_up.back().send(request_of(kind));
    }
    settle(other);
    for (int i = 0; i < 10; ++i) given_up[static_cast<std::size_t>(i)].reset();
    given_up.clear();
    honest.send(request_of(kind));
    settle(other);
    std::this_thread::sleep_for(milliseconds(1100));  // until then, one that closed its end may have it half open
    gate.open();
    EXPECT_TRUE(contains(honest.receive(), "200 OK"));
    EXPECT_EQ(served, 1) << kind;
  }
}

TEST(Bodies, ArriveWholeInPieces) {
  std::atomic<int> asked = 0;
  auto server = start({}, [&](const HttpRequest& request, const std::string& peer) {
    return request.target == "/big" ? stream(50, 30'000, asked) : Answer(echo(request, peer));
  });
  Connection connection(server->port());
  connection.send(get("/big") + "HEAD /big HTTP/1.1\r\nHost: x\r\n\r\n" + kGet);
  std::string response = connection.receive();
  EXPECT_TRUE(contains(response, "\r\nContent-Length: 1500000\r\n")) << response.substr(0, 300);
  EXPECT_TRUE(response.ends_with("\r\n\r\n" + std::string(1'500'000, 'x')));
  EXPECT_TRUE(contains(connection.receive(true), "\r\nContent-Length: 1500000\r\n"));
  EXPECT_TRUE(contains(connection.receive(), "GET /a?b=c")) << "the connection goes on";
  EXPECT_EQ(asked, 50) << "a HEAD reads nothing";
}

TEST(Bodies, OneThatCannotBeReadToItsEndIsCutShort) {
  std::atomic<int> asked = 0;
  auto server = start({}, [&](const HttpRequest&, const std::string&) { return stream(50, 1000, asked, 7); });
  Connection connection(server->port());
  connection.send(get("/big"));
  std::string response = connection.receive();
  EXPECT_TRUE(contains(response, "\r\nContent-Length: 50000\r\n"));
  EXPECT_TRUE(response.ends_with("\r\n\r\n" + std::string(7000, 'x')));
  EXPECT_TRUE(connection.closed_by_server());
}

TEST(Bodies, AreReadOnlyAsFastAsTheClientTakesThem) {
  std::atomic<int> asked = 0;
  ServerOptions options;
  options.write_time = milliseconds(400);
  auto server = start(options, [&](const HttpRequest&, const std::string&) { return stream(1'000, 50'000, asked); });
  Connection idle(server->port(), "127.0.0.1", 16'000);
  idle.send(get("/big"));
  idle.take(1);
  std::this_thread::sleep_for(options.write_time / 2);
  const int before = asked;
  EXPECT_LT(before, 100) << "of a thousand";
  EXPECT_FALSE(idle.received().empty());
  while (idle.take(100'000) > 0 && asked == before) {
  }
  EXPECT_GT(asked, before) << "what is taken makes room";
}

TEST(Bodies, ASlowAndSteadyReaderIsServedAndOneThatStopsIsNot) {
  std::atomic<int> asked = 0;
  ServerOptions options;
  options.write_time = milliseconds(1500);
  auto server = start(options, [&](const HttpRequest& request, const std::string&) {
    return request.target == "/stream" ? stream(40, 50'000, asked)
                                       : Answer(HttpResponse{200, {}, std::string(2'000'000, 'x')});
  });
  for (const char* target : {"/stream", "/whole"}) {
    Connection slow(server->port(), "127.0.0.1", 16'000), stopped(server->port(), "127.0.0.1", 16'000);
    slow.send(get(target));
    stopped.send(get(target));
    // Takes several times as long as the time limit for a standstill.
    std::size_t taken = 0;
    auto begun = std::chrono::steady_clock::now();
    while (std::size_t more = slow.take(16'000)) {
      taken += more;
      if (taken >= 2'000'000) break;
      std::this_thread::sleep_for(milliseconds(more / 400));
    }
    EXPECT_GE(taken, 2'000'000u) << target;
    EXPECT_GT(std::chrono::steady_clock::now() - begun, 3 * options.write_time) << target;
    EXPECT_LT(stopped.receive().size(), 2'000'000u) << target;
    EXPECT_TRUE(stopped.closed_by_server()) << target;
  }
}

class Memory : public testing::Test {
 protected:
  static constexpr std::size_t kAnswer = 4'000'000;        // more than the kernel buffers
  static constexpr std::size_t kRoom = kAnswer + 100'000;  // with other held bytes

  void serve(std::size_t most, std::size_t share) {
    ServerOptions options;
    options.most_held = most;
    options.share_of_held = share;
    server = start(options, [](const HttpRequest& request, const std::string& peer) {
      return request.target == "/big" ? HttpResponse{200, {}, std::string(kAnswer, 'x')} : echo(request, peer);
    });
  }
  /// A client that has begun to read.
  std::unique_ptr<Connection> reader(const char* from, std::string& first) {
    auto connection = std::make_unique<Connection>(server->port(), from, 16'000);
    connection->send(get("/big"));
    while (connection->received().size() < 12 && connection->take(12) > 0) {
    }
    first = connection->received();
    return connection;
  }
  std::unique_ptr<Server> server;
};

TEST_F(Memory, AClientHasAShareOfIt) {
  serve(100 * kAnswer, 2 * kRoom);
  std::string said;
  auto one = reader("127.0.0.2", said);
  EXPECT_EQ(said, "HTTP/1.1 200");
  auto two = reader("127.0.0.2", said);
  EXPECT_EQ(said, "HTTP/1.1 200");
  auto three = reader("127.0.0.2", said);
  EXPECT_EQ(said, "HTTP/1.1 503");
  auto other = reader("127.0.0.3", said);
  EXPECT_EQ(said, "HTTP/1.1 200");
  Connection small(server->port(), "127.0.0.2");
  small.send(kGet);
  EXPECT_TRUE(contains(small.receive(), "200 OK")) << "what is small is answered all the same";
  EXPECT_GT(one->receive().size(), kAnswer) << "who reads gives back what it held";
  auto four = reader("127.0.0.2", said);
  EXPECT_EQ(said, "HTTP/1.1 200");
}

TEST(Answers, OneThatFindsNoRoomLeftIsRefusedOnce) {
  // An earlier large request left the connection with a larger read buffer than a small request needs.
  ServerOptions options;
  options.share_of_held = 10'000;
  Gate gate;
  auto server = start(options, [&](const HttpRequest& request, const std::string& peer) {
    if (request.target != "/slow") return echo(request, peer);
    gate();
    return HttpResponse{200, {}, std::string(1'000, 'x')};
  });
  Connection one(server->port()), other(server->port());
  const std::string body(16'000, 'x');
  one.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 16000\r\n\r\n" + body.substr(1));
  std::this_thread::sleep_for(milliseconds(50));
  one.send("xGET /slow HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(contains(one.receive(), "200 OK"));
  gate.await_inside(1);
  other.send("GET / HTTP/1.1\r\nX: " + std::string(1'000, 'x'));
  std::this_thread::sleep_for(milliseconds(50));
  gate.open();
  EXPECT_TRUE(one.receive().starts_with("HTTP/1.1 503 "));
  other.send("\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(contains(other.receive(), "200 OK"));
}

TEST_F(Memory, WhenItRunsOutTheLongestStalledClientIsCutOff) {
  serve(3 * kRoom, 3 * kRoom);
  std::string said;
  std::vector<std::unique_ptr<Connection>> greedy;
  for (int i = 0; i < 3; ++i) greedy.push_back(reader("127.0.0.2", said));
  auto honest = reader("127.0.0.3", said);
  EXPECT_EQ(said, "HTTP/1.1 200");
  EXPECT_LT(greedy[0]->receive().size(), kAnswer);
  EXPECT_TRUE(greedy[0]->closed_by_server());
  EXPECT_GT(greedy[1]->receive().size(), kAnswer);
  EXPECT_GT(honest->receive().size(), kAnswer);
}

TEST_F(Memory, ASlowReaderStaysAndAStalledOneGoes) {
  serve(3 * kRoom, 3 * kRoom);
  std::string said;
  auto slow = reader("127.0.0.2", said);
  auto also_slow = reader("127.0.0.2", said);  // its client holds the most
  auto still = reader("127.0.0.3", said);
  for (Connection* each : {slow.get(), also_slow.get()})
    while (each->received().size() < 400'000 && each->take(16'000) > 0) {
    }
  auto honest = reader("127.0.0.4", said);
  EXPECT_EQ(said, "HTTP/1.1 200");
  EXPECT_LT(still->receive().size(), kAnswer);
  EXPECT_TRUE(still->closed_by_server());
  EXPECT_GT(slow->receive().size(), kAnswer);
  EXPECT_GT(also_slow->receive().size(), kAnswer);
}

TEST(HeldAnswers, WhoHasReadEverythingIsNotCutOffBecauseTheServerIsBusy) {
  constexpr std::size_t size = 4'000'000;
  Gate gate;
  ServerOptions options;
  options.most_held = size + 100'000;  // without room for the upload
  options.client = [&](const HttpRequest& request, const std::string& peer) {
    if (request.target == "/upload") gate();  // keeps the I/O thread busy
    return peer;
  };
  auto server = start(options, [](const HttpRequest&, const std::string&) {
    return HttpResponse{200, {}, std::string(size, 'x')};
  });
  Connection reads(server->port(), "127.0.0.2"), uploads(server->port(), "127.0.0.3");
  reads.send(kGet);
  reads.take(1);
  // The first byte of a body reserves room for all of it.
  uploads.send("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\nx");
  gate.await_inside(1);
  reads.take_what_is_there();
  gate.open();
  EXPECT_GT(reads.receive().size(), size);
  EXPECT_TRUE(uploads.receive().starts_with("HTTP/1.1 503 "));
}

/// A body whose second piece waits.
class Held final : public BodySource {
 public:
  explicit Held(Gate& gate) : gate_(gate) {}
  [[nodiscard]] std::optional<std::uint64_t> size() const override { return 20'000; }
  Result<std::string> next() override {
    if (asked_++ > 0) gate_();
    return std::string(10'000, 'x');
  }

 private:
  Gate& gate_;
  int asked_ = 0;
};

TEST(HeldAnswers, WhatWaitsForTheServerAloneIsNotSpared) {
  Gate gate;
  ServerOptions options;
  options.most_held = 250'000;  // an answer in pieces is charged half of it
  auto server = start(options, [&](const HttpRequest& request, const std::string& peer) {
    if (request.target != "/held") return Answer(echo(request, peer));
    Answer answer(HttpResponse{200, {}, {}});
    answer.source = std::make_unique<Held>(gate);
    return answer;
  });
  Connection held(server->port(), "127.0.0.2"), uploads(server->port(), "127.0.0.3");
  held.send(get("/held"));
  gate.await_inside(1);
  uploads.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + std::string(200'000, 'x'));
  EXPECT_TRUE(contains(uploads.receive(), "200 OK"));
  EXPECT_TRUE(held.closed_by_server());
  gate.open();
}

class UnfinishedBodies : public testing::Test {
 protected:
  static constexpr std::size_t kBody = 200'000;
  static constexpr std::size_t kRoom = kBody + 80'000;

  void serve(std::size_t most, std::size_t share) {
    ServerOptions options;
    options.most_held = most;
    options.share_of_held = share;
    server = start(options, [](const HttpRequest& request, const std::string&) {
      return HttpResponse{200, {}, std::to_string(request.body.size())};
    });
  }
  /// Everything but the last byte.
  std::unique_ptr<Connection> begin(const char* from) {
    auto connection = std::make_unique<Connection>(server->port(), from);
    connection->send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(kBody) + "\r\n\r\n" +
                     std::string(kBody - 1, 'x'));
    Connection other(server->port());
    settle(other);
    return connection;
  }
  static std::string end(Connection& connection) {
    connection.send("x");
    return connection.receive();
  }
  std::unique_ptr<Server> server;
};

TEST_F(UnfinishedBodies, TheLongestStalledClientGoes) {
  serve(3 * kRoom, 3 * kRoom);
  std::vector<std::unique_ptr<Connection>> held;
  for (int i = 0; i < 4; ++i) held.push_back(begin(("127.0.0." + std::to_string(2 + i)).c_str()));
  EXPECT_TRUE(held[0]->closed_by_server());
  for (int i = 1; i < 4; ++i) EXPECT_TRUE(contains(end(*held[static_cast<std::size_t>(i)]), "200 OK")) << i;
}

TEST_F(UnfinishedBodies, AClientHasAShare) {
  serve(100 * kRoom, 2 * kRoom);
  auto one = begin("127.0.0.2"), two = begin("127.0.0.2"), three = begin("127.0.0.2"), other = begin("127.0.0.3");
  std::string answer = three->receive();
  EXPECT_TRUE(contains(answer, "HTTP/1.1 503 ")) << answer;
  EXPECT_TRUE(contains(answer, "Retry-After: ")) << answer;
  EXPECT_TRUE(contains(end(*one), "200 OK"));
  EXPECT_TRUE(contains(end(*two), "200 OK"));
  EXPECT_TRUE(contains(end(*other), "200 OK"));
  auto four = begin("127.0.0.2");
  EXPECT_TRUE(contains(end(*four), "200 OK")) << "what was answered is held no more";
}

TEST(Fields, HaveABound) {
  auto server = start();
  std::string many;
  for (int i = 0; i < 129; ++i) many += "a:\r\n";
  Connection connection(server->port());
  connection.send("GET / HTTP/1.1\r\nHost: x\r\n" + many + "\r\n");
  EXPECT_TRUE(contains(connection.receive(), "HTTP/1.1 431 "));
}

}  // namespace
}  // namespace playfs::http
