#include "support.h"

namespace playfs::remote {
namespace {

using namespace std::chrono_literals;

TEST_F(ClientTest, ReadsAreRepeatedUntilThePolicyEnds) {
  auto answer = get();
  transport.answer(0, fail(ErrorCode::unreachable, "gone"));
  EXPECT_EQ(transport.count(), 1u);  // not before its time
  executor.advance(250ms);
  ASSERT_EQ(transport.count(), 2u);
  transport.answer(1, 503, "<html>");
  executor.advance(500ms);
  ASSERT_EQ(transport.count(), 3u);
  transport.answer(2, 200, R"({"record":{"id":"a",)");  // cut off
  executor.advance(1s);
  ASSERT_EQ(transport.count(), 4u);
  EXPECT_FALSE(answer.given());
  transport.answer(3, fail(ErrorCode::timed_out, "slow"));
  EXPECT_TRUE(answer.is(ErrorCode::timed_out));
  EXPECT_FALSE(executor.until_next());
}

TEST_F(ClientTest, RepeatedRequestsAreTheSame) {
  auto answer = create("key-1");
  transport.answer(0, fail(ErrorCode::timed_out, "lost"));
  executor.advance(250ms);
  ASSERT_EQ(transport.count(), 2u);
  EXPECT_EQ(transport.request(1).headers.get("Idempotency-Key"), "key-1");
  EXPECT_EQ(transport.request(1).body, transport.request(0).body);
  transport.answer(1, 200, kRecord);
  EXPECT_TRUE(answer.ok());
}

TEST_F(ClientTest, APostWithoutAKeyIsSentOnce) {
  auto lost = create("");
  transport.answer(0, fail(ErrorCode::timed_out, "lost"));
  EXPECT_TRUE(lost.is(ErrorCode::timed_out));
  auto limited = create("");
  transport.answer(1, 429, R"({"retry_after":1})");
  EXPECT_TRUE(limited.is(ErrorCode::rate_limited));
  EXPECT_EQ(limited.error().retry_after, 1s);
}

TEST_F(ClientTest, ARefusalSaysNothingOfAnEarlierAttempt) {
  auto refused = create("key");
  transport.answer(0, 409, R"({"code":"conflict"})");
  EXPECT_TRUE(refused.is(ErrorCode::invalid_argument)) << "the only attempt";
  auto limited = create("key");
  transport.answer(1, 429, R"({"code":"rate_limited","retry_after":1})");
  executor.advance(30s);
  transport.answer(2, 403, R"({"code":"forbidden"})");
  EXPECT_TRUE(limited.is(ErrorCode::permission_denied)) << "a limit is a refusal too";
  auto in_doubt = create("key");
  transport.answer(3, fail(ErrorCode::timed_out, "no reply"));
  executor.advance(30s);
  transport.answer(4, 403, R"({"code":"forbidden"})");
  ASSERT_TRUE(in_doubt.is(ErrorCode::protocol));
  EXPECT_EQ(in_doubt.error().http_status, 403);
  EXPECT_NE(in_doubt.error().message.find("may have been carried out"), std::string::npos);
  auto read = get();
  transport.answer(5, 503, "");
  executor.advance(30s);
  transport.answer(6, 404, R"({"code":"not_found"})");
  EXPECT_TRUE(read.is(ErrorCode::not_found)) << "a read does nothing";
}

TEST_F(ClientTest, APatchIsRepeatedOnlyWhereItWasNotDone) {
  auto lost = patch();
  transport.answer(0, fail(ErrorCode::timed_out, "lost"));
  EXPECT_TRUE(lost.is(ErrorCode::timed_out));
  auto limited = patch();
  transport.answer(1, 429, R"({"retry_after":1})");
  EXPECT_FALSE(limited.given());
  executor.advance(2s);
  ASSERT_EQ(transport.count(), 3u);
  EXPECT_EQ(transport.request(2).headers.get("Idempotency-Key"), transport.request(1).headers.get("Idempotency-Key"));
  EXPECT_NE(transport.request(1).headers.get("Idempotency-Key"), transport.request(0).headers.get("Idempotency-Key"));
  transport.answer(2, 200, kRecord);
  EXPECT_TRUE(limited.ok());
}

TEST_F(ClientTest, APermitIsAskedForBeforeEachAttempt) {
  std::vector<bool> doubts;
  std::vector<Callback<void>> asked;
  Permit permit = [&](bool in_doubt, const CancelToken&, Callback<void> done) {
    doubts.push_back(in_doubt);
    asked.push_back(std::move(done));
  };
  Answer<Record> answer;
  client().create_record("messages", JsonObject{{"body", "b"}}, "key-1", {}, answer.callback(), {}, permit);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(transport.count(), 0u);
  asked[0]({});
  ASSERT_EQ(transport.count(), 1u);
  transport.answer(0, 429, "{}");
  executor.advance(3s);
  ASSERT_EQ(asked.size(), 2u);
  asked[1]({});
  ASSERT_EQ(transport.count(), 2u);
  transport.answer(1, 500, "{}");
  executor.advance(3s);
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(doubts, (std::vector{false, false, true}));
  asked[2](fail(ErrorCode::stale, "not any more"));
  executor.advance(0s);
  EXPECT_EQ(answer.code(), ErrorCode::stale);
  EXPECT_EQ(transport.count(), 2u);
}

TEST_F(ClientTest, APatchThatIsRightOnlyNowNeverWaits) {
  auto patch_now = [&] {
    Answer<Record> answer;
    client().patch_record_now("projects", "a", JsonObject{{"latest_revision", "r"}}, {}, answer.callback());
    return answer;
  };
  auto limited = patch_now();
  transport.answer(0, 429, R"({"retry_after":1})");
  EXPECT_TRUE(limited.is(ErrorCode::rate_limited));
  auto paused = patch_now();
  executor.advance(2s);
  EXPECT_TRUE(paused.is(ErrorCode::rate_limited));
  EXPECT_EQ(transport.count(), 1u);
  auto sent = patch_now();
  ASSERT_EQ(transport.count(), 2u);
  transport.answer(1, 200, kRecord);
  EXPECT_TRUE(sent.ok());
}

TEST_F(ClientTest, APauseHoldsForAllOfItsKind) {
  auto first = create("1"), second = create("2");
  transport.answer(0, 429, R"({"retry_after":5})");
  auto third = create("3");
  auto other_collection = create("4", {}, "messages");
  auto read = get();
  EXPECT_EQ(transport.count(), 4u);  // the third write waits; messages and reads have limits of their own
  transport.answer(1, 429, R"({"retry_after":7})");
  executor.advance(6900ms);
  EXPECT_EQ(transport.count(), 4u);
  executor.advance(5s);
  EXPECT_EQ(transport.count(), 7u);
  for (std::size_t i = 4; i < 7; ++i) transport.answer(i, 200, kRecord);
  EXPECT_TRUE(first.ok() && second.ok() && third.ok());
}

TEST_F(ClientTest, LongPausesAreReportedAndObeyedButForALookNowAndThen) {
  auto first = get();
  transport.answer(0, 429, "", {{"Retry-After", "86400"}});
  ASSERT_TRUE(first.is(ErrorCode::rate_limited));
  EXPECT_EQ(first.error().retry_after, 86400s);
  clock.advance(30s);
  auto second = get();
  executor.run_due();
  ASSERT_TRUE(second.is(ErrorCode::rate_limited));
  EXPECT_EQ(second.error().retry_after, 30s) << "when it is looked at";
  Answer<HttpResponse> raw;
  client().raw({"GET", "/agents", {}, ""}, {}, raw.callback());
  executor.run_due();
  EXPECT_TRUE(raw.is(ErrorCode::rate_limited));
  EXPECT_EQ(transport.count(), 1u);

  clock.advance(31s);
  auto looks = get(), waits = get();
  executor.run_due();
  ASSERT_EQ(transport.count(), 2u) << "one call looks";
  EXPECT_TRUE(waits.is(ErrorCode::rate_limited));
  transport.answer(1, 429, "", {{"Retry-After", "86000"}});
  EXPECT_TRUE(looks.is(ErrorCode::rate_limited));
  auto after = get();
  executor.run_due();
  EXPECT_TRUE(after.is(ErrorCode::rate_limited));
  ASSERT_EQ(transport.count(), 2u);
  EXPECT_TRUE(client().health().paused_until);

  client().ask_now();
  auto by_name = get();
  ASSERT_EQ(transport.count(), 3u) << "who asks by name is heard at once";
  transport.answer(2, 404, "");
  EXPECT_FALSE(client().health().paused_until) << "and what is answered otherwise ends the pause";
  auto last = get();
  EXPECT_EQ(transport.count(), 4u);
}

TEST_F(ClientTest, RetryAfterMayBeADate) {
  // The service's clock is far from ours; only the difference counts.
  auto answer = get();
  transport.answer(0, 429, "",
                   {{"Date", "Sun, 06 Nov 1994 08:49:37 GMT"}, {"Retry-After", "Sun, 06 Nov 1994 08:49:47 GMT"}});
  executor.advance(9900ms);
  EXPECT_EQ(transport.count(), 1u);
  executor.advance(1s);
  EXPECT_EQ(transport.count(), 2u);
}

TEST_F(ClientTest, AnEverLimitingServiceIsGivenUp) {
  auto answer = get();
  for (std::size_t i = 0; !answer.given() && i < 1000; ++i) {
    ASSERT_EQ(transport.count(), i + 1);
    transport.answer(i, 429, R"({"retry_after":0})");
    executor.advance(20s);
  }
  EXPECT_TRUE(answer.is(ErrorCode::rate_limited));
}

TEST_F(ClientTest, CancellingWorksWithTheTransportAndWhileWaiting) {
  CancelSource sending, waiting, before;
  auto first = get(sending.token());
  sending.cancel();
  EXPECT_TRUE(first.is(ErrorCode::interrupted));

  auto second = get(waiting.token());
  transport.answer(1, fail(ErrorCode::unreachable, "gone"));
  ASSERT_TRUE(executor.until_next());
  waiting.cancel();
  executor.run_due();  // no time has passed
  EXPECT_TRUE(second.is(ErrorCode::interrupted));

  before.cancel();
  auto third = get(before.token());
  executor.run_due();
  EXPECT_TRUE(third.is(ErrorCode::interrupted));
  executor.advance(1h);
  EXPECT_EQ(transport.count(), 2u);
}

TEST_F(ClientTest, ADroppedWaitIsAnswered) {
  auto answer = get();
  transport.answer(0, fail(ErrorCode::unreachable, "gone"));
  executor.drop_all();
  EXPECT_TRUE(answer.is(ErrorCode::interrupted));
}

TEST_F(ClientTest, AfterTheClientNothingIsSent) {
  auto waiting = get(), sent = get();
  transport.answer(0, fail(ErrorCode::unreachable, "gone"));
  drop_client();
  executor.advance(1s);
  EXPECT_TRUE(waiting.is(ErrorCode::interrupted));
  EXPECT_EQ(transport.count(), 2u);
  transport.answer(1, 200, kRecord);
  EXPECT_TRUE(sent.is(ErrorCode::interrupted));
}

TEST_F(ClientTest, ACallEndsWithinItsTimeWhateverIsRepeated) {
  ClientOptions options;
  options.retry.attempts = 100;
  options.retry.longest_call = 10s;
  client(options);
  auto answer = get();
  std::size_t sent = 0;
  for (int second = 0; second < 12 && !answer.given(); ++second) {
    if (transport.count() > sent) {
      executor.advance(3s);
      transport.answer(sent++, fail(ErrorCode::timed_out, "slow"));
    }
    executor.advance(1s);
  }
  EXPECT_TRUE(answer.is(ErrorCode::timed_out));
  EXPECT_LE(transport.count(), 3u);
}

TEST_F(ClientTest, AReadMayHaveLessTimeThanAWrite) {
  ClientOptions options;
  options.retry.attempts = 100;
  client(options).set_longest_read(10s);
  auto read = get(), write = create("key");
  EXPECT_EQ(client().unanswered()->left, 10s);
  executor.advance(11s);
  transport.answer(0, fail(ErrorCode::timed_out, "slow"));
  transport.answer(1, fail(ErrorCode::timed_out, "slow"));
  EXPECT_TRUE(read.is(ErrorCode::timed_out));
  EXPECT_EQ(client().unanswered()->left, 49s);
  EXPECT_FALSE(write.given());
}

TEST_F(ClientTest, OnlyWhatFoundNoConnectionIsUnsent) {
  auto unsent = [] {
    Error error{ErrorCode::unreachable, "connection refused"};
    error.is_unsent = true;
    return fail(std::move(error));
  };
  auto never = create("key"), once = create("key");
  for (std::size_t each = 0; each < 8; ++each) {
    const bool is_lost = each == 3;  // of the second
    transport.answer(each, is_lost ? fail(ErrorCode::timed_out, "lost") : unsent());
    executor.advance(8s);
  }
  ASSERT_TRUE(never.is(ErrorCode::unreachable));
  ASSERT_TRUE(once.is(ErrorCode::unreachable));
  EXPECT_TRUE(never.error().is_unsent);
  EXPECT_FALSE(once.error().is_unsent) << "an earlier attempt may have arrived";
}

class AwayTest : public ClientTest {
 protected:
  AwayTest() {
    ClientOptions options;
    options.retry.attempts = 1;
    options.breaker = {.patience = 5s, .attempts = 3, .probe_interval = 2s};
    client(options);
  }
  /// Sent, and not answered.
  void fail_one() {
    auto answer = get();
    transport.answer(transport.count() - 1, fail(ErrorCode::unreachable, "nobody there"));
    ASSERT_TRUE(answer.is(ErrorCode::unreachable));
  }
  void be_away() {
    for (int i = 0; i < 3; ++i) {
      fail_one();
      executor.advance(2s);
    }
  }
};

TEST_F(AwayTest, AServiceThatIsSilentIsAskedByOneCallNowAndThen) {
  be_away();
  fail_one();  // the probe
  const std::size_t sent = transport.count();
  for (int i = 0; i < 50; ++i) {
    auto refused = get();
    executor.run_due();
    EXPECT_TRUE(refused.is(ErrorCode::unreachable));
    EXPECT_NE(refused.error().message.find("nobody there"), std::string::npos);
  }
  EXPECT_EQ(transport.count(), sent) << "at once, and without asking";
  executor.advance(2s);
  auto probe = get(), other = get();
  executor.run_due();
  EXPECT_EQ(transport.count(), sent + 1);
  EXPECT_TRUE(other.is(ErrorCode::unreachable));
  transport.answer(sent, 200, kRecord);
  EXPECT_TRUE(probe.ok());
  auto next = get();
  EXPECT_EQ(transport.count(), sent + 2) << "back: everybody asks again";
  transport.answer(sent + 1, 200, kRecord);
  EXPECT_TRUE(next.ok());
}

TEST_F(AwayTest, AShortOutageRefusesNobody) {
  for (int i = 0; i < 20; ++i) fail_one();
  executor.advance(4s);
  auto answer = get();
  EXPECT_EQ(transport.count(), 21u);
  transport.answer(20, 200, kRecord);
  EXPECT_TRUE(answer.ok());
}

TEST_F(AwayTest, WhatHangsWhileOthersAreAnsweredIsNoOutage) {
  std::vector<Answer<Record>> hanging;
  for (int i = 0; i < 10; ++i) hanging.push_back(get());
  executor.advance(30s);
  auto answered = get();
  transport.answer(10, 200, kRecord);
  EXPECT_TRUE(answered.ok());
  for (std::size_t i = 0; i < 10; ++i) transport.answer(i, fail(ErrorCode::timed_out, "slow"));
  auto next = get();
  EXPECT_EQ(transport.count(), 12u);
  transport.answer(11, 200, kRecord);
  EXPECT_TRUE(next.ok());
}

TEST_F(AwayTest, AStatusIsAnAnswer) {
  for (int i = 0; i < 6; ++i) {
    auto answer = get();
    transport.answer(transport.count() - 1, 500, R"({"code":"internal","message":"broken"})");
    EXPECT_TRUE(answer.is(ErrorCode::unreachable));
    executor.advance(2s);
  }
  EXPECT_TRUE(client().health().reachable);
  auto next = get();
  EXPECT_EQ(transport.count(), 7u) << "nobody is refused";
  transport.answer(6, 503, R"({"code":"busy"})");  // the service's own words
  EXPECT_TRUE(client().health().reachable);
}

TEST_F(AwayTest, AGatewayStatusIsNotAnAnswer) {
  for (int i = 0; i < 3; ++i) {
    auto answer = get();
    transport.answer(transport.count() - 1, 502, "<html>Bad Gateway</html>");
    executor.advance(2s);
  }
  EXPECT_FALSE(client().health().reachable);
  auto probe = get(), refused = get();
  executor.run_due();
  EXPECT_EQ(transport.count(), 4u);
  EXPECT_TRUE(refused.is(ErrorCode::unreachable));
}

TEST_F(AwayTest, ASubjectIsNotRefusedForOthersFailures) {
  be_away();
  fail_one();  // the probe after silence; further requests are refused
  auto sick = get();
  executor.run_due();
  EXPECT_TRUE(sick.is(ErrorCode::unreachable));
  const std::size_t sent = transport.count();
  auto healthy = get({}, "b");
  ASSERT_EQ(transport.count(), sent + 1);
  transport.answer(sent, 200, R"({"record":{"id":"b"}})");
  EXPECT_TRUE(healthy.ok());
}

TEST_F(AwayTest, ManyWhoDidNotFailWaitForWhatTheFirstOnesFind) {
  be_away();
  std::size_t sent = transport.count();
  std::vector<Answer<Record>> healthy;
  auto ask = [&](int n) { healthy.push_back(get({}, "b" + std::to_string(n))); };
  for (int n = 0; n < 20; ++n) ask(n);
  executor.run_due();
  EXPECT_EQ(transport.count(), sent + 8);
  transport.answer(sent, 404, "");
  executor.advance(100ms);
  EXPECT_EQ(transport.count(), sent + 20) << "the service is there: all are sent";
  for (std::size_t i = sent; i < sent + 20; ++i) transport.answer(i, 404, "");
}

TEST_F(AwayTest, WhenNobodyIsAnsweredTheyAreRefusedToo) {
  be_away();
  std::size_t sent = transport.count();
  std::vector<Answer<Record>> all;
  for (int n = 0; n < 100; ++n) {
    all.push_back(get({}, "b" + std::to_string(n)));
    for (; sent < transport.count(); ++sent) transport.answer(sent, fail(ErrorCode::unreachable, "nobody there"));
  }
  executor.advance(600ms);
  for (const auto& each : all) EXPECT_TRUE(each.is(ErrorCode::unreachable));
  EXPECT_EQ(transport.count(), 11u) << "three, and eight who were to find out";
  executor.advance(2s);
  auto next = get({}, "c"), other = get({}, "d");
  EXPECT_EQ(transport.count(), 12u) << "later one at a time";
  transport.answer(11, fail(ErrorCode::unreachable, "nobody there"));
}

TEST_F(AwayTest, WhoAsksByNameIsNotRefused) {
  be_away();
  fail_one();
  client().ask_now();
  const std::size_t sent = transport.count();
  auto answer = get();
  EXPECT_EQ(transport.count(), sent + 1);
  transport.answer(sent, 200, kRecord);
  EXPECT_TRUE(answer.ok());
}

}  // namespace
}  // namespace playfs::remote
