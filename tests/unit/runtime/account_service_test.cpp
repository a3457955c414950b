#include "runtime/account_service.h"

#include <utility>

#include <gtest/gtest.h>

#include "support/test_io.h"
#include "wire/json.h"

namespace playfs::runtime {
namespace {

/// Answers each request at once with the same text.
class OneAnswer final : public net::Transport {
 public:
  OneAnswer(Result<HttpResponse> answer, HttpRequest& seen) : answer_(std::move(answer)), seen_(seen) {}
  void send(HttpRequest request, net::Deadline, CancelToken, Callback<HttpResponse> done) override {
    seen_ = std::move(request);
    done(answer_);
  }
  [[nodiscard]] const std::string& origin() const override { return origin_; }

 private:
  const std::string origin_ = "https://play.example.org";
  const Result<HttpResponse> answer_;
  HttpRequest& seen_;
};

class Account : public testing::Test {
 protected:
  AccountService answering(Result<HttpResponse> answer) {
    return AccountService(std::make_unique<OneAnswer>(std::move(answer), seen_), clock_);
  }
  AccountService answering(int status, std::string body, HttpHeaders headers = {}) {
    return answering(HttpResponse{status, std::move(headers), std::move(body)});
  }
  Result<AccountService::NewKey> verify(int status, std::string body) {
    return answering(status, std::move(body)).verify_code("ada@example.org", "1234");
  }

  SystemClock clock_;
  HttpRequest seen_;
};

TEST_F(Account, AsksAsTheDocumentSays) {
  auto expires = answering(200, R"({"success": true, "requiresCodeEntry": true, "expiresAt": "2026-11-26T12:00:00Z"})")
                     .request_code("ada@example.org");
  ASSERT_TRUE(expires && *expires);
  EXPECT_EQ(format_iso8601(**expires).substr(0, 16), "2026-11-26T12:00");
  EXPECT_EQ(seen_.method + ' ' + seen_.target, "POST /api/auth/agent/request-code");
  EXPECT_EQ(seen_.headers.get("Content-Type"), "application/json");
  EXPECT_FALSE(seen_.headers.get("Authorization"));
  EXPECT_EQ(seen_.body, R"({"email":"ada@example.org"})");

  auto key = verify(200, R"({"success": true, "email": "x", "apiKey": "k-1", "isNewUser": true, "more": [1]})");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->api_key, "k-1");
  EXPECT_TRUE(key->is_new_user);
  EXPECT_EQ(seen_.target, "/api/auth/agent/verify-code");
  EXPECT_EQ(seen_.body, R"({"email":"ada@example.org","code":"1234"})");
}

TEST_F(Account, ToleratesWhatIsLeftOut) {
  auto expires = answering(200, "{}").request_code("ada@example.org");
  ASSERT_TRUE(expires);
  EXPECT_FALSE(*expires);
  EXPECT_TRUE(answering(200, R"({"expiresAt": "soon"})").request_code("ada@example.org"));
  EXPECT_EQ(verify(201, R"({"apiKey": "k"})")->api_key, "k");
}

TEST_F(Account, KnowsAWrongCodeHoweverItIsSaid) {
  for (auto [status, body] : {std::pair(401, R"({"error": "no", "code": "unauthorized", "message": "m"})"),
                              std::pair(400, R"({"error": "invalid code"})"), std::pair(200, R"({"success": false})")})
    EXPECT_EQ(verify(status, body).error().code, ErrorCode::unauthorized) << status;
}

TEST_F(Account, TakesNoKeyThatCouldBreakAHeaderOrTheFile) {
  for (const char* key : {R"("")", R"("a b")", R"("a\r\nX: y")", R"("ключ")", R"("a\u0000")", "17", "null", "{}"})
    EXPECT_EQ(verify(200, std::string(R"({"apiKey": )") + key + "}").error().code, ErrorCode::protocol) << key;
  EXPECT_EQ(verify(200, R"({"apiKey": ")" + std::string(5000, 'k') + "\"}").error().code, ErrorCode::protocol);
  for (const char* body : {"", "[]", "no JSON", "\"text\""})
    EXPECT_EQ(verify(200, body).error().code, ErrorCode::protocol) << body;
}

TEST_F(Account, ReportsWhatTheServiceSays) {
  auto limited = answering(429, R"({"error": "e", "code": "rate_limited", "message": "m", "retry_after": 90})");
  auto error = limited.request_code("ada@example.org").error();
  EXPECT_EQ(error.code, ErrorCode::rate_limited);
  EXPECT_EQ(error.retry_after, std::chrono::seconds(90));
  error =
      answering(429, "", {{"Retry-After", "Thu, 26 Nov 2026 12:01:00 GMT"}, {"Date", "Thu, 26 Nov 2026 12:00:00 GMT"}})
          .request_code("ada@example.org")
          .error();
  EXPECT_EQ(error.retry_after, std::chrono::seconds(60));
  EXPECT_EQ(answering(404, "<html>").request_code("ada@example.org").error().code, ErrorCode::not_found);
  EXPECT_EQ(answering(302, "", {{"Location", "https://evil.example"}}).request_code("a@b").error().code,
            ErrorCode::protocol);
  EXPECT_EQ(answering(fail(ErrorCode::unreachable, "gone")).verify_code("a@b", "1").error().code,
            ErrorCode::unreachable);
}

TEST(AccountServiceOf, IsTheSiteUnlessAnotherIsNamedAndNeverPlain) {
  test::TestIo test;
  auto of = [&](const char* site, const char* account) {
    Settings settings;
    if (*account != '\0') {
      EXPECT_TRUE(settings.set(Settings::Layer::user, "account_url", account, site));
    }
    auto found = account_service_of(*parse_source(site, {}, {}, test.io), settings, {}, test.io);
    return found ? found->origin : std::string(name_of(found.error().code));
  };
  EXPECT_EQ(of("https://example.org", ""), "https://example.org");
  EXPECT_EQ(of("http://127.0.0.1:8787", ""), "http://127.0.0.1:8787");
  EXPECT_EQ(of("https://example.org", "https://account.example.org/"), "https://account.example.org");
  EXPECT_EQ(of("http://example.org", ""), "not_permitted");
  EXPECT_EQ(of("http://example.org", "https://account.example.org"), "not_permitted");
  EXPECT_EQ(of("https://example.org", "http://account.example.org"), "not_permitted");
  EXPECT_EQ(of("https://example.org", "local:default"), "invalid_argument");
}

}  // namespace
}  // namespace playfs::runtime
