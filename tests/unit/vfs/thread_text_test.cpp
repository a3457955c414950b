#include "vfs/control/thread_text.h"

#include <gtest/gtest.h>

#include "vfs/control/control_text.h"
#include "vfs/control/record_change.h"
#include "vfs/link_names.h"

namespace playfs::vfs {
namespace {

content::RecordPartPtr message_part(const std::string& id, const std::string& created,
                                    const std::string& updated = "") {
  Record record{id, created, updated.empty() ? created : updated, "", {{"body", id}}};
  return std::make_shared<const content::RecordPart>(
      content::RecordPart{line_of_message(record).record, content::Text(std::string())});
}

std::vector<std::string> ids_in(const std::string& text) {
  std::vector<std::string> ids;
  for (std::size_t at = 0; (at = text.find("{\"id\":\"", at)) != std::string::npos; at += 7)
    ids.push_back(text.substr(at + 7, text.find('"', at + 7) - at - 7));
  return ids;
}

TEST(ThreadText, WhatIsLeftOutChangesInSteps) {
  EXPECT_EQ(left_out(1000, 1000), 0U);
  EXPECT_EQ(left_out(1001, 1001), 500U);
  EXPECT_EQ(left_out(1500, 1500), 500U);
  EXPECT_EQ(left_out(1501, 1501), 1000U);
  EXPECT_EQ(left_out(100, 69), 32U);
  EXPECT_EQ(left_out(100, 68), 32U);
  EXPECT_EQ(left_out(100, 67), 64U);
  EXPECT_EQ(left_out(3, 1), 2U) << "a step would leave nothing";
}

TEST(ThreadText, AChangedMessageIsThereAgainWhenItWasChanged) {
  std::vector<content::RecordPartPtr> shown{message_part("a", "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"),
                                            message_part("b", "2026-01-02T00:00:00Z"),
                                            message_part("c", "2026-01-04T00:00:00Z", "2026-01-04T00:00:00.500Z")};
  EXPECT_EQ(ids_in(messages_ndjson(shown)), (std::vector<std::string>{"a", "b", "a", "c"}));
  const std::string before = messages_ndjson(shown);
  shown.push_back(message_part("d", "2026-01-05T00:00:00Z"));
  EXPECT_TRUE(messages_ndjson(shown).starts_with(before));
}

content::ListPtr list_of(std::initializer_list<std::pair<const char*, int>> newest_first) {
  auto list = std::make_shared<std::vector<content::Listed>>();
  for (const auto& [id, updated] : newest_first) {
    content::Listed item;
    item.id = id;
    item.updated_at = {updated};
    list->push_back(std::move(item));
  }
  return list;
}

TEST(ThreadText, WhatFollowsIsAppendedIfNothingElseHasChanged) {
  const ThreadPart shown{list_of({{"c", 1}, {"b", 1}, {"a", 1}}), 0, 1};
  auto after = [&](const content::ListPtr& now, bool is_whole = true) { return messages_after(shown, *now, is_whole); };
  EXPECT_EQ(after(shown.list), 0U);
  EXPECT_EQ(after(list_of({{"e", 1}, {"d", 1}, {"c", 1}, {"b", 1}, {"a", 1}})), 2U);
  EXPECT_EQ(after(list_of({{"d", 1}, {"c", 1}, {"b", 1}, {"a", 2}})), 1U) << "that one is left out";
  EXPECT_EQ(after(list_of({{"d", 1}, {"c", 1}, {"b", 2}, {"a", 1}})), std::nullopt) << "an edit";
  EXPECT_EQ(after(list_of({{"d", 1}, {"c", 1}, {"x", 1}, {"b", 1}, {"a", 1}})), std::nullopt) << "in between";
  EXPECT_EQ(after(list_of({{"c", 1}, {"b", 1}, {"a", 1}, {"x", 1}})), std::nullopt) << "before";
  EXPECT_EQ(after(list_of({{"b", 1}, {"a", 1}})), std::nullopt) << "one is gone";
  EXPECT_EQ(after(list_of({{"d", 1}, {"c", 1}, {"b", 1}})), std::nullopt) << "the oldest is gone";
  EXPECT_EQ(after(list_of({{"d", 1}, {"c", 1}, {"b", 1}}), false), 1U) << "the list has no room for it any more";
  EXPECT_EQ(messages_after({list_of({}), 0, 0}, *list_of({{"a", 1}}), true), 1U);
}

TEST(ThreadText, APartGrowsFromItsOwnBeginning) {
  const auto now = list_of({{"e", 1}, {"d", 1}, {"c", 1}, {"b", 1}, {"a", 1}});
  const ThreadPart shown{list_of({{"c", 1}, {"b", 1}, {"a", 1}}), 0, 1};
  const ThreadPart half = part_with(shown, now, 2, 1);
  EXPECT_EQ(messages_after(half, *now, true), 1U);
  EXPECT_EQ(half.older, 1U);
  EXPECT_EQ(messages_after(part_with(half, now, 1, 0), *now, true), 0U);
  const auto cut = list_of({{"d", 1}, {"c", 1}, {"b", 1}});
  EXPECT_EQ(part_with(shown, cut, 1, 0).older, 0U);
}

TEST(ThreadText, ALineIsNeverLong) {
  Record large{"a", "", "", "", {{"body", std::string(1 << 20, 'x')}}};
  EXPECT_LT(size_of_message(line_of_message(large).record), 1000U);
}

TEST(RecordChange, OnlyWhatDiffersIsSent) {
  const std::string text = R"({"id": "r", "created_at": "t", "updated_at": "u", "a": 1, "b": {"c": [1]}, "d": "x"})";
  const Record shown{"r", "t", "u", "", {{"a", 1}, {"b", JsonObject{{"c", Json::Array{1}}}}, {"d", "x"}}};
  EXPECT_EQ(changed_fields("agents", shown, shown, text).value(), JsonObject());
  EXPECT_EQ(changed_fields("agents", shown, shown, R"({"a": 1, "d": "y", "b": {"c": [1]}, "e": null})").value(),
            (JsonObject{{"d", "y"}, {"e", nullptr}}));
  const char* system = R"({"id": "z", "created_at": "u", "updated_at": 1, "status": "s"})";
  EXPECT_EQ(changed_fields("agents", shown, shown, system).value(), JsonObject());
  EXPECT_EQ(changed_fields("agents", shown, shown, "[1]").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(changed_fields("agents", shown, shown, "{\"a\": }").error().code, ErrorCode::invalid_argument);
}

TEST(RecordChange, ACopyOfAnotherVersionIsRefused) {
  const Record shown{"r", "t", "u", "", {{"a", 1}}};
  for (const char* version : {"updated_at", "updatedAt"}) {
    const std::string rest = std::string(R"({"a": 2, ")") + version + R"(": )";
    EXPECT_EQ(changed_fields("agents", shown, shown, rest + R"("u"})").value(), (JsonObject{{"a", 2}}));
    EXPECT_EQ(changed_fields("agents", shown, shown, rest + R"("earlier"})").error().code, ErrorCode::stale);
  }
}

TEST(RecordChange, ACopyUndoesNothingThatOthersChanged) {
  const Record shown{"r", "t", "u", "", {{"a", 1}, {"b", 1}}}, now{"r", "t", "v", "", {{"a", 1}, {"b", 2}}};
  auto changed = [&](const char* written) { return changed_fields("agents", shown, now, written); };
  EXPECT_EQ(changed(R"({"a": 3, "b": 1, "updated_at": "u"})").value(), (JsonObject{{"a", 3}}));
  EXPECT_EQ(changed(R"({"a": 1, "b": 2, "updated_at": "u"})").value(), JsonObject()) << "as it is";
  EXPECT_EQ(changed(R"({"a": 1, "b": 3, "updated_at": "u"})").error().code, ErrorCode::stale);
  EXPECT_EQ(changed(R"({"b": 1})").value(), (JsonObject{{"b", 1}})) << "no copy: what is written is meant";
  EXPECT_EQ(changed(R"({"b": 2})").value(), JsonObject());
}

TEST(RecordChange, ThePlanOfAChangeIsRefused) {
  const Record shown{"r", "t", "u", "", {{"a", 1}}};
  EXPECT_EQ(changed_fields("agents", shown, shown, R"({"a": 2, "dry_run": true})").error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(changed_fields("agents", shown, shown, R"({"a": 2, "dry_run": false})").value(), (JsonObject{{"a", 2}}));
}

TEST(RecordChange, MentionsFollowTheTextUnlessTheyAreSaid) {
  const Record shown{"r", "t", "u", "", {{"body", "@a"}, {"mentions", Json::Array{"a", "b"}}}};
  auto mentions = [&](const std::string& written) {
    const auto changed = changed_fields("messages", shown, shown, written);
    const Json* found = changed->find("mentions");
    return found ? *found : Json();
  };
  EXPECT_EQ(mentions(R"({"body": "@c"})"), Json(Json::Array{"c", "b"}));
  EXPECT_EQ(mentions(R"({"body": "@c", "mentions": ["a", "b"]})"), Json());
  EXPECT_EQ(mentions(R"({"body": "@c", "mentions": ["a", "b"], "updated_at": "u"})"), Json(Json::Array{"c", "b"}));
  EXPECT_EQ(mentions(R"({"body": "@c", "mentions": [], "updated_at": "u"})"), Json(Json::Array()));
  EXPECT_EQ(mentions(R"({"body": "@a, hello"})"), Json());
  EXPECT_EQ(mentions(R"({"links": []})"), Json());
}

TEST(RecordNames, ATitleIsALinkOrNone) {
  EXPECT_EQ(link_name("a/b\nc\x1b"), "a_b_c_");
  EXPECT_EQ(link_name("\u009b31m \u202etxt\u202c\u2028é"), "_31m _txt__é");
  for (const char* title : {"", ".", "..", "\xff"}) EXPECT_EQ(link_name(title), "") << title;
  EXPECT_EQ(link_name(std::string(256, 'x')), "");
  EXPECT_EQ(link_name(std::string(255, 'x')).size(), 255U);
}

}  // namespace
}  // namespace playfs::vfs
