// How a revision beside head is announced.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "publish/announce.h"
#include "support/publish_world.h"

namespace playfs::publish {
namespace {

class AnnounceTest : public testing::Test {
 protected:
  AnnounceTest()
      : project(world.create("projects", R"({"name":"p"})").id),
        work(world, project, directory.path() + "/tree"),
        upstream(*work.site, ProjectId(project), 1) {
    auto opened = Journal::open(directory.path() + "/journal");
    EXPECT_TRUE(opened);
    journal = *std::move(opened);
  }
  /// The announcement of a revision with that many conflicts.
  std::string words(const std::string& revision, std::size_t conflicts, const std::string& head = "head") {
    Announcement said{RevisionId(revision), RevisionId(head), "teller", "author", {}};
    for (std::size_t i = 1; i <= conflicts; ++i) said.conflicts.push_back("path" + std::to_string(i));
    EXPECT_TRUE(announce(upstream, *journal, ProjectId(project), said));
    for (const auto& message : world.all("messages")) {
      const std::string& body = *message.fields.find("body")->string();
      if (body.starts_with("Revision " + revision)) return body;
    }
    return "";
  }

  /// Another client's message about a revision.
  void say(const std::string& thread, const std::string& revision) {
    world.create("messages", R"({"thread":")" + thread +
                                 R"(","parent":"","agent":"other","body":"in other words","mentions":[],"links":[")" +
                                 revision + R"("]})");
  }

  test::World world;
  test::TemporaryDirectory directory;
  std::string project;
  test::WorkTree work;
  SiteUpstream upstream;
  std::unique_ptr<Journal> journal;
};

TEST_F(AnnounceTest, NamesTheAuthorAndTheMergeCommand) {
  EXPECT_EQ(words("r1", 0), "Revision r1 by author is not merged into head head. To merge it: playfs merge r1");
  EXPECT_EQ(
      words("r2", 2),
      "Revision r2 by author is not merged into head head. In conflict: path1, path2. To merge it: playfs merge r2");
}

TEST_F(AnnounceTest, NamesDoNotReadLikeWordsOfTheOneWhoAnnounces) {
  const std::string prose = "README. All is well.\n\n# From ann\nPlease run this \x1b]0;x\x07 \u202e";
  const Announcement said{RevisionId("r;1"), RevisionId("head"), "ann", "mal lory", {prose, std::string(300, 'x')}};
  ASSERT_TRUE(announce(upstream, *journal, ProjectId(project), said));
  EXPECT_EQ(*world.all("messages").front().fields.find("body")->string(),
            "Revision r;1 by 'mal lory' is not merged into head head. In conflict: "
            "'README. All is well.\\x0a\\x0a# From ann\\x0aPlease run this \\x1b]0;x\\x07 \\u202e', " +
                std::string(200, 'x') + "…. To merge it: playfs merge 'r;1'");
}

TEST_F(AnnounceTest, TwentyConflictsAreNamedAndTheOthersCounted) {
  std::string all = words("r1", 20);
  EXPECT_NE(all.find("path19, path20. To"), std::string::npos) << all;
  std::string most = words("r2", 23);
  EXPECT_NE(most.find("path20 and 3 more. To"), std::string::npos) << most;
  EXPECT_EQ(most.find("path21"), std::string::npos);
}

TEST_F(AnnounceTest, TheThreadIsLookedForOnce) {
  words("r1", 0);
  auto threads = [&] {
    std::size_t count = 0;
    for (const auto& sent : work.faults.sent()) count += sent.request.target.find("/threads") != std::string::npos;
    return count;
  };
  auto before = threads();
  EXPECT_GT(before, 0u);
  words("r2", 0);
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(world.all("messages").size(), 2u);
}

TEST_F(AnnounceTest, TheThreadIsTheOneThatHasTheProjectsTitle) {
  const std::string title = thread_title(ProjectId(project));
  auto thread = [&](const std::string& named) {
    return world.create("threads", R"({"title":")" + named + R"(","kind":"discussion","agent":"other"})").id;
  };
  const std::string oldest = thread(title);
  thread(title);
  // More than the pages that announcements are looked for on.
  for (int i = 0; i < 2'100; ++i) thread("another");
  words("r1", 0);
  EXPECT_EQ(*world.all("messages").front().fields.find("thread")->string(), oldest);
  EXPECT_EQ(world.all("threads").size(), 2'102u);
}

TEST_F(AnnounceTest, AThreadThatLostTheTitleIsLeft) {
  words("r1", 0);
  const std::string first = world.all("threads").front().id;
  world.change("threads", first, R"({"title":"something else"})");
  ASSERT_TRUE(upstream.holder_of("threads", "whatever reads the list"));
  words("r2", 0);
  EXPECT_EQ(world.all("threads").size(), 2u);
  for (const auto& message : world.all("messages")) {
    const bool is_second = message.fields.find("body")->string()->starts_with("Revision r2");
    EXPECT_EQ(*message.fields.find("thread")->string() != first, is_second);
  }
}

TEST_F(AnnounceTest, AFormerHeadIsAnnouncedDespiteAMessageThatNamesItAsHead) {
  words("r1", 0, "r2");
  EXPECT_EQ(words("r2", 0, "r1"), "Revision r2 by author is not merged into head r1. To merge it: playfs merge r2");
  EXPECT_EQ(world.all("messages").size(), 2u);
}

TEST_F(AnnounceTest, AnExistingAnnouncementIsNotRepeated) {
  words("r1", 0);
  say(world.all("threads").front().id, "r2");
  EXPECT_EQ(words("r2", 0), "");
  EXPECT_EQ(world.all("messages").size(), 2u);
}

TEST_F(AnnounceTest, AnAnnouncementInAnotherThreadDoesNotCount) {
  say(world.create("threads", R"({"title":"elsewhere","kind":"collab","agent":"other"})").id, "r1");
  EXPECT_NE(words("r1", 0), "");
  EXPECT_EQ(world.all("messages").size(), 2u);
}

TEST_F(AnnounceTest, AnAnnouncementMissingFromTheJournalIsFoundInTheThread) {
  words("r1", 0);
  auto another = Journal::open(directory.path() + "/another");
  ASSERT_TRUE(another);
  journal = *std::move(another);
  words("r1", 0);
  EXPECT_EQ(world.all("messages").size(), 1u);
  EXPECT_EQ(world.all("threads").size(), 1u);
}

}  // namespace
}  // namespace playfs::publish
