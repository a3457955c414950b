// Responses without an end: pieces as they arrive, silence, cancellation.
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "support.h"
#include "support/eventually.h"
#include "support/scripted_server.h"

namespace playfs::net {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::ScriptedServer;
using Connection = ScriptedServer::Connection;

constexpr const char* kHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// What a stream has brought so far. Shared with the transport's thread.
struct Brought {
  std::mutex mutex;
  int status = 0;
  std::string type, text;
  std::optional<Status> end;
  std::size_t most = std::string::npos;  ///< it wants no more bytes than these
  bool wanted = true;

  std::string text_now() {
    std::lock_guard lock(mutex);
    return text;
  }
  bool has_ended() {
    std::lock_guard lock(mutex);
    return end.has_value();
  }
  ErrorCode code() {
    std::lock_guard lock(mutex);
    return end && !*end ? end->error().code : ErrorCode::internal;
  }
};

std::shared_ptr<Brought> stream(CurlTransport& transport, StreamLimits limits = {}, CancelToken cancel = {},
                                std::shared_ptr<Brought> brought = std::make_shared<Brought>()) {
  StreamReceiver receiver;
  receiver.begun = [brought](const HttpResponse& response) {
    std::lock_guard lock(brought->mutex);
    brought->status = response.status;
    brought->type = std::string(response.headers.get("Content-Type").value_or(""));
    return brought->wanted;
  };
  receiver.piece = [brought](std::string_view piece) {
    std::lock_guard lock(brought->mutex);
    brought->text += piece;
    return brought->text.size() < brought->most;
  };
  receiver.ended = [brought](Status status) {
    std::lock_guard lock(brought->mutex);
    EXPECT_FALSE(brought->end);
    brought->end = std::move(status);
  };
  transport.stream({"GET", "/.site/events", {{"Accept", "text/event-stream"}}, {}}, limits, std::move(cancel),
                   std::move(receiver));
  return brought;
}

TEST(Stream, BringsPiecesAsTheyArrive) {
  std::promise<void> second;
  auto go_on = second.get_future();
  std::promise<HttpRequest> seen;
  ScriptedServer server([&](Connection& connection) {
    seen.set_value(connection.read_request().value_or(HttpRequest()));
    connection.send("HTTP/1.1 103 Early\r\n\r\n" + std::string(kHead) + "one");
    go_on.wait();
    connection.send("two");
  });
  auto transport = connect_to(server.url());
  auto brought = stream(*transport);
  ASSERT_TRUE(eventually([&] { return brought->text_now() == "one"; })) << "before the body ends";
  EXPECT_FALSE(brought->has_ended());
  second.set_value();
  ASSERT_TRUE(eventually([&] { return brought->has_ended(); }));
  EXPECT_EQ(brought->text_now(), "onetwo");
  EXPECT_TRUE(brought->end->has_value());
  EXPECT_EQ(brought->status, 200);
  EXPECT_EQ(brought->type, "text/event-stream");
  EXPECT_FALSE(seen.get_future().get().headers.get("Accept-Encoding")) << "compression could hold back what was sent";
}

TEST(Stream, EndsAfterSilenceAndOnlyThen) {
  ScriptedServer server([&](Connection& connection) {
    if (!connection.read_request()) return;
    connection.send(kHead);
    for (int i = 0; i < 8; ++i) {
      std::this_thread::sleep_for(500ms);
      connection.send(":\n");
    }
    connection.hang();
  });
  auto transport = connect_to(server.url());
  auto brought = stream(*transport, {.silence = 3s});
  ASSERT_TRUE(eventually([&] { return brought->has_ended(); }));
  EXPECT_EQ(brought->code(), ErrorCode::timed_out);
  EXPECT_EQ(brought->text_now().size(), 16u) << "a byte or two now and then are enough";
}

TEST(Stream, AServerThatNeverAnswersIsSilent) {
  ScriptedServer server([](Connection& connection) { connection.hang(); });
  auto transport = connect_to(server.url());
  auto brought = stream(*transport, {.silence = 50ms});
  ASSERT_TRUE(eventually([&] { return brought->has_ended(); }));
  EXPECT_EQ(brought->code(), ErrorCode::timed_out);
}

TEST(Stream, OutlivesTheLimitsOfOtherResponses) {
  ScriptedServer server([&](Connection& connection) {
    if (!connection.read_request()) return;
    connection.send(kHead);
    for (int i = 0; i < 64; ++i) connection.send(std::string(1 << 10, 'x'));
  });
  auto transport = connect_to(server.url(), {.response_ceiling = 1 << 10});
  auto brought = stream(*transport);
  ASSERT_TRUE(eventually([&] { return brought->has_ended(); }));
  EXPECT_TRUE(brought->end->has_value());
  EXPECT_EQ(brought->text_now().size(), 64u << 10);
}

TEST(Stream, IsCancelledAtAnyTime) {
  ScriptedServer server([&](Connection& connection) {
    if (connection.read_request()) connection.send(std::string(kHead) + "one");
    connection.hang();
  });
  auto transport = connect_to(server.url());
  CancelSource source;
  auto brought = stream(*transport, {}, source.token());
  ASSERT_TRUE(eventually([&] { return brought->text_now() == "one"; }));
  source.cancel();
  ASSERT_TRUE(eventually([&] { return brought->has_ended(); }));
  EXPECT_EQ(brought->code(), ErrorCode::interrupted);
  auto late = stream(*transport, {}, source.token());
  ASSERT_TRUE(eventually([&] { return late->has_ended(); }));
  EXPECT_EQ(late->code(), ErrorCode::interrupted);
  auto left = stream(*transport);
  transport.reset();
  EXPECT_EQ(left->code(), ErrorCode::interrupted);
}

TEST(Stream, EndsWhereItsReceiverWantsNoMore) {
  ScriptedServer server([&](Connection& connection) {
    if (!connection.read_request()) return;
    connection.send(kHead);
    while (connection.send(std::string(1 << 10, 'x'))) continue;
  });
  auto transport = connect_to(server.url());
  auto brought = std::make_shared<Brought>();
  brought->most = 10'000;
  stream(*transport, {}, {}, brought);
  ASSERT_TRUE(eventually([&] { return brought->has_ended(); }));
  EXPECT_EQ(brought->code(), ErrorCode::interrupted);
  EXPECT_LT(brought->text_now().size(), 10'000u + (64 << 10));
  auto refused = std::make_shared<Brought>();
  refused->wanted = false;
  stream(*transport, {}, {}, refused);
  ASSERT_TRUE(eventually([&] { return refused->has_ended(); }));
  EXPECT_EQ(refused->code(), ErrorCode::interrupted);
  EXPECT_EQ(refused->text_now(), "");
}

TEST(Stream, TakesNoConnectionFromOtherRequests) {
  ScriptedServer server([&](Connection& connection) {
    auto request = connection.read_request();
    if (!request) return;
    if (request->target != "/.site/events") return static_cast<void>(connection.answer(200, "here"));
    connection.send(std::string(kHead) + "one");
    connection.hang();
  });
  auto transport = connect_to(server.url(), {.width = 1, .max_connections = 1});
  auto brought = stream(*transport);
  ASSERT_TRUE(eventually([&] { return brought->text_now() == "one"; }));
  auto response = get(*transport, "/a", {.total = 20s});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, "here");
}

TEST(Stream, FollowsNoRedirect) {
  ScriptedServer server([&](Connection& connection) {
    if (connection.read_request()) connection.answer(302, "", {{"Location", "http://127.0.0.1:1/"}});
  });
  auto transport = connect_to(server.url());
  auto brought = stream(*transport);
  ASSERT_TRUE(eventually([&] { return brought->has_ended(); }));
  EXPECT_EQ(brought->status, 302);
}

}  // namespace
}  // namespace playfs::net
