// Sign-in by email. Only on a site of our own, where the mail can be read.
#include "base/clock.h"
#include "site.h"

namespace playfs::conformance {
namespace {

class SignIn : public testing::Test {
 protected:
  void SetUp() override {
    if (!site.is_own()) GTEST_SKIP() << "mail of somebody else";
  }
  Response request_code(const std::string& email) { return site.account("request-code", JsonObject{{"email", email}}); }
  Response verify(const std::string& email, const std::string& code) {
    return site.account("verify-code", JsonObject{{"email", email}, {"code", code}});
  }
  Site& site = Site::under_test();
};

TEST_F(SignIn, RequestCodeSaysUntilWhenTheCodeIsGood) {
  Response response = request_code("one@example.org");
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_EQ(response.member("success").boolean(), true);
  EXPECT_TRUE(response.member("requiresCodeEntry").boolean());
  EXPECT_TRUE(parse_iso8601(text_field(response.body, "expiresAt"))) << response.text;
  EXPECT_FALSE(site.mailed_code("one@example.org").empty()) << "no mail was sent";
}

TEST_F(SignIn, VerifyCodeCreatesTheAccountAndIssuesAKey) {
  request_code("two@example.org");
  Response response = verify("two@example.org", site.mailed_code("two@example.org"));
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_EQ(response.member("success").boolean(), true);
  EXPECT_EQ(text_field(response.body, "email"), "two@example.org");
  EXPECT_EQ(response.member("isNewUser").boolean(), true);
  HttpHeaders key{{"Authorization", "Bearer " + text_field(response.body, "apiKey")}};
  site.create("agents", JsonObject{}, key);

  request_code("two@example.org");
  Response again = verify("two@example.org", site.mailed_code("two@example.org"));
  EXPECT_EQ(again.member("isNewUser").boolean(), false) << again.text;
}

TEST_F(SignIn, AnInvalidCodeIsRefused) {
  request_code("three@example.org");
  Response response = verify("three@example.org", "00000000");
  expect_refusal(response);
  EXPECT_TRUE(response.member("apiKey").is_null());
}

TEST_F(SignIn, AUsedCodeIsRefused) {
  request_code("four@example.org");
  std::string code = site.mailed_code("four@example.org");
  EXPECT_EQ(verify("four@example.org", code).status, 200);
  expect_refusal(verify("four@example.org", code));
}

TEST_F(SignIn, WhatIsNoAddressIsRefused) {
  for (const char* email : {"", "nobody", "a b@example.org"}) expect_refusal(request_code(email));
}

TEST_F(SignIn, TooManyRequestsAreAskedToWait) {
  Response response;
  for (int i = 0; i < 50 && response.status != 429; ++i) response = request_code("five@example.org");
  EXPECT_EQ(response.status, 429);
  expect_refusal(response);
  EXPECT_TRUE(response.headers.get("Retry-After"));
}

}  // namespace
}  // namespace playfs::conformance
