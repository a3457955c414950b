// kill -9 of a publication at every instant that leaves a different state behind: before and after each change of the
// journal, before each request and after each response. The state on disk is copied away, nothing more of the killed
// process is heard, and another one continues from the copy.
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include <gtest/gtest.h>

#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::Fault;
using test::WorkTree;

/// Counts instants. At the chosen one it makes the copy and cuts the connection.
class Killer {
 public:
  Killer(int at, std::string from, std::string to) : at_(at), from_(std::move(from)), to_(std::move(to)) {}

  void instant(const std::string& what) {
    std::lock_guard lock(mutex_);
    if (!victim || count_++ != at_) return;
    what_ = what;
    // Without the cache, which may be lost at any time.
    for (const char* part : {"/stage", "/journal"}) test::copy_directory(from_ + part, to_ + part);
    victim->kill();
    killed = true;
  }
  [[nodiscard]] std::string what() {
    std::lock_guard lock(mutex_);
    return what_;
  }
  void watch(WorkTree* tree) {
    std::lock_guard lock(mutex_);
    victim = tree;
  }
  std::atomic<bool> killed = false;

 private:
  const int at_;
  const std::string from_, to_;
  std::mutex mutex_;
  WorkTree* victim = nullptr;
  int count_ = 0;
  std::string what_;
};

class Crash : public testing::Test {
 protected:
  static std::string big(int seed) {
    std::string text;
    for (int i = 0; text.size() < 15'000; ++i) text += std::to_string(i * 13 + seed) + "\n";
    return text;
  }
  std::string publish_inline(const std::string& project, Json::Array parents, const std::string& path) {
    JsonObject files{{"base", JsonObject{{"inline", "0"}}}};
    files.set(path, JsonObject{{"inline", "0"}});
    return world
        .create("revisions", wire::to_text(JsonObject{{"project", project},
                                                      {"parents", std::move(parents)},
                                                      {"manifest", JsonObject{{"files", std::move(files)}}}}))
        .id;
  }
  /// Posted by playfs, as opposed to the above.
  std::size_t commits_of(const std::string& project) {
    std::size_t commits = 0;
    for (const auto& record : world.all("revisions")) {
      bool is_commit = record.fields.find("manifest")->object()->find("tx") != nullptr;  // a merge has none
      commits += *record.fields.find("project") == Json(project) && is_commit;
    }
    return commits;
  }

  struct Run {
    std::string killed;  ///< the instant
    CommitResult result;
    std::string head;
    std::string theirs;
  };
  /// Kills a commit at instant `at`, has others move head in the meantime if `head_moves`, and continues from what was
  /// left. nullopt if there is no such instant.
  std::optional<Run> run(int at, bool head_moves);

  test::World world;
};

std::optional<Crash::Run> Crash::run(int at, bool head_moves) {
  Run run;
  test::TemporaryDirectory directory;
  const std::string project = world.create("projects", R"({"name":"p"})").id;
  const std::string base = publish_inline(project, {}, "base");
  world.set_head(project, base);
  const std::size_t chunks_before = world.all("file_chunks").size();
  // Unique to this run, so that its chunks can be counted.
  const Contents expected{{"a", "1"}, {"b", project + big(1)}, {"c", project + big(2)}, {"base", "0"}};

  const std::string first_home = directory.path() + "/first", second_home = directory.path() + "/second";
  std::filesystem::create_directories(second_home);
  Killer killer(at, first_home, second_home);
  std::vector<test::Sent> sent;
  {
    WorkTree first(
        world, project, first_home,
        [&](const HttpRequest& request) {
          killer.instant("before " + request.method + " " + request.target);
          return Fault();
        },
        [&](std::string_view what, bool synced) {
          killer.instant((synced ? "after journalling " : "before journalling ") + std::string(what));
        });
    first.faults.on_reply(
        [&](const HttpRequest& request, auto&) { killer.instant("after " + request.method + " " + request.target); });
    for (const auto& [path, content] : expected)
      if (path != "base") first.write(path, content);
    killer.watch(&first);
    std::atomic<bool> answered = false;
    first.publisher->commit({.agent = "t", .message = "m", .wait = true, .allow_merge = true}, {},
                            [&](const Result<CommitResult>&) { answered = true; });
    EXPECT_TRUE(test::eventually([&] { return answered || killer.killed; }));
    first.publisher.reset();
    killer.watch(nullptr);
    sent = first.faults.sent();
  }
  if (!killer.killed) return std::nullopt;
  run.killed = killer.what();
  SCOPED_TRACE("killed " + run.killed);
  if (head_moves) {
    run.theirs = publish_inline(project, {base}, "theirs");
    world.set_head(project, run.theirs);
  }

  WorkTree second(world, project, second_home);
  if (run.killed == "before journalling enqueue") {
    auto committed = second.commit();  // there was no commit yet: everything is staged as before
    EXPECT_TRUE(committed) << committed.error().message;
    run.result = committed.value_or(CommitResult());
  } else {
    second.wait_until_idle();
    auto last = second.publisher->last();
    EXPECT_TRUE(last && *last);
    if (last && *last) run.result = **last;
  }
  run.head = world.head(project);

  // One commit, one revision, with what was frozen; no chunk twice; the stage is based on it, and all of it readable.
  EXPECT_EQ(commits_of(project), 1u);
  EXPECT_EQ(world.all("file_chunks").size() - chunks_before, 4u);
  Contents with_theirs = expected;
  if (head_moves) with_theirs["theirs"] = "0";
  Contents published = world.contents(run.result.revision.text());
  EXPECT_TRUE(published == expected || published == with_theirs) << published.size() << " files";
  // Once head was seen at our revision the commit is over: what others do to head later is up to the next reconcile.
  bool was_over = run.killed == "after journalling settling" || run.killed.ends_with("journalling ended");
  if (!was_over) {
    EXPECT_EQ(world.contents(run.head), with_theirs);
  }
  EXPECT_TRUE(second.stage->is_clean());
  EXPECT_EQ(second.stage->base()->revision.id, run.result.revision);
  for (const auto& [path, content] : expected) EXPECT_EQ(second.read(path), content);
  // The same key with the same bytes, and the reverse, whichever process sent it.
  auto more = second.faults.sent();
  sent.insert(sent.end(), more.begin(), more.end());
  std::map<std::string, std::string> body_of_key, key_of_body;
  for (const auto& one : sent) {
    if (one.request.method != "POST" || one.status == 0) continue;  // 0: the process was already dead
    std::string key(*one.request.headers.get("Idempotency-Key"));
    EXPECT_EQ(body_of_key.try_emplace(key, one.request.body).first->second, one.request.body);
    EXPECT_EQ(key_of_body.try_emplace(one.request.body, key).first->second, key);
  }
  return run;
}

TEST_F(Crash, AnyInstantIsResumed) {
  int instants = 0;
  for (; auto run = this->run(instants, false); ++instants) {
    EXPECT_EQ(run->result.outcome, Outcome::published) << run->killed;
    EXPECT_EQ(run->head, run->result.revision.text()) << run->killed;
    if (HasFailure()) break;
  }
  EXPECT_GT(instants, 30);
}

TEST_F(Crash, AHeadThatMovedMeanwhileIsMergedAndNeverOverwritten) {
  int instants = 0;
  for (; auto run = this->run(instants, true); ++instants) {
    EXPECT_TRUE(run->result.outcome == Outcome::published || run->result.outcome == Outcome::merged) << run->killed;
    if (HasFailure()) break;
  }
  EXPECT_GT(instants, 30);
}

}  // namespace
}  // namespace playfs::publish
