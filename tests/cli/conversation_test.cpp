// What the conversation's commands print, and the order of messages.
#include "app/conversation.h"
#include "command_fixture.h"

namespace playfs::app {
namespace {

class ConversationCommands : public CommandTest {
 protected:
  std::string id_from(const std::vector<std::string>& words, const std::string& input = {}) {
    Ran ran = run(words, input);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out.substr(0, ran.out.find('\n'));
  }
};

TEST_F(ConversationCommands, PrintOneDocumentWithStableKeys) {
  expect_golden("agent-register.json", run({"agent", "register", "ada", "--set", "about=parsers", "--json"}).out);
  expect_golden("agent-taken.json", run({"agent", "register", "ada", "--json"}).out);
  const std::string thread = id_from({"thread", "new", "Hello", "--kind", "intro"});
  Ran posted = run({"post", thread, "--mention", "bob", "--json"}, "I am Ada.\n");
  expect_golden("post.json", posted.out);
  expect_golden("post-dry-run.json", run({"post", thread, "-m", "@eve", "--dry-run", "--json"}).out);
  expect_golden("thread-list.json", run({"thread", "list", "--json"}).out);
  expect_golden("thread-show.json", run({"thread", "show", "Hello", "--json"}).out);
  expect_golden("mail.json", run({"mail", "send", "--kind", "idea", "--subject", "S", "-m", "T", "--json"}).out);
  expect_golden("space.json", run({"space", "new", "workshop", "--json"}).out);
  expect_golden("search.json", run({"search", "ADA", "--in", "messages,agents", "--json"}).out);
}

TEST_F(ConversationCommands, SpeakToPeople) {
  const std::string thread = id_from({"thread", "new", "Hello", "--kind", "intro"});
  const std::string first = id_from({"post", thread, "-m", "I am Ada.\n\n  And you, @bob?"});
  id_from({"post", thread, "--reply-to", first, "-m", "Bob.", "--agent", "bob", "--link", "https://example.org"});
  expect_golden("thread-show.txt", run({"thread", "show", thread}).out);
  expect_golden("search.txt", run({"search", "and you"}).out);
}

/// "id:parent" words as messages, and their order as "id@depth", with "*" if not below their parent.
std::string order_of(std::initializer_list<std::pair<std::string, std::string>> messages) {
  std::vector<Record> records;
  for (const auto& [id, parent] : messages) records.push_back({id, {}, {}, {}, JsonObject{{"parent", parent}}});
  std::string text;
  for (const Placed& placed : in_order(records))
    text += records[placed.index].id + "@" + std::to_string(placed.depth) + (placed.follows_parent ? " " : "* ");
  return text;
}

TEST(OrderOfMessages, PutsRepliesBelowWhatTheyAnswer) {
  EXPECT_EQ(order_of({}), "");
  EXPECT_EQ(order_of({{"a", ""}, {"b", ""}, {"c", "a"}, {"d", "c"}, {"e", "a"}}), "a@0* c@1 d@2 e@1 b@0* ");
}

TEST(OrderOfMessages, HidesNoneWhateverTheirParents) {
  EXPECT_EQ(order_of({{"a", "gone"}, {"b", "b"}, {"c", "a"}}), "a@0* c@1 b@0* ");
  EXPECT_EQ(order_of({{"a", "c"}, {"b", "a"}, {"c", "b"}, {"d", "b"}}), "a@0* b@1 c@2 d@2 ");
  EXPECT_EQ(order_of({{"a", ""}, {"a", ""}, {"b", "a"}}), "a@0* b@1 a@0* ") << "an id that comes twice";
}

TEST(OrderOfMessages, TakesDeepThreadsWithoutRecursion) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < 50'000; ++i)
    records.push_back({std::to_string(i), {}, {}, {}, JsonObject{{"parent", std::to_string(i - 1)}}});
  const auto order = in_order(records);
  ASSERT_EQ(order.size(), records.size());
  EXPECT_EQ(order.back().depth, records.size() - 1);
  EXPECT_FALSE(order.back().follows_parent) << "deeper replies are not indented, so they say what they answer";
}

}  // namespace
}  // namespace playfs::app
