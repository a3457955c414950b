// A Site under real threads: for the sanitizers, and for the number of requests when many callers come at once.
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "base/await.h"
#include "fixture.h"

namespace playfs::content {
namespace {

/// Answers on threads of its own, with delays that vary.
class ThreadedService final : public net::Transport {
 public:
  explicit ThreadedService(Executor& executor) : executor_(executor) {}
  void put(const std::string& target, const Record& record) {
    bodies_[target] = wire::to_text(wire::encode_record(record));
  }
  void send(HttpRequest request, net::Deadline, CancelToken, Callback<HttpResponse> done) override {
    const unsigned delay = ++requests_ % 7 * 100;
    auto body = bodies_.find(request.target);
    HttpResponse response = body == bodies_.end() ? HttpResponse{404, {}, "{}"} : HttpResponse{200, {}, body->second};
    executor_.post_after(
        std::chrono::microseconds(delay),
        [done = std::move(done), response = std::move(response)]() mutable { done(std::move(response)); });
  }
  [[nodiscard]] const std::string& origin() const override { return origin_; }
  [[nodiscard]] unsigned requests() const { return requests_; }

 private:
  Executor& executor_;
  const std::string origin_ = "https://site.example";
  std::map<std::string, std::string> bodies_;
  std::atomic<unsigned> requests_ = 0;
};

TEST(SiteUnderThreads, EachRecordIsAskedForOnceAndEndingIsOrderly) {
  std::string directory = testing::TempDir() + "playfs-content-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  {
    constexpr int kFiles = 20;
    ThreadPool network(2), pool(2);
    ThreadedService service(network);
    JsonObject files;
    for (int i = 0; i < kFiles; ++i) {
      const std::string chunk = "c" + std::to_string(i), text = "content of file " + std::to_string(i);
      service.put("/.site/data/file_chunks/" + chunk, {chunk, "", "", "", {{"content", text}}});
      files.append("f" + std::to_string(i),
                   JsonObject{{"h", sha256(text)}, {"s", text.size()}, {"c", Json::Array{chunk}}});
    }
    service.put("/.site/data/revisions/r",
                {"r", "", "", "", {{"project", "p"}, {"manifest", JsonObject{{"files", files}}}}});
    service.put("/.site/data/projects/p", {"p", "", "", "", {{"latest_revision", "r"}}});

    SystemClock clock;
    SystemRandom random;
    remote::Client client(service, pool, clock, random, {});
    auto objects = std::move(*cache::ObjectStore::open(directory + "/objects"));
    auto records = std::move(*cache::RecordIndex::open(directory));
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
    for (int i = 0; i < 50; ++i)
      site->record("threads", "t" + std::to_string(i), {}, [&](Result<Record>) { ++answers; });
    site.reset();
    EXPECT_EQ(answers, 50);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace playfs::content
