// A Site under real threads: for the sanitizers, and for the number of requests when many callers come at once.
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "base/await.h"
#include "fixture.h"

namespace playfs::content {
namespace {

/// Answers as a FakeService does, but on threads of its own, with delays that vary.
class ThreadedService final : public net::Transport {
 public:
  ThreadedService(const FakeService& service, Executor& executor) : service_(service), executor_(executor) {}
  void send(HttpRequest request, net::Deadline, CancelToken, Callback<HttpResponse> done) override {
    const unsigned delay = ++requests_ % 7 * 100;
    executor_.post_after(
        std::chrono::microseconds(delay),
        [done = std::move(done), response = service_.answer(request)]() mutable { done(std::move(response)); });
  }
  [[nodiscard]] const std::string& origin() const override { return service_.origin(); }
  [[nodiscard]] unsigned requests() const { return requests_; }

 private:
  const FakeService& service_;
  Executor& executor_;
  std::atomic<unsigned> requests_ = 0;
};

TEST(SiteUnderThreads, EachRecordIsAskedForOnceAndEndingIsOrderly) {
  const test::TemporaryDirectory directory;
  constexpr int kFiles = 20;
  ThreadPool network(2), pool(2);
  FakeService stored;
  ThreadedService service(stored, network);
  JsonObject files;
  for (int i = 0; i < kFiles; ++i) {
    const std::string chunk = "c" + std::to_string(i), text = "content of file " + std::to_string(i);
    stored.put("file_chunks", chunk, {{"content", text}});
    files.append("f" + std::to_string(i),
                 JsonObject{{"h", sha256(text)}, {"s", text.size()}, {"c", Json::Array{chunk}}});
  }
  stored.put("revisions", "r", {{"project", "p"}, {"manifest", JsonObject{{"files", files}}}});
  stored.put("projects", "p", {{"latest_revision", "r"}});

  SystemClock clock;
  SystemRandom random;
  remote::Client client(service, pool, clock, random, {});
  auto objects = std::move(*cache::ObjectStore::open(directory / "objects"));
  auto records = std::move(*cache::RecordIndex::open(directory.path()));
  EventLog events(clock);
  auto site = std::make_unique<Site>(client, *objects, *records, pool, clock, events, SiteOptions{});

  std::atomic<int> wrong = 0, interrupted = 0;
  std::vector<std::thread> readers;
  for (int t = 0; t < 6; ++t)
    readers.emplace_back([&, t] {
      auto head = await<Head>([&](auto done) { site->head(ProjectId("p"), {}, std::move(done)); });
      if (!head) return void(++wrong);
      auto tree = await<RevisionTreePtr>(
          [&](auto done) { site->revision(head->project.latest_revision, {}, std::move(done)); });
      if (!tree) return void(++wrong);
      if (t == 0) site->prefetch(*tree);
      for (const auto& [path, entry] : (*tree)->tree.manifest().files) {
        CancelSource cancel;
        std::thread canceller;
        if (t == 1) canceller = std::thread([&] { cancel.cancel(); });
        auto blob = await<Blob>([&, &path = path, &entry = entry](auto done) {
          site->blob({*tree, path, &entry}, cancel.token(), std::move(done));
        });
        if (canceller.joinable()) canceller.join();
        if (!blob && blob.error().code == ErrorCode::interrupted && t == 1) ++interrupted;
        else if (!blob || blob->read(0, 100).value_or("") != "content of file " + path.substr(1)) ++wrong;
      }
    });
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(service.requests(), 2U + kFiles);

  // Destroyed while requests are under way: every waiter is answered exactly once.
  std::atomic<int> answers = 0;
  for (int i = 0; i < 50; ++i) site->record("threads", "t" + std::to_string(i), {}, [&](Result<Record>) { ++answers; });
  site.reset();
  EXPECT_EQ(answers, 50);
}

}  // namespace
}  // namespace playfs::content
