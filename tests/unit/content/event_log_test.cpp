#include "content/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hints.h"
#include "content/outage.h"
#include "support/manual_time.h"
#include "wire/json.h"

namespace playfs::content {
namespace {

using testing::HasSubstr;

std::vector<Json> lines(const std::string& text) {
  std::vector<Json> parsed;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    EXPECT_NE(end, std::string::npos) << "every line ends";
    auto json = wire::parse_json(text.substr(begin, end - begin));
    EXPECT_TRUE(json) << text;
    if (json) parsed.push_back(std::move(*json));
    begin = end + 1;
  }
  return parsed;
}

std::string text_of(const Json& line, std::string_view name) {
  const Json* value = line.object()->find(name);
  return value && value->string() ? *value->string() : "absent";
}

Error error(ErrorCode code, std::string message, std::string hint = "") {
  return {code, std::move(message), std::move(hint)};
}

class EventLogTest : public testing::Test {
 protected:
  test::ManualClock clock_;
  EventLog log_{clock_};
};

TEST_F(EventLogTest, WritesOneDocumentALine) {
  log_.error("projects/p/a\nb", error(ErrorCode::corrupt, "line\nbreak \"quoted\"", "try again"));
  log_.error("host", error(ErrorCode::unreachable, "gone"));
  auto parsed = lines(log_.errors_text());
  ASSERT_EQ(parsed.size(), 2U);
  EXPECT_EQ(text_of(parsed[0], "code"), "corrupt");
  EXPECT_EQ(text_of(parsed[0], "message"), "line\nbreak \"quoted\"");
  EXPECT_EQ(text_of(parsed[0], "subject"), "projects/p/a\nb");
  EXPECT_EQ(text_of(parsed[0], "hint"), "try again");
  EXPECT_TRUE(parse_iso8601(text_of(parsed[0], "time")));
  EXPECT_EQ(text_of(parsed[1], "hint"), usual_hint(ErrorCode::unreachable));
  EXPECT_EQ(log_.events_text(), "");
}

TEST_F(EventLogTest, EventsCarryTheirFields) {
  log_.event("head", {{"project", "p"}, {"count", 3}});
  auto parsed = lines(log_.events_text());
  ASSERT_EQ(parsed.size(), 1U);
  EXPECT_EQ(text_of(parsed[0], "kind"), "head");
  EXPECT_EQ(parsed[0].object()->find("count")->integer(), 3);
}

TEST_F(EventLogTest, IsBoundedAndKeepsTheNewest) {
  for (int i = 0; i < 10'000; ++i)
    log_.error("subject " + std::to_string(i), error(ErrorCode::io, std::string(100, 'x')));
  const std::string text = log_.errors_text();
  EXPECT_LE(text.size(), 256U * 1024);
  EXPECT_THAT(text, HasSubstr("subject 9999\""));
  EXPECT_THAT(text, testing::Not(HasSubstr("subject 0\"")));
  EXPECT_FALSE(lines(text).empty());
}

TEST_F(EventLogTest, ListenersHearOfBothAndMayRead) {
  std::size_t heard = 0, seen = 0;
  log_.on_append([&] {
    ++heard;
    seen = log_.errors_text().size() + log_.events_text().size();
  });
  log_.error("a", error(ErrorCode::io, "x"));
  log_.event("b", {});
  EXPECT_EQ(heard, 2U);
  EXPECT_EQ(seen, log_.errors_text().size() + log_.events_text().size());
}

TEST_F(EventLogTest, AnOutageIsToldOnceAndSoIsItsEnd) {
  OutageWatch watch("https://site.example", clock_, log_);
  const Error gone = error(ErrorCode::unreachable, "nobody answers");
  const Error refused = error(ErrorCode::not_found, "an answer");
  const Error interrupted = error(ErrorCode::interrupted, "says nothing");
  watch.saw(nullptr);
  for (int i = 0; i < 3; ++i) watch.saw(&gone);
  watch.saw(&interrupted);
  EXPECT_EQ(lines(log_.errors_text()).size(), 1U);
  EXPECT_EQ(log_.events_text(), "");
  clock_.advance(std::chrono::seconds(30));
  watch.saw(&refused);
  watch.saw(nullptr);
  auto events = lines(log_.events_text());
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(text_of(events[0], "kind"), "recovered");
  EXPECT_EQ(events[0].object()->find("after_s")->integer(), 30);
  watch.saw(&gone);
  EXPECT_EQ(lines(log_.errors_text()).size(), 2U);
}

}  // namespace
}  // namespace playfs::content
