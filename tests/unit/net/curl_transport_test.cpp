#include "net/curl_transport.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "base/text.h"
#include "support.h"
#include "support/scripted_server.h"

namespace playfs::net {
namespace {

using namespace std::chrono_literals;
using test::ScriptedServer;
using Connection = ScriptedServer::Connection;

/// A server that answers the first request of every connection with these bytes and closes it.
ScriptedServer::Script says(std::string bytes) {
  return [bytes = std::move(bytes)](Connection& connection) {
    if (connection.read_request()) connection.send(bytes);
  };
}

void hang(Connection& connection) { connection.hang(); }

Error error_of(const Result<HttpResponse>& result) { return result ? Error{} : result.error(); }

TEST(Site, IsAnOriginAndNothingElse) {
  auto origin = [](const std::string& site) {
    auto transport = CurlTransport::create(site, {});
    return transport ? (*transport)->origin() : std::string(name_of(transport.error().code));
  };
  EXPECT_EQ(origin("https://Example.ORG"), "https://example.org");
  EXPECT_EQ(origin("HTTPS://example.org:443/"), "https://example.org");
  EXPECT_EQ(origin("http://127.0.0.1:8787"), "http://127.0.0.1:8787");
  EXPECT_EQ(origin("http://[::1]:80"), "http://[::1]");
  // What is in this form already is not given to libcurl.
  EXPECT_EQ(origin("https://play.example-1.org:8443"), "https://play.example-1.org:8443");
  EXPECT_EQ(origin("http://example.org:80"), "http://example.org");
  EXPECT_EQ(origin("http://example.org:0080"), "http://example.org");
  EXPECT_EQ(origin("https://example.org:80"), "https://example.org:80");
  EXPECT_EQ(origin("http://127.1"), "http://127.0.0.1");
  EXPECT_EQ(origin("http://0x7f.1"), "http://127.0.0.1");
  EXPECT_EQ(origin("http://example.org:70000"), "invalid_argument");
  for (auto site :
       {"", "example.org", "ftp://example.org", "file:///etc/passwd", "https://", "https://me:pw@example.org",
        "https://example.org/path", "https://example.org/?q", "https://example.org/#f", "https://exa mple.org"})
    EXPECT_EQ(origin(site), "invalid_argument") << site;
}

TEST(CurlTransport, HasNoThreadBeforeTheFirstRequest) {
  const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  ScriptedServer server(says("HTTP/1.1 200 OK\r\n\r\n"));
  const auto before = threads();
  auto transport = connect_to(server.url(), {.width = 7});
  EXPECT_LE(threads(), before);
  EXPECT_EQ(transport->width(), 7U);
  EXPECT_TRUE(get(*transport));
  EXPECT_EQ(transport->width(), 7U);
  transport.reset();
  connect_to(server.url()).reset();  // unused
}

TEST(CurlTransport, CarriesARequestAndItsAnswer) {
  std::promise<HttpRequest> seen;
  ScriptedServer server([&](Connection& connection) {
    auto request = connection.read_request();
    seen.set_value(request.value_or(HttpRequest()));
    connection.send("HTTP/1.1 103 Early\r\nX-Early: 1\r\n\r\n");
    connection.answer(404, "gone", {{"ETag", "\"7\""}, {"X-Empty", ""}});
  });
  auto transport = connect_to(server.url(), {.user_agent = "playfs/test"});
  HttpRequest request{
      "PATCH", "/.site/data/x/..?a=%20", {{"Origin", "http://o"}, {"X-None", ""}}, std::string("{\0}", 3)};
  auto response = await<HttpResponse>([&](auto done) { transport->send(request, {}, {}, std::move(done)); });
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->body, "gone");
  EXPECT_EQ(response->headers.get("etag"), "\"7\"");
  EXPECT_EQ(response->headers.get("X-Empty"), "");
  EXPECT_FALSE(response->headers.get("X-Early"));

  const HttpRequest sent = seen.get_future().get();
  EXPECT_EQ(sent.method, "PATCH");
  EXPECT_EQ(sent.target, request.target);
  EXPECT_EQ(sent.body, request.body);
  EXPECT_EQ(sent.headers.get("Origin"), "http://o");
  EXPECT_EQ(sent.headers.get("X-None"), "");
  EXPECT_EQ(sent.headers.get("User-Agent"), "playfs/test");
  EXPECT_EQ(sent.headers.get("Accept-Encoding"), "gzip");
  EXPECT_FALSE(sent.headers.get("Content-Type"));
  EXPECT_FALSE(sent.headers.get("Expect"));
}

TEST(CurlTransport, KeepsConnections) {
  ScriptedServer server([](Connection& connection) {
    while (auto request = connection.read_request()) connection.answer(200, request->method + " " + request->body);
  });
  auto transport = connect_to(server.url());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get(*transport)->body, "GET ");
  EXPECT_EQ(server.connections(), 1);
}

