#include "runtime/local_transport.h"

#include <gtest/gtest.h>

#include "base/await.h"
#include "runtime/local_playground.h"
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
