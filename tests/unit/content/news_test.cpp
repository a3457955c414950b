// A Site whose service announces changes: what is not requested, what is requested once, and what an outage costs.
#include <gmock/gmock.h>

#include "fixture.h"

namespace playfs::content {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class NewsTest : public SiteTest {
 protected:
  NewsTest() {
    service_.offers_events = true;
    site_->use_events(random_);
  }
  ~NewsTest() override {
    site_.reset();  // before the service forgets its stream
  }

  void hello() { service_.push("retry: 1000\nid: s.1\nevent: hello\ndata: {}\n\n"); }
  static std::string change(const std::string& collection, const std::string& id, const std::string& rest = "") {
    return "id: s.2\nevent: change\ndata: {\"collection\":\"" + collection + "\",\"id\":\"" + id + "\"" + rest +
           "}\n\n";
  }
  void tell(const std::string& events) {
    service_.push(events);
    run();
  }
  /// Uses the site, so that it connects, and waits until it is told.
  void go_live() {
    Answer<ListPtr> list;
    site_->list("agents", {}, list.callback());
    run();
    ASSERT_TRUE(service_.has_stream());
    hello();
    run();
    ASSERT_TRUE(site_->events_state().is_live);
    Answer<ListPtr> again;
    site_->list("agents", {}, again.callback());  // from now on it is told of changes
    run();
    service_.forget_requests();
  }
  void read_list(const std::string& collection) {
    site_->follow_list(collection);
    Answer<ListPtr> list;
    site_->list(collection, {}, list.callback());
    run();
    ASSERT_TRUE(list.ok());
  }
  std::string read_record(const std::string& collection, const std::string& id) {
    Answer<RecordTextPtr> text;
    site_->record_text(collection, id, {}, text.callback());
    run();
    return text.ok() ? (*text)->json : "";
  }
  /// As `run` does, with the delays of reconnections.
  void pass(std::chrono::milliseconds time) {
    for (auto end = clock_.steady() + time; clock_.steady() < end;) {
      executor_.advance(100ms);
      run();
    }
  }
};

TEST_F(NewsTest, NothingIsSentBeforeTheFirstUseAndNothingWhileIdle) {
  pass(1min);
  EXPECT_EQ(service_.requests(), 0);
  EXPECT_FALSE(service_.has_stream());
  put_project("p", "");
  Answer<Head> head;
  site_->head(ProjectId("p"), {}, head.callback());
  run();
  site_->follow(ProjectId("p"));
  go_live();
  read_list("projects");
  service_.forget_requests();
  pass(4min);
  EXPECT_EQ(service_.requests(), 0);
}

TEST_F(NewsTest, WhatIsKnownIsCurrentUntilAnEventNamesIt) {
  put_project("p", "");
  service_.put("threads", "t", {{"title", "one"}});
  go_live();
  read_list("threads");
  Answer<Head> head;
  site_->head(ProjectId("p"), {}, head.callback());
  EXPECT_THAT(read_record("threads", "t"), HasSubstr("one"));
  pass(1min);
  EXPECT_TRUE(site_->is_list_told("threads"));
  EXPECT_TRUE(site_->is_list_fresh("threads"));
  EXPECT_TRUE(site_->is_record_told("threads", "t"));
  EXPECT_TRUE(site_->is_fresh(*head));
  EXPECT_TRUE(site_->is_current(ProjectId("p")));

  service_.hold();
  tell(change("projects", "p") + change("threads", "t"));
  EXPECT_FALSE(site_->is_list_told("threads"));
  EXPECT_FALSE(site_->is_record_told("threads", "t"));
  EXPECT_FALSE(site_->is_current(ProjectId("p")));
  EXPECT_TRUE(site_->is_list_told("agents")) << "the others are as they were";
}

TEST_F(NewsTest, WhatIsReadIsCheckedNowAndThenThoughNoEventCame) {
  put_project("p", "");
  service_.put("threads", "t", {{"title", "one"}});
  go_live();
  site_->follow(ProjectId("p"));
  Answer<Head> head;
  site_->head(ProjectId("p"), {}, head.callback());
  read_list("threads");
  static_cast<void>(read_record("threads", "t"));
  service_.forget_requests();
  service_.put("threads", "silent", {{"title", "of which no event tells"}});
  pass(SiteOptions().unchecked() + 1s);
  EXPECT_TRUE(site_->events_state().is_live);
  EXPECT_EQ(service_.requests(), 0) << "nobody has read anything";
  EXPECT_FALSE(site_->is_list_told("threads"));
  EXPECT_FALSE(site_->is_list_fresh("threads"));
  EXPECT_FALSE(site_->is_record_told("threads", "t"));
  EXPECT_FALSE(site_->is_fresh(*head));
  EXPECT_FALSE(site_->is_current(ProjectId("p")));
  read_list("threads");
  EXPECT_EQ(site_->try_list("threads")->size(), 2u);
  EXPECT_TRUE(site_->is_list_told("threads")) << "for as long again";
  static_cast<void>(read_record("threads", "t"));
  EXPECT_TRUE(site_->is_record_told("threads", "t"));
  Answer<Head> again;
  site_->head(ProjectId("p"), {}, again.callback());
  run();
  EXPECT_TRUE(site_->is_current(ProjectId("p")));
  EXPECT_EQ(service_.requests(), 3);
}

TEST_F(NewsTest, ABurstCostsOneRequest) {
  go_live();
  service_.put("messages", "m0", {{"thread", "t"}});
  read_list("messages");
  std::vector<std::string> changed;
  site_->on_list_changed([&](const std::string& collection, const ListChange&) { changed.push_back(collection); });
  service_.forget_requests();
  std::string events;
  for (int i = 1; i <= 50; ++i) {
    service_.put("messages", "m" + std::to_string(i), {{"thread", "t"}});
    events += change("messages", "m" + std::to_string(i), R"(,"thread":"t")");
  }
  tell(events);
  EXPECT_EQ(service_.requests(), 1);
  EXPECT_THAT(changed, ElementsAre("messages"));
  EXPECT_EQ(site_->try_list("messages")->size(), 51u);
  EXPECT_TRUE(site_->is_list_told("messages"));
}

TEST_F(NewsTest, WhatComesDuringARequestCostsOneMore) {
  go_live();
  service_.put("revisions", "m0", {{"project", "p"}});
  read_list("revisions");
  service_.forget_requests();
  service_.hold();
  tell(change("revisions", "m1"));
  for (int i = 2; i < 20; ++i) tell(change("revisions", "m" + std::to_string(i)));
  EXPECT_EQ(service_.requests(), 1) << "one at a time";
  service_.release();
  run();
  EXPECT_EQ(service_.requests(), 2);
  // If the first response has them already, that was enough.
  service_.forget_requests();
  service_.hold();
  tell(change("revisions", "n1"));
  tell(change("revisions", "n2"));
  for (const char* id : {"n1", "n2"}) service_.put("revisions", id, {{"project", "p"}});
  service_.release();
  run();
  EXPECT_EQ(service_.requests(), 1);
}

TEST_F(NewsTest, AListThatNobodyShowsIsNotRead) {
  go_live();
  read_list("messages");
  pass(6min);
  std::vector<std::string> changed;
  site_->on_list_changed([&](const std::string& collection, const ListChange&) { changed.push_back(collection); });
  service_.forget_requests();
  service_.put("messages", "m", {{"thread", "t"}});
  tell(change("messages", "m") + change("messages", "m2"));
  EXPECT_EQ(service_.requests(), 0);
  EXPECT_THAT(changed, ElementsAre("messages")) << "the kernel may have a listing";
  EXPECT_FALSE(site_->is_list_told("messages"));
}

TEST_F(NewsTest, WhatWeCreatedIsNotReadAgain) {
  go_live();
  read_list("revisions");
  service_.forget_requests();
  site_->learn("revisions", *wire::decode_record(*wire::parse_json(R"({"id":"own","created_at":"","project":"p"})")));
  tell(change("revisions", "own"));
  EXPECT_EQ(service_.requests(), 0);
}

TEST_F(NewsTest, WhatWePostedIsReadOnceForItsPlace) {
  go_live();
  service_.put("messages", "first", {{"thread", "t"}});
  read_list("messages");
  service_.forget_requests();
  service_.hold();
  service_.put("messages", "before", {{"thread", "t"}});
  tell(change("messages", "before"));  // this reading will not have ours
  auto without_ours = service_.answer({"GET", "/.site/data/messages?limit=100", {}, ""});
  service_.put("messages", "own", {{"thread", "t"}});
  const auto posted = wire::parse_json(service_.answer({"GET", "/.site/data/messages/own", {}, ""}).body);
  service_.instead[service_.targets().back()] = without_ours.body;
  site_->learn("messages", *wire::decode_record(*posted->object()->find("record")));
  auto ids = [](const ListPtr& list) {
    std::vector<std::string> all;
    for (const Listed& item : *list) all.push_back(item.id);
    return all;
  };
  EXPECT_THAT(ids(site_->try_list("messages")), ElementsAre("own", "first"));
  EXPECT_THAT(ids(site_->try_list_of_as_read("messages", "t")), ElementsAre("first"));
  EXPECT_FALSE(site_->is_list_told("messages"));
  Answer<ListPtr> next;
  site_->list("messages", {}, next.callback());
  service_.answer_at(0);
  service_.instead.clear();
  service_.release();
  run();
  EXPECT_EQ(service_.requests("messages?"), 2);
  EXPECT_THAT(ids(*next), ElementsAre("own", "before", "first")) << "a list that was asked for afterwards has it";
  EXPECT_THAT(ids(site_->try_list_of_as_read("messages", "t")), ElementsAre("own", "before", "first"));
  EXPECT_TRUE(site_->is_list_told("messages"));
}

TEST_F(NewsTest, ARecordBelowTheNewestPageGetsItsNewName) {
  for (int i = 0; i < 250; ++i) service_.put("threads", "t" + std::to_string(i), {{"title", "old"}});
  go_live();
  read_list("threads");
  service_.put("threads", "t7", {{"title", "new"}});
  service_.forget_requests();
  tell(change("threads", "t7"));
  EXPECT_EQ((*site_->try_list("threads"))[242].name, "new");
  EXPECT_EQ(service_.requests(), 2);
}

TEST_F(NewsTest, AFollowedHeadMovesByItself) {
  put_revision("r1", {});
  put_project("p", "r1");
  Answer<Head> head;
  site_->shown_head(ProjectId("p"), {}, head.callback());
  run();
  site_->follow(ProjectId("p"));
  go_live();
  std::vector<std::string> moved;
  site_->on_head_changed(
      [&](const ProjectId&, const RevisionTreePtr& tree) { moved.push_back(tree->revision.id.text()); });
  put_revision("r2", {});
  put_project("p", "r2");
  tell(change("projects", "p") + change("projects", "other"));
  EXPECT_THAT(moved, ElementsAre("r2"));
  EXPECT_EQ(service_.requests("projects/"), 1);
  EXPECT_TRUE(site_->is_current(ProjectId("p")));
}

TEST_F(NewsTest, ARecordThatChangesWhileItIsReadIsReadAgain) {
  service_.put("threads", "t", {{"title", "one"}});
  go_live();
  service_.hold();
  Answer<RecordTextPtr> text;
  site_->record_text("threads", "t", {}, text.callback());
  run();
  ASSERT_EQ(service_.outstanding(), 1u);
  tell(change("threads", "t"));
  service_.answer_at(0);
  EXPECT_FALSE(text.given());
  service_.put("threads", "t", {{"title", "two"}});
  service_.release();
  run();
  ASSERT_TRUE(text.ok());
  EXPECT_THAT((*text)->json, HasSubstr("two"));
  EXPECT_TRUE(site_->is_record_told("threads", "t"));
}

TEST_F(NewsTest, ListenersAndTheLogHearOfEachRecord) {
  go_live();
  std::vector<std::string> heard;
  site_->on_record_changed([&](const std::string& collection, const std::string& id, const std::string& of) {
    heard.push_back(collection + "/" + id + "/" + of);
  });
  tell(change("messages", "m", R"(,"thread":"t")") + change("domain_mail", "q") +
       change("revisions", "r", R"(,"project":"p")"));
  EXPECT_THAT(heard, ElementsAre("messages/m/t", "domain_mail/q/", "revisions/r/p"));
  const std::string log = events_->events_text();
  EXPECT_THAT(log, HasSubstr(R"("kind":"message","thread":"t","id":"m")"));
  EXPECT_THAT(log, HasSubstr(R"("kind":"mail","id":"q")"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
}

TEST_F(NewsTest, WithoutTheConnectionItPollsAndNothingIsMissed) {
  put_revision("r1", {});
  put_revision("r2", {});
  put_project("p", "r1");
  Answer<Head> head;
  site_->shown_head(ProjectId("p"), {}, head.callback());
  run();
  site_->follow(ProjectId("p"));
  go_live();
  service_.put("threads", "t", {{"title", "one"}});
  read_record("threads", "t");
  service_.lose_stream();
  EXPECT_FALSE(site_->is_record_told("threads", "t"));
  EXPECT_FALSE(site_->is_list_told("agents"));
  clock_.advance(10s);
  EXPECT_FALSE(site_->is_list_fresh("agents")) << "age decides, as without events";
  EXPECT_FALSE(site_->is_fresh(*site_->try_head(ProjectId("p"))));
  pass(10s);
  ASSERT_TRUE(service_.has_stream());
  EXPECT_EQ(service_.stream_targets.back(), "/.site/events?after=s.1");
  service_.push("id: s.1\nevent: hello\ndata: {}\n\n");
  EXPECT_TRUE(site_->is_record_told("threads", "t")) << "what was missed follows";
  tell(change("threads", "t"));
  EXPECT_FALSE(site_->is_record_told("threads", "t"));
}

TEST_F(NewsTest, AResetMakesEverythingUnknownAndReadsWhatIsShown) {
  put_revision("r1", {});
  put_revision("r2", {});
  put_project("p", "r1");
  Answer<Head> head;
  site_->shown_head(ProjectId("p"), {}, head.callback());
  run();
  site_->follow(ProjectId("p"));
  go_live();
  read_list("threads");
  read_record("projects", "p");
  service_.put("threads", "t", {{"title", "one"}});
  put_project("p", "r2");
  service_.forget_requests();
  std::vector<std::string> changed, heard;
  site_->on_list_changed([&](const std::string& collection, const ListChange&) { changed.push_back(collection); });
  site_->on_record_changed(
      [&](const std::string& collection, const std::string&, const std::string&) { heard.push_back(collection); });
  tell("id: x.1\nevent: reset\ndata: {}\n\n");
  EXPECT_THAT(changed, ElementsAre("agents", "threads")) << "also one that nobody reads";
  EXPECT_THAT(heard, ElementsAre("")) << "any record";
  EXPECT_FALSE(site_->is_record_told("projects", "p"));
  EXPECT_FALSE(site_->is_list_told("agents"));
  EXPECT_EQ(site_->try_list("threads")->size(), 1u);
  EXPECT_EQ(site_->try_head(ProjectId("p"))->shown->text(), "r2");
  EXPECT_EQ(service_.requests("threads"), 1);
  EXPECT_EQ(service_.requests("projects/p"), 1);
  EXPECT_TRUE(site_->is_list_told("threads"));
}

TEST_F(NewsTest, AServiceThatWasPutBackIsReadAnew) {
  for (int i = 0; i < 250; ++i) service_.put("threads", "t" + std::to_string(i), {{"title", "new"}});
  service_.put("spaces", "s", {{"name", "new"}});
  read_list("spaces");
  go_live();
  read_list("threads");
  tell(change("threads", "t249"));
  restart();
  site_->use_events(random_);
  go_live();
  read_list("threads");
  ASSERT_EQ(site_->try_list("threads")->size(), 250U);
  // As in the copy: an older title, and not the newest records.
  service_.put("threads", "t7", {{"title", "old"}});
  service_.put("spaces", "s", {{"name", "old"}});
  for (int i = 240; i < 250; ++i) service_.remove("threads", "t" + std::to_string(i));
  service_.forget_requests();
  service_.lose_stream();
  pass(5s);
  ASSERT_TRUE(service_.has_stream());
  tell("id: s.1\nevent: reset\ndata: {}\n\n");
  ASSERT_EQ(site_->try_list("threads")->size(), 240U);
  EXPECT_EQ(site_->try_list("threads")->at(232).name, "old");
  EXPECT_EQ(service_.requests("threads?"), 3);
  EXPECT_TRUE(site_->is_list_told("threads"));
  EXPECT_EQ(site_->try_list("spaces"), nullptr) << "a list that was stored before and not read since";
  service_.forget_requests();
  tell(change("threads", "t3"));
  EXPECT_EQ(service_.requests("threads?"), 1) << "once";
}

TEST_F(NewsTest, APositionThatTheServiceRefusesIsOneOfAnother) {
  for (int i = 0; i < 250; ++i) service_.put("threads", "t" + std::to_string(i), {{"title", "new"}});
  go_live();
  read_list("threads");
  service_.put("threads", "t7", {{"title", "old"}});
  service_.lose_stream();
  service_.stream_status = 400;
  for (const auto before = service_.stream_targets.size(); service_.stream_targets.size() == before;) pass(100ms);
  service_.stream_status = 200;
  pass(10s);
  ASSERT_TRUE(service_.has_stream());
  hello();
  run();
  EXPECT_EQ(site_->try_list("threads")->at(242).name, "old");
}

TEST_F(NewsTest, AListThatWasReadTooEarlyIsReadAgain) {
  service_.hold();
  site_->follow_list("messages");
  Answer<ListPtr> list;
  site_->list("messages", {}, list.callback());
  run();
  while (!service_.has_stream()) {
    ASSERT_TRUE(service_.answer_at(0));  // the description comes first
    run();
  }
  hello();
  run();
  service_.release();
  run();
  EXPECT_TRUE(list.ok());
  EXPECT_TRUE(site_->is_list_told("messages"));
  EXPECT_EQ(service_.requests("messages"), 2) << "what came between the first response and the connection";
}

TEST_F(NewsTest, AListThatCannotBeReadIsAskedForByItsNextReader) {
  go_live();
  read_list("messages");
  std::vector<std::string> changed;
  site_->on_list_changed([&](const std::string& collection, const ListChange&) { changed.push_back(collection); });
  service_.forget_requests();
  service_.away = true;
  tell(change("messages", "m"));
  EXPECT_EQ(service_.requests(), 1) << "it is not tried again and again";
  EXPECT_THAT(changed, ElementsAre("messages"));
  EXPECT_FALSE(site_->is_list_told("messages"));
}

TEST_F(NewsTest, WhatCouldNotBeReadIsReadOnceTheConnectionIsBack) {
  go_live();
  service_.put("messages", "m0", {{"thread", "t"}});
  read_list("messages");
  service_.away = true;
  tell(change("messages", "m1"));
  service_.lose_stream();
  service_.put("messages", "m1", {{"thread", "t"}});
  service_.away = false;
  pass(5s);
  ASSERT_TRUE(service_.has_stream());
  tell("id: s.2\nevent: hello\ndata: {}\n\n");
  EXPECT_EQ(site_->try_list("messages")->size(), 2u);
  EXPECT_TRUE(site_->is_list_told("messages"));
}

TEST_F(NewsTest, MoreChangesThanCanBeHandledCountAsAReset) {
  go_live();
  read_record("agents", "nobody");
  std::string events;
  for (int i = 0; i < 10'001; ++i) events += change("agents", "a" + std::to_string(i));
  service_.forget_requests();
  tell(events);
  EXPECT_FALSE(site_->is_list_told("agents"));
  EXPECT_LE(service_.requests(), 1);
}

TEST_F(NewsTest, GarbageIsLoggedOnceAndPollingGoesOn) {
  go_live();
  for (int i = 0; i < 200 && service_.has_stream(); ++i) service_.push("event: change\ndata: nonsense\n\n");
  run();
  EXPECT_FALSE(service_.has_stream());
  EXPECT_FALSE(site_->events_state().is_live);
  EXPECT_THAT(events_->errors_text(), HasSubstr("make no sense"));
  EXPECT_FALSE(site_->is_list_told("agents"));
}

}  // namespace
}  // namespace playfs::content
