// Which record owns a name: the rule by itself, and as lists apply it to what a service sends.
#include "content/names.h"

#include <thread>

#include <gmock/gmock.h>

#include "base/sqlite.h"
#include "fixture.h"

namespace playfs::content {
namespace {

Listed named(const std::string& id, std::int64_t created, const std::string& name, std::int64_t named_at) {
  return {id, {created}, name, {}, {}, {}, {named_at}};
}
/// As it was just read.
Listed read(const std::string& id, std::int64_t created, std::int64_t updated, const std::string& name = "bob") {
  return named(id, created, name, updated);
}
std::optional<WallTime> never(const Listed&) { return std::nullopt; }

class NamesTest : public testing::Test {
 protected:
  /// Takes what was read into the list, and returns the id of who has `name` then.
  std::string holder_after(std::vector<Listed> now, const std::string& name = "bob") {
    std::vector<Listed*> read;
    for (Listed& item : now) read.push_back(&item);
    date_names(read, known_, own_, before_);
    for (const Listed& item : now) {
      std::erase_if(known_, [&](const Listed& old) { return old.id == item.id; });
      known_.push_back(item);
    }
    const Listed* holder = holder_of(known_, name);
    return holder ? holder->id : "nobody";
  }
  std::vector<Listed> known_, own_;
  NamedBefore before_ = never;
};

TEST_F(NamesTest, NobodyHasANameThatNobodyCarries) { EXPECT_EQ(holder_after({read("a", 1, 1)}, "eve"), "nobody"); }

TEST_F(NamesTest, OfRecordsNeverSeenTheOldestHasIt) {
  EXPECT_EQ(holder_after({read("c", 30, 30), read("a", 20, 99), read("b", 10, 10, "eve")}), "a");
}

TEST_F(NamesTest, OfTheSameTimeTheLesserIdHasIt) {
  EXPECT_EQ(holder_after({read("b", 10, 10), read("a", 10, 10), read("c", 10, 10)}), "a");
}

TEST_F(NamesTest, AnEditedRecordKeepsItsName) {
  holder_after({read("a", 10, 10), read("b", 20, 20)});
  EXPECT_EQ(holder_after({read("a", 10, 50)}), "a");
}

TEST_F(NamesTest, ARecordSeenUnderAnotherNameTakesNoneThatIsHeld) {
  holder_after({read("attacker", 10, 10, "eve"), read("victim", 20, 20)});
  EXPECT_EQ(holder_after({read("attacker", 10, 30)}), "victim");
  // Not by a time that the service's clock makes early, either.
  known_[1].name = "eve";
  EXPECT_EQ(holder_after({read("attacker", 10, 5)}), "victim");
}

TEST_F(NamesTest, ARenamedRecordGetsAFreeNameAndHoldsIt) {
  holder_after({read("a", 10, 10, "eve"), read("b", 20, 20, "ann")});
  EXPECT_EQ(holder_after({read("a", 10, 30)}), "a");
  EXPECT_EQ(holder_after({read("c", 40, 40)}), "a") << "registered later";
  EXPECT_EQ(holder_after({read("b", 20, 50)}), "a") << "renamed later";
}

TEST_F(NamesTest, WhoGivesANameUpLosesItToTheNext) {
  holder_after({read("a", 10, 10), read("b", 20, 20), read("c", 30, 30)});
  EXPECT_EQ(holder_after({read("a", 10, 40, "ann")}), "b");
  EXPECT_EQ(holder_after({read("a", 10, 50)}), "b") << "it is not given back";
}

TEST_F(NamesTest, AnOldRecordThatAppearsLateTakesNoHeldName) {
  holder_after({read("victim", 20, 20)});
  EXPECT_EQ(holder_after({read("hidden", 10, 10)}), "victim");
}

TEST_F(NamesTest, OfANewAndARenamedRecordTheFirstInTimeHasIt) {
  holder_after({read("a", 10, 10, "eve"), read("b", 11, 11, "ann")});
  EXPECT_EQ(holder_after({read("a", 10, 31), read("c", 30, 30)}), "c");
  EXPECT_EQ(holder_after({read("a", 10, 40, "zoe"), read("b", 11, 41, "zoe"), read("d", 42, 42, "zoe")}, "zoe"), "a");
  EXPECT_EQ(holder_after({read("a", 10, 50, "kim"), read("e", 50, 50, "kim")}, "kim"), "e") << "of the same time";
}

TEST_F(NamesTest, OfThoseReadTogetherTheFirstInTimeHasItWhateverWasSeenBefore) {
  holder_after({read("eve", 10, 10, "eve"), read("vic", 20, 20, "vic"), read("other", 90, 90, "zed")});
  EXPECT_EQ(holder_after({read("eve", 10, 50), read("vic", 20, 40)}), "vic") << "renamed first";
  EXPECT_EQ(holder_after({read("new", 60, 60, "kim"), read("eve", 10, 55, "kim")}, "kim"), "eve");
  own_ = {named("mine", 200, "ann", 200)};
  EXPECT_EQ(holder_after({read("eve", 10, 150, "joe"), read("vic", 20, 140, "joe")}, "joe"), "vic");
}

TEST_F(NamesTest, AClockThatIsAheadDoesNotReorderWhatWasSeen) {
  holder_after({read("a", 1'000'000, 1'000'000, "ann"), read("b", 10, 10, "eve")});
  EXPECT_EQ(holder_after({read("c", 20, 20)}), "c");
  EXPECT_EQ(holder_after({read("d", 15, 15)}), "c");
  EXPECT_EQ(holder_after({read("b", 10, 30)}), "c");
  holder_after({read("end", INT64_MAX, INT64_MAX, "end")});
  EXPECT_EQ(holder_after({read("late", 5, 5, "end")}, "end"), "late") << "no time is later; nothing overflows";
}

TEST_F(NamesTest, WhatAnotherProcessSawCounts) {
  holder_after({read("a", 10, 10, "eve")});
  before_ = [](const Listed& item) { return item.id == "victim" ? std::optional(WallTime{12}) : std::nullopt; };
  EXPECT_EQ(holder_after({read("stranger", 11, 11), read("victim", 40, 40)}), "stranger");
  before_ = [](const Listed& item) { return item.id == "b" ? std::optional(WallTime{5}) : std::nullopt; };
  EXPECT_EQ(holder_after({read("b", 50, 50)}), "b");
}

TEST_F(NamesTest, WhatWeCreatedIsHeldAgainstRenamesButNotAgainstOlderRecords) {
  holder_after({read("attacker", 10, 10, "eve")});
  own_ = {read("mine", 20, 20)};
  EXPECT_EQ(holder_after({read("attacker", 10, 15), read("mine", 20, 20)}), "mine");
  own_ = {named("mine", 40, "zoe", 40)};
  EXPECT_EQ(holder_after({read("theirs", 39, 39, "zoe"), read("mine", 40, 40, "zoe")}, "zoe"), "theirs");
}

TEST_F(NamesTest, HoldersAreThoseOfEachName) {
  const std::vector<Listed> list{named("c", 3, "x", 3), named("b", 2, "y", 9), named("a", 1, "y", 8),
                                 named("d", 1, "x", 4)};
  const auto holders = holders_of(list, [](const Listed& each) { return std::string_view(each.name); });
  EXPECT_EQ(holders.size(), 2U);
  EXPECT_EQ(holders.at("x")->id, "c");
  EXPECT_EQ(holders.at("y")->id, "a");
}

class ListedNamesTest : public SiteTest {
 protected:
  void agent(const std::string& id, const std::string& handle) { service_.put("agents", id, {{"handle", handle}}); }
  std::string holder(const std::string& handle = "bob") {
    Answer<ListPtr> answer;
    site_->list("agents", {}, answer.callback());
    run();
    const Listed* found = answer.ok() ? holder_of(**answer, handle) : nullptr;
    return found ? found->id : "nobody";
  }
};

TEST_F(ListedNamesTest, ARenameTakesNothingAlsoInTheNextProcess) {
  agent("attacker", "eve");
  agent("victim", "bob");
  EXPECT_EQ(holder(), "victim");
  agent("attacker", "bob");
  EXPECT_EQ(holder(), "victim");
  restart();
  EXPECT_EQ(holder(), "victim");
  EXPECT_EQ(holder_of(*site_->try_list("agents"), "bob")->id, "victim");
}

TEST_F(ListedNamesTest, ARenameSeenOnlyAfterARestartTakesNothing) {
  agent("attacker", "eve");
  agent("victim", "bob");
  EXPECT_EQ(holder(), "victim");
  restart();
  agent("attacker", "bob");
  EXPECT_EQ(holder(), "victim");
}

TEST_F(ListedNamesTest, ARenameOnAnOlderPageOrOfOneRecordTakesNothing) {
  agent("attacker", "eve");
  agent("other", "zoe");
  for (int i = 0; i < 150; ++i) agent("a" + std::to_string(i), "name " + std::to_string(i));
  agent("victim", "bob");
  EXPECT_EQ(holder(), "victim");
  holder();  // knows where the older pages begin
  agent("attacker", "bob");
  agent("other", "bob");
  Answer<Record> record;
  site_->record("agents", "other", {}, record.callback());
  run();
  site_->relearn("agents", *record);
  for (int i = 0; i < 3; ++i) {
    site_->names_were_shown("agents");
    advance(std::chrono::minutes(1));
  }
  const auto list = site_->try_list("agents");
  EXPECT_EQ(list->back().name, "bob");
  EXPECT_EQ((*list)[list->size() - 2].name, "bob");
  EXPECT_EQ(holder_of(*list, "bob")->id, "victim");
}

TEST_F(ListedNamesTest, WhoComesAfterTheFactSeesTheOldest) {
  agent("attacker", "eve");
  agent("victim", "bob");
  agent("attacker", "bob");
  EXPECT_EQ(holder(), "attacker");
}

TEST_F(ListedNamesTest, WhatThisProcessMissedAnotherHasStored) {
  agent("first", "ann");
  EXPECT_EQ(holder(), "nobody");
  // Another process sees two new records, one of which is then renamed.
  agent("attacker", "eve");
  agent("victim", "bob");
  auto other = std::move(*cache::RecordIndex::open(directory_.path()));
  const std::vector<Listed> seen{named("victim", 40, "bob", 40), named("attacker", 30, "eve", 30)};
  ASSERT_TRUE(other->extend_list("https://site.example/.site/data", "agents", "first", seen));
  agent("attacker", "bob");
  EXPECT_EQ(holder(), "victim");
}

TEST_F(ListedNamesTest, AnothersRenameDoesNotTakeWhatWeHaveJustCreated) {
  agent("attacker", "eve");
  EXPECT_EQ(holder(), "nobody");
  agent("mine", "bob");
  Answer<Record> record;
  site_->record("agents", "mine", {}, record.callback());
  run();
  site_->learn("agents", *record);
  agent("attacker", "bob");
  Answer<Record> renamed;
  site_->record("agents", "attacker", {}, renamed.callback());
  run();
  site_->relearn("agents", *renamed);
  EXPECT_EQ(holder_of(*site_->try_list("agents"), "bob")->id, "mine");
  EXPECT_EQ(holder(), "mine") << "and when a page has it";
}

TEST_F(ListedNamesTest, AnAnswerThatLagsGivesNoNameAway) {
  std::string eve, vic;
  auto is = [&](std::string& agent, const std::string& id, const std::string& handle, int created, int updated) {
    auto time = [](int second) { return "2026-01-01T00:00:" + std::to_string(second) + "Z"; };
    agent = R"({"id":")" + id + R"(","handle":")" + handle + R"(","created_at":")" + time(created) +
            R"(","updated_at":")" + time(updated) + R"("})";
  };
  auto holder_now = [&] {
    service_.instead["/.site/data/agents?limit=100"] = R"({"records":[)" + vic + "," + eve + "]}";
    return holder();
  };
  is(eve, "e", "eve", 10, 10);
  is(vic, "v", "vic", 20, 20);
  EXPECT_EQ(holder_now(), "nobody");
  const std::string old_eve = eve, old_vic = vic;
  is(vic, "v", "bob", 20, 30);
  EXPECT_EQ(holder_now(), "v");
  is(eve, "e", "bob", 10, 40);
  EXPECT_EQ(holder_now(), "v");
  const std::string now_eve = eve, now_vic = vic;
  vic = old_vic;
  EXPECT_EQ(holder_now(), "e") << "a service that went back is shown as it is";
  vic = now_vic;
  EXPECT_EQ(holder_now(), "v");
  eve = old_eve;
  vic = old_vic;
  EXPECT_EQ(holder_now(), "nobody");
  is(vic, "v", "bob", 20, 50);  // its profile was edited meanwhile
  eve = now_eve;
  EXPECT_EQ(holder_now(), "v");
}

