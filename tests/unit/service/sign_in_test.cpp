#include <sys/stat.h>

#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/text.h"
#include "fixture.h"
#include "service/outbox.h"

namespace playfs::service {
namespace {

class Letterbox final : public Mailer {
 public:
  Status send(const Mail& mail) override {
    mails.push_back(mail);
    return {};
  }
  std::vector<Mail> mails;
};

class SignInTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    sign_in.emplace(*store, letterbox, clock, random);
    ServiceOptions options;
    options.site_hosts = {"play.test"};
    service = std::make_unique<Service>(*store, *store, std::move(options), &*sign_in);
  }

  HttpResponse call(const std::string& step, const std::string& body, const std::string& address = "192.0.2.1",
                    const std::string& type = "application/json") {
    HttpRequest request{"POST", "/api/auth/agent/" + step, {{"Host", "play.test"}, {"Content-Type", type}}, body};
    return service->handle(request, {address});
  }
  HttpResponse request_code(const std::string& email, const std::string& address = "192.0.2.1") {
    return call("request-code", R"({"email":")" + email + "\"}", address);
  }
  HttpResponse verify(const std::string& email, const std::string& code, const std::string& address = "192.0.2.1") {
    return call("verify-code", R"({"email":")" + email + R"(","code":")" + code + "\"}", address);
  }
  /// The code in the newest mail, as a person reads it.
  std::string mailed_code() {
    const std::string& text = letterbox.mails.back().text;
    auto begin = text.find("code is ") + 8;
    return text.substr(begin, text.find('\n') - begin);
  }

  Letterbox letterbox;
  std::optional<SignIn> sign_in;
};

TEST_F(SignInTest, ACodeByMailBecomesAKeyThatOwnsRecords) {
  auto asked = json(request_code("Ada@Example.org"));
  EXPECT_EQ(asked.find("success")->boolean(), true);
  EXPECT_EQ(asked.find("requiresCodeEntry")->boolean(), true);
  EXPECT_EQ(parse_iso8601(text(asked, "expiresAt"))->seconds(), clock.wall().seconds() + 600);
  ASSERT_EQ(letterbox.mails.size(), 1u);
  EXPECT_EQ(letterbox.mails[0].to, "ada@example.org");

  auto signed_in = json(verify("ada@example.org", mailed_code()));
  EXPECT_EQ(signed_in.find("success")->boolean(), true);
  EXPECT_EQ(signed_in.find("isNewUser")->boolean(), true);
  EXPECT_EQ(text(signed_in, "email"), "ada@example.org");
  HttpHeaders key{{"Authorization", "Bearer " + text(signed_in, "apiKey")}};
  auto path = "/revisions/" + text(record(send("POST", "/revisions", "{}", key)), "id");
  EXPECT_EQ(send("PATCH", path, "{}", key).status, 200);

  request_code("ada@example.org");
  auto again = json(verify("ada@example.org", mailed_code()));
  EXPECT_EQ(again.find("isNewUser")->boolean(), false);
  HttpHeaders second{{"Authorization", "Bearer " + text(again, "apiKey")}};
  EXPECT_EQ(send("PATCH", path, "{}", second).status, 200);
}

TEST_F(SignInTest, ACodeIsReadHoweverItWasCopied) {
  request_code("ada@example.org");
  std::string code = to_lower(mailed_code());
  code.erase(code.find('-'), 1);
  for (char& c : code)
    if (c == '0') c = 'o';
  EXPECT_EQ(verify("ADA@example.org", " " + code).status, 200);
}

TEST_F(SignInTest, ACodeIsGoodOnce) {
  request_code("ada@example.org");
  std::string code = mailed_code();
  EXPECT_EQ(verify("ada@example.org", code).status, 200);
  expect_problem(verify("ada@example.org", code), 401, "unauthorized");
}

TEST_F(SignInTest, ACodeIsGoodForItsAddressOnly) {
  request_code("ada@example.org");
  expect_problem(verify("bob@example.org", mailed_code()), 401, "unauthorized");
}

TEST_F(SignInTest, ACodeExpires) {
  request_code("ada@example.org");
  clock.advance(std::chrono::minutes(10));
  expect_problem(verify("ada@example.org", mailed_code()), 401, "unauthorized");
}

