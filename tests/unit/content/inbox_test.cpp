// The inbox of one agent over a Site, and its marks.
#include "content/inbox.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "cache/checksum.h"
#include "content/inbox_marks.h"
#include "fixture.h"

namespace playfs::content {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class InboxTest : public SiteTest {
 protected:
  InboxTest() { again(); }

  /// Another process.
  void again() {
    inbox_.reset();
    restart();
    inbox_ = std::make_unique<Inbox>(*site_, clock_, "ann", directory_ / "inbox");
  }
  void say(const std::string& id, const JsonObject& fields) {
    JsonObject message{{"thread", "t"}, {"agent", "bob"}, {"body", "x"}, {"parent", ""}, {"mentions", Json::Array{}}};
    for (const auto& [name, value] : fields) message.set(name, value);
    service_.put("messages", id, std::move(message));
  }
  /// Later than anything before.
  void edit(const std::string& id, const JsonObject& fields) {
    say(id, fields);
    service_.touch("messages", id);
  }
  std::vector<std::string> bodies() {
    std::vector<std::string> bodies;
    std::istringstream lines(inbox_->lines().text);
    for (std::string line; std::getline(lines, line);) {
      const auto record = wire::parse_json(line);
      bodies.push_back(*record->object()->find("body")->string());
    }
    return bodies;
  }
  Inbox::Lists lists() {
    Inbox::Lists all;
    for (auto [list, collection] : {std::pair(&all.messages, "messages"), std::pair(&all.threads, "threads"),
                                    std::pair(&all.mail, "domain_mail")}) {
      Answer<ListPtr> answer;
      site_->list(collection, {}, answer.callback());
      run();
      *list = *answer;
    }
    return all;
  }
  std::vector<std::string> taken() {
    EXPECT_THAT(inbox_->take(lists(), {}), IsEmpty());
    return ids();
  }
  std::string index_path() { return directory_ / "inbox" + "/" + InboxMarks::file_name("ann") + ".index"; }
  /// Without the header.
  std::string saved_lines() {
    const std::string text = read_file(index_path(), 16 << 20).value();
    return text.substr(text.find('\n') + 1);
  }
  void write_index(const std::string& lines) {
    std::ofstream(index_path()) << "playfs-inbox 3 ann " << cache::checksum_of_row({lines}) << '\n' << lines;
  }
  std::vector<std::string> ids() {
    std::vector<std::string> ids;
    for (const Inbox::Entry& entry : inbox_->entries()) ids.push_back(entry.id);
    return ids;
  }

  std::unique_ptr<Inbox> inbox_;
};

TEST_F(InboxTest, HasWhatIsForMe) {
  service_.put("threads", "t", {{"agent", "bob"}});
  service_.put("threads", "mine", {{"agent", "ann"}});
  say("by me", {{"agent", "ann"}});
  say("reply", {{"parent", "by me"}});
  say("mention", {{"mentions", Json::Array{"ann"}}});
  say("other", {});
  say("in mine", {{"thread", "mine"}});
  service_.put("domain_mail", "mail", {{"agent", "ann"}, {"owner_reply", "yes"}});
  service_.put("domain_mail", "open", {{"agent", "ann"}});
  EXPECT_THAT(taken(), ElementsAre("reply", "mention", "in mine", "mail"));
  EXPECT_EQ(inbox_->find("reply")->why, ForMe::reply);
  EXPECT_EQ(inbox_->find("in mine")->why, ForMe::own_thread);
  EXPECT_EQ(inbox_->find("mail")->collection, "domain_mail");
  const std::string lines = inbox_->lines().text;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
}

TEST_F(InboxTest, AMessageWaitsForItsThread) {
  say("first", {{"thread", "late"}});
  EXPECT_THAT(taken(), IsEmpty());
  service_.put("threads", "late", {{"agent", "ann"}});
  EXPECT_THAT(taken(), ElementsAre("first"));
}

TEST_F(InboxTest, AMessageWaitsForWhatItAnswers) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("first", {{"parent", "late"}});
  EXPECT_THAT(taken(), IsEmpty());
  say("late", {{"agent", "ann"}});
  EXPECT_THAT(taken(), ElementsAre("first")) << "its parent came with a later list";
}

