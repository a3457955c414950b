#include <thread>
#include <vector>

#include "fixture.h"
#include "model/records.h"

namespace playfs::service {
namespace {

TEST_F(ServiceTest, CreatesAndReadsARecord) {
  auto created = record(send("POST", "/projects", R"({"name":"tower","size":1.50})"));
  EXPECT_EQ(text(created, "name"), "tower");
  EXPECT_EQ(created.find("size")->number()->text, "1.50");
  EXPECT_EQ(text(created, "created_at"), text(created, "updated_at"));
  EXPECT_FALSE(text(created, "status").empty());
  EXPECT_EQ(record(send("GET", "/projects/" + text(created, "id"))), created);
}

TEST_F(ServiceTest, AcceptsFieldsUnderDataAndPrintsThemFlat) {
  auto created = record(send("POST", "/agents", R"({"handle":"ada","data":{"handle":"other","bio":"x"}})"));
  EXPECT_EQ(text(created, "handle"), "ada");
  EXPECT_EQ(text(created, "bio"), "x");
  EXPECT_EQ(created.find("data"), nullptr);
  auto patched = record(send("PATCH", "/agents/" + text(created, "id"), R"({"data":{"bio":"y"}})"));
  EXPECT_EQ(text(patched, "bio"), "y");
  EXPECT_EQ(text(patched, "handle"), "ada");
}

TEST_F(ServiceTest, SystemFieldsAreTheServicesOwn) {
  auto created =
      record(send("POST", "/spaces",
                  R"({"id":"mine","created_at":"1999","createdAt":"1999","status":"gone","data":{"id":"z"},"a":1})"));
  EXPECT_NE(text(created, "id"), "mine");
  EXPECT_EQ(created.find("createdAt"), nullptr);
  std::string id = text(created, "id");
  auto patched = record(send("PATCH", "/spaces/" + id, R"({"id":"mine","updated_at":"1999","a":2})"));
  EXPECT_EQ(text(patched, "id"), id);
  EXPECT_EQ(text(patched, "created_at"), text(created, "created_at"));
  EXPECT_GT(text(patched, "updated_at"), text(created, "updated_at"));
}

TEST_F(ServiceTest, PatchReplacesMembersAndKeepsTheRest) {
  auto id =
      text(record(send("POST", "/projects", R"({"name":"a","extra":{"deep":[1,2]},"layout":{"x":1,"y":2}})")), "id");
  auto patched = record(send("PATCH", "/projects/" + id, R"({"latest_revision":"r1","layout":{"x":3},"name":null})"));
  EXPECT_EQ(text(patched, "latest_revision"), "r1");
  EXPECT_EQ(*patched.find("layout"), Json(JsonObject{{"x", 3}}));
  EXPECT_TRUE(patched.find("name")->is_null());
  EXPECT_EQ(*patched.find("extra"), Json(JsonObject{{"deep", Json::Array{1, 2}}}));
  EXPECT_EQ(record(send("GET", "/projects/" + id)), patched);
}

TEST_F(ServiceTest, ConcurrentPatchesOfDifferentFieldsAllStay) {
  auto id = text(record(send("POST", "/projects", "{}")), "id");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) {
        auto body = "{\"f" + std::to_string(i) + "_" + std::to_string(k) + "\":1}";
        EXPECT_EQ(send("PATCH", "/projects/" + id, body).status, 200);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(record(send("GET", "/projects/" + id)).size(), 4u + 80u);
}

TEST_F(ServiceTest, OwnerOnlyCollectionsRefusePatch) {
  for (std::string collection : {"revisions", "file_chunks", "domain_mail"}) {
    auto id = text(record(send("POST", "/" + collection, R"({"message":"m"})")), "id");
    expect_problem(send("PATCH", "/" + collection + "/" + id, R"({"message":"n"})"), 403, "forbidden");
    EXPECT_EQ(text(record(send("GET", "/" + collection + "/" + id)), "message"), "m");
  }
}

TEST_F(ServiceTest, TheSameIdempotencyKeyCreatesOnce) {
  HttpHeaders key{{"Idempotency-Key", "7c0e"}};
  auto first = record(send("POST", "/threads", R"({"title":"a"})", key));
  EXPECT_EQ(record(send("POST", "/threads", R"({"title":"a"})", key)), first);
  EXPECT_EQ(record(send("POST", "/threads", R"({"title":"b"})", key)), first);
  EXPECT_NE(record(send("POST", "/messages", R"({"title":"a"})", key)), first);
  EXPECT_NE(record(send("POST", "/threads", R"({"title":"a"})", key, "192.0.2.2")), first);
  EXPECT_EQ(json(send("GET", "/threads")).find("records")->array()->size(), 2u);
  expect_problem(send("POST", "/threads", "{}", {{"Idempotency-Key", std::string(256, 'k')}}), 400, "invalid_request");
}

TEST_F(ServiceTest, ARepeatedPostIsAnsweredWhateverItsBodySays) {
  HttpHeaders key{{"Idempotency-Key", "k"}};
  auto first = record(send("POST", "/threads", R"({"kind":"help"})", key));
  for (const auto& body : {std::string("{"), std::string(R"({"kind":"none"})"), std::string(kMaxBodySize + 1, ' '),
                           R"({"title":")" + std::string(kMaxRecordSize, 'x') + "\"}"})
    EXPECT_EQ(record(send("POST", "/threads", body, key)), first) << body.substr(0, 20);
  HttpHeaders as_text{{"Idempotency-Key", "k"}, {"Content-Type", "text/plain"}};
  EXPECT_EQ(record(send("POST", "/threads", "{}", as_text)), first);
  expect_problem(send("POST", "/threads", "{", {{"Idempotency-Key", "new"}}), 400, "invalid_request");
}

TEST_F(ServiceTest, TheRepeatedPostShowsTheRecordAsItIsNow) {
  HttpHeaders key{{"Idempotency-Key", "k"}};
  auto id = text(record(send("POST", "/projects", R"({"name":"a"})", key)), "id");
  send("PATCH", "/projects/" + id, R"({"latest_revision":"r"})");
  EXPECT_EQ(text(record(send("POST", "/projects", R"({"name":"a"})", key)), "latest_revision"), "r");
}

TEST_F(ServiceTest, APatchThatIsTooLargeByItselfIsRefused) {
  const std::string id = text(record(send("POST", "/agents", "{}")), "id");
  const std::string large = R"({"bio":")" + std::string(kMaxRecordSize, 'x') + "\"}";
  expect_problem(send("PATCH", "/agents/" + id, large), 413, "record_too_large");
}

