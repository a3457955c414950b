#include "support.h"

namespace playfs::remote {
namespace {

TEST_F(ClientTest, ReadsAreWhatTheServiceDocuments) {
  auto answer = get({}, "a/b ?");
  ASSERT_EQ(transport.count(), 1u);
  const auto& request = transport.request(0);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.target, "/.site/data/threads/a%2Fb%20%3F");
  EXPECT_EQ(request.headers.get("Accept"), "application/json");
  EXPECT_FALSE(request.headers.get("Authorization"));
  EXPECT_EQ(request.body, "");
  transport.answer(0, 200, R"({"record":{"id":"a/b ?","title":"t"}})");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer->fields.find("title")->string(), "t");
}

TEST_F(ClientTest, WritesSayWhereTheyComeFrom) {
  auto created = create("key-1");
  auto patched = patch();
  ASSERT_EQ(transport.count(), 2u);
  const auto& post = transport.request(0);
  EXPECT_EQ(post.method, "POST");
  EXPECT_EQ(post.target, "/.site/data/threads");
  EXPECT_EQ(post.headers.get("Origin"), "https://play.example.org");
  EXPECT_EQ(post.headers.get("Content-Type"), "application/json");
  EXPECT_EQ(post.headers.get("Idempotency-Key"), "key-1");
  EXPECT_EQ(post.body, R"({"title":"t"})");
  const auto& second = transport.request(1);
  EXPECT_EQ(second.method, "PATCH");
  EXPECT_EQ(second.target, "/.site/data/projects/a");
  EXPECT_EQ(second.headers.get("Origin"), "https://play.example.org");
  EXPECT_EQ(second.body, R"({"latest_revision":"r"})");
  transport.answer(0, 201, R"({"record":{"id":"new"}})");
  transport.answer(1, 200, R"({"id":"a","latest_revision":"r"})");  // the response to a PATCH may be bare
  EXPECT_EQ(created->id, "new");
  EXPECT_EQ(patched->id, "a");
}

TEST_F(ClientTest, TheKeyGoesOnlyWhereNobodyListens) {
  ClientOptions options;
  options.api_key = "secret";
  for (auto [origin, sent] : {std::pair("https://h", true), std::pair("http://127.0.0.1:1", true),
                              std::pair("http://h", false), std::pair("http://127.0.0.1.h", false)}) {
    test::ScriptedTransport other{origin};
    Client private_client(other, executor, clock, random, options);
    Answer<Record> answer;
    private_client.get_record("agents", "a", {}, answer.callback());
    auto header = other.request(0).headers.get("Authorization");
    EXPECT_EQ(header.has_value(), sent) << origin;
    EXPECT_EQ(header.value_or("Bearer secret"), "Bearer secret");
    EXPECT_EQ(private_client.site(), std::string(origin) + "/.site/data");
  }
}

TEST_F(ClientTest, IdsThatWouldWalkUpThePathAreNeverAskedFor) {
  for (auto id : {"", ".", ".."}) {
    auto answer = get({}, id);
    executor.run_due();
    EXPECT_TRUE(answer.is(ErrorCode::not_found)) << id;
  }
  Answer<wire::RecordPage> page;
  client().list_records("..", 50, "", {}, page.callback());
  executor.run_due();
  EXPECT_TRUE(page.is(ErrorCode::not_found));
  EXPECT_EQ(transport.count(), 0u);
}

TEST_F(ClientTest, ListsArePaged) {
  Answer<wire::RecordPage> page, clamped;
  client().list_records("revisions", 20, "a&b", {}, page.callback());
  client().list_records("revisions", 5000, "", {}, clamped.callback());
  EXPECT_EQ(transport.request(0).target, "/.site/data/revisions?limit=20&cursor=a%26b");
  EXPECT_EQ(transport.request(1).target, "/.site/data/revisions?limit=100");
  transport.answer(0, 200, R"({"records":[{"id":"a"},{"id":"b"}],"nextCursor":"c"})");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->records.size(), 2u);
  EXPECT_EQ(page->next_cursor, "c");
}

