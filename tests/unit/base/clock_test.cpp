#include "base/clock.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

std::string round_trip(std::string_view text, bool end = false) {
  auto time = parse_iso8601(text, end);
  return time ? format_iso8601(*time) : "refused";
}

TEST(Iso8601, ReadsWhatServicesSend) {
  EXPECT_EQ(round_trip("2026-10-01T12:00:00Z"), "2026-10-01T12:00:00.000000Z");
  EXPECT_EQ(round_trip("2026-10-01T12:00:00.25Z"), "2026-10-01T12:00:00.250000Z");
  EXPECT_EQ(round_trip("2026-10-01T12:00:00+02:00"), "2026-10-01T10:00:00.000000Z");
  EXPECT_EQ(round_trip("2026-10-01 12:00:00.123456789"), "2026-10-01T12:00:00.123456Z");
  EXPECT_EQ(round_trip("1969-12-31T23:59:59.5Z"), "1969-12-31T23:59:59.500000Z");
}

TEST(Iso8601, PrefixNamesItsFirstAndItsLastInstant) {
  EXPECT_EQ(round_trip("2026"), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(round_trip("2026", true), "2026-12-31T23:59:59.999999Z");
  EXPECT_EQ(round_trip("2026-12", true), "2026-12-31T23:59:59.999999Z");
  EXPECT_EQ(round_trip("2026-02", true), "2026-02-28T23:59:59.999999Z");
  EXPECT_EQ(round_trip("2026-10-01", true), "2026-10-01T23:59:59.999999Z");
  EXPECT_EQ(round_trip("2026-10-01T12", true), "2026-10-01T12:59:59.999999Z");
  EXPECT_EQ(round_trip("2026-10-01T12:00", true), "2026-10-01T12:00:59.999999Z");
  EXPECT_EQ(round_trip("2026-10-01T12:00Z"), "2026-10-01T12:00:00.000000Z");
}

TEST(Iso8601, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "x", "20261", "2026-13", "2026-02-30", "2026-1-1", "2026-10-01T25", "2026-10-01T12:00:00.Z",
        "2026-10-01T12:00:00Zx", "2026-10-01T12:00:00+2", "-026", "2026-10-01T12:-1"})
    EXPECT_EQ(round_trip(text), "refused") << text;
}

}  // namespace
}  // namespace playfs
