// Heads through a Site: freshness, changes, outages.
#include <gmock/gmock.h>

#include "fixture.h"

namespace playfs::content {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class HeadsTest : public SiteTest {
 protected:
  const ProjectId id_{"p"};

  std::string latest_of(const Answer<Head>& answer) {
    return answer.ok() ? answer->project.latest_revision.text() : "error: " + std::string(name_of(*answer.code()));
  }
  std::string head() {
    Answer<Head> answer;
    site_->head(id_, {}, answer.callback());
    run();
    return latest_of(answer);
  }
  std::string refresh() {
    Answer<Head> answer;
    site_->refresh_head(id_, {}, answer.callback());
    run();
    return latest_of(answer);
  }
  /// The head that the project shows.
  std::string show() {
    Answer<Head> answer;
    site_->shown_head(id_, {}, answer.callback());
    run();
    return answer.ok() ? answer->shown->text() : "error: " + std::string(name_of(*answer.code()));
  }
  void publish(const std::string& revision_id) {
    put_revision(revision_id, {});
    put_project("p", revision_id);
  }
  void listen() {
    site_->on_head_changed([this](const ProjectId& project, const RevisionTreePtr& tree) {
      changes_.push_back(project.text() + ":" + (tree ? tree->revision.id.text() : "none"));
      EXPECT_TRUE(!tree || site_->try_revision(tree->revision.id));
    });
  }
  static std::ptrdiff_t count_lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

  std::vector<std::string> changes_;
};

TEST_F(HeadsTest, IsFreshForAWhile) {
  publish("r1");
  EXPECT_FALSE(site_->try_head(id_));
  EXPECT_EQ(head(), "r1");
  EXPECT_TRUE(site_->is_fresh(*site_->try_head(id_)));
  EXPECT_EQ(site_->try_head(id_)->project.name, "name of p");
  publish("r2");
  advance(seconds(9));
  EXPECT_EQ(head(), "r1");
  EXPECT_EQ(service_.requests(), 1);
  advance(seconds(1));
  EXPECT_FALSE(site_->is_fresh(*site_->try_head(id_)));
  EXPECT_EQ(site_->try_head(id_)->project.latest_revision.text(), "r1");
  EXPECT_EQ(head(), "r2");
}

TEST_F(HeadsTest, ConcurrentCallersShareOneRequest) {
  publish("r1");
  service_.hold();
  std::vector<Answer<Head>> answers(10);
  for (auto& answer : answers) site_->head(id_, {}, answer.callback());
  run();
  EXPECT_EQ(service_.requests(), 1);
  service_.release();
  run();
  for (auto& answer : answers) EXPECT_EQ(latest_of(answer), "r1");
}

TEST_F(HeadsTest, ARefreshAsksAfterItWasCalledAndJoinsNothingOlder) {
  publish("r1");
  service_.hold();
  Answer<Head> polled, refreshed;
  site_->head(id_, {}, polled.callback());
  run();
  site_->refresh_head(id_, {}, refreshed.callback());
  run();
  EXPECT_EQ(service_.requests(), 2);
  service_.release();
  run();
  EXPECT_EQ(latest_of(refreshed), "r1");
}

TEST_F(HeadsTest, AnOutdatedResponseDoesNotTurnTheHeadBack) {
  publish("r1");
  ASSERT_EQ(head(), "r1");
  listen();
  service_.hold();
  Answer<Head> early, late;
  site_->refresh_head(id_, {}, early.callback());
  site_->refresh_head(id_, {}, late.callback());
  run();
  ASSERT_EQ(service_.outstanding(), 2U);
  publish("r2");
  service_.answer_at(1);
  run();
  EXPECT_EQ(latest_of(late), "r2");
  put_project("p", "r1");  // what the early request saw
  service_.answer_at(0);
  run();
  EXPECT_EQ(site_->try_head(id_)->project.latest_revision.text(), "r2");
}

TEST_F(HeadsTest, AsksConditionallyWhereTheServiceOffersIt) {
  service_.etags = true;
  publish("r1");
  EXPECT_EQ(head(), "r1");
  advance(seconds(11));
  EXPECT_EQ(head(), "r1");
  EXPECT_TRUE(site_->is_fresh(*site_->try_head(id_))) << "not modified is as good as an answer";
  publish("r2");
  advance(seconds(11));
  EXPECT_EQ(head(), "r2");
  restart();
  EXPECT_EQ(head(), "r2") << "the tag is kept with the record";
}

TEST_F(HeadsTest, OldHeadsServeWhileTheServiceIsAway) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  service_.away = true;
  for (int i = 0; i < 3; ++i) {
    advance(seconds(11));
    EXPECT_EQ(head(), "r1");
  }
  EXPECT_EQ(refresh(), "error: unreachable") << "a publication has to know";
  EXPECT_EQ(count_lines(events_->errors_text()), 1) << "one outage, one error";
  service_.away = false;
  publish("r2");
  advance(seconds(11));
  EXPECT_EQ(head(), "r2");
  EXPECT_EQ(count_lines(events_->events_text()), 2);
  EXPECT_THAT(events_->events_text(), HasSubstr("recovered"));
  EXPECT_THAT(events_->events_text(), HasSubstr("head_moved"));
}