TEST_F(ClientTest, APageMayHaveAsManyRecordsAsTheContractLetsOneAskFor) {
  auto page_of = [](int count) {
    Json::Array records;
    for (int i = 0; i < count; ++i) records.push_back(JsonObject{{"id", "r" + std::to_string(i)}});
    return wire::to_text(JsonObject{{"records", std::move(records)}});
  };
  Answer<wire::RecordPage> clamped, too_large;
  client().list_records("revisions", 20, "", {}, clamped.callback());
  client().list_records("revisions", 100, "", {}, too_large.callback());
  transport.answer(0, 200, page_of(100));
  transport.answer(1, 200, page_of(101));
  ASSERT_TRUE(clamped.ok()) << "a service may clamp what is asked for in its own way";
  EXPECT_EQ(clamped->records.size(), 100u);
  EXPECT_TRUE(too_large.is(ErrorCode::protocol));
}

TEST_F(ClientTest, ProjectsAreAskedForOnCondition) {
  Answer<Fetched<Project>> first, second, third;
  client().get_project(ProjectId("a"), "", {}, first.callback());
  EXPECT_FALSE(transport.request(0).headers.get("If-None-Match"));
  transport.answer(0, 200, R"({"id":"a","latest_revision":"r"})", {{"etag", "\"7\""}});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->value->latest_revision, RevisionId("r"));
  EXPECT_EQ(first->etag, "\"7\"");

  client().get_project(ProjectId("a"), first->etag, {}, second.callback());
  EXPECT_EQ(transport.request(1).headers.get("If-None-Match"), "\"7\"");
  transport.answer(1, 304, "");
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->value);
  EXPECT_EQ(second->etag, "\"7\"");

  // The request was unconditional, so this makes no sense.
  client().get_project(ProjectId("a"), "", {}, third.callback());
  transport.answer(2, 304, "");
  EXPECT_TRUE(third.is(ErrorCode::protocol));
}

TEST_F(ClientTest, AnswersThatMakeNoSenseAreErrors) {
  for (auto body :
       {"{]}", R"({"record":{"title":"no id"}})", R"({"record":{"id":"another"}})", R"([{"id":"a"}, {}})"}) {
    auto answer = get();
    transport.answer(transport.count() - 1, 200, body);
    EXPECT_TRUE(answer.is(ErrorCode::protocol)) << body;
  }
}

TEST_F(ClientTest, ErrorsSayWhatWasAsked) {
  auto answer = get();
  transport.answer(0, 404, R"({"error":"x","code":"not_found","message":"gone fishing"})");
  ASSERT_TRUE(answer.is(ErrorCode::not_found));
  EXPECT_NE(answer.error().message.find("GET /.site/data/threads/a"), std::string::npos) << answer.error().message;
  EXPECT_NE(answer.error().message.find("gone fishing"), std::string::npos) << answer.error().message;
}

TEST_F(ClientTest, OfflineSendsNothing) {
  ClientOptions options;
  options.offline = true;
  client(options);
  auto read = get();
  auto written = create("k");
  EXPECT_FALSE(read.given());  // never from within the call
  executor.run_due();
  EXPECT_TRUE(read.is(ErrorCode::offline));
  EXPECT_TRUE(written.is(ErrorCode::offline));
  EXPECT_EQ(transport.count(), 0u);
}

TEST_F(ClientTest, RawCallsAreLeftAsTheyAre) {
  Answer<HttpResponse> answer;
  client().raw({"POST", "/agents?x=1", {{"Origin", "https://else"}}, "raw"}, {}, answer.callback());
  EXPECT_EQ(transport.request(0).target, "/.site/data/agents?x=1");
  EXPECT_EQ(transport.request(0).headers.get("Origin"), "https://else");
  EXPECT_EQ(transport.request(0).body, "raw");
  transport.answer(0, 503, "as it is");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "as it is");
  EXPECT_FALSE(executor.until_next());
}

TEST_F(ClientTest, HealthFollowsTheAnswers) {
  EXPECT_TRUE(client().health().reachable);
  auto first = create("");
  transport.answer(0, fail(ErrorCode::unreachable, "no route"));
  auto health = client().health();
  EXPECT_FALSE(health.reachable);
  EXPECT_EQ(health.last_error, "no route");
  EXPECT_EQ(health.last_failure, clock.wall());
  EXPECT_FALSE(health.last_success);
  auto second = get();
  transport.answer(1, 404, "");
  health = client().health();
  EXPECT_TRUE(health.reachable);
  EXPECT_EQ(health.last_success, clock.wall());
  EXPECT_EQ(health.requests, 2u);
  EXPECT_FALSE(health.paused_until);
  auto third = get();
  transport.answer(2, 429, R"({"retry_after":60})");
  EXPECT_EQ(client().health().paused_until->seconds(), clock.wall().seconds() + 60);
}

}  // namespace
}  // namespace playfs::remote
