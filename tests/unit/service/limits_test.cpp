#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "fixture.h"

namespace playfs::service {
namespace {

class LimitsTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    serve_limited("{}");
  }

  void serve_limited(const std::string& limits, const std::vector<std::string>& proxies = {}) {
    ServiceOptions options;
    auto parsed = Limits::parse(limits);
    ASSERT_TRUE(parsed) << parsed.error().message;
    options.limits = *parsed;
    auto trusted = TrustedProxies::parse(proxies);
    ASSERT_TRUE(trusted);
    options.proxies = *trusted;
    serve(options);
  }

  int post(const std::string& collection, const std::string& address = "192.0.2.1", HttpHeaders headers = {}) {
    return send("POST", "/" + collection, "{}", std::move(headers), address).status;
  }
};

TEST_F(LimitsTest, EachCollectionHasTheLimitOfTheDocument) {
  const std::vector<std::pair<std::string, int>> limits = {{"agents", 30},      {"projects", 60},  {"revisions", 60},
                                                           {"threads", 30},     {"messages", 120}, {"file_chunks", 240},
                                                           {"domain_mail", 30}, {"spaces", 30}};
  for (const auto& [collection, limit] : limits) {
    SCOPED_TRACE(collection);
    for (int i = 0; i < limit; ++i) ASSERT_EQ(post(collection), 200) << i;
    auto refused = send("POST", "/" + collection, "{}");
    expect_problem(refused, 429, "rate_limited");
    EXPECT_EQ(json(refused).find("retry_after")->integer(), 3600);
    EXPECT_EQ(refused.headers.get("Retry-After"), "3600");
    EXPECT_EQ(post(collection, "192.0.2.2"), 200);
  }
}

TEST_F(LimitsTest, TheWindowSlides) {
  serve_limited(R"({"agents":3})");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(post("agents"), 200);
    clock.advance(std::chrono::minutes(10));
  }
  EXPECT_EQ(json(send("POST", "/agents", "{}")).find("retry_after")->integer(), 1800);
  clock.advance(std::chrono::minutes(30) - std::chrono::seconds(1));
  EXPECT_EQ(json(send("POST", "/agents", "{}")).find("retry_after")->integer(), 1);
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(post("agents"), 200);
  EXPECT_EQ(json(send("POST", "/agents", "{}")).find("retry_after")->integer(), 600);
}

TEST_F(LimitsTest, PatchesCountWithPosts) {
  serve_limited(R"({"projects":2})");
  auto id = text(record(send("POST", "/projects", "{}")), "id");
  EXPECT_EQ(send("PATCH", "/projects/" + id, R"({"a":1})").status, 200);
  expect_problem(send("PATCH", "/projects/" + id, R"({"a":2})"), 429, "rate_limited");
  EXPECT_EQ(post("projects"), 429);
  EXPECT_EQ(record(send("GET", "/projects/" + id)).find("a")->integer(), 1);
}

TEST_F(LimitsTest, ARepeatWithItsKeyIsFreeEvenWhenTheLimitIsReached) {
  serve_limited(R"({"agents":1})");
  HttpHeaders key{{"Idempotency-Key", "k"}};
  auto first = record(send("POST", "/agents", "{}", key));
  EXPECT_EQ(record(send("POST", "/agents", "{}", key)), first);
  EXPECT_EQ(post("agents"), 429);
  EXPECT_EQ(record(send("POST", "/agents", "{}", key)), first);
}

TEST_F(LimitsTest, RefusedRequestsDoNotCount) {
  serve_limited(R"({"threads":1})");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send("POST", "/threads", R"({"kind":"none"})").status, 400);
  EXPECT_EQ(post("threads"), 200);
}