TEST_F(ServiceTest, ARecordOf16KBFitsAndOneByteMoreDoesNot) {
  auto body_of = [](std::size_t length) { return R"({"content":")" + std::string(length, 'x') + "\"}"; };
  auto empty = send("POST", "/file_chunks", body_of(0));
  std::size_t room = kMaxRecordSize - (empty.body.size() - std::string(R"({"record":})").size());
  EXPECT_EQ(send("POST", "/file_chunks", body_of(room)).status, 200);
  expect_problem(send("POST", "/file_chunks", body_of(room + 1)), 413, "record_too_large");
  expect_problem(send("POST", "/file_chunks", body_of(kMaxBodySize)), 413, "record_too_large");
  // Unnecessary escapes do not count.
  std::string escaped = R"({"content":")";
  for (std::size_t i = 0; i < room; ++i) escaped += "\\u0078";
  EXPECT_EQ(send("POST", "/file_chunks", escaped + "\"}").status, 200);
}

TEST_F(ServiceTest, APatchCannotGrowARecordPastTheLimit) {
  auto id = text(record(send("POST", "/projects", R"({"a":")" + std::string(12'000, 'x') + "\"}")), "id");
  expect_problem(send("PATCH", "/projects/" + id, R"({"b":")" + std::string(5'000, 'x') + "\"}"), 413,
                 "record_too_large");
  EXPECT_EQ(record(send("GET", "/projects/" + id)).find("b"), nullptr);
}

TEST_F(ServiceTest, ListsNewestFirstInPages) {
  std::vector<std::string> ids;
  for (int i = 0; i < 7; ++i) {
    ids.insert(ids.begin(), text(record(send("POST", "/messages", "{}")), "id"));
    send("POST", "/threads", "{}");
  }
  std::vector<std::string> seen;
  std::string query = "?limit=3";
  for (int pages = 1;; ++pages) {
    auto page = json(send("GET", "/messages" + query));
    for (const auto& entry : *page.find("records")->array()) seen.push_back(text(*entry.object(), "id"));
    if (page.find("nextCursor")->is_null()) {
      EXPECT_EQ(pages, 3);
      break;
    }
    query = "?limit=3&cursor=" + text(page, "nextCursor");
  }
  EXPECT_EQ(seen, ids);
}

TEST_F(ServiceTest, AFullLastPageHasNoCursor) {
  for (int i = 0; i < 4; ++i) send("POST", "/messages", "{}");
  EXPECT_TRUE(json(send("GET", "/messages?limit=4")).find("nextCursor")->is_null());
  EXPECT_TRUE(json(send("GET", "/agents")).find("records")->array()->empty());
}