TEST_F(InboxTest, AReplyToWhatTheCacheHasLostIsThere) {
  service_.put("threads", "t", {{"agent", "bob"}});
  service_.put("threads", "mine", {{"agent", "ann"}});
  say("by me", {{"agent", "ann"}});
  for (int i = 0; i < 150; ++i) say("r" + std::to_string(i), {{"parent", "by me"}});
  for (int i = 0; i < 150; ++i) say("t" + std::to_string(i), {{"thread", "mine"}, {"parent", "r1"}});
  const Inbox::Lists all = lists();
  records_->forget_record(client_->site(), "messages", "by me");
  records_->forget_record(client_->site(), "threads", "mine");
  EXPECT_EQ(inbox_->take(all, {}).size(), 2U);
  EXPECT_THAT(ids(), IsEmpty());
  for (auto [collection, id] : {std::pair("messages", "by me"), std::pair("threads", "mine")}) {
    Answer<RecordTextPtr> answer;
    site_->record_text(collection, id, {}, answer.callback());
    run();
  }
  EXPECT_THAT(inbox_->take(all, {}), IsEmpty());
  EXPECT_EQ(ids().size(), 300U);
  EXPECT_TRUE(inbox_->has_taken(all));
}

TEST_F(InboxTest, MessagesThatAnswerEachOtherDoNotWaitForEver) {
  service_.put("threads", "mine", {{"agent", "ann"}});
  service_.put("threads", "t", {{"agent", "bob"}});
  say("itself", {{"parent", "itself"}});
  say("a", {{"parent", "c"}, {"thread", "mine"}});
  say("b", {{"parent", "a"}});
  say("c", {{"parent", "b"}, {"thread", "mine"}});
  say("reply", {{"parent", "by me"}});
  say("by me", {{"parent", "c"}, {"agent", "ann"}});
  const Inbox::Lists all = lists();
  EXPECT_THAT(inbox_->take(all, {}), IsEmpty());
  EXPECT_THAT(ids(), UnorderedElementsAre("a", "c", "reply"));
  EXPECT_TRUE(inbox_->has_taken(all));
}

TEST_F(InboxTest, IsKeptForTheNextProcess) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("by me", {{"agent", "ann"}});
  for (int i = 0; i < 150; ++i) say("m" + std::to_string(i), {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), 150U);
  ASSERT_TRUE(inbox_->is_to_be_saved());
  ASSERT_TRUE(inbox_->save());
  EXPECT_FALSE(inbox_->is_to_be_saved());
  const std::string lines = inbox_->lines().text;
  again();
  say("reply", {{"parent", "by me"}});
  EXPECT_EQ(taken().size(), 151U);
  EXPECT_FALSE(inbox_->is_to_be_saved()) << "only one was looked at";
  EXPECT_TRUE(inbox_->lines().text.starts_with(lines));
  EXPECT_THAT(inbox_->lines().text.substr(lines.size()), HasSubstr("\"reply\""));
}

TEST_F(InboxTest, WhatAnotherProcessHasSavedIsKept) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("old", {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), 1U);
  Inbox newer(*site_, clock_, "ann", directory_ / "inbox");
  advance(std::chrono::hours(1));
  say("new", {{"mentions", Json::Array{"ann"}}});
  EXPECT_THAT(newer.take(lists(), {}), IsEmpty());
  ASSERT_TRUE(newer.save());
  std::string lines = saved_lines();
  lines.erase(lines.find("entry messages"),
              lines.find('\n', lines.find("entry messages")) + 1 - lines.find("entry messages"));
  write_index(lines + "looked messages 1900000000000000000 -@ old\nentry messages 1900000000000000000 reply old\n");
  ASSERT_TRUE(inbox_->save()) << "knows less";
  const std::string saved = saved_lines();
  EXPECT_THAT(saved, HasSubstr("looked messages 1900000000000000000 -@ old\n"));
  EXPECT_THAT(saved, HasSubstr("entry messages 1900000000000000000 reply old\n"));
  EXPECT_THAT(saved, HasSubstr(" mention new\n"));
}

