// Paging, order and idempotency during concurrent writes.
#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "site.h"

namespace playfs::conformance {
namespace {

class Order : public testing::Test {
 protected:
  Site& site = Site::under_test();

  /// The ids of the newest `count` records, read in pages of `limit`, newest first.
  std::vector<std::string> newest(const std::string& collection, std::size_t count, int limit) {
    std::vector<std::string> ids;
    std::string query = "?limit=" + std::to_string(limit);
    for (std::string cursor; ids.size() < count;) {
      Response response = site.get("/" + collection + query + cursor);
      Json records = response.member("records");
      if (!records.array()) {
        ADD_FAILURE() << response.text;
        return ids;
      }
      for (const Json& record : *records.array()) ids.push_back(text_field(record, "id"));
      Json next = response.member("nextCursor");
      if (!next.string()) break;
      cursor = "&cursor=" + *next.string();
    }
    return ids;
  }
};

TEST_F(Order, PagesFollowEachOtherWithoutGapOrOverlap) {
  std::vector<std::string> created;
  for (int i = 0; i < 12; ++i)
    created.insert(created.begin(), text_field(site.create("file_chunks", JsonObject{{"seq", i}}), "id"));
  for (int limit : {1, 5, 12, 100}) {
    auto seen = newest("file_chunks", created.size(), limit);
    std::vector<std::string> mine;
    for (const auto& id : seen)
      if (std::find(created.begin(), created.end(), id) != created.end()) mine.push_back(id);
    EXPECT_EQ(mine, created) << "in pages of " << limit;
  }
}

TEST_F(Order, PagingWhileOthersInsertMissesAndDoublesNothing) {
  std::vector<std::string> at_start;
  for (int i = 0; i < 40; ++i) at_start.push_back(text_field(site.create("file_chunks", JsonObject{{"seq", i}}), "id"));
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) site.create("file_chunks", JsonObject{{"seq", i}});
  });
  auto seen = newest("file_chunks", at_start.size() + 40, 7);
  writer.join();
  std::set<std::string> once(seen.begin(), seen.end());
  EXPECT_EQ(once.size(), seen.size()) << "a record came twice";
  for (const auto& id : at_start) EXPECT_TRUE(once.count(id)) << "a record was missed";
}

TEST_F(Order, PagingMayStopOncePastAStoredTime) {
  Json stored = site.create("file_chunks", JsonObject{{"seq", 1}});
  Json later = site.create("file_chunks", JsonObject{{"seq", 2}});
  bool found_later = false;
  Response response = site.get("/file_chunks?limit=100");
  Json records = response.member("records");
  ASSERT_NE(records.array(), nullptr);
  for (const Json& record : *records.array()) {
    if (text_field(record, "created_at") <= text_field(stored, "created_at")) break;
    found_later = found_later || record == later;
  }
  EXPECT_TRUE(found_later);
}

TEST_F(Order, APatchDoesNotMoveARecord) {
  Json older = site.create("projects", JsonObject{{"name", "older"}});
  Json newer = site.create("projects", JsonObject{{"name", "newer"}});
  site.patch("projects/" + text_field(older, "id"), JsonObject{{"name", "patched"}});
  auto ids = newest("projects", 100, 100);
  auto older_at = std::find(ids.begin(), ids.end(), text_field(older, "id"));
  auto newer_at = std::find(ids.begin(), ids.end(), text_field(newer, "id"));
  EXPECT_LT(newer_at, older_at);
}

TEST_F(Order, ManyWritersWithOneKeyCreateOneRecord) {
  HttpHeaders key{{"Idempotency-Key", unique_text()}};
  std::vector<std::string> ids(32);
  std::vector<std::thread> writers;
  for (auto& id : ids)
    writers.emplace_back([&] { id = text_field(site.create("messages", JsonObject{{"body", "once"}}, key), "id"); });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 1u);
}

TEST_F(Order, ManyWritersWithoutAKeyCreateARecordEach) {
  std::vector<std::string> ids(32);
  std::vector<std::thread> writers;
  for (auto& id : ids)
    writers.emplace_back([&] { id = text_field(site.create("messages", JsonObject{{"body", "each"}}), "id"); });
  for (auto& writer : writers) writer.join();
  std::set<std::string> once(ids.begin(), ids.end());
  EXPECT_EQ(once.size(), ids.size());
  auto listed = newest("messages", 100, 100);
  for (const auto& id : once) EXPECT_TRUE(std::find(listed.begin(), listed.end(), id) != listed.end());
}

TEST_F(Order, ConcurrentPatchesOfDifferentFieldsAllStay) {
  std::string id = text_field(site.create("messages", JsonObject{{"body", "b"}}), "id");
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([&, i] { site.patch("messages/" + id, JsonObject{{"x_" + std::to_string(i), i}}); });
  for (auto& writer : writers) writer.join();
  Json record = site.get("/messages/" + id).record();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(field(record, "x_" + std::to_string(i)), Json(i)) << i;
}

/// The revision protocol as in the document, with two concurrent clients.
TEST_F(Order, TheRevisionProtocolLeavesBothOfTwoRacingRevisions) {
  Json project = site.create("projects", JsonObject{{"name", "race"}});
  std::string project_id = text_field(project, "id");
  auto revision = [&](const std::string& parent, const std::string& content) {
    Json manifest = JsonObject{{"files", JsonObject{{"f", JsonObject{{"h", "h"}, {"s", 1}, {"inline", content}}}}}};
    return text_field(
        site.create("revisions", JsonObject{{"project", project_id},
                                            {"parents", parent.empty() ? Json::Array{} : Json::Array{parent}},
                                            {"agent", "ada"},
                                            {"message", content},
                                            {"manifest", manifest}}),
        "id");
  };
  std::string root = revision("", "0");
  site.patch("projects/" + project_id, JsonObject{{"latest_revision", root}});
  std::string head = text_field(site.get("/projects/" + project_id).record(), "latest_revision");
  EXPECT_EQ(head, root);

  std::string mine = revision(head, "1"), theirs = revision(head, "2");
  site.patch("projects/" + project_id, JsonObject{{"latest_revision", mine}});
  site.patch("projects/" + project_id, JsonObject{{"latest_revision", theirs}});
  EXPECT_EQ(text_field(site.get("/projects/" + project_id).record(), "latest_revision"), theirs);

  std::vector<std::string> siblings;
  Json records = site.get("/revisions?limit=100").member("records");
  ASSERT_NE(records.array(), nullptr);
  for (const Json& record : *records.array())
    if (field(record, "parents") == Json(Json::Array{root})) siblings.push_back(text_field(record, "id"));
  EXPECT_EQ(siblings, (std::vector<std::string>{theirs, mine}));
  Json files = field(field(site.get("/revisions/" + mine).record(), "manifest"), "files");
  EXPECT_EQ(text_field(field(files, "f"), "inline"), "1");
}

}  // namespace
}  // namespace playfs::conformance
