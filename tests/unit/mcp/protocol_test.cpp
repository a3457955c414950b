#include "mcp/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/json.h"

namespace playfs::mcp {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

class Protocols : public testing::Test {
 protected:
  /// The only reply to a line.
  std::string reply(const std::string& line) {
    const Received received = protocol_.take(line);
    EXPECT_THAT(received.requests, IsEmpty());
    EXPECT_THAT(received.replies, SizeIs(1));
    return received.replies.empty() ? "" : received.replies.front();
  }
  void initialize(const std::string& version = "2025-11-25") {
    const std::string params = R"("params":{"protocolVersion":")" + version + R"(","capabilities":{}})";
    EXPECT_THAT(reply(R"({"jsonrpc":"2.0","id":0,"method":"initialize",)" + params + "}"),
                HasSubstr(R"("id":0,"result":{"protocolVersion":")" + version));
  }
  static std::string request(const std::string& method, const std::string& params, const std::string& id = "1") {
    return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method + R"(","params":{)" + params + "}}";
  }

  Protocol protocol_{{"playfs", "1", "Be careful"}};
};

TEST_F(Protocols, SettlesOnTheVersionThatTheClientWants) {
  for (const char* version : {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}) initialize(version);
}

TEST_F(Protocols, OffersTheNewestVersionWithSessionsForOneThatItDoesNotKnow) {
  for (const char* version : {"1999-01-01", "2026-07-28", ""})
    EXPECT_THAT(reply(request("initialize", R"("protocolVersion":")" + std::string(version) + '"')),
                HasSubstr(R"("protocolVersion":"2025-11-25")"));
  EXPECT_THAT(reply(request("initialize", "")), HasSubstr("-32602"));
}

TEST_F(Protocols, NeedsAVersionBeforeItServes) {
  EXPECT_THAT(reply(request("tools/list", "")), HasSubstr("-32602"));
  EXPECT_THAT(reply(request("ping", "")), HasSubstr(R"("result":{})"));
  initialize();
  EXPECT_THAT(protocol_.take(request("tools/list", "")).requests, SizeIs(1));
}

TEST_F(Protocols, WithoutASessionEachRequestNamesItsVersion) {
  const Received received = protocol_.take(request("tools/list", kMeta));
  ASSERT_THAT(received.requests, SizeIs(1));
  EXPECT_EQ(received.requests.front().era, Era::stateless);
  const std::string line = protocol_.result(received.requests.front(), {{"tools", Json::Array()}});
  for (const char* part : {R"("resultType":"complete")", R"("ttlMs":)", R"("cacheScope":"public")",
                           R"("_meta":{"io.modelcontextprotocol/serverInfo":{"name":"playfs","version":"1"}})"})
    EXPECT_THAT(line, HasSubstr(part));
  EXPECT_THAT(reply(request("tools/list", "")), HasSubstr("-32602")) << "nothing is remembered";
}

TEST_F(Protocols, OtherVersionsAreRefusedWithThoseThereAre) {
  std::string meta = kMeta;
  meta.replace(meta.find("2026-07-28"), 10, "2099-01-01");
  EXPECT_THAT(reply(request("tools/list", meta)),
              HasSubstr(R"("code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],)"
                        R"("requested":"2099-01-01"})"));
}

TEST_F(Protocols, CapabilitiesAreRequired) {
  EXPECT_THAT(reply(request("tools/list", R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"})")),
              HasSubstr("-32602"));
  EXPECT_THAT(reply(request("tools/list", R"("_meta":5)")), HasSubstr("-32602"));
}

TEST_F(Protocols, ServesBothErasAtOnce) {
  initialize();
  EXPECT_EQ(protocol_.take(request("tools/list", kMeta)).requests.at(0).era, Era::stateless);
  const Request with_session = protocol_.take(request("tools/list", "")).requests.at(0);
  EXPECT_EQ(with_session.era, Era::sessions);
  EXPECT_THAT(protocol_.result(with_session, {}), Not(HasSubstr("resultType")));
}

