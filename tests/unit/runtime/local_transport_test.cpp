#include "runtime/local_transport.h"

#include <mutex>

#include <gtest/gtest.h>

#include "base/await.h"
#include "runtime/local_playground.h"
#include "support/eventually.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"

namespace playfs::runtime {
namespace {

class LocalTransportTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = LocalPlayground::open(directory / "playground", {}, clock, random);
    ASSERT_TRUE(opened) << opened.error().message;
    playground = *std::move(opened);
  }

  std::unique_ptr<LocalTransport> transport_over(Executor& executor) {
    return std::make_unique<LocalTransport>(playground->service(), playground->store().site_id(), executor);
  }

  static Callback<HttpResponse> into(std::optional<Result<HttpResponse>>& answer) {
    return [&answer](Result<HttpResponse> result) {
      EXPECT_FALSE(answer) << "answered twice";
      answer = std::move(result);
    };
  }

  const HttpRequest list{"GET", "/.site/data/projects", {}, {}};
  test::TemporaryDirectory directory;
  test::ManualClock clock;
  test::ManualExecutor executor{clock};
  SystemRandom random;
  std::unique_ptr<LocalPlayground> playground;
};

TEST_F(LocalTransportTest, CarriesRequestsToTheServiceWithItsRules) {
  ThreadPool pool(2);
  auto transport = transport_over(pool);
  auto post = [&](HttpHeaders headers) {
    auto response = await<HttpResponse>([&](auto done) {
      transport->send({"POST", "/.site/data/projects", std::move(headers), "{}"}, {}, {}, std::move(done));
    });
    return response ? response->status : 0;
  };
  EXPECT_EQ(post({{"Origin", transport->origin()}}), 200);
  EXPECT_EQ(post({{"Origin", "https://example.org"}}), 403);
  EXPECT_EQ(post({}), 403);
}

/// What a stream has brought so far. Shared with the feed's thread.
struct Brought {
  std::mutex mutex;
  int status = 0;
  std::string text;
  std::optional<Status> end;

  bool has(std::string_view part) {
    std::lock_guard lock(mutex);
    return text.find(part) != std::string::npos;
  }
  bool has_ended() {
    std::lock_guard lock(mutex);
    return end.has_value();
  }
};

net::StreamReceiver receiver_of(const std::shared_ptr<Brought>& brought) {
  net::StreamReceiver receiver;
  receiver.begun = [brought](const HttpResponse& response) {
    std::lock_guard lock(brought->mutex);
    brought->status = response.status;
    return true;
  };
  receiver.piece = [brought](std::string_view piece) {
    std::lock_guard lock(brought->mutex);
    EXPECT_FALSE(brought->end);
    brought->text += piece;
    return true;
  };
  receiver.ended = [brought](Status status) {
    std::lock_guard lock(brought->mutex);
    EXPECT_FALSE(brought->end) << "ended twice";
    brought->end = std::move(status);
  };
  return receiver;
}

TEST_F(LocalTransportTest, TellsOfChangesUntilItIsCancelled) {
  ThreadPool pool(2);
  auto transport =
      std::make_unique<LocalTransport>(playground->service(), playground->store().site_id(), pool, &playground->feed());
  auto brought = std::make_shared<Brought>(), left = std::make_shared<Brought>(), other = std::make_shared<Brought>();
  CancelSource source;
  transport->stream({"GET", "/.site/events", {}, {}}, {}, source.token(), receiver_of(brought));
  transport->stream({"GET", "/.site/events", {}, {}}, {}, {}, receiver_of(left));
  transport->stream({"GET", "/.site/nothing", {}, {}}, {}, {}, receiver_of(other));
  ASSERT_TRUE(test::eventually([&] { return brought->has("event: hello") && left->has("event: hello"); }));
  EXPECT_EQ(brought->status, 200);
  for (int i = 0; i < 3; ++i) {
    auto response = await<HttpResponse>([&](auto done) {
      transport->send({"POST",
                       "/.site/data/projects",
                       {{"Origin", transport->origin()}},
                       "{\"name\":\"p" + std::to_string(i) + "\"}"},
                      {}, {}, std::move(done));
    });
    ASSERT_TRUE(response && response->status == 200);
    auto has_all = [&] { return brought->has("id: " + playground->store().site_id()) && brought->has("projects"); };
    ASSERT_TRUE(test::eventually(has_all));
  }
  source.cancel();
  EXPECT_TRUE(test::eventually([&] { return brought->has_ended(); }));
  EXPECT_TRUE(test::eventually([&] { return other->has_ended(); }));
  EXPECT_EQ(other->status, 404);
  EXPECT_FALSE(left->has_ended());
  transport.reset();
  EXPECT_TRUE(left->has_ended());
}

TEST_F(LocalTransportTest, NeverAnswersOnTheSendersThread) {
  auto transport = transport_over(executor);
  std::optional<Result<HttpResponse>> answer;
  transport->send(list, {}, {}, into(answer));
  EXPECT_FALSE(answer);
  executor.run_due();
  ASSERT_TRUE(answer);
  EXPECT_EQ((*answer)->status, 200);
}

TEST_F(LocalTransportTest, ACancelledRequestIsAnsweredAtOnceAndOnce) {
  auto transport = transport_over(executor);
  std::optional<Result<HttpResponse>> answer, late;
  CancelSource source;
  transport->send(list, {}, source.token(), into(answer));
  source.cancel();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().code, ErrorCode::interrupted);
  transport->send(list, {}, source.token(), into(late));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->error().code, ErrorCode::interrupted);
  executor.run_due();
}

TEST_F(LocalTransportTest, DestroyingItAnswersWhatIsOutstanding) {
  auto transport = transport_over(executor);
  std::optional<Result<HttpResponse>> answer;
  transport->send(list, {}, {}, into(answer));
  transport.reset();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error().code, ErrorCode::interrupted);
  executor.run_due();  // posted tasks must not touch destroyed objects
}

TEST_F(LocalTransportTest, TwoPlaygroundsOnOneDirectoryAreOneSite) {
  auto second = LocalPlayground::open(directory / "playground", {}, clock, random);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->store().site_id(), playground->store().site_id());
  auto created = (*second)->store().insert({"projects", {"{}", {}}, {}, {}, {}});
  ASSERT_TRUE(created);
  EXPECT_TRUE(playground->store().get("projects", created->id));
}

}  // namespace
}  // namespace playfs::runtime
