#include "wire/server_events.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace playfs::wire {
namespace {

using Events = std::vector<std::string>;

/// "name|data|id" of each event.
Events fed(ServerEvents& parser, std::string_view text, std::size_t step = std::string_view::npos) {
  Events events;
  auto take = [&](const ServerEvent& event) { events.push_back(event.name + "|" + event.data + "|" + event.id); };
  for (; !text.empty(); text.remove_prefix(std::min(step, text.size()))) parser.feed(text.substr(0, step), take);
  return events;
}

Events events_of(std::string_view text) {
  ServerEvents parser;
  return fed(parser, text);
}

TEST(ServerEvents, AreReadAsTheStandardSays) {
  EXPECT_EQ(events_of("data: a\n\n"), Events{"message|a|"});
  EXPECT_EQ(events_of("\xef\xbb\xbf"
                      "event:x\nid: 7\ndata:a\ndata: b\n\n"),
            Events{"x|a\nb|7"});
  EXPECT_EQ(events_of("data: a\r\n\r\ndata: b\r\rdata: c\n\n"), (Events{"message|a|", "message|b|", "message|c|"}));
  EXPECT_EQ(events_of(": beat\n\n: beat\n\ndata\n\n"), Events{"message||"});
  EXPECT_EQ(events_of("id: 7\ndata: a\n\ndata: b\n\n"), (Events{"message|a|7", "message|b|7"})) << "an id stays";
  EXPECT_EQ(events_of(std::string_view("id: 7\0\ndata: a\n\n", 16)), Events{"message|a|"});
  EXPECT_EQ(events_of("event: x\n\ndata: a\n\n"), Events{"message|a|"}) << "without data there is no event";
  EXPECT_EQ(events_of("data: a\n"), Events{}) << "an event that was cut off is none";
}

TEST(ServerEvents, TheServersDelayIsANumber) {
  ServerEvents parser;
  EXPECT_FALSE(parser.retry());
  fed(parser, "retry: 250\nretry: -1\nretry: 1e3\nretry: 99999999999\nretry:\n");
  EXPECT_EQ(parser.retry(), std::chrono::milliseconds(250));
}

TEST(ServerEvents, WhatIsTooLargeIsDroppedAndTheNextEventIsRead) {
  const std::string line(ServerEvents::kLongestLine + 1, 'x');
  ServerEvents parser;
  EXPECT_EQ(fed(parser, "event: x\ndata: a\n" + line + "\n\ndata: b\n\n"), Events{"message|b|"});
  EXPECT_EQ(parser.dropped(), 1u);
  std::string lines;
  while (lines.size() < 2 * ServerEvents::kLargestEvent) lines += "data: " + std::string(1000, 'x') + "\n";
  EXPECT_EQ(fed(parser, lines + "\ndata: c\n\n"), Events{"message|c|"});
  EXPECT_EQ(parser.dropped(), 2u);
}

RC_GTEST_PROP(ServerEventsTest, PiecesMayEndAnywhere, ()) {
  static const char* const kParts[] = {"data: a", "data:", "event: x", "id: 7", "retry: 5",     ": c",
                                       "\n",      "\r",    "\r\n",     "\n\n",  "\xef\xbb\xbf", "x"};
  std::string text;
  for (int i = *rc::gen::inRange(0, 40); i > 0; --i)
    text += kParts[*rc::gen::inRange<std::size_t>(0, std::size(kParts))];
  ServerEvents parser;
  RC_ASSERT(fed(parser, text, *rc::gen::inRange<std::size_t>(1, 9)) == events_of(text));
}

TEST(Change, NamesARecord) {
  EXPECT_EQ(decode_change(R"({"collection":"messages","id":"m","updated_at":"t","thread":"h","new":[]})"),
            (Change{"messages", "m", "t", "h"}));
  EXPECT_EQ(decode_change(R"({"collection":"revisions","id":7,"project":"p"})"), (Change{"revisions", "7", "", "p"}));
  for (const char* data : {"", "{}", "[]", "{", R"({"collection":"messages"})", R"({"collection":"","id":"m"})",
                           R"({"collection":["messages"],"id":"m"})"})
    EXPECT_FALSE(decode_change(data)) << data;
  EXPECT_FALSE(decode_change(R"({"collection":"messages","id":")" + std::string(201, 'm') + R"("})"));
  EXPECT_FALSE(decode_change(R"({"collection":")" + std::string(65, 'm') + R"(","id":"m"})"));
}

}  // namespace
}  // namespace playfs::wire
