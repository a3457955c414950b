#include "mail/maildir.h"

#include <gtest/gtest.h>

#include "mail/hostile_letters.h"
#include "model/path.h"

namespace playfs::mail {
namespace {

constexpr WallTime kCreated{1'793'527'200'000'000'000}, kUpdated{1'793'527'200'000'001'000};

TEST(MaildirName, HasItsParts) {
  MaildirName name = maildir_name("m_1.a", kCreated, kUpdated, "example.org");
  EXPECT_EQ(name.text(), "1793527200.m=5F1=2Ea_1793527200000001.example.org");
  name.flags = "RS";
  EXPECT_EQ(name.text(), "1793527200.m=5F1=2Ea_1793527200000001.example.org:2,RS");
  EXPECT_EQ(record_id(name.id), "m_1.a");
  EXPECT_EQ(maildir_name("a", WallTime{-5}, WallTime{-5}, "d").text(), "0.a_0.d");
}

TEST(MaildirName, ReadsBackWhateverTheId) {
  for (const std::string& id : hostile_texts()) {
    MaildirName name = maildir_name(id, kCreated, kUpdated, std::string(200, 'd'));
    name.flags = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    EXPECT_EQ(why_not_a_component(name.text()), std::nullopt) << name.text();
    EXPECT_EQ(parse_maildir_name(name.text()), name) << name.text();
    if (name.id.find("=~") == name.id.npos) {
      EXPECT_EQ(record_id(name.id), id);
    } else {
      EXPECT_EQ(record_id(name.id), std::nullopt);
    }
  }
  EXPECT_NE(maildir_id(std::string(199, '/') + "a"), maildir_id(std::string(199, '/') + "b"));
}

TEST(MaildirName, TakesFlagsAsReadersWriteThem) {
  const std::string unique = "1.a_2.example.org";
  EXPECT_EQ(parse_maildir_name(unique)->flags, std::nullopt);
  EXPECT_EQ(parse_maildir_name(unique + ":2,")->flags, "");
  EXPECT_EQ(parse_maildir_name(unique + ":2,SRSa")->flags, "RSa");
  EXPECT_EQ(parse_maildir_name(unique + ":2,SRSa")->unique(), unique);
}

TEST(MaildirName, RefusesOtherNames) {
  for (const char* name :
       {"", "1", "1.a", "1.a_2", "1.a_2.", "1._2.d", "a.a_2.d", "01.a_2.d", "-1.a_2.d", "1.a_2x.d", "1.a_2.d:1,S",
        "1.a_2.d:2,S1", "1.a_2.d:2", "1.a/b_2.d", "1.a_2.d/..", "1.a_99999999999999999999.d", "1.a_2.\xff"})
    EXPECT_EQ(parse_maildir_name(name), std::nullopt) << name;
  EXPECT_EQ(parse_maildir_name("1.a_2." + std::string(65, 'd')), std::nullopt);
}

}  // namespace
}  // namespace playfs::mail
