#include "runtime/source.h"

#include <gtest/gtest.h>

#include "support/test_io.h"

namespace playfs::runtime {
namespace {

using test::TestIo;

class SourceTest : public testing::Test {
 protected:
  Result<Source> parse(std::string_view text, std::optional<std::string> base_path = {}) {
    test_.io.directory = "/home/ada/here";
    Places places;
    places.data = "/home/ada/.local/share/playfs";
    return parse_source(text, std::move(base_path), places, test_.io);
  }
  TestIo test_;
};

TEST_F(SourceTest, ReducesAddressesToOneForm) {
  EXPECT_EQ(parse("https://Example.ORG")->text, "https://example.org");
  EXPECT_EQ(parse("https://example.org:443/")->origin, "https://example.org");
  EXPECT_EQ(parse("http://example.org:80")->origin, "http://example.org");
  EXPECT_EQ(parse("http://127.0.0.1:8787")->origin, "http://127.0.0.1:8787");
  EXPECT_EQ(parse("https://example.org:80")->origin, "https://example.org:80");
  EXPECT_EQ(parse("http://[::1]:8787")->origin, "http://[::1]:8787");
}

TEST_F(SourceTest, TakesTheApiPathFromTheUrlOrTheOption) {
  EXPECT_EQ(parse("https://example.org")->base_path, "/.site/data");
  EXPECT_EQ(parse("https://example.org/mirror/.site/data")->base_path, "/mirror/.site/data");
  EXPECT_EQ(parse("https://example.org", "/api/")->base_path, "/api");
  EXPECT_EQ(parse("https://example.org/elsewhere").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(parse("https://example.org", "api").error().code, ErrorCode::invalid_argument);
}

TEST_F(SourceTest, FindsLocalPlaygrounds) {
  EXPECT_EQ(parse("local:")->text, "local:default");
  EXPECT_EQ(parse("local:demo")->directory, "/home/ada/.local/share/playfs/demo");
  EXPECT_EQ(parse("local:/srv/play/")->directory, "/srv/play");
  EXPECT_EQ(parse("local:./play")->text, "local:/home/ada/here/play");
  for (const char* bad : {"local:a/b", "local:.hidden", "local:a/../../b"}) EXPECT_FALSE(parse(bad)) << bad;
}

TEST_F(SourceTest, RefusesWhatIsNoService) {
  for (const char* bad : {"", "example.org", "ftp://example.org", "https://", "https://:80", "https://a b",
                          "https://a:0", "https://a:65536", "https://a:x", "https://[::1", "https://a?x=1",
                          "https://a#x", "https://a%2fb", "https://a\nb"})
    EXPECT_EQ(parse(bad).error().code, ErrorCode::invalid_argument) << bad;
}

TEST_F(SourceTest, NeverRepeatsAPassword) {
  auto refused = parse("https://ada:hunter2@example.org");
  ASSERT_FALSE(refused);
  EXPECT_EQ((refused.error().message + refused.error().hint).find("hunter2"), std::string::npos);
}

TEST_F(SourceTest, CarriesCredentialsOnlyWhereNobodyListens) {
  for (const char* good : {"https://example.org", "http://127.0.0.1:8787", "http://127.9.9.9", "http://localhost:80",
                           "http://[::1]:8787", "http://[::1]"})
    EXPECT_TRUE(parse(good)->may_carry_credentials()) << good;
  for (const char* bad : {"http://example.org", "http://127.example.org", "http://127.0.0.1.example.org",
                          "http://localhost.example.org", "local:demo"})
    EXPECT_FALSE(parse(bad)->may_carry_credentials()) << bad;
}

}  // namespace
}  // namespace playfs::runtime