TEST_F(ListedNamesTest, AnAnswerThatLagsGivesNoNameAwayWhileTheNewerOneIsTaken) {
  auto is = [&](const std::string& id, const std::string& handle, int second) {
    const WallTime at{1'800'000'000'000'000'000LL + second * 1'000'000'000LL};
    site_->relearn("agents", Record{id, "2026-01-01T00:00:00Z", format_iso8601(at), "active", {{"handle", handle}}});
  };
  record_options_.executor = &executor_;  // whoever learns of a record does not wait for the disk
  restart();
  agent("v", "vic");
  agent("e", "eve");
  EXPECT_EQ(holder(), "nobody");
  is("v", "bob", 10);
  run();
  auto locked = std::move(*Database::open(directory_ / "records.db", Database::Durability::none));
  ASSERT_TRUE(locked.execute("BEGIN EXCLUSIVE"));
  // The page has the old name. It waits for the disk, where the list is stored. The sleeps make it likely that the two
  // overlap; in any order the newer one counts.
  std::thread lagging([&] { holder(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::thread newer([&] { is("v", "bob", 12); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(locked.execute("COMMIT"));
  lagging.join();
  newer.join();
  is("e", "bob", 20);
  is("v", "bob", 12);
  EXPECT_EQ(holder_of(*site_->try_list("agents"), "bob")->id, "v");
}

TEST_F(ListedNamesTest, WhoWasFirstHasItThoughWeHaveJustCreatedOne) {
  agent("first", "ann");
  EXPECT_EQ(holder(), "nobody");
  agent("theirs", "bob");
  agent("mine", "bob");
  Answer<Record> record;
  site_->record("agents", "mine", {}, record.callback());
  run();
  site_->learn("agents", *record);
  EXPECT_EQ(holder(), "theirs");
}

}  // namespace
}  // namespace playfs::content
