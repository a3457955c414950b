// Cancelled commits: at every request, and with a crash at every journal write.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/await.h"
#include "publish/merging.h"
#include "support/publish_world.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

class CancelTest : public testing::Test {
 protected:
  CancelTest() : project(world.create("projects", R"({"name":"p"})").id) {
    for (int i = 0; i < 2; ++i) expected["big" + std::to_string(i)] = big(i);
    expected["small"] = "1";
  }

  static std::string big(int seed) {
    std::string text;
    for (int i = 0; text.size() < 30'000; ++i) text += std::to_string(i * 17 + seed) + "\n";
    return text;
  }
  std::unique_ptr<WorkTree> tree(const std::string& name, JournalProbe probe = {}) {
    auto work = std::make_unique<WorkTree>(world, project, directory.path() + "/" + name, test::FaultyTransport::Plan(),
                                           std::move(probe));
    return work;
  }
  void edit(WorkTree& work) const {
    for (const auto& [path, content] : expected) work.write(path, content);
  }
  static Result<Cancelled> cancel(WorkTree& work) {
    return await<Cancelled>([&](auto done) { work.publisher->cancel(std::move(done)); });
  }
  static std::future<Result<CommitResult>> begin_commit(WorkTree& work, const std::string& message = "m") {
    auto promise = std::make_shared<std::promise<Result<CommitResult>>>();
    auto future = promise->get_future();
    CommitRequest request;
    request.agent = "t";
    request.message = message;
    work.publisher->commit(request, {},
                           [promise](Result<CommitResult> result) { promise->set_value(std::move(result)); });
    return future;
  }
  /// Nothing is pending, and everything is as it was written.
  void expect_staged(WorkTree& work) const {
    EXPECT_FALSE(*work.stage->pending());
    EXPECT_FALSE(work.stage->is_clean());
    EXPECT_TRUE(work.publisher->queue()->empty());
    for (const auto& [path, content] : expected) EXPECT_EQ(work.read(path), content) << path;
  }
  static void wait_until_frozen(WorkTree& work) {
    ASSERT_TRUE(test::eventually([&] { return static_cast<bool>(*work.stage->pending()); }));
  }
  std::size_t revisions() { return world.all("revisions").size(); }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
  Contents expected;
};

TEST_F(CancelTest, NothingIsUnderWay) {
  auto work = tree("tree");
  auto cancelled = cancel(*work);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->commits, 0u);
  EXPECT_FALSE(cancelled->too_late);
}

TEST_F(CancelTest, CancelledAtAnyRequestItIsStagedOrPublished) {
  int given_back = 0, published = 0;
  bool was_reached = true;
  for (int at = 0; was_reached; ++at) {
    was_reached = false;
    auto work = tree("tree" + std::to_string(at));
    std::size_t revisions_before = revisions();
    for (auto [path, content] : expected) {
      std::replace(content.begin(), content.end(), '7', static_cast<char>('A' + at));  // no chunk is unchanged
      work->write(path, content + std::to_string(at));
    }
    std::atomic<int> count = 0;
    std::promise<Result<Cancelled>> answer;
    work->faults.set_plan([&](const HttpRequest& request) {
      // Requests of a reconcile do not belong to the commit.
      if (request.method == "GET" && revisions_before > 0 && count == 0 && at > 0) return test::Fault();
      if (count++ == at) {
        was_reached = true;
        work->publisher->cancel([&](Result<Cancelled> cancelled) { answer.set_value(std::move(cancelled)); });
      }
      return test::Fault();
    });
    auto result = begin_commit(*work).get();
    ASSERT_TRUE(result) << result.error().message;
    if (!was_reached) {
      EXPECT_EQ(result->outcome, Outcome::published);
      break;
    }
    auto cancelled = answer.get_future().get();
    ASSERT_TRUE(cancelled) << cancelled.error().message;
    work->wait_until_idle();
    if (result->outcome == Outcome::cancelled) {
      ++given_back;
      EXPECT_EQ(cancelled->commits, 1u);
      EXPECT_EQ(revisions(), revisions_before);
      EXPECT_FALSE(*work->stage->pending());
      EXPECT_EQ(work->read("small"), "1" + std::to_string(at));
      work->faults.set_plan({});
      auto again = work->commit();
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(again->outcome, Outcome::published);
    } else {
      ++published;
      EXPECT_EQ(result->outcome, Outcome::published);
      EXPECT_EQ(cancelled->commits, 0u);
      EXPECT_EQ(revisions(), revisions_before + 1);
    }
    EXPECT_EQ(world.contents(world.head(project)).at("small"), "1" + std::to_string(at));
  }
  EXPECT_GT(given_back, 5) << "while its chunks are uploaded";
  EXPECT_GT(published, 1) << "once its revision was sent";
}