TEST_F(SignInTest, TheTwoNewestCodesAreGood) {
  std::vector<std::string> codes;
  for (int i = 0; i < 3; ++i) {
    request_code("ada@example.org");
    codes.push_back(mailed_code());
  }
  expect_problem(verify("ada@example.org", codes[0]), 401, "unauthorized");
  EXPECT_EQ(verify("ada@example.org", codes[1]).status, 200);
  expect_problem(verify("ada@example.org", codes[2]), 401, "unauthorized");
}

TEST_F(SignInTest, FiveAttemptsWhileACodeLives) {
  request_code("ada@example.org");
  for (int i = 0; i < 4; ++i) expect_problem(verify("ada@example.org", "XXXXXXXX"), 401, "unauthorized");
  EXPECT_EQ(verify("ada@example.org", mailed_code()).status, 200);
  request_code("ada@example.org");
  expect_problem(verify("ada@example.org", mailed_code()), 429, "rate_limited");
  clock.advance(std::chrono::minutes(10));
  request_code("ada@example.org");
  EXPECT_EQ(verify("ada@example.org", mailed_code()).status, 200);
}

TEST_F(SignInTest, AStrangerTakesNothingFromTheOwnerOfAnAddress) {
  request_code("ada@example.org", "192.0.2.1");
  const std::string code = mailed_code();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(request_code("ada@example.org", "198.51.100.7").status, 200);
  expect_problem(request_code("ada@example.org", "198.51.100.7"), 429, "rate_limited");
  for (int i = 0; i < 5; ++i)
    expect_problem(verify("ada@example.org", "XXXXXXXX", "198.51.100.7"), 401, "unauthorized");
  expect_problem(verify("ada@example.org", code, "198.51.100.7"), 429, "rate_limited");
  EXPECT_EQ(verify("ada@example.org", code, "192.0.2.1").status, 200);
  EXPECT_EQ(request_code("ada@example.org", "192.0.2.1").status, 200);
  EXPECT_EQ(verify("ada@example.org", mailed_code(), "192.0.2.9").status, 200) << "asked for here, typed there";
}

TEST_F(SignInTest, OneOfManyRacersGetsTheKey) {
  request_code("ada@example.org");
  std::string code = mailed_code();
  std::atomic<int> keys = 0;
  std::vector<std::thread> racers;
  for (int i = 0; i < 8; ++i) racers.emplace_back([&] { keys += verify("ada@example.org", code).status == 200; });
  for (auto& racer : racers) racer.join();
  EXPECT_EQ(keys, 1);
}

TEST_F(SignInTest, StrangersNeitherLockAnOwnerOutNorFloodTheirMailbox) {
  int strangers = 0;
  auto flood = [&] {
    for (int last = strangers + 50; strangers < last; ++strangers) {
      const std::string address = "203.0." + std::to_string(strangers / 256) + '.' + std::to_string(strangers % 256);
      EXPECT_EQ(request_code("ada@example.org", address).status, 200);
    }
  };
  flood();
  EXPECT_EQ(letterbox.mails.size(), 10u);
  clock.advance(std::chrono::minutes(4));
  auto asked = json(request_code("ada@example.org"));
  EXPECT_EQ(letterbox.mails.size(), 10u) << "the newest code is good for long enough";
  EXPECT_EQ(parse_iso8601(text(asked, "expiresAt"))->seconds(), clock.wall().seconds() + 600);
  EXPECT_EQ(verify("ada@example.org", mailed_code()).status, 200);

  flood();
  EXPECT_EQ(letterbox.mails.size(), 11u) << "signing in voided all codes";
  EXPECT_EQ(verify("ada@example.org", mailed_code()).status, 200);
  for (std::size_t mails = 12; mails < 24; ++mails) {
    flood();
    EXPECT_EQ(request_code("ada@example.org", "192.0.2." + std::to_string(mails)).status, 200);
    EXPECT_EQ(letterbox.mails.size(), mails) << "one in five minutes";
    clock.advance(std::chrono::minutes(5));
  }
  request_code("ada@example.org", "192.0.2.99");
  EXPECT_EQ(verify("ada@example.org", mailed_code(), "192.0.2.99").status, 200);
  request_code("bob@example.org", "192.0.2.99");
  EXPECT_EQ(letterbox.mails.back().to, "bob@example.org") << "other addresses get theirs";
}

