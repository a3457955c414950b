// Revisions and single records through a Site.
#include <gmock/gmock.h>

#include "fixture.h"

namespace playfs::content {
namespace {

using testing::HasSubstr;

class RevisionsTest : public SiteTest {};

TEST_F(RevisionsTest, IsFetchedOnceForAllWhoAsk) {
  put_revision("r", {{"f", JsonObject{{"h", "x"}, {"s", 1}, {"inline", "y"}}}});
  EXPECT_FALSE(site_->try_revision(RevisionId("r")));
  service_.hold();
  std::vector<Answer<RevisionTreePtr>> answers(10);
  for (auto& answer : answers) site_->revision(RevisionId("r"), {}, answer.callback());
  run();
  EXPECT_EQ(service_.requests(), 1);
  service_.release();
  run();
  for (auto& answer : answers) {
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(*answer, *answers[0]) << "one object for all";
  }
  EXPECT_NE((*answers[0])->tree.file_at("f"), nullptr);
  EXPECT_EQ(site_->try_revision(RevisionId("r")), *answers[0]);
  EXPECT_EQ(service_.requests(), 1);
}

TEST_F(RevisionsTest, IsKeptAcrossARestartWithItsUnknownFields) {
  put_revision("r", {}, {{"unknown_too", "kept"}});
  revision("r");
  restart();
  service_.away = true;
  auto tree = site_->try_revision(RevisionId("r"));
  ASSERT_TRUE(tree);
  ASSERT_NE(tree->revision.extra.find("unknown"), nullptr);
  EXPECT_EQ(tree->revision.extra.find("unknown")->integer(), 7);
  EXPECT_NE(tree->tree.manifest().extra.find("unknown_too"), nullptr);
}

TEST_F(RevisionsTest, ARevisionInUseIsNotDuplicated) {
  put_revision("first", {});
  auto held = revision("first");
  const std::string filler(40'000, 'x');
  for (int i = 0; i < 300; ++i) {
    const std::string id = "r" + std::to_string(i);
    put_revision(id, {}, {{"filler", filler}});
    revision(id);
  }
  EXPECT_EQ(site_->try_revision(RevisionId("first")), held);
}

/// JSON of three bytes per value, each of which takes forty in memory.
Json dense(std::size_t values) { return Json::Array(values, Json::Array()); }

TEST_F(RevisionsTest, AreKeptByTheirMemory) {
  std::vector<std::weak_ptr<const RevisionTree>> trees;
  for (int i = 0; i < 8; ++i) {
    const std::string id = "r" + std::to_string(i);
    put_revision(id, {}, {{"dense", dense(100'000)}});
    trees.push_back(revision(id));
  }
  EXPECT_LE(std::count_if(trees.begin(), trees.end(), [](const auto& tree) { return !tree.expired(); }), 2)
      << "of 300 KB of text and 4 MB of memory each";
}

TEST_F(RevisionsTest, ALargeOneIsNotParsedByThoseWhoMustNotWait) {
  put_revision("small", {});
  put_revision("large", {}, {{"dense", dense(100'000)}});
  revision("small");
  revision("large");
  restart();
  EXPECT_TRUE(site_->revision_at_once(RevisionId("small")).tree);
  auto here = site_->revision_at_once(RevisionId("large"));
  EXPECT_FALSE(here.tree);
  EXPECT_TRUE(here.takes_long);
  service_.forget_requests();
  Answer<RevisionTreePtr> first, second;
  site_->revision(RevisionId("large"), {}, first.callback());
  site_->revision(RevisionId("large"), {}, second.callback());
  EXPECT_EQ(first.calls(), 0) << "it is parsed elsewhere";
  run();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(service_.requests(), 0);
  EXPECT_TRUE(site_->revision_at_once(RevisionId("large")).tree);
  auto none = site_->revision_at_once(RevisionId("none"));
  EXPECT_FALSE(none.tree || none.takes_long);
}

TEST_F(RevisionsTest, APartOfARecordIsThatOfItsPresentState) {
  static int reduced = 0;
  reduced = 0;
  const Reduce body = [](Record record) {
    ++reduced;
    const std::string text = *record.fields.find("body")->string();
    return Reduced{{record.id, {}, {}, {}, {{"body", text}}}, text};
  };
  auto shown = [&](Reads reads) -> std::string {
    auto here = site_->known_part("messages", "m", body, reads);
    if (here.takes_long) return here.is_large ? "large" : "takes long";
    return here.part ? *here.part->text.bytes() : "nothing";
  };
  auto fetch_it = [&](const std::string& text, std::size_t values) {
    service_.put("messages", "m", {{"body", text}, {"dense", dense(values)}});
    Answer<RecordTextPtr> answer;
    site_->record_text("messages", "m", {}, answer.callback());
    run();
  };
  EXPECT_EQ(shown(Reads::any), "nothing");
  fetch_it("one", 1);
  EXPECT_EQ(shown(Reads::at_once), "one");
  fetch_it("two", 1);
  EXPECT_EQ(shown(Reads::at_once), "two");
  fetch_it("three", 10'000);
  EXPECT_EQ(shown(Reads::at_once), "takes long") << "of an ordinary size, but more values";
  EXPECT_EQ(shown(Reads::ordinary), "three");
  fetch_it("four", 100'000);
  EXPECT_EQ(shown(Reads::at_once), "large");
  EXPECT_EQ(shown(Reads::ordinary), "large");
  EXPECT_EQ(shown(Reads::any), "four");
  EXPECT_EQ(shown(Reads::any), "four");
  EXPECT_EQ(reduced, 4) << "each is parsed once, and kept";
}

TEST_F(RevisionsTest, ALongTextIsOnDiskAndMadeAgainIfItIsLost) {
  service_.put("revisions", "r", {{"body", std::string(2 * Text::kMostInMemory, 'x')}});
  Answer<RecordTextPtr> record;
  site_->record_text("revisions", "r", {}, record.callback());
  run();
  ASSERT_TRUE(record.ok());
  const Reduce body = [](Record whole) { return Reduced{{}, *whole.fields.find("body")->string()}; };
  const Text text = site_->part_of(**record, body, Reads::any).part->text;
  EXPECT_FALSE(text.bytes()) << "it is not in memory";
  EXPECT_EQ(text.size(), 2 * Text::kMostInMemory);
  EXPECT_EQ(site_->read_text(text, text.size() - 3, 10), "xxx");
  EXPECT_EQ(site_->known_part("revisions", "r", body, Reads::at_once).part->text, text);
  std::filesystem::remove_all(directory_ / "objects");
  restart();
  EXPECT_FALSE(site_->read_text(text, 0, 1));
  EXPECT_TRUE(site_->known_part("revisions", "r", body, Reads::at_once).takes_long);
  EXPECT_EQ(site_->known_part("revisions", "r", body, Reads::any).part->text, text);
  EXPECT_EQ(site_->read_text(text, 0, 1), "x");
}

TEST_F(RevisionsTest, AbsentOnesAndImpossibleIdsAreNotFound) {
  Answer<RevisionTreePtr> absent, impossible, empty;
  site_->revision(RevisionId("absent"), {}, absent.callback());
  run();
  EXPECT_EQ(absent.code(), ErrorCode::not_found);
  service_.forget_requests();
  site_->revision(RevisionId(std::string(kMaxIdLength + 1, 'x')), {}, impossible.callback());
  site_->revision(RevisionId(), {}, empty.callback());
  run();
  EXPECT_EQ(impossible.code(), ErrorCode::not_found);
  EXPECT_EQ(empty.code(), ErrorCode::not_found);
  EXPECT_EQ(service_.requests(), 0);
}

TEST_F(RevisionsTest, AnAbsenceIsNotedForTheNextProcess) {
  const RevisionId id("r");
  auto ask = [&] {
    Answer<RevisionTreePtr> answer;
    site_->revision(id, {}, answer.callback());
    run();
    return answer.code();
  };
  EXPECT_EQ(ask(), ErrorCode::not_found);
  restart();
  EXPECT_FALSE(site_->was_absent(id)) << "nobody has asked here";
  EXPECT_TRUE(site_->was_absent_lately(id));
  advance(std::chrono::minutes(1));
  EXPECT_FALSE(site_->was_absent_lately(id)) << "it may be there by now";
  EXPECT_EQ(ask(), ErrorCode::not_found);
  restart();
  Record other;
  other.id = "other";
  advance(std::chrono::milliseconds(1));
  static_cast<void>(site_->learn("revisions", other));
  EXPECT_FALSE(site_->was_absent_lately(id)) << "there is a new revision";
}

TEST_F(RevisionsTest, AnAbsenceIsRememberedButStillRequested) {
  const RevisionId id("r");
  auto ask = [&] {
    Answer<RevisionTreePtr> answer;
    site_->revision(id, {}, answer.callback());
    run();
    return answer.code();
  };
  EXPECT_FALSE(site_->was_absent(id)) << "nobody has asked";
  EXPECT_EQ(ask(), ErrorCode::not_found);
  EXPECT_TRUE(site_->was_absent(id));
  EXPECT_FALSE(site_->was_absent(RevisionId("other")));
  EXPECT_EQ(ask(), ErrorCode::not_found);
  EXPECT_EQ(service_.requests("revisions/r"), 2) << "whoever asks, asks the service";
  EXPECT_FALSE(site_->was_absent_lately(RevisionId("other")));
  advance(SiteOptions().refresh);
  EXPECT_FALSE(site_->was_absent(id)) << "it may be there by now";
  EXPECT_TRUE(site_->was_absent_lately(id)) << "a parent may be skipped for longer";
  advance(std::chrono::minutes(1));
  EXPECT_FALSE(site_->was_absent_lately(id));

  EXPECT_EQ(ask(), ErrorCode::not_found);
  put_revision("r", {});
  EXPECT_EQ(ask(), std::nullopt) << "it is there";
  EXPECT_FALSE(site_->was_absent(id));
  service_.away = true;
  const RevisionId unknown("unknown");
  Answer<RevisionTreePtr> unreachable;
  site_->revision(unknown, {}, unreachable.callback());
  run();
  EXPECT_FALSE(site_->was_absent(unknown)) << "the service did not say so";
}

TEST_F(RevisionsTest, NewRevisionsInvalidateRememberedAbsences) {
  put_project("p", "");
  put_revision("first", {});
  Answer<ListPtr> list, longer;
  site_->list("revisions", {}, list.callback());
  run();
  const RevisionId id("r");
  auto ask = [&] {
    advance(std::chrono::milliseconds(1));
    site_->revision(id, {}, [](const Result<RevisionTreePtr>&) {});
    run();
    return site_->was_absent(id);
  };
  EXPECT_TRUE(ask());
  advance(std::chrono::milliseconds(1));
  put_revision("second", {});
  site_->list("revisions", {}, longer.callback());
  run();
  EXPECT_FALSE(site_->was_absent(id)) << "the list has another one";

  EXPECT_TRUE(ask());
  Answer<Head> head;
  site_->shown_head(ProjectId("p"), {}, head.callback());
  run();
  EXPECT_TRUE(site_->was_absent(id)) << "the head is where it was";
  put_project("p", "first");
  site_->refresh_head(ProjectId("p"), {}, [](const Result<Head>&) {});
  run();
  EXPECT_FALSE(site_->was_absent(id)) << "head has moved";

  service_.hold();
  advance(std::chrono::milliseconds(1));
  site_->revision(id, {}, [](const Result<RevisionTreePtr>&) {});
  run();
  advance(std::chrono::milliseconds(1));
  site_->learn("revisions", *wire::decode_record(*wire::parse_json(R"({"id": "own"})")));
  service_.release();
  run();
  EXPECT_FALSE(site_->was_absent(id)) << "it was asked for before";
}

TEST_F(RevisionsTest, AnUnreadableOneIsAnErrorWithAReason) {
  service_.put("revisions", "r", {{"project", "p"}, {"manifest", "none"}});
  Answer<RevisionTreePtr> answer;
  site_->revision(RevisionId("r"), {}, answer.callback());
  run();
  EXPECT_EQ(answer.code(), ErrorCode::refused_input);
  EXPECT_THAT(events_->errors_text(), HasSubstr("revisions/r"));
  EXPECT_FALSE(records_->record(client_->site(), "revisions", "r"));
}

TEST_F(RevisionsTest, AnotherRecordThanAskedForIsNotBelieved) {
  put_revision("r", {});
  service_.instead["/.site/data/revisions/r"] = R"({"record":{"id":"other","manifest":{"files":{}}}})";
  Answer<RevisionTreePtr> answer;
  site_->revision(RevisionId("r"), {}, answer.callback());
  run();
  EXPECT_EQ(answer.code(), ErrorCode::protocol);
  EXPECT_FALSE(site_->try_revision(RevisionId("other")));
}

TEST_F(RevisionsTest, ACancelledWaiterIsAnsweredWhileTheServiceIsSilent) {
  put_revision("r", {});
  service_.hold();
  CancelSource cancel;
  Answer<RevisionTreePtr> impatient;
  site_->revision(RevisionId("r"), cancel.token(), impatient.callback());
  run();
  cancel.cancel();
  EXPECT_EQ(impatient.code(), ErrorCode::interrupted);
  service_.release();
  run();
  EXPECT_TRUE(site_->try_revision(RevisionId("r"))) << "what was under way is kept";
}

class RecordsTest : public SiteTest {
 protected:
  Answer<Record> get(const std::string& collection, const std::string& id) {
    Answer<Record> answer;
    site_->record(collection, id, {}, answer.callback());
    run();
    return answer;
  }
};

TEST_F(RecordsTest, ImmutableOnesComeFromTheCache) {
  put_revision("r", {});
  ASSERT_TRUE(get("revisions", "r").ok());
  ASSERT_TRUE(get("revisions", "r").ok());
  EXPECT_EQ(service_.requests(), 1);
}

TEST_F(RecordsTest, OthersAreAskedForEachTimeAndServedOldWhereTheServiceIsAway) {
  service_.put("threads", "t", {{"title", "old"}});
  ASSERT_TRUE(get("threads", "t").ok());
  service_.put("threads", "t", {{"title", "new"}});
  EXPECT_EQ(*get("threads", "t")->fields.find("title")->string(), "new");
  service_.away = true;
  auto answer = get("threads", "t");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(*answer->fields.find("title")->string(), "new");
  EXPECT_EQ(get("threads", "other").code(), ErrorCode::unreachable);
}

TEST_F(RecordsTest, LearntRecordsAreNotRequested) {
  JsonObject manifest{{"files", JsonObject{{"f", JsonObject{{"s", 4}, {"c", Json::Array{"c"}}}}}}};
  site_->learn("revisions", {"r", "", "", "", {{"project", "p"}, {"manifest", std::move(manifest)}}});
  site_->learn("file_chunks", {"c", "", "", "", {{"content", "ours"}}});
  EXPECT_EQ(content(file("r", "f")), "ours");
  EXPECT_TRUE(get("file_chunks", "c").ok());
  EXPECT_EQ(service_.requests(), 0);
}

TEST_F(RecordsTest, UnknownCollectionsAreTolerated) {
  service_.put("inventions", "i", {{"anything", 1}});
  EXPECT_TRUE(get("inventions", "i").ok());
  EXPECT_EQ(get("inventions", "j").code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace playfs::content