TEST(CurlTransport, APostWithoutKeyIsNotRepeatedOnALostConnection) {
  std::atomic<int> posts = 0;
  ScriptedServer server([&](Connection& connection) {
    // The first request of a connection is answered; the second closes it without a response.
    for (bool answer = true; auto request = connection.read_request(); answer = false) {
      posts += request->method == "POST";
      if (!answer) return;
      connection.answer(200, "");
    }
  });
  auto transport = connect_to(server.url());
  auto post = [&](HttpHeaders headers) {
    return await<HttpResponse>([&](auto done) {
      transport->send({"POST", "/", headers, "{}"}, {}, {}, std::move(done));
    });
  };
  ASSERT_TRUE(get(*transport));
  EXPECT_TRUE(post({}));  // on a connection of its own
  EXPECT_EQ(posts, 1);
  EXPECT_EQ(server.connections(), 2);
}

TEST(CurlTransport, WhatAKeptConnectionLostIsNotRepeatedInSilence) {
  for (const std::string method : {"POST", "PATCH"}) {
    std::atomic<int> sent = 0;
    ScriptedServer server([&](Connection& connection) {
      for (bool answer = true; auto request = connection.read_request(); answer = false) {
        sent += request->method == method;
        if (!answer) return;
        connection.answer(request->method == method ? 409 : 200, "");
      }
    });
    auto transport = connect_to(server.url());
    ASSERT_TRUE(get(*transport));
    auto lost = await<HttpResponse>([&](auto done) {
      transport->send({method, "/", {{"Idempotency-Key", "k"}}, "{}"}, {}, {}, std::move(done));
    });
    ASSERT_FALSE(lost) << "the outcome of a second attempt that nobody knew of: " << method;
    EXPECT_EQ(lost.error().code, ErrorCode::unreachable);
    EXPECT_FALSE(lost.error().is_unsent);
    EXPECT_EQ(sent, 1);
  }
}

