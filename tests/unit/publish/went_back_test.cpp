// A service that goes back to an older state: losses are detected, and published again from what is here.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/await.h"
#include "base/sqlite.h"
#include "support/publish_world.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::Fault;
using test::WorkTree;

class WentBackTest : public testing::Test {
 protected:
  WentBackTest() : project(world.create("projects", R"({"name":"p"})").id) {
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/tree");
    publish({{"old", text(20'000, 1)}, {"small", "1"}, {"deep/er/file", "2"}});
  }

  /// Starts over, with a client that allows reads to lag by that much.
  void begin(std::chrono::milliseconds late_arrival) {
    work.reset();
    work = std::make_unique<WorkTree>(world, project, directory.path() + "/patient", nullptr, nullptr, false, false,
                                      MergePolicy(), late_arrival);
  }
  static std::string text(std::size_t size, int seed) {
    std::string text;
    for (int i = 0; text.size() < size; ++i) text += std::to_string(i * 31 + seed) + "\n";
    return text;
  }
  /// Writes `contents`; a commit must publish these together with what was there.
  void write(const Contents& contents) {
    for (const auto& [path, content] : contents) {
      work->write(path, content);
      expected[path] = content;
    }
  }
  void publish(const Contents& contents) {
    write(contents);
    auto result = work->commit();
    ASSERT_TRUE(result) << result.error().message;
    ASSERT_EQ(result->outcome, Outcome::published);
  }
  /// The full guarantee, read back by a client that requests every record.
  void expect_published(const Result<CommitResult>& result) {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->outcome, Outcome::published);
    EXPECT_EQ(world.head(project), result->revision.text());
    EXPECT_EQ(world.contents(result->revision.text()), expected);
    auto revision = wire::decode_revision(world.get("revisions", result->revision.text()));
    for (const auto& parent : revision->parents) EXPECT_EQ(world.get("revisions", parent.text()).id, parent.text());
    EXPECT_TRUE(work->stage->is_clean());
    EXPECT_EQ(work->stage->base()->revision.id, result->revision);
  }
  /// Commits until the process is killed, and opens what is on disk then. `meanwhile` runs in between.
  Result<CommitResult> go_on_after_the_kill(const std::atomic<bool>& is_killed,
                                            const std::function<void(const std::string& tree)>& meanwhile) {
    work->publisher->commit({.agent = "tester", .message = "m", .wait = false, .allow_merge = true}, {}, [](auto) {});
    EXPECT_TRUE(test::eventually([&] { return is_killed.load(); }));
    const std::string left = directory.path() + "/killed";
    std::filesystem::copy(directory.path() + "/tree", left, std::filesystem::copy_options::recursive);
    work.reset();
    meanwhile(left);
    work = std::make_unique<WorkTree>(world, project, left);
    work->wait_until_idle();
    auto last = work->publisher->last();
    if (!last) return fail(ErrorCode::not_found, "no commit has ended");
    return *last;
  }
  /// Once the revision is posted the service goes back, and a copy of that request arrives. The service has forgotten
  /// the key and stores another revision, to which any client that reconciles moves head. Returns its future id.
  const std::string& have_a_copy_come_late() {
    work->faults.set_plan([this](const HttpRequest& request) {
      if (test::is_post_of(request, "/revisions") && posted_.empty()) posted_ = request.body;
      if (!test::is_list_of_revisions(request) || posted_.empty() || !copy_.empty()) return Fault();
      world.restore();
      copy_ = world.create("revisions", posted_).id;
      world.set_head(project, copy_);
      return Fault();
    });
    return copy_;
  }
  std::string last_error() const {
    auto error = work->publisher->progress().last_error;
    return error ? error->message + "; " + error->hint : std::string();
  }
  bool said(const std::string& kind) const { return work->events->events_text().find(kind) != std::string::npos; }
  std::size_t sent(const std::string& method, const std::string& part) const {
    auto sent = work->faults.sent();
    return static_cast<std::size_t>(std::count_if(sent.begin(), sent.end(), [&](const test::Sent& one) {
      return one.request.method == method && one.request.target.find(part) != std::string::npos;
    }));
  }
  /// Its responses are right, but nothing is stored.
  void commit_to_a_service_that_keeps_nothing() {
    work->faults.set_plan([&](const HttpRequest& request) {
      if (test::is_list_of_revisions(request)) ++looked;
      if (!test::is_post_of(request, "/revisions")) return Fault();
      auto record = *wire::parse_json(request.body)->object();
      record.set("id", "never-" + std::to_string(++acknowledged));
      record.set("created_at", "2030-01-01T00:00:00.000Z");
      return test::answer_with(200, wire::to_text(JsonObject{{"record", std::move(record)}}));
    });
    write({{"new", "3"}});
    work->publisher->commit({.agent = "t", .message = "m", .wait = false, .allow_merge = true}, {},
                            [](const Result<CommitResult>&) {});
  }
  void wait_until_it_is_given_up() const {
    ASSERT_TRUE(test::eventually([&] { return last_error().find("never showed it") != std::string::npos; }));
  }
  void wait_for_looks(int count) {
    const int seen = looked;
    EXPECT_TRUE(test::eventually([&] { return looked >= seen + count; }));
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
  std::atomic<int> acknowledged = 0, looked = 0;  ///< revisions that a service accepted and did not keep; lists of them
  std::unique_ptr<WorkTree> work;
  Contents expected;

 private:
  std::string posted_, copy_;
};

TEST_F(WentBackTest, WhatTheBaseHeldIsPublishedAgain) {
  world.back_up();
  publish({{"big", text(30'000, 2)}, {"small", "2"}});
  publish({{"more", text(15'000, 3)}});
  world.restore();
  write({{"new", "3"}});
  expect_published(work->commit());
  EXPECT_TRUE(said("service_went_back"));
}

TEST_F(WentBackTest, AProjectThatIsEmptyAgainGetsItsFilesBack) {
  auto fresh = world.create("projects", R"({"name":"q"})").id;
  world.back_up();
  project = fresh;
  expected.clear();
  work = std::make_unique<WorkTree>(world, project, directory.path() + "/fresh");
  publish({{"big", text(30'000, 2)}});
  publish({{"small", "2"}});
  world.restore();
  write({{"new", "3"}});
  expect_published(work->commit());
}

TEST_F(WentBackTest, WhatOthersDeletedStaysDeletedWhereHeadIsMadeOnWhatIsGone) {
  world.back_up();
  publish({{"common", "c"}});
  const std::string common = world.head(project);
  JsonObject manifest = *world.get("revisions", common).fields.find("manifest")->object();
  publish({{"mine", "m"}});
  world.restore();
  // Posted before the service went back, and arriving afterwards.
  manifest.erase("tx");
  JsonObject files = *manifest.find("files")->object();
  files.erase("small");
  manifest.set("files", std::move(files));
  world.set_head(project,
                 world
                     .create("revisions", R"({"project":")" + project + R"(","parents":[")" + common +
                                              R"("],"agent":"other","manifest":)" + wire::to_text(manifest) + "}")
                     .id);
  expected.erase("small");
  write({{"new", "n"}});
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(WentBackTest, WhatOthersPublishedSinceIsMerged) {
  world.back_up();
  publish({{"big", text(30'000, 2)}});
  world.restore();
  WorkTree other(world, project, directory.path() + "/other");
  other.write("theirs", "t");
  auto theirs = other.commit();
  ASSERT_TRUE(theirs);
  expected["theirs"] = "t";
  write({{"new", "3"}});
  expect_published(work->commit());
}

TEST_F(WentBackTest, WhatOnlyTheLostBaseHadIsKeptHereInFull) {
  world.back_up();
  publish({{"big", text(30'000, 2)}, {"deep/er/file", "3"}});
  world.restore();
  auto head = await<RevisionTreePtr>(
      [&](auto done) { work->site->revision(RevisionId(world.head(project)), {}, std::move(done)); });
  ASSERT_TRUE(head) << head.error().message;
  auto kept = work->keep_lost_base(*head);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_TRUE(*kept);
  // With bytes of their own: the cache may lose its content at any time.
  for (const char* path : {"big", "deep/er/file"})
    EXPECT_FALSE(work->stage->lower_content(work->stage->find(path))) << path;
  EXPECT_TRUE(work->stage->lower_content(work->stage->find("old"))) << "which the service still has";
  for (const auto& [path, content] : expected) EXPECT_EQ(work->read(path), content) << path;
}

/// Files that no path of the lost base leads to: moved, in a moved folder, renamed, ignored.
class MovedTest : public WentBackTest {
 protected:
  MovedTest() { publish({{".gitignore", "build/\n"}, {"build/readme", "tracked"}}); }

  void publish_what_will_be_lost() {
    world.back_up();
    publish({{"big", text(30'000, 2)}, {"hidden", text(30'000, 3)}, {"named", text(30'000, 4)}, {"run", "#!"}});
    publish({{"dir/in/side", text(30'000, 5)}});
    auto made = work->stage->make_symlink(work->stage->root(), "link", std::string(200, 'l'), {});
    ASSERT_TRUE(made);
    expected["link"] = std::string(200, 'l');
    publish({});
  }
  void move() {
    for (const auto& [from, to] : moved) work->rename(from, to);
    auto root = work->stage->root();
    ASSERT_TRUE(work->stage->link(work->stage->find("named"), root, "other name"));
    stage::AttributeChange runs;
    runs.permissions = 0755;
    ASSERT_TRUE(work->stage->set_attributes(work->stage->find("run"), runs));
  }
  Result<bool> keep() {
    auto head = await<RevisionTreePtr>(
        [&](auto done) { work->site->revision(RevisionId(world.head(project)), {}, std::move(done)); });
    return work->keep_lost_base(*head);
  }
  [[nodiscard]] std::vector<std::string> below() {
    std::vector<std::string> paths;
    for (const auto& file : work->stage->lower_files()) {
      if (!holds(world.head(project), file.from.path)) paths.push_back(*work->stage->path_of(file.inode));
    }
    return paths;
  }
  [[nodiscard]] bool holds(const std::string& revision, const std::string& path) {
    return world.contents(revision).contains(path);
  }
  /// Loses all cached bytes, but no cached revisions, between two processes.
  void lose_cache(const std::string& tree = "/tree", std::chrono::milliseconds late_arrival = test::kLateArrival) {
    namespace fs = std::filesystem;
    work.reset();
    for (const auto& file : fs::recursive_directory_iterator(directory.path() + tree + "/cache")) {
      if (file.is_regular_file() && file.path().parent_path().filename().string().size() == 2) fs::remove(file);
    }
    {
      auto records = Database::open(directory.path() + tree + "/cache/records.db", Database::Durability::normal);
      ASSERT_TRUE(records && records->execute("DELETE FROM records WHERE collection = 'file_chunks'"));
    }
    work = std::make_unique<WorkTree>(world, project, directory.path() + tree, nullptr, nullptr, false, false,
                                      MergePolicy(), late_arrival);
  }
  [[nodiscard]] std::vector<std::string> lost() const {
    std::vector<std::string> paths;
    for (const auto& file : work->stage->lost_files()) paths.push_back(file.path);
    return paths;
  }

  const std::map<std::string, std::string> moved = {
      {"big", "moved"}, {"dir", "folder"}, {"link", "moved link"}, {"hidden", "build/hidden"}};
};

TEST_F(MovedTest, WhatWasMovedIsKeptHereInFull) {
  publish_what_will_be_lost();
  move();
  world.restore();
  auto kept = keep();
  ASSERT_TRUE(kept && *kept);
  EXPECT_THAT(below(), testing::IsEmpty()) << "what a cache has may go at any time";
  EXPECT_EQ(work->read("moved"), expected["big"]);
  EXPECT_EQ(work->read("folder/in/side"), expected["dir/in/side"]);
  EXPECT_EQ(work->read("build/hidden"), expected["hidden"]);
  EXPECT_EQ(work->read("other name"), expected["named"]);
  EXPECT_EQ(work->stage->symlink_target(work->stage->find("moved link")), expected["link"]);
  EXPECT_THAT(lost(), testing::IsEmpty());
}

TEST_F(MovedTest, WhatIsIgnoredLiesInARevisionBeforeTheBase) {
  publish_what_will_be_lost();
  move();
  ASSERT_TRUE(work->commit());
  world.restore();
  auto kept = keep();
  ASSERT_TRUE(kept && *kept);
  EXPECT_THAT(below(), testing::IsEmpty());
  EXPECT_EQ(work->read("build/hidden"), expected["hidden"]);
}

TEST_F(MovedTest, ACommitThatFindsTheLossKeepsWhatItDoesNotPublish) {
  publish_what_will_be_lost();
  move();
  world.restore();
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  auto kept = keep();
  ASSERT_TRUE(kept);
  EXPECT_FALSE(*kept) << "by now the base is there";
  EXPECT_THAT(below(), testing::IsEmpty());
  EXPECT_EQ(work->read("build/hidden"), expected["hidden"]);
}

TEST_F(MovedTest, LostContentIsNamed) {
  publish_what_will_be_lost();
  move();
  world.restore();
  lose_cache();
  auto kept = keep();
  ASSERT_TRUE(kept && *kept);
  EXPECT_THAT(lost(), testing::UnorderedElementsAre("build/hidden", "folder/in/side", "moved", "named"));
}

TEST_F(MovedTest, LaggingContentIsNotReportedAsLost) {
  begin(std::chrono::minutes(10));
  publish_what_will_be_lost();
  const std::string before = world.head(project);
  move();
  ASSERT_TRUE(work->commit());
  lose_cache("/patient", std::chrono::minutes(10));
  work->faults.set_plan([&](const HttpRequest& request) {
    const bool is_it = request.target.ends_with("/revisions/" + before);
    const bool is_chunk = request.target.find("/file_chunks/") != std::string::npos;
    return request.method == "GET" && (is_it || is_chunk) ? test::answer_with(404, R"({"code":"not_found"})") : Fault();
  });
  work->write("new", "n");
  ASSERT_TRUE(work->commit());
  ASSERT_TRUE(work->keep_lost_base(work->stage->base())) << "which comes after what a commit looks for in the end";
  EXPECT_GT(sent("GET", "/revisions/" + before), 0u);
  EXPECT_THAT(lost(), testing::IsEmpty());
  work->faults.set_plan({});
  EXPECT_EQ(work->stage->lower_content(work->stage->find("build/hidden"))->revision->revision.id.text(), before);
}

TEST_F(WentBackTest, WhatClashesWithWhatOthersPublishedSinceIsABranch) {
  world.back_up();
  publish({{"small", "mine"}, {"big", text(30'000, 2)}});
  world.restore();
  WorkTree other(world, project, directory.path() + "/other");
  other.write("small", "theirs");
  auto theirs = other.commit();
  ASSERT_TRUE(theirs);
  write({{"new", "3"}});
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched);
  EXPECT_THAT(result->conflicts, testing::ElementsAre("small"));
  EXPECT_EQ(world.head(project), theirs->revision.text());
  EXPECT_EQ(world.contents(result->revision.text()), expected);
}

TEST_F(WentBackTest, ChunksOfACancelledCommitAreNotTakenForGranted) {
  world.back_up();
  write({{"big", text(30'000, 2)}});
  work->faults.set_plan([](const HttpRequest& request) {
    return test::is_post_of(request, "/revisions") ? test::answer_with(413, R"({"code":"record_too_large"})") : Fault();
  });
  ASSERT_FALSE(work->commit());
  work->faults.set_plan({});
  world.restore();
  expect_published(work->commit());
  EXPECT_TRUE(said("service_lost_chunks"));
}

TEST_F(WentBackTest, GoingBackToAnEarlierVersionCostsReadsAndNoUploads) {
  auto big = text(30'000, 2);
  publish({{"big", big}});
  publish({{"big", "short"}});
  auto uploads = sent("POST", "file_chunks"), reads = sent("GET", "file_chunks/");
  publish({{"big", big}});
  EXPECT_EQ(sent("POST", "file_chunks"), uploads);
  EXPECT_EQ(sent("GET", "file_chunks/") - reads, 3u + 3u) << "they may be gone before the POST, and right before it";
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(WentBackTest, BetweenThePostAndThePatch) {
  write({{"big", text(30'000, 2)}});
  world.back_up();
  bool posted = false, restored = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_list_of_revisions(request) && posted && !std::exchange(restored, true)) world.restore();
    posted = posted || test::is_post_of(request, "/revisions");
    return Fault();
  });
  expect_published(work->commit());
  EXPECT_TRUE(said("service_lost_revision"));
  EXPECT_EQ(world.all("revisions").size(), 2u);
}

TEST_F(WentBackTest, ALateRepetitionBringsItBack) {
  write({{"small", "9"}});
  world.back_up();
  const std::string& copy = have_a_copy_come_late();
  auto result = work->commit();
  expect_published(result);
  EXPECT_EQ(result->revision.text(), copy);
  EXPECT_EQ(world.all("revisions").size(), 2u) << "nothing is published twice";
}

TEST_F(WentBackTest, RightBeforeThePatch) {
  write({{"big", text(30'000, 2)}});
  world.back_up();
  bool restored = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "PATCH" && !std::exchange(restored, true)) world.restore();
    return Fault();
  });
  expect_published(work->commit());
}

TEST_F(WentBackTest, RightBeforeThePatchToBeforeTheBase) {
  world.back_up();
  publish({{"base", text(30'000, 2)}});
  write({{"small", "2"}});
  bool restored = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "PATCH" && !std::exchange(restored, true)) world.restore();
    return Fault();
  });
  // The project now names a revision that is lost, until the next one is published.
  expect_published(work->commit());
}

TEST_F(WentBackTest, WhileThePostIsRepeated) {
  world.back_up();
  publish({{"base", text(20'000, 3)}});
  write({{"big", text(30'000, 2)}});
  bool restored = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/revisions") || std::exchange(restored, true)) return Fault();
    world.restore();
    return test::lose_request();
  });
  expect_published(work->commit());
}

TEST_F(WentBackTest, WhileChunksAreUploaded) {
  write({{"big", text(60'000, 2)}});
  world.back_up();
  int uploads = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/file_chunks") || ++uploads != 4) return Fault();
    world.restore();
    return test::answer_with(503, "being restored");
  });
  expect_published(work->commit());
}

// Between the uploads and the POST: the revision is stored, but what it refers to is not.

class HollowTest : public WentBackTest {
 protected:
  /// The service goes back right before the next revision is stored.
  void restore_before_the_post() {
    work->faults.set_plan([this](const HttpRequest& request) {
      if (test::is_post_of(request, "/revisions") && !std::exchange(restored_, true)) world.restore();
      return Fault();
    });
  }
  /// The same, and another client moves head to a revision based on it, with `change` applied to its files.
  void have_it_carried_on(std::function<void(JsonObject& files)> change) {
    world.back_up();
    work->faults.set_plan([this, change = std::move(change)](const HttpRequest& request) {
      if (test::is_post_of(request, "/revisions") && !std::exchange(restored_, true)) world.restore();
      if (!restored_ || !test::is_list_of_revisions(request) || std::exchange(is_carried_on_, true)) return Fault();
      auto ours = world.all("revisions").front();
      JsonObject manifest = *ours.fields.find("manifest")->object();
      manifest.erase("tx");
      JsonObject files = *manifest.find("files")->object();
      change(files);
      manifest.set("files", std::move(files));
      auto made = world.create("revisions", R"({"project":")" + project + R"(","parents":[")" + ours.id +
                                                R"("],"agent":"other","manifest":)" + wire::to_text(manifest) + "}");
      world.set_head(project, made.id);
      return Fault();
    });
  }
  /// No client merges a revision that lost its chunks.
  void expect_published_on_top(const Result<CommitResult>& result) {
    expect_published(result);
    EXPECT_TRUE(said("service_lost_chunks"));
    EXPECT_TRUE(said("service_lost_revision"));
  }

 private:
  bool restored_ = false, is_carried_on_ = false;
};

TEST_F(HollowTest, ChunksThatWereLostBeforeThePostArePublishedAgain) {
  write({{"big", text(30'000, 2)}});
  world.back_up();
  restore_before_the_post();
  expect_published_on_top(work->commit());
  EXPECT_EQ(world.all("revisions").size(), 3u);
  EXPECT_EQ(world.all("file_chunks").size(), 2u + 3u);
}

TEST_F(HollowTest, ChunksOfTheEndAloneArePublishedAgain) {
  write({{"big", text(120'000, 2)}});
  std::atomic<int> uploads = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of(request, "/file_chunks") && ++uploads == 6) world.back_up();
    if (test::is_post_of(request, "/revisions") && uploads > 0) {
      uploads = -1000;
      world.restore();
    }
    return Fault();
  });
  expect_published_on_top(work->commit());
}

TEST_F(HollowTest, ChunksOfTheBeginningAloneArePublishedAgain) {
  write({{"big", text(400'000, 2)}});
  world.back_up();
  std::atomic<int> uploads = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    // Eight uploads run in parallel, so four have been answered by then.
    if (test::is_post_of(request, "/file_chunks") && ++uploads == 12) world.restore();
    return Fault();
  });
  expect_published_on_top(work->commit());
}

TEST_F(HollowTest, ChunksOfEarlierUploadsArePublishedAgain) {
  write({{"big", text(30'000, 2)}});
  world.back_up();
  work->faults.set_plan([](const HttpRequest& request) {
    return test::is_post_of(request, "/revisions") ? test::answer_with(413, R"({"code":"record_too_large"})") : Fault();
  });
  ASSERT_FALSE(work->commit());
  restore_before_the_post();
  expect_published_on_top(work->commit());
}

TEST_F(HollowTest, ChunksOfALostBaseArePublishedAgain) {
  world.back_up();
  publish({{"base", text(30'000, 2)}});
  write({{"small", "2"}});
  restore_before_the_post();
  expect_published(work->commit());
}

TEST_F(HollowTest, WhatOthersMadeOfItIsMended) {
  write({{"big", text(30'000, 2)}, {"small", "2"}});
  have_it_carried_on([](JsonObject&) {});
  expect_published_on_top(work->commit());
}

TEST_F(HollowTest, WhatOthersChangedOnTopOfItStays) {
  write({{"big", text(30'000, 2)}, {"small", "2"}});
  have_it_carried_on([](JsonObject& files) { files.set("small", JsonObject{{"inline", "of another line"}}); });
  auto result = work->commit();
  expected["small"] = "of another line";
  expect_published_on_top(result);
}

TEST_F(HollowTest, AMergeThatWasPostedRightAfterGoingBackIsMended) {
  WorkTree other(world, project, directory.path() + "/other");
  world.back_up();
  write({{"big", text(30'000, 2)}});
  bool is_made = false, is_restored = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_post_of(request, "/revisions")) return Fault();
    if (!std::exchange(is_made, true)) {
      other.write("theirs", "t");
      EXPECT_TRUE(other.commit());
    } else if (request.body.find("\"auto\":true") != std::string::npos && !std::exchange(is_restored, true)) {
      world.restore();
    }
    return Fault();
  });
  auto result = work->commit();
  EXPECT_TRUE(is_restored);
  expected["theirs"] = "t";
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(HollowTest, WhatHeadCarriesOnIsPlannedOnceThoughTheBaseIsBack) {
  const std::string root = world.head(project);
  publish({{"base", "b"}});
  const std::string base = world.head(project);
  world.set_head(project, root);  // which does not hold the base
  write({{"big", text(30'000, 2)}});
  world.back_up();
  bool is_restored = false, is_carried_on = false;
  int posts = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of(request, "/revisions")) {
      if (!std::exchange(is_restored, true)) world.restore();
      else if (++posts <= 3) return test::lose_request();
    }
    if (!is_restored && request.method == "GET" && request.target.ends_with("/revisions/" + base))
      return test::answer_with(404, R"({"code":"not_found"})");
    if (!is_restored || !test::is_list_of_revisions(request) || std::exchange(is_carried_on, true)) return Fault();
    auto ours = world.all("revisions").front();
    JsonObject manifest = *ours.fields.find("manifest")->object();
    manifest.erase("tx");
    world.set_head(project,
                   world
                       .create("revisions", R"({"project":")" + project + R"(","parents":[")" + ours.id +
                                                R"("],"agent":"other","manifest":)" + wire::to_text(manifest) + "}")
                       .id);
    return Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(posts, 3);
  EXPECT_TRUE(said("service_went_back"));
  const std::string events = work->events->events_text();
  const std::string again = "service_lost_revision";
  EXPECT_EQ(events.find(again), events.rfind(again)) << "a request that is lost is repeated, and nothing planned anew";
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(HollowTest, ChunksOfHeadThatAreEachMissedOnceAreThere) {
  write({{"big", text(40'000, 2)}});
  std::vector<std::string> theirs;
  std::size_t looks = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_list_of_revisions(request)) ++looks;
    if (test::is_list_of_revisions(request) && theirs.empty()) {
      // Another client bases a revision with the same files on it, and uploads chunks of its own.
      auto ours = world.all("revisions").front();
      JsonObject manifest = *ours.fields.find("manifest")->object();
      manifest.erase("tx");
      JsonObject files = *manifest.find("files")->object(), big = *files.find("big")->object();
      Json::Array chunks;
      for (const Json& id : *big.find("c")->array()) {
        const JsonObject fields = world.get("file_chunks", *id.string()).fields;
        theirs.push_back(world.create("file_chunks", wire::to_text(fields)).id);
        chunks.emplace_back(theirs.back());
      }
      big.set("c", std::move(chunks));
      files.set("big", std::move(big));
      manifest.set("files", std::move(files));
      world.set_head(project,
                     world
                         .create("revisions", R"({"project":")" + project + R"(","parents":[")" + ours.id +
                                                  R"("],"agent":"other","manifest":)" + wire::to_text(manifest) + "}")
                         .id);
    }
    const bool is_missed = request.method == "GET" && !theirs.empty() &&
                           request.target.ends_with("/file_chunks/" + theirs[looks % theirs.size()]);
    return is_missed ? test::answer_with(404, R"({"code":"not_found"})") : Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(theirs.size(), 2U);
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_FALSE(said("service_lost_revision"));
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(HollowTest, WhatOthersHadBeforeItStaysThoughTheServiceLostIt) {
  for (bool moves_on : {false, true}) {
    const std::string name = moves_on ? "2" : "1";
    const std::string lines = "1\n2\n3\n4\n5\n6\n7\n8\n";
    publish({{"both", lines}});
    WorkTree other(world, project, directory.path() + "/other" + name);
    const std::string root = world.head(project);
    world.back_up();
    other.write("theirs" + name, "t");
    other.write("both", "first\n" + lines);
    ASSERT_TRUE(other.commit());
    write({{"big", text(30'000, 2 + moves_on)}, {"both", lines + "last\n"}});
    bool is_restored = false;
    std::string head = root;
    work->faults.set_plan([&](const HttpRequest& request) {
      if (!test::is_post_of(request, "/revisions") || std::exchange(is_restored, true)) return Fault();
      world.restore();
      if (!moves_on) return Fault();
      // Another client continues from what is left.
      auto files = *world.get("revisions", root).fields.find("manifest")->object()->find("files")->object();
      files.set("late", JsonObject{{"inline", "l"}});
      head = world
                 .create("revisions", R"({"project":")" + project + R"(","parents":[")" + root +
                                          R"("],"agent":"other","manifest":{"files":)" + wire::to_text(files) + "}}")
                 .id;
      world.set_head(project, head);
      return Fault();
    });
    auto result = work->commit();
    EXPECT_TRUE(is_restored);
    expected["theirs" + name] = "t";
    expected["both"] = "first\n" + lines + "last\n";
    if (moves_on) expected["late"] = "l";
    expect_published_on_top(result);
    auto published = wire::decode_revision(world.get("revisions", result->revision.text()));
    EXPECT_EQ(published->parents.size(), 2u) << "head, and the one that is not whole";
    EXPECT_EQ(published->parents.front().text(), head);
    work->faults.set_plan({});
  }
}

TEST_F(HollowTest, ItStaysAlsoWhereTheServiceLosesTheNextOnesChunks) {
  WorkTree other(world, project, directory.path() + "/other");
  write({{"big", text(30'000, 2)}});
  world.back_up();
  other.write("theirs", "t");
  ASSERT_TRUE(other.commit());
  int posts = 0;
  bool is_backed_up = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    // The first revision is in that state, but its chunks are not.
    if (posts == 1 && test::is_post_of(request, "/file_chunks") && !std::exchange(is_backed_up, true)) world.back_up();
    if (test::is_post_of(request, "/revisions") && ++posts <= 2) world.restore();
    return Fault();
  });
  auto result = work->commit();
  EXPECT_GE(posts, 3);
  expected["theirs"] = "t";
  expect_published_on_top(result);
}

TEST_F(HollowTest, WhatNobodyHasAnyMoreKeepsNoCommitFromBeingPublished) {
  WorkTree other(world, project, directory.path() + "/other");
  write({{"big", text(30'000, 2)}});
  world.back_up();
  other.write("theirs", text(30'000, 3));
  other.write("small of theirs", "t");
  ASSERT_TRUE(other.commit());
  restore_before_the_post();
  auto result = work->commit();
  expected["small of theirs"] = "t";
  expect_published_on_top(result);
  EXPECT_NE(work->events->errors_text().find("carry forward theirs"), std::string::npos);
}

/// Others' content is carried along, since the service lost their revision after ours was based on it. The service has
/// their chunks, but does not show them for a while.
class CarriedOnTest : public HollowTest {
 protected:
  CarriedOnTest() {
    begin(std::chrono::seconds(5));
    WorkTree other(world, project, directory.path() + "/other");
    write({{"big", text(30'000, 2)}});
    for (int seed : {3, 4}) {
      const std::string path = "theirs" + std::to_string(seed);
      other.write(path, text(30'000, seed));
      expected[path] = text(30'000, seed);
    }
    std::set<std::string> was_there;
    for (const auto& chunk : world.all("file_chunks")) was_there.insert(chunk.id);
    other.faults.set_plan([&](const HttpRequest& request) {
      if (test::is_post_of(request, "/revisions") && theirs.empty()) {
        for (const auto& chunk : world.all("file_chunks"))
          if (!was_there.contains(chunk.id)) theirs.push_back("/file_chunks/" + chunk.id);
        world.back_up();
      }
      return Fault();
    });
    EXPECT_TRUE(other.commit());
    work->faults.set_plan([&](const HttpRequest& request) {
      if (test::is_post_of(request, "/revisions") && !std::exchange(is_restored, true)) world.restore();
      auto is_asked_for = [&](const std::string& chunk) { return request.target.ends_with(chunk); };
      // Starts with the second plan: chunks missing earlier would have been checked for long enough.
      if (!said("service_lost_revision") || !lags || request.method != "GET" ||
          std::none_of(theirs.begin(), theirs.end(), is_asked_for))
        return Fault();
      ++looks;
      return test::answer_with(404, R"({"code":"not_found"})");
    });
    work->publisher->commit({.agent = "t", .message = "m", .wait = false, .allow_merge = true}, {}, [](auto) {});
    EXPECT_TRUE(test::eventually([&] { return !not_shown().empty() || work->stage->is_clean(); }));
  }
  /// The path that the commit is waiting for.
  std::string not_shown() const {
    const std::string error = last_error();
    const auto end = error.find(": the service does not show this content");
    return end == std::string::npos ? std::string() : error.substr(0, end);
  }
  void expect_that_nothing_is_left_out() {
    EXPECT_TRUE(test::eventually([&] { return work->stage->is_clean(); }));
    EXPECT_EQ(world.contents(world.head(project)), expected);
  }

  std::vector<std::string> theirs;
  std::atomic<bool> lags = true;
  std::atomic<int> looks = 0;

 private:
  bool is_restored = false;
};

TEST_F(CarriedOnTest, OneResponseDropsNothingOfOthers) {
  lags = false;
  expect_that_nothing_is_left_out();
}

TEST_F(CarriedOnTest, TwoResponsesWithAGapDropNothing) {
  // As when the machine sleeps, or the service is unreachable.
  world.clock.advance(std::chrono::hours(1));
  const int before = looks;
  const int twice = before + 2 * static_cast<int>(theirs.size());
  EXPECT_TRUE(test::eventually([&] { return looks >= twice || work->stage->is_clean(); }));
  lags = false;
  expect_that_nothing_is_left_out();
}

TEST_F(CarriedOnTest, AllThatMayBeLostIsWaitedForTogether) {
  std::set<std::string> waited_for;
  EXPECT_TRUE(test::eventually([&] {
    if (auto path = not_shown(); !path.empty()) waited_for.insert(path);
    return work->stage->is_clean();
  }));
  EXPECT_EQ(waited_for.size(), 1U) << "two files, and one wait";
  expected.erase("theirs3");
  expected.erase("theirs4");
  EXPECT_EQ(world.contents(world.head(project)), expected);
}

TEST_F(HollowTest, ABranchBesideItDeletesNothingOfWhatItWasMergedWith) {
  WorkTree other(world, project, directory.path() + "/other");
  other.write("theirs", "t");
  ASSERT_TRUE(other.commit());
  const std::string head = world.head(project);
  write({{"big", text(30'000, 2)}, {"small", "ours"}});
  world.back_up();
  bool is_restored = false, has_moved_on = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of(request, "/revisions") && !std::exchange(is_restored, true)) world.restore();
    if (!is_restored || !test::is_list_of_revisions(request) || std::exchange(has_moved_on, true)) return Fault();
    auto files = *world.get("revisions", head).fields.find("manifest")->object()->find("files")->object();
    files.set("small", JsonObject{{"inline", "changed by others"}});
    auto made =
        world.create("revisions", R"({"project":")" + project + R"(","parents":[")" + head +
                                      R"("],"agent":"other","manifest":{"files":)" + wire::to_text(files) + "}}");
    world.set_head(project, made.id);
    return Fault();
  });
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::branched);
  expected["theirs"] = "t";
  EXPECT_EQ(world.contents(result->revision.text()), expected);
}

TEST_F(HollowTest, ItIsSeenByTheProcessThatComesAfterAKill) {
  write({{"big", text(120'000, 2)}});
  world.back_up();
  bool is_posted = false;
  std::atomic<bool> is_killed = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of(request, "/revisions") && !std::exchange(is_posted, true)) world.restore();
    if (is_posted && request.method == "GET" && !is_killed) {
      work->kill();
      is_killed = true;
    }
    return Fault();
  });
  expect_published(go_on_after_the_kill(is_killed, [](auto) {}));
}

TEST_F(HollowTest, ARefusalGivesNothingBackThatIsInTheLog) {
  write({{"big", text(30'000, 2)}});
  world.back_up();
  int posts = 0, uploads = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    auto locked = [] { return test::answer_with(423, R"({"code":"locked"})"); };
    if (test::is_post_of(request, "/revisions") && ++posts == 1) world.restore();
    if (test::is_post_of(request, "/revisions") && posts == 2) return locked();
    return test::is_post_of(request, "/file_chunks") && posts == 1 && ++uploads == 1 ? locked() : Fault();
  });
  expect_published_on_top(work->commit());
  EXPECT_GT(posts, 2);
}

TEST_F(HollowTest, ACommitWhoseChunkIsNeverShownCanBeCancelled) {
  std::atomic<bool> is_posted = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of(request, "/revisions")) is_posted = true;
    bool is_chunk = request.method == "GET" && request.target.find("/file_chunks/") != std::string::npos;
    return is_chunk && is_posted ? test::answer_with(404, R"({"code":"not_found"})") : Fault();
  });
  write({{"big", text(30'000, 2)}});
  work->publisher->commit({.agent = "t", .message = "m", .wait = false, .allow_merge = true}, {}, [](auto) {});
  wait_until_it_is_given_up();
  EXPECT_NE(last_error().find("playfs commit --cancel"), std::string::npos) << last_error();
  auto cancelled = await<Cancelled>([&](auto done) { work->publisher->cancel(std::move(done)); });
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_FALSE(cancelled->too_late);
  EXPECT_FALSE(*work->stage->pending());
  EXPECT_EQ(work->read("big"), expected["big"]);
}

TEST_F(HollowTest, ALateRepetitionMayBringItBackHollow) {
  write({{"big", text(30'000, 2)}});
  world.back_up();
  const std::string& copy = have_a_copy_come_late();
  auto result = work->commit();
  expect_published_on_top(result);
  EXPECT_NE(result->revision.text(), copy);
}

TEST_F(HollowTest, ReadsThatLagAreWaitedFor) {
  begin(std::chrono::minutes(10));
  std::atomic<int> looks = 0;
  std::atomic<bool> is_posted = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of(request, "/revisions")) is_posted = true;
    bool is_chunk = request.method == "GET" && request.target.find("/file_chunks/") != std::string::npos;
    return is_chunk && is_posted && ++looks < 6 ? test::answer_with(404, R"({"code":"not_found"})") : Fault();
  });
  write({{"big", text(30'000, 2)}});
  expect_published(work->commit());
  EXPECT_EQ(world.all("revisions").size(), 2u) << "nothing is published twice";
}

TEST_F(HollowTest, DetectionCostsFewReads) {
  auto reads = sent("GET", "file_chunks/"), revisions = sent("GET", "revisions/");
  publish({{"big", text(600'000, 2)}});
  EXPECT_GT(sent("POST", "file_chunks"), 30u);
  EXPECT_EQ(sent("GET", "file_chunks/") - reads, 18u);
  publish({{"small", "2"}});
  EXPECT_EQ(sent("GET", "file_chunks/") - reads, 18u) << "those that the base has need no witness";
  EXPECT_EQ(sent("GET", "revisions/"), revisions);
}

TEST_F(WentBackTest, AKillBetweenTwoSteps) {
  // The process is killed once its revision was posted; when it restarts, the service has gone back, and the cache is
  // empty.
  write({{"big", text(30'000, 2)}});
  world.back_up();
  std::atomic<bool> is_killed = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (request.method == "PATCH") {
      work->kill();
      is_killed = true;
    }
    return Fault();
  });
  expect_published(go_on_after_the_kill(is_killed, [&](const std::string& tree) {
    std::filesystem::remove_all(tree + "/cache");
    world.restore();
  }));
}

TEST_F(WentBackTest, ContentThatIsNowhereIsNamedAndNothingIsSent) {
  world.back_up();
  publish({{"big", text(30'000, 2)}});
  // A tree that has only the manifest.
  WorkTree other(world, project, directory.path() + "/other");
  other.write("new", "3");
  world.restore();
  auto revisions = world.all("revisions").size();
  auto result = other.commit();
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("big"), std::string::npos) << result.error().message;
  EXPECT_EQ(world.all("revisions").size(), revisions);
  EXPECT_EQ(other.read("new"), "3");
  other.remove("big");
  result = other.commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.contents(result->revision.text()).count("big"), 0u);
  EXPECT_EQ(world.contents(result->revision.text()).at("new"), "3");
}

TEST_F(WentBackTest, AServiceThatLosesItEachTimeGetsItAgainUntilItKeepsIt) {
  write({{"big", text(30'000, 2)}});
  world.back_up();
  bool posted = false;
  int losses = 0;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (losses < 3 && test::is_list_of_revisions(request) && std::exchange(posted, false)) {
      ++losses;
      world.restore();
    }
    posted = posted || test::is_post_of(request, "/revisions");
    return Fault();
  });
  expect_published(work->commit());
  EXPECT_EQ(losses, 3);
}

TEST_F(WentBackTest, WhatWasAcknowledgedIsNotPostedAgainWhileReadsMayLag) {
  begin(std::chrono::minutes(10));
  // For a while each read returns the state before the commit; then the replicas catch up.
  std::atomic<int> posts = 0, looks = 0;
  const auto before = world.all("revisions");
  const std::string old = before.front().id;
  auto lags = [&] { return posts > 0 && looks < 4; };
  work->faults.set_plan([&](const HttpRequest& request) {
    if (test::is_post_of(request, "/revisions")) ++posts;
    if (request.method != "GET" || !lags()) return Fault();
    if (request.target.find("/revisions/") != std::string::npos && !request.target.ends_with(old))
      return test::answer_with(404, R"({"code":"not_found"})");
    if (!test::is_list_of_revisions(request)) return Fault();
    ++looks;
    return test::answer_with(200, R"({"records":[],"nextCursor":null})");
  });
  write({{"big", text(30'000, 2)}});
  expect_published(work->commit());
  EXPECT_EQ(posts, 1);
  EXPECT_EQ(world.all("revisions").size(), before.size() + 1);
}

TEST_F(WentBackTest, ARevisionNeverShownIsSentAFewTimesAndCanBeCancelled) {
  commit_to_a_service_that_keeps_nothing();
  wait_until_it_is_given_up();
  EXPECT_NE(last_error().find("playfs commit --cancel"), std::string::npos) << last_error();
  const int sent = acknowledged;
  wait_for_looks(5);
  EXPECT_EQ(acknowledged, sent) << "it is looked for, and no more copies are made";
  EXPECT_LT(sent, 10);
  EXPECT_TRUE(*work->stage->pending()) << "and not given back unasked";
  auto cancelled = await<Cancelled>([&](auto done) { work->publisher->cancel(std::move(done)); });
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_FALSE(cancelled->too_late);
  EXPECT_FALSE(*work->stage->pending());
  EXPECT_FALSE(work->stage->is_clean());
  work->faults.set_plan({});
  expect_published(work->commit());
}

TEST_F(WentBackTest, EachCopyIsLookedForAsLongAsItMayBeLate) {
  begin(std::chrono::minutes(10));
  commit_to_a_service_that_keeps_nothing();
  std::chrono::minutes late(10);
  for (int copies = 1; copies < 4; ++copies, late *= 2) {
    ASSERT_TRUE(test::eventually([&] { return acknowledged >= copies; }));
    wait_for_looks(10);
    world.clock.advance(late - std::chrono::minutes(1));
    wait_for_looks(10);
    EXPECT_EQ(acknowledged, copies) << "twice as long as the one before, from when it was sent";
    world.clock.advance(std::chrono::minutes(2));
  }
}

TEST_F(WentBackTest, WhatWasLostSinceItWasListedIsNotMerged) {
  const std::string root = world.head(project);
  std::atomic<bool> is_posted = false, is_listed = false, is_slow = false;
  work->faults.set_plan([&](const HttpRequest& request) {
    if (!test::is_list_of_revisions(request) || !is_posted || is_listed) return Fault();
    world.back_up();
    world.create("revisions", R"({"project":")" + project + R"(","parents":[")" + root +
                                  R"("],"agent":"other","manifest":{"files":{"theirs":{"inline":"t"}}}})");
    return Fault();
  });
  work->faults.on_reply([&](const HttpRequest& request, auto&) {
    if (test::is_post_of(request, "/revisions")) is_posted = true;
    if (test::is_list_of_revisions(request) && is_posted) is_listed = true;
    bool is_project = request.method == "GET" && request.target.ends_with("/projects/" + project);
    if (!is_project || !is_posted || is_slow.exchange(true)) return;
    EXPECT_TRUE(test::eventually([&] { return is_listed.load(); }));
    world.restore();
    world.clock.advance(std::chrono::milliseconds(1'100));
  });
  write({{"mine", "m"}});
  expect_published(work->commit());
  EXPECT_TRUE(is_slow);
}

TEST_F(WentBackTest, HeadIsNotMovedAgainWhileReadsMayLag) {
  // Head belongs to a client that restores its head only once.
  auto foreign = world.create("revisions", R"({"project":")" + project + R"(","parents":[")" + world.head(project) +
                                               R"("],"agent":"stranger","manifest":{"files":{}}})");
  world.set_head(project, foreign.id);
  begin(std::chrono::minutes(10));
  int moves = 0, looks = 0;
  auto stale = world.get("projects", project);
  work->faults.set_plan([&](const HttpRequest& request) {
    moves += request.method == "PATCH" ? 1 : 0;
    bool is_project = request.method == "GET" && request.target.ends_with("/projects/" + project);
    if (!is_project || moves == 0 || ++looks > 4) return Fault();
    JsonObject record{{"id", stale.id}, {"createdAt", stale.created_at}, {"updatedAt", stale.updated_at}};
    for (const auto& [name, value] : stale.fields) record.set(name, value);
    return test::answer_with(200, wire::to_text(record));
  });
  work->write("mine", "m");
  auto result = work->commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->outcome, Outcome::published);
  EXPECT_EQ(moves, 1);
  EXPECT_GT(looks, 4);
}

TEST_F(WentBackTest, ARevisionThatIsHiddenIsNotGone) {
  auto before = world.head(project);
  publish({{"big", text(30'000, 2)}});
  auto hidden = world.head(project);
  work->faults.set_plan([&](const HttpRequest& request) {
    bool is_it = request.method == "GET" && request.target.ends_with("/revisions/" + hidden);
    return is_it ? test::answer_with(403, R"({"code":"forbidden"})") : Fault();
  });
  world.set_head(project, before);
  write({{"new", "3"}});
  expect_published(work->commit());
  EXPECT_FALSE(said("service_went_back"));
}

}  // namespace
}  // namespace playfs::publish