TEST_F(InboxTest, WhatCouldNotBeSavedIsSavedBeforeAMark) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("x", {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), 1U);
  {
    std::filesystem::create_directory(directory_ / "inbox");
    std::filesystem::permissions(directory_ / "inbox", std::filesystem::perms::owner_all);
    auto locked = lock_inboxes(directory_ / "inbox");
    ASSERT_TRUE(locked);
    EXPECT_EQ(inbox_->save().error().code, ErrorCode::busy);
  }
  ASSERT_TRUE(inbox_->save_before_mark());
  EXPECT_THAT(saved_lines(), HasSubstr("entry messages"));
}

TEST_F(InboxTest, ADamagedFileIsNotRead) {
  service_.put("threads", "t", {{"agent", "bob"}});
  for (int i = 0; i < 5; ++i) say("m" + std::to_string(i), {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), 5U);
  ASSERT_TRUE(inbox_->save());
  const std::string whole = read_file(index_path(), 1 << 20).value();
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    std::ofstream(index_path()) << damaged;
    again();
    EXPECT_THAT(taken(), ElementsAre("m0", "m1", "m2", "m3", "m4")) << at;
  }
  ASSERT_TRUE(inbox_->save());
  EXPECT_EQ(read_file(index_path(), 1 << 20).value().size(), whole.size()) << "made again";
  for (const std::string& lines : {std::string("looked messages x\nentry messages 7 mention \n\xff\nentry"), whole}) {
    write_index(lines);
    again();
    EXPECT_EQ(taken().size(), 5U);
  }
}

TEST_F(InboxTest, WhatTheCacheHasLostIsAskedForOnce) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("kept", {{"mentions", Json::Array{"ann"}}});
  say("lost", {{"mentions", Json::Array{"ann"}}});
  const Inbox::Lists all = lists();
  records_->forget_record(client_->site(), "messages", "lost");
  const auto missing = inbox_->take(all, {});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].id, "lost");
  EXPECT_THAT(ids(), ElementsAre("kept"));
  EXPECT_FALSE(inbox_->has_taken(all));
  Answer<RecordTextPtr> answer;
  site_->record_text("messages", "lost", {}, answer.callback());
  run();
  EXPECT_THAT(inbox_->take(all, {}), IsEmpty());
  EXPECT_THAT(ids(), ElementsAre("kept", "lost"));
  EXPECT_TRUE(inbox_->has_taken(all));
}

TEST_F(InboxTest, WhatTheServiceDoesNotHaveIsAskedForLessAndLess) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("gone", {{"mentions", Json::Array{"ann"}}});
  const Inbox::Lists all = lists();
  records_->forget_record(client_->site(), "messages", "gone");
  std::chrono::seconds wait(1);
  for (int times = 0; times < 14; ++times) {
    const auto missing = inbox_->take(all, {});
    ASSERT_EQ(missing.size(), 1U) << times;
    EXPECT_FALSE(inbox_->has_taken(all)) << "it is asked for, but nothing has come";
    inbox_->is_gone(missing[0]);
    EXPECT_THAT(inbox_->take(all, {}), IsEmpty());
    EXPECT_TRUE(inbox_->has_taken(all));
    advance(wait - std::chrono::milliseconds(1));
    EXPECT_TRUE(inbox_->has_taken(all));
    advance(std::chrono::milliseconds(1));
    EXPECT_FALSE(inbox_->has_taken(all)) << times;
    wait = std::min(wait * 2, std::chrono::seconds(4096));
  }
  Answer<RecordTextPtr> answer;
  site_->record_text("messages", "gone", {}, answer.callback());
  run();
  EXPECT_THAT(inbox_->take(all, {}), IsEmpty());
  EXPECT_THAT(ids(), ElementsAre("gone"));
}