TEST_F(HeadsTest, AnotherProcessFindsTheHeadWithoutTheService) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  service_.away = true;
  restart();
  auto known = site_->try_head(id_);
  ASSERT_TRUE(known);
  EXPECT_FALSE(site_->is_fresh(*known));
  EXPECT_EQ(head(), "r1");
}

TEST_F(HeadsTest, AProjectThatIsGoneIsNotServed) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  service_.remove("projects", "p");
  advance(seconds(11));
  EXPECT_EQ(head(), "error: not_found");
  EXPECT_FALSE(site_->try_head(id_));
}

TEST_F(HeadsTest, ChangesAreToldOnceTheRevisionIsHere) {
  listen();
  publish("r1");
  EXPECT_EQ(head(), "r1");
  EXPECT_THAT(changes_, IsEmpty()) << "the first one is no change";
  publish("r2");
  advance(seconds(11));
  service_.hold();
  Answer<Head> answer;
  site_->head(id_, {}, answer.callback());
  run();
  service_.answer_at(0);  // the project
  run();
  EXPECT_EQ(latest_of(answer), "r2");
  EXPECT_THAT(changes_, IsEmpty());
  service_.release();  // the revision
  run();
  EXPECT_THAT(changes_, ElementsAre("p:r2"));
  EXPECT_EQ(refresh(), "r2");
  EXPECT_THAT(changes_, ElementsAre("p:r2"));
  const std::string events = events_->events_text();
  EXPECT_NE(events.find(R"("kind":"head_moved","project":"p","revision":"r2","previous":"r1")"), std::string::npos)
      << events;
  EXPECT_EQ(std::count(events.begin(), events.end(), '\n'), 1);
}

TEST_F(HeadsTest, AChangeSinceAnEarlierProcessIsTold) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  restart();
  listen();
  ASSERT_TRUE(site_->try_head(id_));
  publish("r2");
  EXPECT_EQ(head(), "r2");
  EXPECT_THAT(changes_, ElementsAre("p:r2"));
}

TEST_F(HeadsTest, AHeadTakenAwayIsToldToo) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  listen();
  service_.put("projects", "p", {{"latest_revision", Json()}});
  EXPECT_EQ(refresh(), "");
  EXPECT_THAT(changes_, ElementsAre("p:none"));
}

TEST_F(HeadsTest, AHeadWhoseRevisionIsMissingIsToldOnceAndTriedAgain) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  listen();
  put_project("p", "r2");
  EXPECT_EQ(refresh(), "r2");
  EXPECT_EQ(refresh(), "r2");
  EXPECT_THAT(changes_, IsEmpty());
  EXPECT_EQ(count_lines(events_->errors_text()), 1);
  publish("r2");
  EXPECT_EQ(refresh(), "r2");
  EXPECT_THAT(changes_, ElementsAre("p:r2"));
}

TEST_F(HeadsTest, AHeadThatCannotBeReadIsNotFetchedOverAndOver) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  listen();
  service_.put("revisions", "bad", {{"project", "p"}, {"manifest", 1}});
  put_project("p", "bad");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(refresh(), "bad");
  EXPECT_EQ(service_.requests("revisions/bad"), 1);
  publish("r2");
  EXPECT_EQ(refresh(), "r2");
  EXPECT_THAT(changes_, ElementsAre("p:r2"));
}

TEST_F(HeadsTest, FollowedProjectsAreAskedForWhileTheyAreInUse) {
  listen();
  publish("r1");
  site_->follow(id_);
  site_->follow(id_);
  run();
  EXPECT_EQ(service_.requests("projects/"), 1);
  EXPECT_EQ(executor_.until_next(), seconds(10));
  publish("r2");
  advance(seconds(10));
  EXPECT_EQ(service_.requests("projects/"), 2);
  EXPECT_THAT(changes_, ElementsAre("p:r2"));

  // Without another touch it ends after the time of use; a touch restarts it.
  for (int i = 0; i < 60; ++i) advance(seconds(10));
  EXPECT_FALSE(executor_.until_next());
  const auto asked = service_.requests("projects/");
  EXPECT_LE(asked, 31);
  advance(seconds(1000));
  EXPECT_EQ(service_.requests("projects/"), asked);
  site_->follow(id_);
  run();
  EXPECT_EQ(service_.requests("projects/"), asked + 1);
}

TEST_F(HeadsTest, FollowingSkipsProjectsJustRequested) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  site_->follow(id_);
  run();
  advance(seconds(9));
  EXPECT_EQ(service_.requests("projects/"), 1);
  EXPECT_EQ(refresh(), "r1");
  advance(seconds(9));
  EXPECT_EQ(service_.requests("projects/"), 2);
  advance(seconds(1));
  EXPECT_EQ(service_.requests("projects/"), 3);
}

TEST_F(HeadsTest, FollowingGoesOnThroughAnOutage) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  listen();
  site_->follow(id_);
  service_.away = true;
  for (int i = 0; i < 5; ++i) advance(seconds(10));
  EXPECT_EQ(count_lines(events_->errors_text()), 1);
  service_.away = false;
  publish("r2");
  advance(seconds(10));
  EXPECT_THAT(changes_, ElementsAre("p:r2"));
}

