// Chunks between being journalled and being sent: where their text is, in which windows, after a crash.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/sqlite.h"
#include "support/publish_world.h"
#include "wire/json.h"

namespace playfs::publish {
namespace {

using test::Contents;
using test::WorkTree;

class UploadsTest : public testing::Test {
 protected:
  UploadsTest() : project(world.create("projects", R"({"name":"p"})").id) {}

  static std::string lines(std::size_t size, int seed) {
    std::string text;
    for (int i = 0; text.size() < size; ++i) text += std::to_string(i * 17 + seed) + (i % 7 != 0 ? "\n" : " ä\n");
    return text;
  }

  /// What a crash leaves right after the `nth` change of the journal that adds uploads; nothing was sent.
  std::string crashed_after_uploads(int nth) {
    const std::string copy = directory.path() + "/copy";
    int seen = 0;
    auto probe = [&](std::string_view what, bool synced) {
      if (what == "uploads" && synced && ++seen == nth) test::copy_directory(directory.path() + "/tree", copy);
    };
    auto refuse = [](const HttpRequest& request) {
      return request.method == "POST" ? test::answer_with(403, R"({"code":"forbidden"})") : test::Fault();
    };
    WorkTree work(world, project, directory.path() + "/tree", refuse, probe);
    for (const auto& [path, content] : expected) work.write(path, content);
    EXPECT_FALSE(work.commit());
    EXPECT_GE(seen, nth);
    return copy;
  }
  std::unique_ptr<WorkTree> resume(const std::string& from) {
    auto work = std::make_unique<WorkTree>(world, project, from);
    work->wait_until_idle();
    EXPECT_EQ(world.contents(world.head(project)), expected);
    return work;
  }
  static std::set<std::string> keys_sent(const WorkTree& work) {
    std::set<std::string> keys;
    for (const auto& sent : work.faults.sent()) {
      if (sent.request.method != "POST" || sent.request.target.find("file_chunks") == std::string::npos) continue;
      for (const auto& [name, value] : sent.request.headers)
        if (name == "Idempotency-Key") keys.insert(value);
    }
    return keys;
  }
  static std::vector<std::string> column(const std::string& tree, const std::string& sql) {
    auto database = Database::open(tree + "/journal/publish.db", Database::Durability::normal);
    EXPECT_TRUE(database);
    auto select = database->prepare(sql);
    EXPECT_TRUE(select) << select.error().message;
    std::vector<std::string> rows;
    while (*select->step()) rows.emplace_back(select->text(0));
    return rows;
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
  Contents expected;
};

TEST_F(UploadsTest, AreMadeOfFrozenFilesWithTheirKeysAfterACrash) {
  expected = {{"text", lines(40'000, 1)}, {"binary", std::string(30'000, '\xff') + lines(100, 2)}};
  std::string tree = crashed_after_uploads(1);
  for (const auto& body : column(tree, "SELECT body FROM uploads")) EXPECT_EQ(body, "") << "no second copy on disk";
  auto journalled = column(tree, "SELECT key FROM uploads");
  auto work = resume(tree);
  EXPECT_EQ(keys_sent(*work), std::set<std::string>(journalled.begin(), journalled.end()));
}

TEST_F(UploadsTest, AnotherBodyGetsAnotherKey) {
  expected = {{"text", lines(40'000, 1)}};
  std::string tree = crashed_after_uploads(1);
  auto before = column(tree, "SELECT key FROM uploads ORDER BY number");
  // As if another version of this program had made the body.
  {
    auto journal = Journal::open(tree + "/journal");
    ASSERT_TRUE(journal) << journal.error().message;
    auto publication = (*journal)->front();
    auto uploads = (*journal)->unsent(**publication, 1, 1);
    ASSERT_TRUE(uploads && uploads->size() == 1 && uploads->front().recipe);
    uploads->front().recipe->body_hash = ContentHash::of("another body");
    ASSERT_TRUE((*journal)->record_rekeyed(**publication, uploads->front()));
  }
  auto work = resume(tree);
  auto sent = keys_sent(*work);
  EXPECT_EQ(sent.size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(sent.contains(before[i]), i != 1) << i;
}

TEST_F(UploadsTest, PartlyJournalledUploadsAreNotLost) {
  expected = {{"large", lines(4'500'000, 1)}};  // more chunks than are journalled at once
  std::string tree = crashed_after_uploads(1);
  std::size_t journalled = column(tree, "SELECT key FROM uploads").size();
  auto work = resume(tree);
  std::size_t chunks = world.all("file_chunks").size();
  EXPECT_GT(chunks, journalled);
  EXPECT_EQ(chunks, (expected.at("large").size() + 12'287) / 12'288) << "and none is uploaded twice";
}

TEST_F(UploadsTest, AnotherTextIsNotSent) {
  expected = {{"text", lines(40'000, 1)}};
  std::string tree = crashed_after_uploads(1);
  column(tree, "UPDATE uploads SET text_offset = text_offset + 1 WHERE number = 0");
  WorkTree work(world, project, tree);
  work.wait_until_idle();
  EXPECT_FALSE(*work.stage->pending());
  EXPECT_FALSE(work.stage->is_clean()) << "staged again";
  EXPECT_NE(work.events->errors_text().find("corrupt"), std::string::npos);
  EXPECT_TRUE(world.all("file_chunks").empty());
}

/// What a service answers to every upload: the record that was sent, under another record's id.
test::Fault answered_as(const std::string& id, const HttpRequest& request) {
  if (request.method != "POST" || !request.target.ends_with("/file_chunks")) return {};
  JsonObject record = *wire::parse_json(request.body)->object();
  record.set("id", id);
  record.set("created_at", "2030-01-01T00:00:00.000Z");
  return test::answer_with(200, wire::to_text(JsonObject{{"record", std::move(record)}}));
}

TEST_F(UploadsTest, AnAnswerWithTheIdOfAnotherChunkDoesNotStopWhatFollows) {
  const std::string other = world.create("file_chunks", R"({"path":"f","seq":0,"content":"another"})").id;
  WorkTree work(world, project, directory.path() + "/tree");
  // The first alone, so that it is trusted before the others are checked.
  std::atomic<int> uploads = 0;
  work.faults.set_plan([&](const HttpRequest& request) {
    test::Fault lie = answered_as(other, request);
    if (request.method == "POST" && request.target.ends_with("/file_chunks") && uploads++ > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return lie;
  });
  work.write("text", lines(40'000, 1));
  auto lied_to = work.commit();
  ASSERT_FALSE(lied_to);
  EXPECT_EQ(lied_to.error().code, ErrorCode::corrupt) << lied_to.error().message;
  work.faults.set_plan({});
  auto result = work.commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(world.contents(result->revision.text()), (Contents{{"text", lines(40'000, 1)}}));
}

TEST_F(UploadsTest, AReusedChunkIdMeansItsNewContent) {
  WorkTree work(world, project, directory.path() + "/tree");
  work.write("first", lines(10'000, 1));
  ASSERT_TRUE(work.commit());
  const std::string id = world.all("file_chunks").front().id;
  // The service has gone back to before the first commit, and numbers its chunks again.
  std::string now;
  work.faults.set_plan([&](const HttpRequest& request) {
    test::Fault created = answered_as(id, request);
    if (request.method == "POST" && request.target.ends_with("/file_chunks")) now = request.body;
    if (now.empty() || request.method != "GET" || !request.target.ends_with("/file_chunks/" + id)) return created;
    JsonObject record = *wire::parse_json(now)->object();
    record.set("id", id);
    return test::answer_with(200, wire::to_text(JsonObject{{"record", std::move(record)}}));
  });
  work.write("second", lines(10'000, 2));
  auto result = work.commit();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(column(directory.path() + "/tree", "SELECT text_hash FROM known_chunks WHERE chunk = '" + id + "'"),
            std::vector{ContentHash::of(lines(10'000, 2)).hex()});
}

}  // namespace
}  // namespace playfs::publish