TEST_F(InboxTest, StrangersFillNoMemory) {
  service_.put("threads", "t", {{"agent", "bob"}});
  const std::string long_text(12'000, 'x');
  for (int i = 0; i < 300; ++i) say("m" + std::to_string(i), {{"mentions", Json::Array{"ann"}}, {"body", long_text}});
  EXPECT_EQ(taken().size(), 300U);
  EXPECT_LE(inbox_->lines().text.size(), Inbox::kMostBytes);
  EXPECT_TRUE(inbox_->is_cut());
  EXPECT_THAT(inbox_->lines().text, HasSubstr("\"m299\""));
  EXPECT_TRUE(inbox_->lines().text.starts_with("{"));
  EXPECT_TRUE(inbox_->lines().text.ends_with("}\n"));
  const Inbox::Lines lines = inbox_->lines();
  EXPECT_EQ(inbox_->lines_from(lines.end - lines.text.size())->text, lines.text);
  EXPECT_EQ(inbox_->lines_from(lines.end - lines.text.size() - 1), std::nullopt) << "dropped";
}

TEST_F(InboxTest, OnlyTheNewestEntriesAreKept) {
  service_.put("threads", "t", {{"agent", "bob"}});
  for (std::size_t i = 0; i < 5; ++i) say(std::to_string(i), {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), 5U);
  ASSERT_TRUE(inbox_->save());
  for (std::size_t i = 5; i < Inbox::kMost + 5; ++i) say(std::to_string(i), {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), Inbox::kMost);
  ASSERT_TRUE(inbox_->save());
  const std::string saved = "\n" + saved_lines();
  std::size_t entries = 0;
  for (std::size_t at = saved.find("\nentry "); at != saved.npos; at = saved.find("\nentry ", at + 1)) ++entries;
  EXPECT_EQ(entries, Inbox::kMost);
  EXPECT_FALSE(inbox_->find("4"));
  EXPECT_TRUE(inbox_->find("5"));
  EXPECT_TRUE(inbox_->is_cut());
}

TEST_F(InboxTest, LinesGoOnFromAPlace) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("m1", {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), 1U);
  const auto first = inbox_->lines();
  EXPECT_EQ(first.end, first.text.size());
  EXPECT_EQ(inbox_->lines_from(first.end)->text, "");
  say("m2", {{"mentions", Json::Array{"ann"}}});
  EXPECT_EQ(taken().size(), 2U);
  const auto second = inbox_->lines_from(first.end);
  EXPECT_EQ(first.text + second->text, inbox_->lines().text);
  EXPECT_EQ(second->end, first.text.size() + second->text.size());
}

TEST_F(InboxTest, AnEditChangesTheTextOfItsEntry) {
  service_.put("threads", "mine", {{"agent", "ann"}});
  for (const char* id : {"m1", "m2", "m3"}) say(id, {{"thread", "mine"}, {"body", std::string("first of ") + id}});
  EXPECT_EQ(taken().size(), 3U);
  const Inbox::Lines before = inbox_->lines();
  const Inbox::Entry entry = *inbox_->find("m2");
  edit("m2", {{"thread", "mine"}, {"body", "second of m2"}});
  EXPECT_THAT(taken(), ElementsAre("m1", "m2", "m3"));
  EXPECT_EQ(inbox_->find("m2")->at, entry.at) << "as marked";
  EXPECT_THAT(bodies(), ElementsAre("first of m1", "second of m2", "first of m3"));
  EXPECT_EQ(inbox_->lines_from(before.end), std::nullopt) << "they cannot just grow";
  edit("m1", {{"thread", "mine"}, {"mentions", Json::Array{"ann"}}, {"body", "now to ann"}});
  EXPECT_THAT(taken(), ElementsAre("m1", "m2", "m3"));
  EXPECT_GT(inbox_->find("m1")->at, entry.at) << "it is new again";
  EXPECT_THAT(bodies(), ElementsAre("second of m2", "first of m3", "now to ann"));
}

