#include "http/front.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "http/gzip.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"

namespace playfs::http {
namespace {

std::string gunzip(const std::string& packed) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string text(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

const std::string kLong = "{\"a\":\"" + std::string(5000, 'x') + "\"}";

/// Answers with `body`, or with 304 if the request has the tag "t".
HttpResponse answer(const HttpRequest& request, const std::string& body, const std::string& type) {
  HttpResponse response{200, {{"Content-Type", type}, {"ETag", "\"t\""}}, body};
  if (request.headers.get("If-None-Match").value_or("").find("\"t\"") != std::string_view::npos) {
    response.status = 304;
    response.body.clear();
  }
  return response;
}

HttpResponse ask(HttpHeaders headers, const std::string& body = kLong, const std::string& type = "application/json") {
  return compressed({"GET", "/", std::move(headers), {}},
                    [&](const HttpRequest& request) { return answer(request, body, type); })
      .response;
}

TEST(Gzip, CompressesTextForWhoeverAsks) {
  auto response = ask({{"Accept-Encoding", "br, gzip;q=0.5"}});
  EXPECT_EQ(response.headers.get("Content-Encoding"), "gzip");
  EXPECT_EQ(response.headers.get("Vary"), "Accept-Encoding");
  EXPECT_LT(response.body.size(), 500u);
  EXPECT_EQ(gunzip(response.body), kLong);
}

TEST(Gzip, LeavesTheRestAsItIs) {
  for (const HttpHeaders& headers :
       {HttpHeaders{}, HttpHeaders{{"Accept-Encoding", "br"}}, HttpHeaders{{"Accept-Encoding", "gzip;q=0"}}}) {
    auto response = ask(headers);
    EXPECT_EQ(response.body, kLong);
    EXPECT_FALSE(response.headers.get("Content-Encoding"));
    EXPECT_EQ(response.headers.get("Vary"), "Accept-Encoding") << "a cache must not give it to those who ask for gzip";
  }
  EXPECT_EQ(ask({{"Accept-Encoding", "gzip"}}, "short").body, "short");
  EXPECT_EQ(ask({{"Accept-Encoding", "gzip"}}, kLong, "image/png").body, kLong);
}

TEST(Gzip, TheTwoFormsHaveTagsOfTheirOwnAndBothAreRevalidated) {
  std::string plain(ask({}).headers.get("ETag").value_or(""));
  std::string packed(ask({{"Accept-Encoding", "gzip"}}).headers.get("ETag").value_or(""));
  EXPECT_EQ(plain, "\"t\"");
  EXPECT_NE(packed, plain);
  for (const std::string& known : {plain, packed}) {
    auto again = ask({{"Accept-Encoding", "gzip"}, {"If-None-Match", known}});
    EXPECT_EQ(again.status, 304);
    EXPECT_EQ(again.headers.get("ETag"), known);
  }
  EXPECT_EQ(ask({{"If-None-Match", "\"other-gzip\""}}).status, 200);
  EXPECT_EQ(ask({{"If-None-Match", "\"a-gzip\", W/\"b\", \"t-gzip\", \"c\""}}).status, 304);
}

class FrontTest : public testing::Test {
 protected:
  Front::Options options() {
    Front::Options made;
    made.site = service::SiteHosts({"play.test"});
    return made;
  }
  HttpResponse get(Front& front, const std::string& target) {
    return front.handle({"GET", target, {{"Host", "play.test"}, {"Authorization", "Bearer secret"}}, {}}, "192.0.2.1")
        .response;
  }
  static bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

  void SetUp() override {
    health.open([this] {
      ++checks;
      return written;
    });
  }

  test::ManualClock clock;
  Health health{clock};
  Status written;
  int checks = 0;
  Handler service = [](const HttpRequest& request, const std::string&) {
    return HttpResponse{request.target == "/" ? 200 : 404, {}, "body"};
  };
};

TEST_F(FrontTest, IsReadyWhileTheStoreCanBeWritten) {
  Front front(service, health, options(), clock);
  EXPECT_EQ(get(front, "/healthz/ready").status, 200);
  written = fail(ErrorCode::io, "the disk is gone");
  EXPECT_EQ(get(front, "/healthz/ready").status, 200) << "the last answer is still fresh";
  EXPECT_EQ(checks, 1) << "each costs a write";
  clock.advance(Health::kFresh);
  for (const char* name : {"/healthz", "/healthz/ready"}) {
    auto failing = get(front, name);
    EXPECT_EQ(failing.status, 503);
    EXPECT_FALSE(contains(failing.body, "disk"));
  }
  EXPECT_EQ(checks, 2);
  EXPECT_EQ(get(front, "/healthz/live").status, 200);
  EXPECT_EQ(get(front, "/").status, 200);
}

TEST_F(FrontTest, IsNotReadyBeforeAndAfter) {
  Health starting(clock);
  Front front(service, starting, options(), clock);
  EXPECT_EQ(get(front, "/healthz/ready").body, "starting\n");
  EXPECT_EQ(get(front, "/healthz/live").status, 200);
  auto early = get(front, "/");
  EXPECT_EQ(early.status, 503);
  EXPECT_TRUE(early.headers.get("Retry-After"));
  starting.open([] { return Status(); });
  EXPECT_EQ(get(front, "/healthz/ready").status, 200);
  EXPECT_EQ(get(front, "/").status, 200);
  starting.drain();
  EXPECT_EQ(get(front, "/healthz/ready").body, "draining\n");
  EXPECT_EQ(get(front, "/healthz/ready").status, 503);
  EXPECT_EQ(get(front, "/").status, 200) << "it still serves";
}

TEST_F(FrontTest, CountsWhatItAnswered) {
  Front front(service, health, options(), clock);
  get(front, "/");
  get(front, "/");
  get(front, "/nothing");
  front.handle({"BREW", "/", {}, {}}, "192.0.2.1");
  std::string metrics = get(front, "/metrics").body;
  EXPECT_TRUE(contains(metrics, "playfs_http_requests_total{method=\"GET\",status=\"2xx\"} 2\n")) << metrics;
  EXPECT_TRUE(contains(metrics, "playfs_http_requests_total{method=\"GET\",status=\"4xx\"} 1\n")) << metrics;
  EXPECT_TRUE(contains(metrics, "playfs_http_requests_total{method=\"other\",status=\"2xx\"} 1\n")) << metrics;
  EXPECT_TRUE(contains(metrics, "playfs_http_request_seconds_count{route=\"other\"} 4\n")) << metrics;
  EXPECT_TRUE(contains(metrics, "playfs_http_request_seconds_bucket{route=\"other\",le=\"+Inf\"} 4\n")) << metrics;
  EXPECT_TRUE(contains(metrics, "playfs_http_response_bytes_total 16\n")) << metrics;
}

TEST_F(FrontTest, MetricsAreForWhoeverKnowsTheSite) {
  Front front(service, health, options(), clock);
  auto metrics = [&](const std::string& host) {
    return front.handle({"GET", "/metrics", {{"Host", host}}, {}}, "127.0.0.1").response.status;
  };
  EXPECT_EQ(metrics("127.0.0.1:8787"), 200);
  EXPECT_EQ(metrics("rebound.example"), 421);
}

TEST_F(FrontTest, LogsALineForEachRequestAndNoSecrets) {
  const test::TemporaryDirectory directory;
  auto log = AccessLog::open(directory / "access.log");
  ASSERT_TRUE(log);
  auto with_log = options();
  with_log.log = log->get();
  Front front(service, health, std::move(with_log), clock);
  get(front, "/");
  get(front, "/x\"\n\x1b[31m\xff");
  std::string lines = read_file(directory / "access.log", 4096).value_or("");
  EXPECT_TRUE(contains(lines, R"("client":"192.0.2.1","method":"GET","target":"/","status":200,"bytes":4,)")) << lines;
  EXPECT_TRUE(contains(lines, R"("target":"/x\"\u000a\u001b[31m\u00ff","status":404)")) << lines;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_FALSE(contains(lines, "secret"));
}

}  // namespace
}  // namespace playfs::http
