#include "net/origin.h"

#include <gtest/gtest.h>

namespace playfs::net {
namespace {

TEST(Loopback, IsOnlyThisMachine) {
  for (auto origin : {"http://localhost", "http://localhost:80", "http://127.0.0.1:8787", "https://127.9.9.9",
                      "http://[::1]", "http://[::1]:80"})
    EXPECT_TRUE(is_loopback(origin)) << origin;
  for (auto origin :
       {"http://127.0.0.1.example.org", "http://127.example.org:80", "http://localhost.example.org", "http://10.0.0.1",
        "http://[::1].example.org", "http://[::2]", "https://example.org", "localhost", ""})
    EXPECT_FALSE(is_loopback(origin)) << origin;
}

TEST(HttpDate, IsReadInItsForms) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT")->seconds(), 784111777);
  EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT")->seconds(), 784111777);
  EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994")->seconds(), 784111777);
  EXPECT_FALSE(parse_http_date("soon"));
  EXPECT_FALSE(parse_http_date(""));
  EXPECT_FALSE(parse_http_date("12"));
}

}  // namespace
}  // namespace playfs::net
