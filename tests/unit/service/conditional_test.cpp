#include "fixture.h"
#include "service/site_hosts.h"

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
  const HttpHeaders public_host{{"Host", "play.example.org"}};
  auto created = send("POST", "/projects", "{}", public_host);
  EXPECT_FALSE(created.headers.get("Access-Control-Allow-Origin"));
  std::string path = "/projects/" + text(record(created), "id");
  for (std::string readable : {std::string(), std::string("/projects"), path, std::string("/projects/none")})
    EXPECT_EQ(send("GET", readable, {}, public_host).headers.get("Access-Control-Allow-Origin"), "*") << readable;
  EXPECT_FALSE(send("PATCH", path, "{}", public_host).headers.get("Access-Control-Allow-Origin"));
  for (std::string asked : {std::string(), std::string("/projects"), path}) {
    auto answer = send("OPTIONS", asked, {}, public_host);
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

TEST(SiteHosts, ArePublicOnlyWhereTheInternetFindsThem) {
  for (std::string host :
       {"play.example.org", "play.example.org:8443", "EXAMPLE.org", "example.org.", "203.0.113.5", "172.15.0.1",
        "172.32.0.1", "100.128.0.1", "[2a01:4f8::1]:80", "[2002:808:808::1]", "[2001:4860::1]", "[::ffff:203.0.113.5]",
        "local.example.org", "mylan.de", "xn--e1afmkfd.xn--p1ai", "10.0.0.1.example.org", "home.box"})
    EXPECT_TRUE(SiteHosts({host}).is_public(host)) << host;
  for (std::string address :
       {"127.0.0.1:8787", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.5:8787", "169.254.1.1",
        "100.64.0.1", "198.18.0.1", "192.0.0.1", "224.0.0.251", "255.255.255.255"})
    EXPECT_FALSE(SiteHosts({address}).is_public(address)) << address;
  for (std::string address :
       {"[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[fec0::1]", "[ff02::fb]", "[::ffff:10.0.0.1]", "[::10.0.0.1]",
        "[64:ff9b::a00:1]", "[2002:7f00:1::]", "[2002:c0a8:105::1]", "[2001:0:a00:1::]"})
    EXPECT_FALSE(SiteHosts({address}).is_public(address)) << address;
  for (std::string name : {"localhost",        "foo.localhost", "localhost.",   "nas",
                           "nas.local",        "NAS.Local.",    "play.lan",     "router.home.arpa",
                           "a.b.internal",     "play.test",     "box.home",     "git.corp",
                           "x.private",        "10.1",          "127.0.0.0x1",  "nas.local..",
                           "x.onion",          "x.alt",         "nas.localnet", "play.default.svc",
                           "fritz.box",        "nas.fritz.box", "x.ts.net",     "192.168.1.5.nip.io",
                           "10-0-0-1.sslip.io"})
    EXPECT_FALSE(SiteHosts({name}).is_public(name)) << name;
}

}  // namespace
}  // namespace playfs::service
