#include "fixture.h"

namespace playfs::service {
namespace {

class ConditionalTest : public ServiceTest {
 protected:
  HttpResponse get(const std::string& path, const std::string& known = {}) {
    HttpHeaders headers;
    if (!known.empty()) headers.add("If-None-Match", known);
    return send("GET", path, {}, headers);
  }
  static std::string tag(const HttpResponse& response) {
    return std::string(response.headers.get("ETag").value_or("no tag"));
  }
};

TEST_F(ConditionalTest, ARecordThatDidNotChangeIsNotSentAgain) {
  std::string path = "/projects/" + text(record(send("POST", "/projects", "{}")), "id");
  std::string known = tag(get(path));
  ASSERT_TRUE(known.starts_with('"') && known.ends_with('"')) << known;
  for (const std::string& sent : {known, "W/" + known, "\"x\", " + known, std::string("*")}) {
    auto again = get(path, sent);
    EXPECT_EQ(again.status, 304) << sent;
    EXPECT_TRUE(again.body.empty());
    EXPECT_EQ(tag(again), known);
  }
  EXPECT_EQ(get(path, "\"x\"").status, 200);
  send("PATCH", path, R"({"a":1})");
  auto changed = get(path, known);
  EXPECT_EQ(changed.status, 200);
  EXPECT_NE(tag(changed), known);
}

TEST_F(ConditionalTest, APageChangesWithItsRecordsOnly) {
  auto id = text(record(send("POST", "/projects", "{}")), "id");
  std::string known = tag(get("/projects"));
  send("POST", "/threads", "{}");
  EXPECT_EQ(get("/projects", known).status, 304);
  send("PATCH", "/projects/" + id, R"({"a":1})");
  std::string patched = tag(get("/projects", known));
  EXPECT_NE(patched, known);
  send("POST", "/projects", "{}");
  EXPECT_EQ(get("/projects", patched).status, 200);
  EXPECT_EQ(get("", tag(get(""))).status, 304);
}

TEST_F(ConditionalTest, RevisionsAndChunksMayBeKeptForEverAndNothingElse) {
  for (const Collection& collection : all_collections()) {
    std::string name(collection.name);
    auto created = send("POST", "/" + name, "{}");
    auto answer = get("/" + name + "/" + text(record(created), "id"));
    bool for_ever = name == "revisions" || name == "file_chunks";
    EXPECT_EQ(answer.headers.get("Cache-Control"),
              for_ever ? "public, max-age=31536000, immutable" : "public, no-cache");
    EXPECT_EQ(get("/" + name).headers.get("Cache-Control"), "public, no-cache");
  }
  EXPECT_EQ(get("/revisions/none").headers.get("Cache-Control"), "no-store");
}

TEST_F(ConditionalTest, PagesOfOtherSitesMayReadAndNotWrite) {
  auto created = send("POST", "/projects", "{}");
  EXPECT_FALSE(created.headers.get("Access-Control-Allow-Origin"));
  std::string path = "/projects/" + text(record(created), "id");
  for (std::string readable : {std::string(), std::string("/projects"), path, std::string("/projects/none")})
    EXPECT_EQ(get(readable).headers.get("Access-Control-Allow-Origin"), "*") << readable;
  EXPECT_FALSE(send("PATCH", path, "{}").headers.get("Access-Control-Allow-Origin"));
  for (std::string asked : {std::string(), std::string("/projects"), path}) {
    auto answer = send("OPTIONS", asked);
    EXPECT_EQ(answer.status, 204);
    EXPECT_EQ(answer.headers.get("Access-Control-Allow-Methods"), "GET, HEAD, OPTIONS");
  }
}

TEST_F(ConditionalTest, PagesOfOtherSitesDoNotReadWhatOnlyThisNetworkCan) {
  for (std::string host : {"127.0.0.1:8787", "localhost:8787", "[::1]", "192.168.1.5", "dev.localhost"})
    for (std::string method : {"GET", "OPTIONS"}) {
      auto answer = send(method, "/projects", {}, {{"Host", host}});
      EXPECT_EQ(answer.status, method == "GET" ? 200 : 204);
      for (const auto& [name, value] : answer.headers) EXPECT_FALSE(name.starts_with("Access-Control")) << host;
    }
}

}  // namespace
}  // namespace playfs::service