TEST_F(InboxTest, WhatIsHiddenIsNotShownUntilItIsShownAgain) {
  service_.put("threads", "t", {{"agent", "bob"}});
  say("by me", {{"agent", "ann"}});
  for (const char* id : {"m1", "m2", "m3"}) say(id, {{"mentions", Json::Array{"ann"}}, {"body", id}});
  EXPECT_EQ(taken().size(), 3U);
  const Inbox::Entry entry = *inbox_->find("m2");
  service_.hide("messages", "m2");
  service_.hide("messages", "by me");
  say("reply", {{"parent", "by me"}, {"body", "reply"}});
  EXPECT_THAT(taken(), ElementsAre("m1", "m3", "reply")) << "whose message that was is still known";
  EXPECT_EQ(inbox_->find("m2"), std::nullopt);
  EXPECT_THAT(bodies(), ElementsAre("m1", "m3", "reply"));
  ASSERT_TRUE(inbox_->save());
  again();
  EXPECT_THAT(taken(), ElementsAre("m1", "m3", "reply")) << "in the next process, too";
  EXPECT_THAT(bodies(), ElementsAre("m1", "m3", "reply"));
  edit("m2", {{"mentions", Json::Array{"ann"}}, {"body", "m2"}});
  EXPECT_THAT(taken(), ElementsAre("m1", "m2", "m3", "reply"));
  EXPECT_EQ(inbox_->find("m2")->at, entry.at) << "as marked";
  EXPECT_THAT(bodies(), ElementsAre("m1", "m2", "m3", "reply"));
}

TEST_F(InboxTest, AReplyWaitsForAParentThatIsHidden) {
  for (const auto& [id, agent] : {std::pair("t", "bob"), {"mine", "ann"}})
    service_.put("threads", id, {{"agent", agent}});
  say("by me", {{"agent", "ann"}});
  service_.hide("messages", "by me");
  service_.hide("threads", "mine");
  say("reply", {{"parent", "by me"}});
  say("in mine", {{"thread", "mine"}});
  const Inbox::Lists all = lists();
  EXPECT_THAT(inbox_->take(all, {}), IsEmpty());
  EXPECT_THAT(ids(), IsEmpty());
  EXPECT_TRUE(inbox_->has_taken(all));
  ASSERT_TRUE(inbox_->save());
  EXPECT_THAT(saved_lines(), HasSubstr(" messages by%20me reply\n"));
  again();
  for (const char* id : {"reply", "in mine"}) records_->forget_record(client_->site(), "messages", id);
  EXPECT_THAT(taken(), IsEmpty()) << "what waits is not read";
  for (const char* id : {"reply", "in mine"}) {
    Answer<RecordTextPtr> answer;
    site_->record_text("messages", id, {}, answer.callback());
    run();
  }
  edit("by me", {{"agent", "ann"}});
  EXPECT_THAT(taken(), ElementsAre("reply"));
  service_.put("threads", "mine", {{"agent", "ann"}});
  service_.touch("threads", "mine");
  EXPECT_THAT(taken(), UnorderedElementsAre("reply", "in mine"));
}

TEST_F(InboxTest, AMailThatWasHiddenIsNewOnlyIfItsAnswerIsAnother) {
  JsonObject fields{{"agent", "ann"}, {"owner_reply", "yes"}, {"state", "answered"}};
  service_.put("domain_mail", "mail", JsonObject(fields));
  EXPECT_THAT(taken(), ElementsAre("mail"));
  WallTime at = inbox_->find("mail")->at;
  for (const bool is_other : {false, true}) {
    service_.hide("domain_mail", "mail");
    EXPECT_THAT(taken(), IsEmpty());
    ASSERT_TRUE(inbox_->save());
    again();
    if (is_other) fields.set("owner_reply", "no");
    service_.put("domain_mail", "mail", JsonObject(fields));
    service_.touch("domain_mail", "mail");
    EXPECT_THAT(taken(), ElementsAre("mail"));
    EXPECT_EQ(inbox_->find("mail")->at != at, is_other);
  }
}

