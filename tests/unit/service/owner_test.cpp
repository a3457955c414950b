#include "fixture.h"

namespace playfs::service {
namespace {

class OwnerTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    ServiceOptions options;
    options.steward_key = "the steward's own key";
    serve(options);
    ada = {{"Authorization", "Bearer " + key_of("ada@example.org")}};
    bob = {{"Authorization", "bearer " + key_of("bob@example.org")}};
    steward = {{"Authorization", "Bearer the steward's own key"}};
  }
  HttpHeaders ada, bob, steward;
};

TEST_F(OwnerTest, TheOwnerAndTheStewardMayCorrectARecordAndNobodyElse) {
  for (std::string collection : {"revisions", "file_chunks", "domain_mail"}) {
    std::string path = "/" + collection + "/" + text(record(send("POST", "/" + collection, R"({"a":1})", ada)), "id");
    expect_problem(send("PATCH", path, R"({"a":2})"), 403, "forbidden");
    expect_problem(send("PATCH", path, R"({"a":2})", bob), 403, "forbidden");
    EXPECT_EQ(record(send("PATCH", path, R"({"a":3})", ada)).find("a")->integer(), 3);
    EXPECT_EQ(record(send("PATCH", path, R"({"a":4})", steward)).find("a")->integer(), 4);
  }
}

TEST_F(OwnerTest, ARecordWithoutAnOwnerIsTheStewardsAlone) {
  std::string path = "/revisions/" + text(record(send("POST", "/revisions", "{}")), "id");
  expect_problem(send("PATCH", path, "{}"), 403, "forbidden");
  expect_problem(send("PATCH", path, "{}", ada), 403, "forbidden");
  EXPECT_EQ(send("PATCH", path, "{}", steward).status, 200);
}

TEST_F(OwnerTest, ForOpenCollectionsAnybodyMayPatch) {
  for (std::string collection : {"agents", "projects", "threads", "messages", "spaces"}) {
    std::string path = "/" + collection + "/" + text(record(send("POST", "/" + collection, "{}", ada)), "id");
    EXPECT_EQ(send("PATCH", path, R"({"a":1})").status, 200);
    EXPECT_EQ(send("PATCH", path, R"({"a":1})", bob).status, 200);
  }
}

TEST_F(OwnerTest, AnUnknownKeyIsRefusedForWritesAndIgnoredForReads) {
  for (std::string value : {"Bearer nobody's", "Bearer ", "Basic eDp5", ""}) {
    auto refused = send("POST", "/agents", "{}", {{"Authorization", value}});
    expect_problem(refused, 401, "unauthorized");
    EXPECT_EQ(refused.headers.get("WWW-Authenticate"), "Bearer");
  }
  EXPECT_EQ(send("GET", "/agents", {}, {{"Authorization", "Bearer nobody's"}}).status, 200);
}

TEST_F(OwnerTest, OnlyTheStewardSetsStateAndReplyOfMail) {
  for (std::string field : {"state", "owner_reply"}) {
    std::string body = "{\"" + field + "\":\"x\"}";
    expect_problem(send("POST", "/domain_mail", body), 403, "forbidden");
    expect_problem(send("POST", "/domain_mail", body, ada), 403, "forbidden");
    expect_problem(send("POST", "/domain_mail", "{\"data\":" + body + "}", ada), 403, "forbidden");
    std::string path = "/domain_mail/" + text(record(send("POST", "/domain_mail", R"({"subject":"s"})", ada)), "id");
    expect_problem(send("PATCH", path, body, ada), 403, "forbidden");
    auto answered = record(send("PATCH", path, body, steward));
    EXPECT_EQ(text(answered, field), "x");
    EXPECT_EQ(text(answered, "subject"), "s");
  }
  EXPECT_EQ(send("POST", "/spaces", R"({"state":"x"})").status, 200);
}

TEST_F(OwnerTest, APatchOfNothingIsNotFoundBeforeItIsForbidden) {
  expect_problem(send("PATCH", "/revisions/none", "{}"), 404, "not_found");
}

TEST_F(OwnerTest, WithoutAStewardNoKeyIsHis) {
  serve({});
  expect_problem(send("POST", "/agents", "{}", steward), 401, "unauthorized");
  expect_problem(send("POST", "/agents", "{}", {{"Authorization", "Bearer "}}), 401, "unauthorized");
}

TEST_F(OwnerTest, AnAccountKeepsItsNewestKeys) {
  std::string first = key_of("eve@example.org");
  for (int i = 1; i < kKeysPerAccount; ++i) {
    clock.advance(std::chrono::seconds(1));
    key_of("eve@example.org");
  }
  EXPECT_EQ(send("POST", "/agents", "{}", {{"Authorization", "Bearer " + first}}).status, 200);
  clock.advance(std::chrono::seconds(1));
  key_of("eve@example.org");
  EXPECT_EQ(send("POST", "/agents", "{}", {{"Authorization", "Bearer " + first}}).status, 401);
}

TEST_F(OwnerTest, AnIdempotencyKeyBelongsToItsAccount) {
  auto with_key = [](HttpHeaders headers) {
    headers.add("Idempotency-Key", "k");
    return headers;
  };
  auto first = record(send("POST", "/agents", "{}", with_key(ada)));
  EXPECT_EQ(record(send("POST", "/agents", "{}", with_key(ada), "192.0.2.200")), first);
  EXPECT_NE(record(send("POST", "/agents", "{}", with_key(bob))), first);
}

}  // namespace
}  // namespace playfs::service
