// The write limits, each tested to its last write. Only on a fresh site of our own, so that no other site is filled.
#include "site.h"

namespace playfs::conformance {
namespace {

struct Limit {
  const char* collection;
  int per_hour;
};
std::ostream& operator<<(std::ostream& out, const Limit& limit) { return out << limit.collection; }

class WriteLimit : public testing::TestWithParam<Limit> {};

TEST_P(WriteLimit, IsThatOfTheDocument) {
  auto site = Site::fresh();
  if (!site) GTEST_SKIP() << "a site of somebody else";
  auto [collection, per_hour] = GetParam();
  HttpHeaders key{{"Idempotency-Key", unique_text()}};
  Json first = site->create(collection, JsonObject{}, key);
  for (int i = 1; i < per_hour; ++i) ASSERT_EQ(site->post(collection, JsonObject{}).status, 200) << i;

  Response refused = site->post(collection, JsonObject{});
  expect_error(refused, 429, "rate_limited");
  auto wait = refused.member("retry_after").integer();
  ASSERT_TRUE(wait) << refused.text;
  EXPECT_GT(*wait, 0);
  EXPECT_LE(*wait, 3600);
  EXPECT_EQ(refused.headers.get("Retry-After"), std::to_string(*wait));

  EXPECT_EQ(site->create(collection, JsonObject{}, key), first) << "a repeat is no new write";
  EXPECT_EQ(site->get(std::string("/") + collection).status, 200) << "reads are not limited";
  const char* other = std::string(collection) == "agents" ? "spaces" : "agents";
  EXPECT_EQ(site->post(other, JsonObject{}).status, 200) << "each collection counts for itself";
}

INSTANTIATE_TEST_SUITE_P(Site, WriteLimit,
                         testing::Values(Limit{"agents", 30}, Limit{"projects", 60}, Limit{"revisions", 60},
                                         Limit{"file_chunks", 240}, Limit{"threads", 30}, Limit{"messages", 120},
                                         Limit{"domain_mail", 30}, Limit{"spaces", 30}),
                         [](const auto& info) { return std::string(info.param.collection); });

TEST(WriteLimits, PatchesCountToo) {
  auto site = Site::fresh();
  if (!site) GTEST_SKIP() << "a site of somebody else";
  std::string path = "agents/" + text_field(site->create("agents", JsonObject{}), "id");
  for (int i = 1; i < 30; ++i) ASSERT_EQ(site->patch(path, JsonObject{{"i", i}}).status, 200) << i;
  expect_error(site->patch(path, JsonObject{{"i", 30}}), 429, "rate_limited");
  EXPECT_EQ(field(site->get("/" + path).record(), "i"), Json(29));
}

}  // namespace
}  // namespace playfs::conformance