TEST_F(Protocols, MethodsBelongToTheirEra) {
  EXPECT_THAT(reply(request("server/discover", kMeta)), HasSubstr(R"("supportedVersions":["2026-07-28"])"));
  EXPECT_THAT(reply(request("ping", kMeta)), HasSubstr("-32601"));
  initialize();
  EXPECT_THAT(reply(request("server/discover", "")), HasSubstr("-32601"));
  for (const char* method : {"prompts/list", "subscriptions/listen", "logging/setLevel", "", "tools"})
    EXPECT_THAT(reply(request(method, "")), HasSubstr("-32601"));
}

TEST_F(Protocols, IdsComeBackAsTheyWere) {
  for (const char* id : {"7", "\"a b\"", "123456789012345678901234567890", "-1", "\"\""})
    EXPECT_THAT(reply(request("ping", "", id)), HasSubstr(R"({"jsonrpc":"2.0","id":)" + std::string(id) + ","));
  const std::string huge = '"' + std::string(kLongestId + 1, 'x') + '"';
  for (const std::string& id : {std::string("null"), std::string("{}"), std::string("true"), huge})
    EXPECT_THAT(reply(request("ping", "", id)), HasSubstr(R"({"jsonrpc":"2.0","error":{"code":-32600)"));
}

TEST_F(Protocols, WhatIsNoRequestIsRefusedOrIgnored) {
  EXPECT_THAT(reply("{"), HasSubstr("-32700"));
  EXPECT_THAT(reply("\"\xff\""), HasSubstr("-32700"));
  EXPECT_THAT(reply(std::string(100'000, '[')), HasSubstr("-32700"));
  for (const char* line : {"5", R"({"jsonrpc":"1.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1})",
                           R"({"jsonrpc":"2.0","id":1,"method":7})", "[]", "[{}]"})
    EXPECT_THAT(reply(line), HasSubstr("-32600")) << line;
  EXPECT_THAT(reply(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})"), HasSubstr("-32602"));
  for (const char* line : {R"({"jsonrpc":"2.0","id":1,"result":{}})", R"({"jsonrpc":"2.0","method":"unknown"})",
                           R"({"jsonrpc":"2.0","method":"notifications/cancelled"})"}) {
    const Received received = protocol_.take(line);
    EXPECT_TRUE(received.replies.empty() && received.requests.empty() && received.cancelled.empty()) << line;
  }
}

TEST_F(Protocols, CancellationNamesARequest) {
  const Received received =
      protocol_.take(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x","reason":"y"}})");
  EXPECT_EQ(received.cancelled, std::vector<Json>{Json("x")});
}

TEST_F(Protocols, OnlyOneRevisionHasBatches) {
  const std::string batch = "[" + request("ping", "", "1") + "," + request("ping", "", "2") + "]";
  initialize();
  EXPECT_THAT(reply(batch), HasSubstr("-32600"));
  initialize("2025-03-26");
  EXPECT_THAT(protocol_.take(batch).replies, SizeIs(2));
  EXPECT_THAT(reply("[]"), HasSubstr("-32600"));
}

TEST_F(Protocols, MissingResourcesHaveTheCodeOfTheirEra) {
  const Error error{ErrorCode::not_found, "no"};
  EXPECT_THAT(Protocol::failure(protocol_.take(request("resources/read", kMeta)).requests.at(0), error),
              HasSubstr("-32602"));
  initialize();
  EXPECT_THAT(Protocol::failure(protocol_.take(request("resources/read", "")).requests.at(0), error),
              HasSubstr("-32002"));
}

TEST_F(Protocols, ProgressNamesItsToken) {
  initialize();
  const Request request =
      protocol_.take(Protocols::request("tools/call", R"("_meta":{"progressToken":"t"})")).requests.at(0);
  EXPECT_THAT(Protocol::progress(request, 1, 4, "Uploading"),
              HasSubstr(R"("method":"notifications/progress","params":{"progressToken":"t","progress":1)"));
}

}  // namespace
}  // namespace playfs::mcp