TEST_F(SignInTest, StrangersDoNotLearnWhenAnOwnerSignsIn) {
  std::vector<std::string> answers[2];
  for (const bool owner_signs_in : {false, true}) {
    for (int i = 0; i < 12; ++i) request_code("ada@example.org", "198.51.100." + std::to_string(i));
    const std::string code = mailed_code(), stranger = owner_signs_in ? "203.0.113.1" : "203.0.113.2";
    for (int i = 0; i < 8; ++i) {
      clock.advance(std::chrono::seconds(1));
      if (owner_signs_in && i == 3) {
        EXPECT_EQ(verify("ada@example.org", code).status, 200);
      }
      const HttpResponse response = request_code("ada@example.org", stranger);
      std::string answer = std::to_string(response.status);
      if (response.status == 200)
        answer +=
            ' ' + std::to_string(parse_iso8601(text(json(response), "expiresAt"))->seconds() - clock.wall().seconds());
      answers[owner_signs_in].push_back(answer);
    }
    clock.advance(std::chrono::hours(2));
  }
  EXPECT_EQ(answers[0], answers[1]);
}

TEST_F(SignInTest, AClockSetBackDelaysNoMail) {
  for (int i = 0; i < 12; ++i) request_code("ada@example.org", "198.51.100." + std::to_string(i));
  ASSERT_EQ(letterbox.mails.size(), 10u);
  clock.set_wall({clock.wall().nanoseconds - 60'000'000'000});
  request_code("ada@example.org");
  EXPECT_EQ(letterbox.mails.size(), 11u);
}

TEST_F(SignInTest, AskingAndTryingAreLimited) {
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(request_code("a" + std::to_string(i) + "@example.org", "198.51.100.1").status, 200);
  expect_problem(request_code("b@example.org", "198.51.100.1"), 429, "rate_limited");
  for (int i = 0; i < 60; ++i)
    EXPECT_EQ(verify("x" + std::to_string(i / 5) + "@example.org", "XXXXXXXX", "203.0.113.1").status, 401);
  expect_problem(verify("x@example.org", "XXXXXXXX", "203.0.113.1"), 429, "rate_limited");
}

TEST_F(SignInTest, RefusesWhatIsNoAddressOrNoJson) {
  for (std::string email : {"", "ada", "@", "ada@", "@example.org", "a b@example.org", "a@b@c", "a@b>,<c@d",
                            "a@b.org\\r\\nBcc: all@example.org"})
    expect_problem(request_code(email), 400, "invalid_request");
  expect_problem(request_code(std::string(250, 'a') + "@b.org"), 400, "invalid_request");
  for (std::string body : {"", "[]", "{}", R"({"email":1})"})
    expect_problem(call("request-code", body), 400, "invalid_request");
  expect_problem(call("request-code", R"({"email":"a@b.org"})", "192.0.2.1", "text/plain"), 400, "invalid_request");
  EXPECT_TRUE(letterbox.mails.empty());
}

TEST_F(SignInTest, NeitherCodesNorKeysAreInTheStore) {
  request_code("ada@example.org");
  std::string code = mailed_code();
  std::string bare = code.substr(0, 4) + code.substr(5);
  auto files = [&] {
    std::string all;
    for (std::string name : {"playground.db", "playground.db-wal"})
      all += read_file(directory / name, 64 << 20).value_or("");
    return all;
  };
  EXPECT_NE(files().find("ada@example.org"), std::string::npos);
  EXPECT_EQ(files().find(bare), std::string::npos);
  std::string key = text(json(verify("ada@example.org", code)), "apiKey");
  EXPECT_EQ(files().find(key), std::string::npos);
}

TEST_F(SignInTest, OtherStepsAndMethods) {
  expect_problem(call("other", "{}"), 404, "not_found");
  HttpRequest get{"GET", "/api/auth/agent/request-code", {{"Host", "play.test"}}, {}};
  expect_problem(service->handle(get, {"192.0.2.1"}), 405, "method_not_allowed");
  serve({});
  expect_problem(request_code("ada@example.org"), 404, "not_found");
}

TEST_F(SignInTest, TheOutboxHoldsTheMailsForItsOwnerAlone) {
  Outbox outbox(directory / "outbox");
  ASSERT_TRUE(outbox.send({"a@example.org", "one", "first\n", "a client", {}}));
  ASSERT_TRUE(outbox.send({"b@example.org", "two", "second\n", "a client", {}}));
  EXPECT_EQ(read_file(directory / "outbox", 4096).value_or(""),
            "To: a@example.org\nSubject: one\n\nfirst\n\nTo: b@example.org\nSubject: two\n\nsecond\n\n");
  struct stat info {};
  ASSERT_EQ(stat((directory / "outbox").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace playfs::service
