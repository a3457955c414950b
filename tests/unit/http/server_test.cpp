#include "http/server.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "unit/http/server_fixture.h"

namespace playfs::http {
namespace {

TEST(Server, AnswersSeveralRequestsOnOneConnection) {
  auto server = start();
  Connection connection(server->port());
  for (int i = 0; i < 3; ++i) {
    connection.send(kGet);
    std::string response = connection.receive();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK\r\n")) << response;
    EXPECT_TRUE(response.ends_with("\r\n\r\nGET /a?b=c 127.0.0.1 ")) << response;
    EXPECT_TRUE(contains(response, "Date: ")) << response;
  }
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  auto server = start();
  Connection connection(server->port());
  connection.send("POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none" + kGet +
                  "PATCH /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
  EXPECT_TRUE(connection.receive().ends_with("POST /1 127.0.0.1 one"));
  EXPECT_TRUE(connection.receive().ends_with("GET /a?b=c 127.0.0.1 "));
  EXPECT_TRUE(connection.receive().ends_with("PATCH /3 127.0.0.1 abc"));
}

TEST(Server, HeadHasTheLengthAndNoBody) {
  auto server = start();
  Connection connection(server->port());
  connection.send("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n" + kGet);
  std::string response = connection.receive(true);
  EXPECT_TRUE(contains(response, "Content-Length: 18\r\n")) << response;
  EXPECT_TRUE(contains(connection.receive(), "GET /a?b=c")) << "the HEAD had a body";
}

TEST(Server, ClosesWhenTheClientAsksForIt) {
  auto server = start();
  Connection connection(server->port());
  connection.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(contains(connection.receive(), "Connection: close"));
  EXPECT_TRUE(connection.closed_by_server());
  Connection old(server->port());
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(contains(old.receive(), "200 OK"));
  EXPECT_TRUE(old.closed_by_server());
}

TEST(Server, InvitesABodyThatWaits) {
  auto server = start();
  Connection connection(server->port());
  connection.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(connection.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
  connection.send("ok");
  EXPECT_TRUE(connection.receive().ends_with(" ok"));
}

TEST(Server, RefusesWhatIsTooLargeOrNoHttp) {
  auto server = start();
  struct Case {
    std::string request;
    std::string status;
  };
  const std::string chunked = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string small_chunks;
  for (int i = 0; i < 600; ++i) small_chunks += "1;" + std::string(1'000, 'x') + "\r\nb\r\n";
  for (const Case& c : std::vector<Case>{
           {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n" + std::string(300'000, 'x'), "413"},
           {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n493e0\r\n" + std::string(300'000, 'x'),
            "413"},
           {"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", "431"},
           {"nonsense\r\n\r\n", "400"},
           {"GET / HTTP/1.1\r\n\r\n", "400"},
           {chunked + "no size\r\n", "400"},
           {chunked + "1;" + std::string(200'000, 'x'), "431"},
           {chunked + small_chunks, "413"},
           {chunked + "0\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n", "431"},
           {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", "501"},
           {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"},
           {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501"},
           {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"}}) {
    Connection connection(server->port());
    connection.send(c.request);
    std::string response = connection.receive();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 " + c.status)) << c.request.substr(0, 80) << "\n" << response;
    EXPECT_TRUE(contains(response, "\"code\":")) << response;
    EXPECT_EQ(connection.receive(), "") << "the rest is no request";
    Connection other(server->port());
    other.send(kGet);
    std::string answer = other.receive();
    EXPECT_TRUE(contains(answer, "200 OK")) << answer;
  }
}

TEST(Server, TheSiteAndTheOriginAreNamedOnce) {
  auto server = start({}, [](const HttpRequest& request, const std::string&) {
    return HttpResponse{200, {}, std::string(request.headers.get("Host").value_or("none")) + ' ' + request.target};
  });
  Connection two(server->port());
  two.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  EXPECT_TRUE(two.receive().starts_with("HTTP/1.1 400 "));
  Connection origins(server->port());
  origins.send("GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\norigin: http://b\r\n\r\n");
  EXPECT_TRUE(origins.receive().starts_with("HTTP/1.1 400 "));
  Connection whole(server->port());
  whole.send("GET http://a:1/x?y HTTP/1.1\r\nHost: b\r\n\r\n");
  EXPECT_TRUE(whole.receive().ends_with("\r\n\r\na:1 /x?y"));
  whole.send("GET HTTP://a HTTP/1.1\r\nHost: b\r\n\r\n");
  EXPECT_TRUE(whole.receive().ends_with("\r\n\r\na /"));
}

TEST(Server, SlowHeadersAndBodiesAreCutOff) {
  ServerOptions options;
  options.header_time = options.body_time = std::chrono::milliseconds(150);
  auto server = start(options);
  Connection header(server->port()), body(server->port());
  header.send("GET / HT");
  body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab");
  header.closed_by_server();
  EXPECT_TRUE(header.closed_by_server());
  EXPECT_TRUE(body.closed_by_server());
}

TEST(Server, IdleConnectionsAreClosedAfterAWhile) {
  ServerOptions options;
  options.idle_time = std::chrono::milliseconds(100);
  auto server = start(options);
  Connection connection(server->port());
  EXPECT_TRUE(connection.closed_by_server());
}

TEST(Server, ManyIdleConnectionsDoNotHinderOthers) {
  auto server = start();
  std::vector<std::unique_ptr<Connection>> idle;
  for (int i = 0; i < 400; ++i) {
    idle.push_back(std::make_unique<Connection>(server->port()));
    if (i % 2) idle.back()->send("GET / HT");
  }
  Connection busy(server->port());
  busy.send(kGet);
  EXPECT_TRUE(contains(busy.receive(), "200 OK"));
  idle.back()->send("TP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(contains(idle.back()->receive(), "200 OK"));
}

TEST(Server, PastItsLimitTheGreediestGivesWay) {
  ServerOptions options;
  options.connection_limit = 4;
  auto server = start(options);
  auto get = [](Connection& connection) {
    connection.send(kGet);
    return contains(connection.receive(), "200 OK");
  };
  std::vector<std::unique_ptr<Connection>> greedy;
  for (int i = 0; i < 4; ++i) {
    greedy.push_back(std::make_unique<Connection>(server->port()));
    EXPECT_TRUE(get(*greedy.back()));
  }
  EXPECT_TRUE(get(*greedy[0]));
  Connection honest(server->port(), "127.0.0.2");
  EXPECT_TRUE(get(honest));
  EXPECT_TRUE(greedy[1]->closed_by_server()) << "served longest ago";
  Connection more(server->port());
  EXPECT_TRUE(get(more));
  EXPECT_TRUE(greedy[2]->closed_by_server());
  EXPECT_TRUE(get(honest));
  EXPECT_TRUE(get(*greedy[0]));
}

TEST(Server, ASlowHandlerDoesNotStopOthers) {
  Gate gate;
  auto server = start({}, [&](const HttpRequest& request, const std::string& peer) {
    return request.target == "/slow" ? gate() : echo(request, peer);
  });
  Connection slow(server->port());
  slow.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  gate.await_inside(1);
  Connection quick(server->port());
  quick.send(kGet);
  EXPECT_TRUE(contains(quick.receive(), "200 OK"));
  gate.open();
  EXPECT_TRUE(contains(slow.receive(), "through"));
}

TEST(Server, ReadingGoesOnWhileEveryWriterWaits) {
  Gate gate;
  ServerOptions options;
  options.write_threads = 2;
  auto server = start(options, [&](const HttpRequest& request, const std::string& peer) {
    return request.method == "POST" ? gate() : echo(request, peer);
  });
  std::vector<Connection> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back(server->port());
    writers.back().send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  }
  gate.await_inside(2);
  Connection reader(server->port());
  reader.send(kGet);
  EXPECT_TRUE(contains(reader.receive(), "200 OK"));
  gate.open();
  for (auto& writer : writers) EXPECT_TRUE(contains(writer.receive(), "through"));
}

TEST(Server, ALineBreakInAFieldBeginsNoOtherField) {
  auto server = start({}, [](const HttpRequest&, const std::string&) {
    return HttpResponse{200, {{"X-Name", "a\r\nSet-Cookie: b\r\n\r\nc"}}, "body"};
  });
  Connection connection(server->port());
  connection.send(kGet);
  std::string response = connection.receive();
  EXPECT_TRUE(contains(response, "\r\nX-Name: a  Set-Cookie: b    c\r\n")) << response;
  EXPECT_TRUE(response.ends_with("\r\n\r\nbody")) << response;
}

TEST(Server, AnOldClientKeepsItsConnectionIfItAsksTo) {
  auto server = start();
  Connection connection(server->port());
  for (int i = 0; i < 2; ++i) {
    connection.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_TRUE(contains(connection.receive(), "\r\nConnection: keep-alive\r\n"));
  }
}

TEST(Server, StopAnswersWhatRunsAndClosesWhatIsIdle) {
  Gate gate;
  auto server = start({}, [&](const HttpRequest&, const std::string&) { return gate(); });
  std::uint16_t port = server->port();
  Connection idle(port), running(port);
  running.send(kGet);
  gate.await_inside(1);
  std::thread stopper([&] { server->stop(); });
  EXPECT_TRUE(idle.closed_by_server());
  EXPECT_FALSE(Connection(port).connected);
  gate.open();
  std::string response = running.receive();
  EXPECT_TRUE(contains(response, "through")) << response;
  EXPECT_TRUE(contains(response, "Connection: close")) << response;
  stopper.join();
  server->stop();
}

TEST(Server, AClientThatLeavesWhileItIsServedHarmsNobody) {
  Gate gate;
  auto server = start({}, [&](const HttpRequest&, const std::string&) { return gate(); });
  { Connection(server->port()).send(kGet); }
  gate.await_inside(1);
  gate.open();
  Connection next(server->port());
  next.send(kGet);
  EXPECT_TRUE(contains(next.receive(), "through"));
}

TEST(Server, SaysWhyItCannotListen) {
  auto first = start();
  ServerOptions options;
  options.port = first->port();
  auto second = Server::start(options, echo);
  ASSERT_FALSE(second);
  EXPECT_TRUE(contains(second.error().message, std::to_string(options.port))) << second.error().message;
  options.address = "not an address";
  auto third = Server::start(options, echo);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::invalid_argument);
}

TEST(Server, NamesItsEndpoint) {
  auto server = start();
  EXPECT_EQ(server->endpoint(), "127.0.0.1:" + std::to_string(server->port()));
}

}  // namespace
}  // namespace playfs::http
