// The document's rules for every collection, once for each.
#include <algorithm>

#include "base/clock.h"
#include "site.h"

namespace playfs::conformance {
namespace {

class EachCollection : public testing::TestWithParam<const char*> {
 protected:
  const std::string collection = GetParam();
  Site& site = Site::under_test();

  std::vector<Json> page(const std::string& query) {
    Response response = site.get("/" + collection + query);
    EXPECT_EQ(response.status, 200) << response.text;
    Json records = response.member("records");
    EXPECT_NE(records.array(), nullptr) << response.text;
    return records.array() ? *records.array() : std::vector<Json>();
  }
};

TEST_P(EachCollection, InsertIsPublicAndAnswersWithTheRecord) {
  Response response = site.post(collection, declared_fields(collection));
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_NE(response.member("record").object(), nullptr) << response.text;
}

TEST_P(EachCollection, ARecordCarriesTheSystemFields) {
  const Json& record = site.sample(collection);
  EXPECT_FALSE(text_field(record, "id").empty());
  EXPECT_TRUE(field(record, "status").string());
  EXPECT_TRUE(parse_iso8601(text_field(record, "created_at"))) << text_field(record, "created_at");
  EXPECT_TRUE(parse_iso8601(text_field(record, "updated_at"))) << text_field(record, "updated_at");
}

TEST_P(EachCollection, DeclaredFieldsComeBackAsTheyWereSent) {
  Json sent = declared_fields(collection);
  for (const auto& [name, value] : *sent.object()) EXPECT_EQ(field(site.sample(collection), name), value) << name;
}

TEST_P(EachCollection, DeclaredFieldsAreAcceptedUnderData) {
  Json sent = declared_fields(collection);
  Json record = site.create(collection, JsonObject{{"data", sent}});
  for (const auto& [name, value] : *sent.object()) EXPECT_EQ(field(record, name), value) << name;
}

TEST_P(EachCollection, UnknownFieldsAreKept) {
  Json fields = declared_fields(collection);
  fields.object()->set("x_unknown", JsonObject{{"deep", Json::Array{1, Json(), true, "\"\\\n\u00e9"}}});
  EXPECT_EQ(field(site.create(collection, fields), "x_unknown"), *fields.object()->find("x_unknown"));
}

TEST_P(EachCollection, GetAnswersWithTheRecord) {
  const Json& sample = site.sample(collection);
  Response response = site.get("/" + collection + "/" + text_field(sample, "id"));
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_EQ(response.member("record"), sample);
}

TEST_P(EachCollection, AReadMayBeRepeated) {
  std::string path = "/" + collection + "/" + text_field(site.sample(collection), "id");
  EXPECT_EQ(site.get(path).body, site.get(path).body);
}

TEST_P(EachCollection, ReadingNeedsNoOrigin) {
  EXPECT_EQ(site.send("GET", "/" + collection, {}, {{"Origin", ""}}).status, 200);
}

TEST_P(EachCollection, ARecordThatDoesNotExistIsNotFound) {
  expect_error(site.get("/" + collection + "/no-such-record"), 404, "not_found");
}

TEST_P(EachCollection, AListIsAnObjectOfRecordsAndNextCursor) {
  site.sample(collection);
  Response response = site.get("/" + collection);
  EXPECT_EQ(response.status, 200) << response.text;
  ASSERT_NE(response.member("records").array(), nullptr) << response.text;
  ASSERT_NE(response.body.object()->find("nextCursor"), nullptr) << response.text;
  Json cursor = response.member("nextCursor");
  EXPECT_TRUE(cursor.is_null() || cursor.string()) << response.text;
}

TEST_P(EachCollection, AListIsNewestFirst) {
  Json newest = site.create(collection, declared_fields(collection));
  auto records = page("?limit=100");
  std::vector<std::string> times;
  for (const Json& record : records) times.push_back(text_field(record, "created_at"));
  EXPECT_TRUE(std::is_sorted(times.rbegin(), times.rend()));
  EXPECT_TRUE(std::find(records.begin(), records.end(), newest) != records.end()) << "the newest is not on page one";
}

TEST_P(EachCollection, LimitIsTheSizeOfAPage) {
  site.sample(collection);
  EXPECT_EQ(page("?limit=1").size(), 1u);
  EXPECT_LE(page("").size(), 50u);
  EXPECT_LE(page("?limit=100").size(), 100u);
}

TEST_P(EachCollection, ThereAreNoFilters) {
  site.sample(collection);
  EXPECT_EQ(page("?limit=1&id=no-such-record&agent=nobody&status=none").size(), 1u);
}

TEST_P(EachCollection, APostWithoutOriginIsRefused) {
  expect_refusal(site.post(collection, declared_fields(collection), {{"Origin", ""}}));
}

TEST_P(EachCollection, APostFromAnotherOriginIsRefused) {
  expect_refusal(site.post(collection, declared_fields(collection), {{"Origin", "https://elsewhere.example"}}));
}

TEST_P(EachCollection, ARepeatedPostWithItsKeyAnswersWithTheOriginal) {
  HttpHeaders key{{"Idempotency-Key", unique_text()}};
  Json first = site.create(collection, declared_fields(collection), key);
  EXPECT_EQ(site.create(collection, declared_fields(collection), key), first);
  int found = 0;
  for (const Json& record : page("?limit=100")) found += text_field(record, "id") == text_field(first, "id");
  EXPECT_EQ(found, 1);
}

TEST_P(EachCollection, ARecordPastTheSizeLimitIsRefused) {
  Json fields = declared_fields(collection);
  fields.object()->set("x_large", std::string(16 * 1024, 'x'));
  Response response = site.post(collection, fields);
  expect_refusal(response);
  EXPECT_EQ(text_field(response.body, "code"), "record_too_large") << response.text;
}

TEST_P(EachCollection, AnEmptyObjectOfFieldsGetsAnAnswer) {
  Response response = site.post(collection, JsonObject{});
  if (response.status != 200) expect_refusal(response);
}

TEST_P(EachCollection, ABodyThatIsNoObjectIsRefused) {
  for (const char* body : {"[]", "1", "{", "\"x\"", "{\"a\":}", ""})
    expect_refusal(site.send("POST", "/" + collection, body, {{"Content-Type", "application/json"}}));
}

INSTANTIATE_TEST_SUITE_P(Site, EachCollection, testing::ValuesIn(kCollections),
                         [](const auto& info) { return std::string(info.param); });

/// The five collections that anyone may change.
class PublicUpdate : public testing::TestWithParam<const char*> {
 protected:
  const std::string collection = GetParam();
  Site& site = Site::under_test();
};

TEST_P(PublicUpdate, PatchMergesIntoTheRecord) {
  Json fields = declared_fields(collection);
  fields.object()->set("x_kept", "kept");
  Json before = site.create(collection, fields);
  std::string path = collection + "/" + text_field(before, "id");
  Response response = site.patch(path, JsonObject{{"x_changed", Json::Array{1, 2}}});
  EXPECT_EQ(response.status, 200) << response.text;
  Json after = response.record();
  EXPECT_EQ(field(after, "x_changed"), Json(Json::Array{1, 2}));
  EXPECT_EQ(text_field(after, "x_kept"), "kept");
  for (const auto& [name, value] : *fields.object()) EXPECT_EQ(field(after, name), value) << name;
  for (const char* name : {"id", "created_at", "status"})
    EXPECT_EQ(text_field(after, name), text_field(before, name)) << name;
  EXPECT_GE(text_field(after, "updated_at"), text_field(before, "updated_at"));
  EXPECT_EQ(site.get("/" + path).record(), after);
}

TEST_P(PublicUpdate, PatchTakesFieldsUnderData) {
  Json before = site.create(collection, declared_fields(collection));
  Response response =
      site.patch(collection + "/" + text_field(before, "id"), JsonObject{{"data", JsonObject{{"x_new", "new"}}}});
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_EQ(text_field(response.record(), "x_new"), "new");
}

TEST_P(PublicUpdate, APatchOfNothingIsNotFound) {
  expect_error(site.patch(collection + "/no-such-record", JsonObject{{"a", 1}}), 404, "not_found");
}

TEST_P(PublicUpdate, APatchCannotTouchTheSystemFields) {
  std::string path = collection + "/" + text_field(site.sample(collection), "id");
  site.patch(path, JsonObject{{"id", "other"}, {"created_at", "2001-01-01T00:00:00Z"}});
  Json after = site.get("/" + path).record();
  EXPECT_EQ(text_field(after, "id"), text_field(site.sample(collection), "id"));
  EXPECT_EQ(text_field(after, "created_at"), text_field(site.sample(collection), "created_at"));
}

INSTANTIATE_TEST_SUITE_P(Site, PublicUpdate, testing::Values("agents", "projects", "threads", "messages", "spaces"),
                         [](const auto& info) { return std::string(info.param); });

/// The three that only the owner may change.
class OwnerUpdate : public testing::TestWithParam<const char*> {
 protected:
  const std::string collection = GetParam();
  Site& site = Site::under_test();
};

TEST_P(OwnerUpdate, APatchByAnybodyIsForbidden) {
  std::string path = collection + "/" + text_field(site.sample(collection), "id");
  expect_error(site.patch(path, JsonObject{{"message", "changed"}}), 403, "forbidden");
  EXPECT_EQ(site.get("/" + path).record(), site.sample(collection));
}

TEST_P(OwnerUpdate, TheOwnerMayPatch) {
  auto owner = site.owner();
  if (!owner) GTEST_SKIP() << "no API key for this site";
  Json record = site.create(collection, declared_fields(collection), *owner);
  std::string path = collection + "/" + text_field(record, "id");
  expect_error(site.patch(path, JsonObject{{"x_note", "no"}}), 403, "forbidden");
  Response response = site.patch(path, JsonObject{{"x_note", "yes"}}, *owner);
  EXPECT_EQ(response.status, 200) << response.text;
  EXPECT_EQ(text_field(response.record(), "x_note"), "yes");
}

TEST_P(OwnerUpdate, AnotherAccountsRecordIsForbidden) {
  auto owner = site.owner();
  if (!owner) GTEST_SKIP() << "no API key for this site";
  std::string path = collection + "/" + text_field(site.sample(collection), "id");
  expect_error(site.patch(path, JsonObject{{"x_note", "mine"}}, *owner), 403, "forbidden");
}

INSTANTIATE_TEST_SUITE_P(Site, OwnerUpdate, testing::Values("revisions", "file_chunks", "domain_mail"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace playfs::conformance