TEST_F(HeadsTest, IsCurrentOnlyWithARecentAnswer) {
  publish("r1");
  EXPECT_FALSE(site_->is_current(id_));
  EXPECT_EQ(head(), "r1");
  EXPECT_TRUE(site_->is_current(id_));
  advance(seconds(1));
  site_->follow(id_);
  run();
  service_.hold();
  advance(seconds(15));
  EXPECT_FALSE(site_->is_fresh(*site_->try_head(id_)));
  EXPECT_FALSE(site_->is_current(id_)) << "nothing was answered since it is followed";
  service_.release();
  run();
  service_.hold();
  advance(seconds(15));
  EXPECT_TRUE(site_->is_current(id_)) << "the next answer is on its way";
  service_.release();
  run();

  for (int i = 0; i < 60; ++i) advance(seconds(10));  // nothing uses it, so following ends
  publish("r2");
  EXPECT_FALSE(site_->is_current(id_));
  service_.hold();
  site_->follow(id_);
  run();
  EXPECT_FALSE(site_->is_current(id_)) << "asked, and not answered yet";
  service_.release();
  run();
  EXPECT_TRUE(site_->is_current(id_));
  EXPECT_EQ(site_->try_head(id_)->project.latest_revision.text(), "r2");
}

TEST_F(HeadsTest, ShowsOnlyRevisionsOfItsOwn) {
  publish("r1");
  EXPECT_EQ(show(), "r1");
  listen();
  put_revision("foreign", {}, {}, "q");
  put_project("p", "foreign");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(refresh(), "foreign") << "whoever publishes has to know";
    EXPECT_EQ(show(), "r1");
  }
  EXPECT_TRUE(site_->try_head(id_)->refused);
  EXPECT_EQ(service_.requests("revisions/foreign"), 1);
  EXPECT_EQ(count_lines(events_->errors_text()), 1);
  EXPECT_THAT(changes_, IsEmpty());
  restart();
  EXPECT_EQ(show(), "error: refused_input") << "nothing else is known here";
  publish("r2");
  EXPECT_EQ(refresh(), "r2");
  EXPECT_EQ(show(), "r2");
  EXPECT_FALSE(site_->try_head(id_)->refused);
}

TEST_F(HeadsTest, ShowsTheOldOneUntilTheNewOneIsHere) {
  publish("r1");
  EXPECT_EQ(show(), "r1");
  publish("r2");
  service_.hold();
  Answer<Head> answer;
  advance(seconds(11));
  site_->shown_head(id_, {}, answer.callback());
  run();
  service_.answer_at(0);  // the project
  run();
  EXPECT_EQ(site_->try_head(id_)->project.latest_revision.text(), "r2");
  EXPECT_EQ(site_->try_head(id_)->shown->text(), "r1");
  EXPECT_EQ(answer.calls(), 0);
  service_.release();
  run();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->shown->text(), "r2");
}

TEST_F(HeadsTest, ASlowHeadDoesNotDelayALaterOne) {
  publish("r1");
  EXPECT_EQ(show(), "r1");
  listen();
  auto project_answers = [&](std::size_t at) {
    Answer<Head> answer;
    site_->refresh_head(id_, {}, answer.callback());
    run();
    service_.answer_at(at);
    run();
  };
  publish("r2");
  service_.hold();
  project_answers(0);
  EXPECT_EQ(service_.outstanding(), 1U);  // r2, which never comes
  publish("r3");
  project_answers(1);
  service_.answer_at(1);
  run();
  EXPECT_EQ(site_->try_head(id_)->shown->text(), "r3");
  service_.release();
  run();
  EXPECT_EQ(site_->try_head(id_)->shown->text(), "r3");
  EXPECT_THAT(changes_, ElementsAre("p:r3"));
  EXPECT_EQ(show(), "r3");
  put_project("p", "r2");  // back to the one that came too late
  EXPECT_EQ(refresh(), "r2");
  EXPECT_EQ(site_->try_head(id_)->shown->text(), "r2");
}

TEST_F(HeadsTest, EachAnswerIsSeenWhetherHeadMovedOrNot) {
  publish("r1");
  EXPECT_EQ(show(), "r1");
  std::vector<std::string> seen;
  site_->on_head_seen([&](const ProjectId& project) { seen.push_back(site_->try_head(project)->shown->text()); });
  EXPECT_EQ(refresh(), "r1");
  publish("r2");
  EXPECT_EQ(refresh(), "r2");
  service_.away = true;
  refresh();
  EXPECT_THAT(seen, ElementsAre("r1", "r2"));
}

TEST_F(HeadsTest, ASilentServiceIsAskedByOnePollAtATime) {
  publish("r1");
  EXPECT_EQ(head(), "r1");
  site_->follow(id_);
  service_.hold();
  for (int i = 0; i < 5; ++i) advance(seconds(10));
  EXPECT_EQ(service_.outstanding(), 1U);
}

}  // namespace
}  // namespace playfs::content
