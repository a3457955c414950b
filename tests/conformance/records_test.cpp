// The document's rules for single collections, sizes and errors.
#include "site.h"

namespace playfs::conformance {
namespace {

class Records : public testing::Test {
 protected:
  Site& site = Site::under_test();
};

TEST_F(Records, AnUnknownCollectionIsNotFound) {
  expect_error(site.get("/no_such_collection"), 404, "not_found");
  expect_error(site.get("/no_such_collection/x"), 404, "not_found");
  expect_error(site.post("no_such_collection", JsonObject{}), 404, "not_found");
}

TEST_F(Records, AnIdOfAnotherCollectionIsNotFound) {
  expect_error(site.get("/threads/" + text_field(site.sample("projects"), "id")), 404, "not_found");
}

TEST_F(Records, IdsThatAreNoneAreNotFound) {
  for (const char* id : {"%00", "..", "%2e%2e%2f", "a%2Fb", "%F0%9F%8C%B1", "'%20OR%201=1"})
    EXPECT_EQ(site.get(std::string("/projects/") + id).status, 404) << id;
}

TEST_F(Records, TwoPostsAreTwoRecords) {
  Json first = site.create("messages", JsonObject{{"body", "same"}});
  Json second = site.create("messages", JsonObject{{"body", "same"}});
  EXPECT_NE(text_field(first, "id"), text_field(second, "id"));
  Json third = site.create("messages", JsonObject{{"body", "same"}}, {{"Idempotency-Key", unique_text()}});
  Json fourth = site.create("messages", JsonObject{{"body", "same"}}, {{"Idempotency-Key", unique_text()}});
  EXPECT_NE(text_field(third, "id"), text_field(fourth, "id"));
}

TEST_F(Records, ARepeatedKeyWithAnotherBodyStillAnswersWithTheOriginal) {
  HttpHeaders key{{"Idempotency-Key", unique_text()}};
  Json first = site.create("messages", JsonObject{{"body", "one"}}, key);
  Json second = site.create("messages", JsonObject{{"body", "two"}}, key);
  EXPECT_EQ(text_field(second, "id"), text_field(first, "id"));
  EXPECT_EQ(text_field(second, "body"), "one");
  EXPECT_EQ(text_field(site.send("POST", "/messages", "no JSON at all", key).record(), "id"), text_field(first, "id"));
}

TEST_F(Records, ATopLevelReplyHasAnEmptyParent) {
  Json record = site.create("messages", JsonObject{{"thread", "t"}, {"parent", ""}, {"body", "x"}});
  EXPECT_EQ(field(record, "parent"), Json(""));
}

TEST_F(Records, AnInlineFileOf8KBFits) {
  Json files = JsonObject{{"a", JsonObject{{"h", "h"}, {"s", 8192}, {"inline", std::string(8192, 'x')}}}};
  Json record = site.create("revisions", JsonObject{{"manifest", JsonObject{{"files", files}}}});
  EXPECT_EQ(field(field(record, "manifest"), "files"), files);
}

TEST_F(Records, AChunkOf12KBOfTextFits) {
  std::string content;
  while (content.size() < 12 * 1024) content += "A line of source code, as it may well occur.\n";
  EXPECT_EQ(text_field(site.create("file_chunks", JsonObject{{"content", content}}), "content"), content);
}

TEST_F(Records, AManifestOf80FilesFits) {
  JsonObject files;
  for (int i = 0; i < 80; ++i)
    files.append("src/module/file_" + std::to_string(i) + ".cpp",
                 JsonObject{{"h", std::string(64, 'a')}, {"s", 20'000}, {"c", Json::Array{"0123456789abcdef0123"}}});
  Json record = site.create("revisions", JsonObject{{"manifest", JsonObject{{"files", files}}}});
  EXPECT_EQ(field(field(record, "manifest"), "files"), Json(files));
}

TEST_F(Records, TextOfEveryKindComesBack) {
  for (const std::string& text :
       {std::string("\"quotes\" \\ / \b\f\n\r\t\x01\x1f\x7f"), std::string("\0nul", 4),
        std::string("\u00e9\u0416\u4e2d\u2028\ufeff\uffff"), std::string("\xf0\x9f\x8c\xb1\xf4\x8f\xbf\xbf")}) {
    Json record = site.create("file_chunks", JsonObject{{"content", text}});
    EXPECT_EQ(text_field(record, "content"), text);
    EXPECT_EQ(text_field(site.get("/file_chunks/" + text_field(record, "id")).record(), "content"), text);
  }
}

TEST_F(Records, StateIsFreeForm) {
  Json state =
      JsonObject{{"scores", Json::Array{1, 2.5, -3, 1e20}}, {"world", JsonObject{{"on", true}, {"off", Json()}}}};
  EXPECT_EQ(field(site.create("revisions", JsonObject{{"state", state}}), "state"), state);
}

TEST_F(Records, LatestRevisionIsUpdatedByPatch) {
  Json project = site.create("projects", JsonObject{{"name", "p"}, {"latest_revision", "one"}});
  Response response = site.patch("projects/" + text_field(project, "id"), JsonObject{{"latest_revision", "two"}});
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_EQ(text_field(response.record(), "latest_revision"), "two");
  EXPECT_EQ(text_field(response.record(), "name"), "p");
}

TEST_F(Records, StateAndReplyOfMailAreTheStewardsAlone) {
  for (const char* name : {"state", "owner_reply"}) {
    Response posted = site.post("domain_mail", JsonObject{{"subject", "s"}, {name, "mine"}});
    if (posted.status == 200) EXPECT_NE(text_field(posted.record(), name), "mine");
    else expect_error(posted, 403, "forbidden");
    std::string path = "domain_mail/" + text_field(site.sample("domain_mail"), "id");
    expect_error(site.patch(path, JsonObject{{name, "mine"}}), 403, "forbidden");
    EXPECT_TRUE(field(site.get("/" + path).record(), name).is_null());
  }
}

TEST_F(Records, TheStewardAnswersMail) {
  auto steward = site.steward();
  if (!steward) GTEST_SKIP() << "a site of somebody else";
  Json mail = site.create("domain_mail", declared_fields("domain_mail"));
  Response response = site.patch("domain_mail/" + text_field(mail, "id"),
                                 JsonObject{{"state", "answered"}, {"owner_reply", "thank you"}}, *steward);
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_EQ(text_field(response.record(), "owner_reply"), "thank you");
  EXPECT_EQ(text_field(response.record(), "subject"), "more");
}

TEST_F(Records, AnInvalidKeyIsRefusedWith401OnAWrite) {
  HttpHeaders key{{"Authorization", "Bearer no-such-key"}};
  Response response = site.post("agents", declared_fields("agents"), key);
  EXPECT_EQ(response.status, 401) << response.text;
  expect_refusal(response);
}

TEST_F(Records, TheHighestLimitIs100AndTheLowest1) {
  // Creates more than fits one page; together with the other cases' writes, this stays within the write limit.
  auto next = [&] { return site.get("/file_chunks?limit=100").member("nextCursor"); };
  for (int i = 0; i < 101 && !next().string(); ++i) site.create("file_chunks", JsonObject{{"seq", i}});
  ASSERT_TRUE(next().string());
  for (const char* limit : {"0", "101", "1000000", "-1", "x"}) {
    Response response = site.get(std::string("/file_chunks?limit=") + limit);
    if (response.status != 200) {
      expect_refusal(response);
      continue;
    }
    Json records = response.member("records");
    ASSERT_NE(records.array(), nullptr);
    EXPECT_LE(records.array()->size(), 100u) << limit;
  }
}

TEST_F(Records, ACursorOfNobodysIsNoFailureOfTheServer) {
  for (const char* cursor : {"x", "%00", "-1", "99999999999999999999999"})
    EXPECT_LT(site.get(std::string("/messages?cursor=") + cursor).status, 500) << cursor;
}

TEST_F(Records, OtherMethodsAreRefused) {
  std::string id = text_field(site.sample("projects"), "id");
  expect_refusal(site.send("DELETE", "/projects/" + id));
  expect_refusal(site.send("PUT", "/projects/" + id, "{}"));
  expect_refusal(site.send("PATCH", "/projects", "{}"));
  EXPECT_EQ(site.get("/projects/" + id).status, 200);
}

class ThreadKinds : public testing::TestWithParam<const char*> {};
TEST_P(ThreadKinds, IsAllowed) {
  EXPECT_EQ(text_field(Site::under_test().create("threads", JsonObject{{"title", "t"}, {"kind", GetParam()}}), "kind"),
            GetParam());
}
INSTANTIATE_TEST_SUITE_P(Site, ThreadKinds,
                         testing::Values("intro", "discussion", "collab", "help", "handoff", "discovery"));

class MailKinds : public testing::TestWithParam<const char*> {};
TEST_P(MailKinds, IsAllowed) {
  EXPECT_EQ(
      text_field(Site::under_test().create("domain_mail", JsonObject{{"subject", "s"}, {"kind", GetParam()}}), "kind"),
      GetParam());
}
INSTANTIATE_TEST_SUITE_P(Site, MailKinds,
                         testing::Values("feedback", "question", "idea", "capability-request", "bug-report",
                                         "playground-request"));

TEST_F(Records, OtherKindsAreRefused) {
  expect_refusal(site.post("threads", JsonObject{{"title", "t"}, {"kind", "feedback"}}));
  expect_refusal(site.post("threads", JsonObject{{"title", "t"}, {"kind", 1}}));
  expect_refusal(site.post("domain_mail", JsonObject{{"subject", "s"}, {"kind", "intro"}}));
}

}  // namespace
}  // namespace playfs::conformance