TEST_F(InboxTest, WhatTheServiceHasLostIsNotShown) {
  service_.put("threads", "t", {{"agent", "bob"}});
  for (const char* id : {"m1", "m2", "m3"}) say(id, {{"mentions", Json::Array{"ann"}}, {"body", id}});
  EXPECT_EQ(taken().size(), 3U);
  ASSERT_TRUE(inbox_->save());
  service_.remove("messages", "m3");
  EXPECT_EQ(taken().size(), 3U) << "a replica may lag";
  EXPECT_TRUE(site_->is_list_lacking("messages"));
  advance(std::chrono::seconds(61));
  EXPECT_THAT(taken(), ElementsAre("m1", "m2"));
  EXPECT_FALSE(site_->is_list_lacking("messages"));
  EXPECT_EQ(inbox_->find("m3"), std::nullopt);
  EXPECT_THAT(bodies(), ElementsAre("m1", "m2"));
  again();
  EXPECT_THAT(taken(), ElementsAre("m1", "m2")) << "in the next process, too";
  EXPECT_THAT(bodies(), ElementsAre("m1", "m2"));
  say("m3", {{"mentions", Json::Array{"ann"}}, {"body", "m3"}});
  EXPECT_THAT(taken(), ElementsAre("m1", "m2", "m3"));
  EXPECT_THAT(bodies(), ElementsAre("m1", "m2", "m3"));
}

TEST_F(InboxTest, NobodyHasNone) {
  Inbox nobody(*site_, clock_, "", directory_ / "inbox");
  say("x", {{"agent", ""}, {"mentions", Json::Array{""}}});
  EXPECT_THAT(nobody.take(lists(), {}), IsEmpty());
  EXPECT_THAT(nobody.entries(), IsEmpty());
}

TEST(InboxMarksTest, AreForOneVersion) {
  test::TemporaryDirectory directory;
  InboxMarks marks(directory / "inbox", "ann"), other(directory / "inbox", "ann"), of_bob(directory / "inbox", "bob");
  ASSERT_TRUE(marks.mark("a b\n%", {5}, true));
  EXPECT_TRUE(marks.is_seen("a b\n%", {5}));
  EXPECT_FALSE(marks.is_seen("a b\n%", {6})) << "it came again";
  EXPECT_FALSE(other.is_seen("a b\n%", {5}));
  ASSERT_TRUE(other.refresh());
  EXPECT_TRUE(other.is_seen("a b\n%", {5}));
  ASSERT_TRUE(of_bob.refresh());
  EXPECT_FALSE(of_bob.is_seen("a b\n%", {5}));
  ASSERT_TRUE(other.mark("a b\n%", {5}, false));
  ASSERT_TRUE(marks.refresh());
  EXPECT_FALSE(marks.is_seen("a b\n%", {5}));
}

TEST(InboxMarksTest, AreBounded) {
  test::TemporaryDirectory directory;
  InboxMarks marks(directory / "inbox", "ann");
  ASSERT_TRUE(marks.mark("first", {1}, true));
  std::string path;
  for (const auto& file : std::filesystem::directory_iterator(directory / "inbox"))
    if (file.path().extension() == ".seen") path = file.path();
  {
    std::ofstream file(path, std::ios::app);
    for (std::size_t i = 0; i < InboxMarks::kMost + 10; ++i) file << "+" << 10 + i << " id" << i << "\n";
  }
  ASSERT_TRUE(marks.mark("last", {1'000'000}, true));
  EXPECT_FALSE(marks.is_seen("first", {1}));
  EXPECT_FALSE(marks.is_seen("id0", {10}));
  EXPECT_TRUE(marks.is_seen("id20000", {20'010}));
  EXPECT_TRUE(marks.is_seen("last", {1'000'000}));
}

TEST(InboxMarksTest, ADamagedLineIsSkipped) {
  test::TemporaryDirectory directory;
  InboxMarks marks(directory / "inbox", "ann");
  ASSERT_TRUE(marks.mark("kept", {5}, true));
  for (const auto& file : std::filesystem::directory_iterator(directory / "inbox"))
    if (file.path().extension() == ".seen")
      std::ofstream(file.path(), std::ios::app) << "\n+\n+x y\n+7\n*7 z\n+7 %zz\n+8 good\n+9 cut";
  ASSERT_TRUE(marks.mark("more", {5}, true));
  for (const char* id : {"kept", "more"}) EXPECT_TRUE(marks.is_seen(id, {5}));
  EXPECT_TRUE(marks.is_seen("good", {8}));
  for (const char* id : {"y", "z", "cut"}) EXPECT_FALSE(marks.is_seen(id, {0}));
}

}  // namespace
}  // namespace playfs::content
