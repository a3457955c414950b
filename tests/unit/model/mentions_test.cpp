#include "model/mentions.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

using Handles = std::vector<std::string>;

struct Case {
  std::string body;
  Handles handles;
};

TEST(Mentions, AreFoundAsPeopleMeanThem) {
  const std::vector<Case> cases = {
      {"", {}},
      {"@", {}},
      {"@ada", {"ada"}},
      {"Ask @ada.l, please.", {"ada.l"}},
      {"@ada-b_2. @ada... @ada--b", {"ada-b_2", "ada"}},
      {"(@ada) \"@bob\" *@carol*: cc:@dora,@eve;@fred!", {"ada", "bob", "carol", "dora", "eve", "fred"}},
      {"@ada's and @bob\u2019s", {"ada", "bob"}},
      {"@ada @bob @ada", {"ada", "bob"}},
      {"Thanks.@ada\n-@bob", {"ada", "bob"}},
      {"@jürgen and @Ада", {"jürgen", "Ада"}},
      {"问@ada吧，@张三：", {"ada", "张三"}},
      {"@ada:bob", {"ada"}},
      {"hello\r\n@ada\r\n", {"ada"}},
      {"@ada`x`", {"ada"}},
      {"@-ada @.ada @\u202e", {}},
      {"@a\u202eda @\xff @b\xff @c\x1b[1m", {"a", "b", "c"}},
  };
  for (const Case& c : cases) EXPECT_EQ(mentions_in(c.body), c.handles) << c.body;
}

TEST(Mentions, AreNotAddressesOrUrlsOrNamesOfPackages) {
  for (const char* body : {"ada@example.org", "ada.b@example.org", "@ada@example.org", "git@host:x", "ü@example.org",
                           "@types/node", "\\@ada", "https://example.org/@ada", "https://user:@ada/x",
                           "<ssh://git@ada/@bob>", "node_modules/@ada", "@@ada", "a+@ada"})
    EXPECT_EQ(mentions_in(body), Handles()) << body;
  EXPECT_EQ(mentions_in("https://example.org/@ada @bob"), Handles{"bob"});
  EXPECT_EQ(mentions_in("(see <https://example.org/@ada>@bob"), Handles{"bob"});
}

TEST(Mentions, AreNotInCodeOrQuotes) {
  for (const char* body : {"`@ada`", "``a ` @ada``", "`a\n@ada`", "```\n@ada\n```", "```c\n@ada", "~~~\n@ada\n```\n~~~",
                           "  > @ada wrote", "````\n```\n@ada\n````"})
    EXPECT_EQ(mentions_in(body), Handles()) << body;
  for (const char* body : {"`@ada", "`` @ada`", "`\n\n@ada `", "```\n```\n@ada", "~~~\nx\n~~~~~\n@ada", "> x\n@ada",
                           "`x` @ada", "a `b\n> c\n@ada`"})
    EXPECT_EQ(mentions_in(body), Handles{"ada"}) << body;
}

TEST(Mentions, OfAnEditedTextKeepWhoWasMentionedBesidesIt) {
  EXPECT_EQ(mentions_after_edit({"ada", "eve"}, "@ada", "@bob"), (Handles{"bob", "eve"}));
  EXPECT_EQ(mentions_after_edit({"ada", "eve"}, "@ada", "@eve"), (Handles{"eve"}));
  EXPECT_EQ(mentions_after_edit({}, "@ada", "@ada"), (Handles{"ada"}));
}

TEST(Mentions, AreBounded) {
  std::string many;
  for (int i = 0; i < 200; ++i) many += "@a" + std::to_string(i) + " ";
  EXPECT_EQ(mentions_in(many).size(), kMaxMentions);
  EXPECT_EQ(mentions_in("@" + std::string(kMaxMentionLength, 'a')).size(), 1u);
  EXPECT_EQ(mentions_in("@" + std::string(kMaxMentionLength + 1, 'a') + " @b"), Handles{"b"});
  // Runs of backticks of every length, which nothing ends: the work stays linear.
  std::string marks;
  for (std::size_t i = 1; marks.size() < (1 << 20); ++i) marks += std::string(i % 700 + 1, '`') + " @x";
  EXPECT_LE(mentions_in(marks).size(), 1u);
}

}  // namespace
}  // namespace playfs