TEST_F(CancelTest, ACommitThatMayHaveBeenSentContinues) {
  auto work = tree("tree");
  edit(*work);
  std::atomic<bool> was_sent = false, is_away = true;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (was_sent) return is_away ? test::lose_request() : test::Fault();
    if (request.method != "POST" || !request.target.ends_with("/revisions")) return test::Fault();
    was_sent = true;
    return test::lose_reply();
  });
  auto first = begin_commit(*work, "first");
  ASSERT_TRUE(test::eventually([&] { return was_sent.load(); }));
  work->wait_until_it_fails();
  auto second = begin_commit(*work, "second");
  work->wait_until_queued(2);
  auto cancelled = cancel(*work);
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_TRUE(cancelled->too_late);
  EXPECT_EQ(cancelled->commits, 1u) << "the one behind it";
  EXPECT_EQ(second.get()->outcome, Outcome::cancelled);
  is_away = false;
  EXPECT_EQ(first.get()->outcome, Outcome::published);
  EXPECT_EQ(revisions(), 1u);
}

TEST_F(CancelTest, ShutdownDoesNotWaitForHangingRequests) {
  using Begin = std::function<void(Publisher&)>;
  const Begin visit = [](Publisher& publisher) { publisher.reconcile(); };
  const Begin plan = [](Publisher& publisher) { publisher.plan({}, [](const Result<PlannedCommit>&) {}); };
  for (const Begin& begin : {visit, plan}) {
    std::atomic<int> asked = 0;
    WorkTree work(world, project, directory.path() + "/tree", {}, {}, true);
    edit(work);
    work.faults.set_plan([&](const HttpRequest&) {
      ++asked;
      return test::hang();
    });
    begin(*work.publisher);
    EXPECT_TRUE(test::eventually([&] { return asked > 0; }));
    auto ended = std::async(std::launch::async, [&] { work.publisher.reset(); });
    EXPECT_EQ(ended.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  }
}

TEST_F(CancelTest, NothingWaitsForAReconcileThatHangs) {
  std::atomic<int> reconciles = 0;
  std::atomic<bool> hangs = false;
  WorkTree work(world, project, directory.path() + "/tree", {}, {}, true);
  work.faults.set_plan([&](const HttpRequest&) {
    if (!hangs) return test::Fault();
    ++reconciles;
    return test::hang();
  });
  auto hang_in_a_visit = [&] {
    const int before = reconciles;
    hangs = true;
    work.publisher->reconcile();
    EXPECT_TRUE(test::eventually([&] { return reconciles > before; }));
    hangs = false;
  };
  hang_in_a_visit();
  edit(work);
  auto committed = work.commit();
  ASSERT_TRUE(committed) << committed.error().message;
  EXPECT_EQ(committed->outcome, Outcome::published);
  hang_in_a_visit();
  auto planned = await<PlannedCommit>([&](auto done) { work.publisher->plan({}, std::move(done)); });
  ASSERT_TRUE(planned) << planned.error().message;
  hang_in_a_visit();
  const int before = work.faults.count();
  ASSERT_TRUE(cancel(work));
  // Whatever the interrupted reconcile had to do is done then.
  EXPECT_TRUE(test::eventually([&] { return work.faults.count() > before; }));
}

TEST_F(CancelTest, QueuedCommitsAreCancelledToo) {
  auto work = tree("tree");
  edit(*work);
  work->faults.set_plan([](const HttpRequest&) { return test::lose_request(); });
  auto first = begin_commit(*work, "first");
  wait_until_frozen(*work);
  auto second = begin_commit(*work, "second"), third = begin_commit(*work, "third");
  work->wait_until_queued(3);
  auto queue = *work->publisher->queue();
  EXPECT_EQ(queue.front().message, "first");
  auto cancelled = cancel(*work);
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->commits, 3u);
  for (auto* each : {&first, &second, &third}) EXPECT_EQ(each->get()->outcome, Outcome::cancelled);
  expect_staged(*work);
  work->faults.set_plan({});
  ASSERT_EQ(work->commit()->outcome, Outcome::published);
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(CancelTest, ACommitQueuedDuringACancelIsPublished) {
  std::future<Result<CommitResult>> second;
  WorkTree* tree_then = nullptr;
  auto work = tree("tree", [&](std::string_view what, bool synced) {
    if (what != "cancelling" || synced) return;
    tree_then->faults.set_plan({});
    second = begin_commit(*tree_then, "second");
    tree_then->wait_until_queued(2);
  });
  tree_then = work.get();
  edit(*work);
  work->faults.set_plan([](const HttpRequest&) { return test::lose_request(); });
  auto first = begin_commit(*work, "first");
  wait_until_frozen(*work);
  auto cancelled = cancel(*work);
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(cancelled->commits, 1u);
  EXPECT_EQ(first.get()->outcome, Outcome::cancelled);
  ASSERT_EQ(second.wait_for(std::chrono::minutes(1)), std::future_status::ready) << "nobody ever answers it";
  EXPECT_EQ(second.get()->outcome, Outcome::published);
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(CancelTest, ACrashAtAnyJournalWriteLeavesItPublishedOrStaged) {
  std::map<std::string, std::string> copies;  // by the journal write at which they were made
  auto work = tree("tree", [&](std::string_view what, bool synced) {
    std::string name = std::string(what) + (synced ? " synced" : "");
    if (what != "cancelling" && what != "ended") return;
    copies[name] = directory.path() + "/" + name;
    test::copy_directory(directory.path() + "/tree", copies[name]);
  });
  edit(*work);
  work->faults.set_plan(
      [](const HttpRequest& request) { return request.method == "POST" ? test::lose_request() : test::Fault(); });
  auto first = begin_commit(*work, "first");
  wait_until_frozen(*work);
  auto second = begin_commit(*work, "second");
  work->wait_until_queued(2);
  ASSERT_TRUE(cancel(*work));
  work.reset();
  ASSERT_EQ(copies.size(), 4u);
  for (const char* name : {"cancelling synced", "ended", "ended synced"}) {
    auto again = tree(name);
    again->wait_until_idle();
    expect_staged(*again);
    EXPECT_EQ(revisions(), 0u) << name;
    EXPECT_EQ((*again->publisher->last())->outcome, Outcome::cancelled);
  }
  auto again = tree("cancelling");
  again->wait_until_idle();
  EXPECT_EQ(world.contents(world.head(project)), expected) << "nobody was told that it was cancelled";
  EXPECT_TRUE(again->stage->is_clean());
}

TEST_F(CancelTest, AMergeEndsAtTheNextFileOnceNobodyWaitsForIt) {
  auto work = tree("tree");
  SiteUpstream upstream(*work->site, ProjectId(project), 1);
  CancelSource caller;
  upstream.until(caller.token());
  auto version = [](const std::string& content) {
    Snapshot snapshot;
    for (int i = 0; i < 5; ++i) snapshot.manifest.files["f" + std::to_string(i)].inline_text = content;
    return snapshot;
  };
  std::set<std::string> read;
  auto reader = [&](MergeSide, const std::string& path, const FileEntry& entry) -> Result<std::string> {
    read.insert(path);
    if (path == "f2") caller.cancel();
    return *entry.inline_text;
  };
  auto merge = Merging(upstream).merge(version("a\nb\nc\n"), version("A\nb\nc\n"), version("a\nb\nC\n"), {}, reader);
  ASSERT_FALSE(merge);
  EXPECT_EQ(merge.error().code, ErrorCode::interrupted);
  EXPECT_EQ(read, (std::set<std::string>{"f0", "f1", "f2"}));
}

TEST_F(CancelTest, AMergeEndsWithItsCaller) {
  auto publish = [&](const std::string& parents, const std::string& content) {
    return world
        .create("revisions", R"({"project":")" + project + R"(","parents":[)" + parents +
                                 R"(],"manifest":{"files":{"f":{"inline":")" + content + R"("}}}})")
        .id;
  };
  const std::string root = publish("", "a\\nb\\nc\\n"), from_root = '"' + root + '"';
  world.set_head(project, publish(from_root, "A\\nb\\nc\\n"));
  const std::string branch = publish(from_root, "a\\nb\\nC\\n");
  auto work = tree("tree");
  auto theirs =
      await<RevisionTreePtr>([&](auto done) { work->site->revision(RevisionId(branch), {}, std::move(done)); });
  ASSERT_TRUE(theirs);
  CancelSource caller;
  std::atomic<int> requests = 0;
  work->faults.set_plan([&](const HttpRequest&) {
    ++requests;
    caller.cancel();
    return test::Fault();
  });
  auto merge = [&] {
    return await<Integrated>([&](auto done) { work->publisher->merge(*theirs, caller.token(), std::move(done)); });
  };
  auto merged = merge();
  EXPECT_GT(requests, 0) << "the merge base is not here yet";
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, ErrorCode::interrupted);
  EXPECT_EQ(work->read("f"), "A\nb\nc\n");
  caller = {};
  work->faults.set_plan({});
  merged = merge();
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(work->read("f"), "A\nb\nC\n");
}

}  // namespace
}  // namespace playfs::publish