TEST(CurlTransport, UnsafeRequestsAreNotSent) {
  ScriptedServer server(says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  auto transport = connect_to(server.url());
  for (const auto& request :
       {HttpRequest{"GET", "no-slash", {}, ""}, HttpRequest{"GET", "/a b", {}, ""},
        HttpRequest{"GET", "/\r\nX: 1", {}, ""}, HttpRequest{"GE T", "/", {}, ""},
        HttpRequest{"GET", "/", {{"X", "1\r\nY: 2"}}, ""}, HttpRequest{"GET", "/", {{"X Y", "1"}}, ""}}) {
    auto response = await<HttpResponse>([&](auto done) { transport->send(request, {}, {}, std::move(done)); });
    EXPECT_EQ(error_of(response).code, ErrorCode::invalid_argument) << request.target;
  }
  EXPECT_EQ(server.connections(), 0);
}

TEST(CurlTransport, RedirectsAreAnswersLikeOthers) {
  ScriptedServer target(says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
  ScriptedServer server(says("HTTP/1.1 302 Found\r\nLocation: " + target.url() + "/\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(get(*connect_to(server.url()))->status, 302);
  EXPECT_EQ(target.connections(), 0);
}

TEST(CurlTransport, ADeadServerIsUnreachable) {
  std::string url;
  { url = ScriptedServer(hang).url(); }
  EXPECT_EQ(error_of(get(*connect_to(url))).code, ErrorCode::unreachable);
}

TEST(CurlTransport, AWriteThatFoundNoConnectionWasNotSent) {
  std::string url;
  { url = ScriptedServer(hang).url(); }
  ScriptedServer silent(says(""));
  auto post = [](const std::string& to) {
    auto transport = connect_to(to);
    return error_of(await<HttpResponse>([&](auto done) {
      transport->send({"POST", "/", {{"Idempotency-Key", "k"}}, "{}"}, {}, {}, std::move(done));
    }));
  };
  EXPECT_TRUE(post(url).is_unsent);
  EXPECT_EQ(post(silent.url()).code, ErrorCode::unreachable);
  EXPECT_FALSE(post(silent.url()).is_unsent);
}

TEST(CurlTransport, BrokenAnswersAreErrors) {
  struct Case {
    const char* what;
    std::string bytes;
    ErrorCode code;
  };
  for (const Case& c :
       {Case{"nothing", "", ErrorCode::unreachable},
        Case{"half a header", "HTTP/1.1 200 OK\r\nContent-Le", ErrorCode::unreachable},
        Case{"half a body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive", ErrorCode::unreachable},
        Case{"half a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nfive", ErrorCode::unreachable},
        Case{"a bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nfive", ErrorCode::unreachable},
        Case{"no HTTP", "220 mail.example.org ESMTP\r\n", ErrorCode::protocol},
        Case{"noise", std::string(100, '\xfe') + "\r\n\r\n", ErrorCode::protocol},
        Case{"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ErrorCode::protocol},
        Case{"bad gzip", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
             ErrorCode::protocol},
        Case{"unknown coding", "HTTP/1.1 200 OK\r\nContent-Encoding: x\r\nContent-Length: 4\r\n\r\nnope",
             ErrorCode::protocol}}) {
    ScriptedServer server(says(c.bytes));
    auto response = get(*connect_to(server.url()));
    ASSERT_FALSE(response) << c.what;
    EXPECT_EQ(response.error().code, c.code) << c.what << ": " << response.error().message;
  }
}

TEST(CurlTransport, AResetIsUnreachable) {
  ScriptedServer server([](Connection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    connection.reset_at_end();
  });
  EXPECT_EQ(error_of(get(*connect_to(server.url()))).code, ErrorCode::unreachable);
}

TEST(CurlTransport, MoreThanTheLengthSaysIsCutOff) {
  ScriptedServer server(says("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfourHTTP/1.1 200 OK\r\n\r\n"));
  auto response = get(*connect_to(server.url()));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "four");
}

TEST(CurlTransport, BodiesAreBoundedAfterInflation) {
  // 200,000 times "a".
  const std::string bomb = *from_base64(
      "H4sIAAAAAAACA+3BMQEAAADCoKzrX8IM/kABAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
      "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAK8Bm1Np4EANAwA=");
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: " + std::to_string(bomb.size()) + "\r\n\r\n";
  ScriptedServer server([&](Connection& connection) {
    while (connection.read_request()) connection.send(head + bomb);
  });
  EXPECT_EQ(get(*connect_to(server.url(), {.response_ceiling = 200'000}))->body, std::string(200'000, 'a'));
  auto response = get(*connect_to(server.url(), {.response_ceiling = 199'999}));
  EXPECT_EQ(error_of(response).code, ErrorCode::protocol);
  EXPECT_NE(error_of(response).message.find("larger"), std::string::npos);
}

TEST(CurlTransport, EndlessAnswersAreBounded) {
  ScriptedServer body([](Connection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\n\r\n");
    while (connection.send(std::string(64 * 1024, 'x'))) {
    }
  });
  EXPECT_EQ(error_of(get(*connect_to(body.url()))).code, ErrorCode::protocol);
  ScriptedServer header([](Connection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\n");
    while (connection.send("X-More: " + std::string(1000, 'x') + "\r\n")) {
    }
  });
  EXPECT_EQ(error_of(get(*connect_to(header.url()))).code, ErrorCode::protocol);
}

TEST(CurlTransport, AHangingServerIsGivenUp) {
  ScriptedServer server(hang);
  auto transport = connect_to(server.url());
  EXPECT_EQ(error_of(get(*transport, "/", {.connect = 5s, .total = 100ms})).code, ErrorCode::timed_out);
}

TEST(CurlTransport, ADrippingServerIsGivenUp) {
  ScriptedServer server([](Connection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    while (connection.send("x")) std::this_thread::sleep_for(100ms);
  });
  auto transport = connect_to(server.url(), {.low_speed = 1000, .low_speed_time = 1s});
  EXPECT_EQ(error_of(get(*transport, "/", {.connect = 5s, .total = 10min})).code, ErrorCode::timed_out);
}

TEST(CurlTransport, OneHangingAnswerDoesNotHoldUpOthers) {
  ScriptedServer server([](Connection& connection) {
    while (auto request = connection.read_request()) {
      if (request->target == "/hang") return connection.hang();
      connection.answer(200, "here");
    }
  });
  auto transport = connect_to(server.url());
  CancelSource source;
  std::promise<Result<HttpResponse>> hanging;
  transport->send({"GET", "/hang", {}, {}}, {}, source.token(),
                  [&](Result<HttpResponse> result) { hanging.set_value(std::move(result)); });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get(*transport)->body, "here");
  source.cancel();
  EXPECT_EQ(error_of(hanging.get_future().get()).code, ErrorCode::interrupted);
}

TEST(CurlTransport, CancellingWorksAtAnyStage) {
  ScriptedServer server([](Connection& connection) {
    connection.read_request();
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    connection.hang();
  });
  auto transport = connect_to(server.url());
  CancelSource before;
  before.cancel();
  EXPECT_EQ(error_of(get(*transport, "/", {}, before.token())).code, ErrorCode::interrupted);
  EXPECT_EQ(server.connections(), 0);
  for (auto delay : {0us, 100us, 1000us, 20'000us}) {
    CancelSource source;
    std::thread canceller([&] {
      std::this_thread::sleep_for(delay);
      source.cancel();
    });
    EXPECT_EQ(error_of(get(*transport, "/", {}, source.token())).code, ErrorCode::interrupted);
    canceller.join();
  }
}

TEST(CurlTransport, DestroyingItAnswersWhatIsOutstanding) {
  ScriptedServer server(hang);
  auto owner = connect_to(server.url());
  CurlTransport* transport = owner.get();
  std::vector<std::promise<Result<HttpResponse>>> answers(20);
  std::promise<Result<HttpResponse>> late;
  for (std::size_t i = 0; i < answers.size(); ++i)
    transport->send({"GET", "/", {}, {}}, {}, {}, [&, i](Result<HttpResponse> result) {
      answers[i].set_value(std::move(result));
      if (i > 0) return;
      // Requests started in the callback are answered too.
      transport->send({"GET", "/", {}, {}}, {}, {},
                      [&](Result<HttpResponse> second) { late.set_value(std::move(second)); });
    });
  owner.reset();
  for (auto& answer : answers) EXPECT_EQ(error_of(answer.get_future().get()).code, ErrorCode::interrupted);
  EXPECT_EQ(error_of(late.get_future().get()).code, ErrorCode::interrupted);
}

/// Wake-ups that other threads sent to a transport's I/O thread and it has not read yet: libcurl sends a byte for each.
/// Nothing if it counts them in an eventfd.
int wake_ups_waiting() {
  int all = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string name = entry.path().filename();
    int fd = -1, family = 0, bytes = 0;
    socklen_t size = sizeof family;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX &&
        ioctl(fd, FIONREAD, &bytes) == 0)
      all += bytes;
  }
  return all;
}

TEST(CurlTransport, ManyCancelledAtOnceWakeItOnce) {
  ScriptedServer server([](Connection& connection) {
    auto request = connection.read_request();
    if (request && request->target == "/here") connection.answer(200, "here");
    else connection.hang();
  });
  auto transport = connect_to(server.url());
  CancelSource source;
  std::vector<std::promise<Result<HttpResponse>>> answers(50);
  for (auto& answer : answers)
    transport->send({"GET", "/hang", {}, {}}, {}, source.token(),
                    [&](Result<HttpResponse> result) { answer.set_value(std::move(result)); });
  // Its thread is busy with another response meanwhile.
  std::promise<void> busy, go_on;
  transport->send({"GET", "/here", {}, {}}, {}, {}, [&](const Result<HttpResponse>&) {
    busy.set_value();
    go_on.get_future().wait();
  });
  busy.get_future().wait();
  const int before = wake_ups_waiting();
  source.cancel();
  const int after = wake_ups_waiting();
  go_on.set_value();
  EXPECT_LE(after - before, 1);
  for (auto& answer : answers) EXPECT_EQ(error_of(answer.get_future().get()).code, ErrorCode::interrupted);
}

TEST(CurlTransport, ManyRequestsAtOnceAreAllAnswered) {
  ScriptedServer server([](Connection& connection) {
    while (auto request = connection.read_request()) connection.answer(200, request->target);
  });
  auto transport = connect_to(server.url(), {.max_connections = 8});
  std::atomic<int> right = 0, left = 300;
  std::promise<void> all;
  for (int i = 0; i < 300; ++i) {
    std::string target = "/" + std::to_string(i);
    transport->send({"GET", target, {}, {}}, {}, {}, [&, target](Result<HttpResponse> result) {
      right += result && result->body == target;
      if (--left == 0) all.set_value();
    });
  }
  all.get_future().wait();
  EXPECT_EQ(right, 300);
  EXPECT_LE(server.connections(), 8);
}

}  // namespace
}  // namespace playfs::net
