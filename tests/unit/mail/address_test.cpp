#include "mail/address.h"

#include <gtest/gtest.h>

#include "mail/hostile_letters.h"

namespace playfs::mail {
namespace {

TEST(Domain, IsMadeOfAnySite) {
  EXPECT_EQ(domain_of("https://Example.org"), "example.org");
  EXPECT_EQ(domain_of("http://127.0.0.1:8787"), "127.0.0.1-8787");
  EXPECT_EQ(domain_of("http://[::1]:8787"), "1-8787");
  EXPECT_EQ(domain_of("local:default"), "default.local");
  EXPECT_EQ(domain_of("local:/srv/my site"), "srv-my-site.local");
  EXPECT_EQ(domain_of("local:/"), "local");
  EXPECT_EQ(domain_of(""), "local");
}

TEST(AddressPart, IsAnAtomAndReadsBack) {
  EXPECT_EQ(handle_part("ada.l-b_2"), "ada.l-b_2");
  EXPECT_EQ(handle_part(".a..b."), "=2Ea.=2Eb=2E");
  EXPECT_EQ(handle_part("a b"), "a=20b");
  EXPECT_EQ(handle_part(""), "=");
  for (const std::string& text : hostile_texts()) {
    for (const std::string& part : {handle_part(text), id_part(text)}) {
      EXPECT_LE(part.size(), 600u);
      EXPECT_EQ(part.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=~"),
                part.npos);
      EXPECT_FALSE(part.empty() || part.front() == '.' || part.back() == '.' || part.find("..") != part.npos);
      if (text.size() <= 200) {
        EXPECT_EQ(decode_part(part), text);
      }
      if (text.size() > 600) {
        EXPECT_EQ(decode_part(part), std::nullopt);
      }
    }
  }
}

TEST(AddressPart, OfAnAgentIsNeverAKindOrTheSteward) {
  for (const char* name : {"steward", "Steward", "help", "DISCUSSION"}) {
    EXPECT_NE(handle_part(name), name);
    EXPECT_EQ(decode_part(handle_part(name)), name);
    EXPECT_EQ(id_part(name), name);
  }
  EXPECT_NE(id_part(std::string(700, 'a') + "1"), id_part(std::string(700, 'a') + "2"));
}

TEST(AddressPart, RefusesWhatIsNoneOfOurs) {
  for (const char* part : {"", "a=", "=4", "=GG", "abc=~00"}) EXPECT_EQ(decode_part(part), std::nullopt) << part;
  EXPECT_EQ(local_part_at("example.org", "ada@EXAMPLE.org"), "ada");
  for (const char* address : {"ada", "ada@example.org.evil", "ada@example.com", "example.org"})
    EXPECT_EQ(local_part_at("example.org", address), std::nullopt) << address;
}

}  // namespace
}  // namespace playfs::mail