TEST_F(ServiceTest, PageSizesAndCursors) {
  for (int i = 0; i < 101; ++i) send("POST", "/messages", "{}");
  EXPECT_EQ(json(send("GET", "/messages")).find("records")->array()->size(), 50u);
  EXPECT_EQ(json(send("GET", "/messages?limit=100")).find("records")->array()->size(), 100u);
  for (std::string query : {"limit=0", "limit=101", "limit=-1", "limit=1.5", "limit=x", "limit=", "cursor=!",
                            "cursor=p-1", "cursor=p-0", "cursor=p01", "cursor=pA", "limit=%zz"})
    expect_problem(send("GET", "/messages?" + query), 400, "invalid_request");
}

TEST_F(ServiceTest, DetailsSayWhatWasRefused) {
  auto details = [&](const HttpResponse& response) {
    auto problem = json(response);
    const Json* found = problem.find("details");
    EXPECT_TRUE(found && found->object()) << response.body;
    return found && found->object() ? *found->object() : JsonObject();
  };
  auto limit = details(send("GET", "/messages?limit=101"));
  EXPECT_EQ(text(limit, "parameter"), "limit");
  EXPECT_EQ(*limit.find("maximum"), Json(100));
  EXPECT_EQ(text(details(send("GET", "/messages?cursor=!")), "parameter"), "cursor");
  std::string id = text(record(send("POST", "/threads", "{}")), "id");
  for (const auto& refused :
       {send("POST", "/threads", R"({"kind":"x"})"), send("PATCH", "/threads/" + id, R"({"kind":"x"})")}) {
    EXPECT_EQ(text(details(refused), "field"), "kind");
    EXPECT_EQ(details(refused).find("allowed")->array()->size(), 6u);
  }
  auto large = send("POST", "/threads", R"({"title":")" + std::string(20'000, 'x') + "\"}");
  EXPECT_EQ(*details(large).find("maximum"), Json(16384));
  auto key = send("POST", "/threads", "{}", {{"Idempotency-Key", ""}});
  EXPECT_EQ(text(details(key), "header"), "Idempotency-Key");
}

