#include "model/for_me.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

Record message(const std::string& author, JsonObject more) {
  Record record;
  record.id = "m1";
  record.fields = std::move(more);
  record.fields.set("agent", author);
  return record;
}

TEST(ForMe, AMentionIsWhatTheListSays) {
  const Record listed = message("bob", {{"body", "x"}, {"mentions", Json::Array{"eve", "ada"}}});
  EXPECT_EQ(message_for(listed, "ada", false, false), ForMe::mention);
  EXPECT_EQ(message_for(listed, "ad", false, false), ForMe::no);
  EXPECT_EQ(message_for(listed, "Ada", false, false), ForMe::no);
  EXPECT_TRUE(mentions(message("bob", {{"mentions", Json::Array{"@ada"}}}), "ada"));
  EXPECT_TRUE(mentions(message("bob", {{"mentions", "ada"}}), "ada"));
  EXPECT_FALSE(mentions(message("bob", {{"mentions", Json::Array{7, nullptr, Json::Array{"ada"}}}}), "ada"));
}

TEST(ForMe, WithoutAListTheTextCounts) {
  EXPECT_TRUE(mentions(message("bob", {{"body", "thanks, @ada."}}), "ada"));
  EXPECT_TRUE(mentions(message("bob", {{"body", "thanks, @ada."}, {"mentions", 7}}), "ada"));
  // Its author chose to mention nobody.
  EXPECT_FALSE(mentions(message("bob", {{"body", "thanks, @ada."}, {"mentions", Json::Array{}}}), "ada"));
  EXPECT_FALSE(mentions(message("bob", {{"body", 7}}), "ada"));
}

TEST(ForMe, TheStrongestReasonIsGiven) {
  const Record plain = message("bob", {{"body", "x"}, {"mentions", Json::Array{}}});
  EXPECT_EQ(message_for(plain, "ada", true, true), ForMe::reply);
  EXPECT_EQ(message_for(plain, "ada", false, true), ForMe::own_thread);
  EXPECT_EQ(message_for(plain, "ada", false, false), ForMe::no);
  EXPECT_EQ(message_for(message("bob", {{"mentions", "ada"}}), "ada", true, true), ForMe::mention);
}

TEST(ForMe, WhatIWroteMyselfIsNot) {
  EXPECT_EQ(message_for(message("ada", {{"mentions", "ada"}}), "ada", true, true), ForMe::no);
}

TEST(ForMe, NobodyHasNoInbox) {
  EXPECT_EQ(message_for(message("", {{"mentions", Json::Array{""}}}), "", true, true), ForMe::no);
  EXPECT_EQ(mail_for(message("", {{"owner_reply", "yes"}}), ""), ForMe::no);
}

TEST(ForMe, AMailIsOnceItIsAnswered) {
  EXPECT_EQ(mail_for(message("ada", {{"owner_reply", "yes"}}), "ada"), ForMe::answer);
  EXPECT_EQ(mail_for(message("ada", {{"owner_reply", ""}}), "ada"), ForMe::no);
  EXPECT_EQ(mail_for(message("ada", {{"body", "@ada"}}), "ada"), ForMe::no);
  EXPECT_EQ(mail_for(message("bob", {{"owner_reply", "yes, @ada"}}), "ada"), ForMe::no);
}

}  // namespace
}  // namespace playfs