TEST_F(LimitsTest, SurviveARestart) {
  serve_limited(R"({"agents":1})");
  EXPECT_EQ(post("agents"), 200);
  service.reset();
  store.reset();
  auto opened = SqliteStore::open(directory / "playground.db", Database::Durability::normal, clock, random);
  ASSERT_TRUE(opened);
  store = *std::move(opened);
  serve_limited(R"({"agents":1})");
  EXPECT_EQ(post("agents"), 429);
}

TEST_F(LimitsTest, AClockSetBackLocksNobodyOut) {
  serve_limited(R"({"agents":1})");
  EXPECT_EQ(post("agents"), 200);
  clock.advance(-std::chrono::hours(24));
  EXPECT_EQ(post("agents"), 200);
  EXPECT_EQ(post("agents"), 429);
}

TEST_F(LimitsTest, ConcurrentWritersNeverExceedTheLimit) {
  serve_limited(R"({"agents":25})");
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) taken += post("agents") == 200;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken, 25);
}

TEST_F(LimitsTest, AnIPv6ClientHasItsWholeNetwork) {
  serve_limited(R"({"agents":1})");
  EXPECT_EQ(post("agents", "2001:db8:1:2::3"), 200);
  EXPECT_EQ(post("agents", "2001:db8:1:2:ffff::9"), 429);
  EXPECT_EQ(post("agents", "2001:db8:1:3::3"), 200);
  EXPECT_EQ(post("agents", "192.0.2.1"), 200);
  EXPECT_EQ(post("agents", "::ffff:192.0.2.1"), 429);
}

TEST_F(LimitsTest, ForwardedForIsBelievedFromTrustedProxiesOnly) {
  serve_limited(R"({"agents":1})", {"10.0.0.0/8"});
  auto through = [&](const std::string& peer, const std::string& forwarded) {
    return post("agents", peer, {{"X-Forwarded-For", forwarded}});
  };
  EXPECT_EQ(through("10.1.1.1", "192.0.2.1"), 200);
  EXPECT_EQ(through("10.1.1.1", "192.0.2.2"), 200);
  EXPECT_EQ(through("10.1.1.1", "192.0.2.99, 192.0.2.2"), 429) << "the client wrote the first one itself";
  EXPECT_EQ(through("10.1.1.1", "192.0.2.2, 10.2.2.2"), 429) << "through two proxies";
  EXPECT_EQ(through("192.0.2.7", "192.0.2.50"), 200);
  EXPECT_EQ(through("192.0.2.7", "192.0.2.51"), 429) << "not a proxy";
}

TEST(Limits, RefuseWhatTheyCannotMean) {
  for (const char* text : {"", "[]", R"({"nothing":1})", R"({"agents":-1})", R"({"agents":1.5})", R"({"agents":"1"})",
                           R"({"window_seconds":0})", R"({"window_seconds":"1"})", R"({"window_seconds":3601})"})
    EXPECT_FALSE(Limits::parse(text)) << text;
  auto limits = Limits::parse(R"({"agents":null,"spaces":0})");
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->writes(*find_collection("agents")), std::nullopt);
  EXPECT_EQ(limits->writes(*find_collection("spaces")), 0);
  EXPECT_EQ(limits->writes(*find_collection("projects")), 60);
  EXPECT_EQ(limits->window(), std::chrono::hours(1));
  EXPECT_EQ(Limits::parse(R"({"window_seconds":5})")->window(), std::chrono::seconds(5));
}

TEST(TrustedProxies, RefuseWhatIsNoNetwork) {
  for (std::string text : {"", "x", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x"})
    EXPECT_FALSE(TrustedProxies::parse({text})) << text;
  auto all = TrustedProxies::parse({"0.0.0.0/0", "::1"});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->client("::1", "2001:db8::1"), "2001:db8::1");
  EXPECT_EQ(all->client("1.2.3.4", "rubbish"), "1.2.3.4");
  EXPECT_EQ(all->client("1.2.3.4", std::string("2001:db8::1\0rubbish", 19)), "1.2.3.4");
}

}  // namespace
}  // namespace playfs::service