TEST_F(ServiceTest, ARepeatIsAnsweredWhateverItSaysNow) {
  HttpHeaders key{{"Idempotency-Key", "k"}};
  auto original = text(record(send("POST", "/threads", R"({"kind":"help"})", key)), "id");
  for (std::string body : {std::string(R"({"kind":"none"})"), std::string("{"), std::string(20'000, 'x')})
    EXPECT_EQ(text(record(send("POST", "/threads", body, key)), "id"), original);
  HttpHeaders other_caller{{"Idempotency-Key", "k"}, {"Authorization", "Bearer none"}};
  expect_problem(send("POST", "/threads", "{}", other_caller), 401, "unauthorized");
}

TEST_F(ServiceTest, CreationTimesGrowWhateverTheClockDoes) {
  std::string last;
  for (int step : {0, 1'000'000, -86'400, 5}) {
    clock.advance(std::chrono::seconds(step));
    auto created = text(record(send("POST", "/messages", "{}")), "created_at");
    EXPECT_GT(created, last);
    last = created;
  }
}

TEST_F(ServiceTest, UnknownPathsAndMethods) {
  expect_problem(send("GET", "/nothing"), 404, "not_found");
  expect_problem(send("GET", "/projects/none"), 404, "not_found");
  expect_problem(send("GET", "/projects/a/b"), 404, "not_found");
  expect_problem(service->handle({"GET", "/other", {{"Host", "play.test"}}, {}}, {"192.0.2.1"}), 404, "not_found");
  auto id = text(record(send("POST", "/projects", "{}")), "id");
  expect_problem(send("GET", "/threads/" + id), 404, "not_found");
  for (std::string method : {"DELETE", "PUT", "POST"}) {
    auto response = send(method, "/projects/" + id, "{}");
    expect_problem(response, 405, "method_not_allowed");
    EXPECT_EQ(response.headers.get("Allow"), "GET, HEAD, PATCH, OPTIONS");
  }
}

TEST_F(ServiceTest, PostNeedsTheSitesOrigin) {
  auto with_origin = [&](const std::string& origin) { return send("POST", "/agents", "{}", {{"Origin", origin}}); };
  EXPECT_EQ(with_origin("https://play.test").status, 200);
  EXPECT_EQ(with_origin("http://PLAY.test:80").status, 200);
  for (std::string origin : {"https://evil.test", "null", "", "https://play.test.evil.test", "play.test",
                             "https://evil.test/https://play.test", "https://play.test@evil.test"})
    expect_problem(with_origin(origin), 403, "forbidden");
  expect_problem(service->handle({"POST", "/.site/data/agents", {{"Host", "play.test"}}, "{}"}, {"192.0.2.1"}), 403,
                 "forbidden");
}

TEST_F(ServiceTest, NoPageThatCameByHttpPostsToASiteThatIsReachedByHttps) {
  ServiceOptions options;
  options.proxies = *TrustedProxies::parse({"192.0.2.1"});
  serve(std::move(options));
  auto post = [&](const std::string& origin, const std::string& scheme, const std::string& address) {
    return send("POST", "/agents", "{}", {{"Origin", origin}, {"X-Forwarded-Proto", scheme}}, address).status;
  };
  EXPECT_EQ(post("http://play.test", "https", "192.0.2.1"), 403);
  EXPECT_EQ(post("https://play.test", "https", "192.0.2.1"), 200);
  EXPECT_EQ(post("http://play.test", "http", "192.0.2.1"), 200);
  EXPECT_EQ(post("http://play.test", "https", "192.0.2.9"), 200) << "said by no proxy of ours";
}

TEST_F(ServiceTest, HostMustBeTheSiteOrSomethingThatCannotBeRebound) {
  auto with_host = [&](const std::string& host, const std::string& origin) {
    return send("POST", "/agents", "{}", {{"Host", host}, {"Origin", origin}});
  };
  EXPECT_EQ(with_host("127.0.0.1:8787", "http://127.0.0.1:8787").status, 200);
  EXPECT_EQ(with_host("[::1]:8787", "http://[::1]:8787").status, 200);
  EXPECT_EQ(with_host("localhost", "http://localhost").status, 200);
  EXPECT_EQ(with_host("localhost:443", "http://localhost:443").status, 200);
  EXPECT_EQ(with_host("127.0.0.1", "https://play.test").status, 200);
  expect_problem(with_host("127.0.0.1:8787", "http://127.0.0.1:9999"), 403, "forbidden");
  for (const char* scheme : {"ftp", "chrome-extension", "httpx", "ws", ""})
    expect_problem(with_host("127.0.0.1:8787", std::string(scheme) + "://127.0.0.1:8787"), 403, "forbidden");
  expect_problem(with_host("evil.test:8787", "http://evil.test:8787"), 421, "misdirected");
  for (const std::string& host : std::vector<std::string>{
           "", "[x]evil.test", "[::1]evil.test", "[::1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
           "play.test:80:80", "play.test/", "user@play.test", "127.0.0.1.evil.test", "1.2.3", "999.1.1.1",
           "localhost.evil.test", std::string("[::1\0.evil.test]", 17)})
    expect_problem(with_host(host, "http://" + host), 421, "misdirected");
}

TEST_F(ServiceTest, RefusesBodiesThatAreNoObjectOfFields) {
  for (std::string body : {"", "[]", "1", "{", "{}x", R"({"data":1})", R"({"data":{"data":{}}})", "{\"a\":\"\xff\"}"}) {
    SCOPED_TRACE(body);
    expect_problem(send("POST", "/spaces", body), 400, "invalid_request");
  }
  std::string deep(2000, '[');
  expect_problem(send("POST", "/spaces", "{\"a\":" + deep + std::string(2000, ']') + "}"), 400, "invalid_request");
  expect_problem(send("POST", "/spaces", "{}", {{"Content-Type", "text/plain"}}), 415, "unsupported_media_type");
  EXPECT_EQ(send("POST", "/spaces", "{}", {{"Content-Type", "Application/JSON; charset=utf-8"}}).status, 200);
}

TEST_F(ServiceTest, KindsAreThoseOfTheirCollection) {
  EXPECT_EQ(send("POST", "/threads", R"({"kind":"collab"})").status, 200);
  expect_problem(send("POST", "/threads", R"({"kind":"bug-report"})"), 400, "invalid_request");
  expect_problem(send("POST", "/threads", R"({"data":{"kind":1}})"), 400, "invalid_request");
  EXPECT_EQ(send("POST", "/domain_mail", R"({"kind":"bug-report"})").status, 200);
  EXPECT_EQ(send("POST", "/agents", R"({"kind":"anything"})").status, 200);
  auto id = text(record(send("POST", "/threads", "{}")), "id");
  expect_problem(send("PATCH", "/threads/" + id, R"({"kind":"x"})"), 400, "invalid_request");
}

TEST_F(ServiceTest, TellsWhatItCanDo) {
  auto capabilities = json(send("GET", ""));
  EXPECT_EQ(capabilities.find("collections")->array()->size(), 8u);
}

TEST_F(ServiceTest, ARecordOfManyFieldsIsHandledInReasonableWork) {
  std::string body = "{\"data\":{";
  for (int i = 0; i < 1500; ++i) body += "\"" + std::to_string(i) + "\":1,";
  body += "\"z\":1},\"z\":2}";
  auto created = record(send("POST", "/spaces", body));
  EXPECT_EQ(created.size(), 4u + 1501u);
  EXPECT_EQ(created.find("z")->integer(), 2);
}

}  // namespace
}  // namespace playfs::service
