#include "vfs/control/request_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "support/manual_time.h"
#include "support/temporary_directory.h"
#include "vfs/control/journal_entry.h"

namespace playfs::vfs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class RequestJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<RequestJournal> open() {
    return std::make_unique<RequestJournal>(home.path() + "/=requests", clock, random);
  }
  static std::vector<RequestStep> hello() { return {{"messages", {{"body", "hello"}}}}; }
  /// Ends the journal's process, and opens the next one's.
  RequestJournal::LeftBehind left_to_the_next(std::unique_ptr<RequestJournal>& journal) {
    journal.reset();
    journal = open();
    return journal->left_behind();
  }
  [[nodiscard]] std::filesystem::path file_of(const std::string& name) const {
    return home.path() + "/=requests/" + name;
  }
  /// Replaces `part` in the file of the request, and makes it one of a version that knew no checksums.
  void make_earlier(const JournalledRequest& request, const std::string& part, const std::string& by) const {
    std::string text = read_file(file_of(request.name), 1 << 20).value();
    text.resize(text.find("\nxxh3 "));
    for (const auto& [from, to] : {std::pair(part, by), std::pair(std::string(R"(,"format":2)"), std::string())}) {
      ASSERT_THAT(text, HasSubstr(from));
      text.replace(text.find(from), from.size(), to);
    }
    std::ofstream(file_of(request.name)) << text;
  }
  /// What was kept of the request; empty: nothing.
  [[nodiscard]] std::string unsent(const JournalledRequest& request) const {
    return read_file(file_of("unsent/" + request.steps[0].key + ".json"), 1 << 20).value_or(std::string());
  }

  playfs::test::TemporaryDirectory home;
  playfs::test::ManualClock clock;
  SystemRandom random;
};

TEST_F(RequestJournalTest, WhoRepeatsAnothersRequestMakesANewOne) {
  auto journal = open();
  auto told = [&](const std::string& caller) {
    auto request = journal->begin("threads/t/reply", hello(), 0, caller);
    request->is_told = true;
    EXPECT_TRUE(journal->record(*request));
    return *request;
  };
  const auto first = told("account ann@example.org");
  EXPECT_NE(told("account bob@example.org").steps[0].key, first.steps[0].key);
  EXPECT_NE(told("").steps[0].key, first.steps[0].key);
  journal.reset();
  journal = open();
  EXPECT_THAT(journal->left_behind().requests, IsEmpty());
  const auto again = journal->begin("threads/t/reply", hello(), 0, "account ann@example.org");
  EXPECT_EQ(again->steps[0].key, first.steps[0].key);
  EXPECT_EQ(again->caller, "account ann@example.org");
}

TEST_F(RequestJournalTest, WhatNobodyInParticularWroteKeepsItsKeyAfterALogin) {
  auto journal = open();
  auto request = journal->begin("threads/t/reply", hello());
  request->is_told = true;
  ASSERT_TRUE(journal->record(*request));
  const auto again = journal->begin("threads/t/reply", hello(), 0, "account ann@example.org");
  EXPECT_EQ(again->steps[0].key, request->steps[0].key);
  EXPECT_EQ(again->caller, "");
}

TEST_F(RequestJournalTest, ATextThatNoRequestWasMadeOfIsKept) {
  auto journal = open();
  ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "hal"));
  ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "half a text"));
  EXPECT_THAT(open()->left_behind().drafts, IsEmpty()) << "its mount is alive";
  const auto left = left_to_the_next(journal);
  ASSERT_THAT(left.drafts, SizeIs(1));
  EXPECT_EQ(left.drafts[0].first, "threads/t/reply");
  EXPECT_THAT(left.drafts[0].second.message, HasSubstr(file_of("unsent/d.txt").string()));
  EXPECT_EQ(read_file(file_of("unsent/d.txt"), 1 << 20).value(), "half a text");
  EXPECT_THAT(left.requests, IsEmpty());
  EXPECT_THAT(left_to_the_next(journal).drafts, IsEmpty());
  EXPECT_THAT(examine_journal(file_of("")).unsent, SizeIs(1));
}

TEST_F(RequestJournalTest, ATextThatARequestWasMadeOfIsNotKeptBesideIt) {
  auto journal = open();
  ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "hello"));
  ASSERT_TRUE(journal->begin("threads/t/reply", hello(), 0, "", "d"));
  const auto left = left_to_the_next(journal);
  EXPECT_THAT(left.requests, SizeIs(1));
  EXPECT_THAT(left.drafts, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(file_of("unsent")));
  ASSERT_TRUE(journal->keep_draft("e", "threads/t/reply", "hello"));
  journal->drop_draft("e");
  EXPECT_THAT(left_to_the_next(journal).drafts, IsEmpty());
}

TEST_F(RequestJournalTest, ATextThatCannotBeKeptIsToldAndTriedAgain) {
  auto journal = open();
  ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "a text"));
  std::ofstream(file_of("unsent")) << "in the way";
  for (int mount = 0; mount < 2; ++mount) {
    const auto left = left_to_the_next(journal);
    ASSERT_THAT(left.drafts, SizeIs(1));
    EXPECT_THAT(left.drafts[0].second.message, HasSubstr("a text"));
    EXPECT_THAT(left.drafts[0].second.hint, HasSubstr("nothing need be done"));
  }
  std::filesystem::remove(file_of("unsent"));
  EXPECT_THAT(left_to_the_next(journal).drafts, SizeIs(1));
  EXPECT_EQ(read_file(file_of("unsent/d.txt"), 1 << 20).value(), "a text");
}

TEST_F(RequestJournalTest, TextsAreAcceptedOnlyIfTheyCouldBeSaved) {
  auto journal = open();
  std::filesystem::create_directories(file_of("unsent"));
  auto save = [&](const std::string& name, std::uint64_t size) {
    std::ofstream(file_of("unsent/" + name)) << "a text";
    std::filesystem::resize_file(file_of("unsent/" + name), size);
  };
  auto fills_up = [&](const std::string& last) {
    ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "one more"));
    const auto refused = journal->keep_draft("e", "threads/t/reply", "too many");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::no_space);
    EXPECT_THAT(refused.error().message, HasSubstr(file_of("unsent").string()));
    EXPECT_TRUE(journal->keep_draft("d", "threads/t/reply", "one less")) << "it is accepted already";
    EXPECT_TRUE(std::filesystem::exists(file_of("unsent/" + last)));
    journal->drop_draft("d");
    EXPECT_TRUE(journal->keep_draft("e", "threads/t/reply", "there is room"));
    journal->drop_draft("e");
  };
  save("large", kMostTextBytes - 140);  // a short text's draft takes more than half of that
  fills_up("large");
  ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "short"));
  EXPECT_FALSE(journal->keep_draft("d", "threads/t/reply", std::string(200, 'x'))) << "it grows out of its room";
  journal->drop_draft("d");
  std::filesystem::remove(file_of("unsent/large"));
  for (std::size_t number = 0; number + 1 < kMostTexts; ++number) save(std::to_string(number), 6);
  fills_up("0");
}

TEST_F(RequestJournalTest, ASavedTextCanBeSentThoughThereIsNoRoom) {
  auto journal = open();
  std::filesystem::create_directories(file_of("unsent"));
  for (std::size_t number = 0; number < kMostTexts; ++number)
    std::ofstream(file_of("unsent/" + std::to_string(number))) << "text " << number;
  for (int again = 0; again < 3; ++again) {
    ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "text 7"));
    const Error error = journal->give_up_draft("d", "threads/t/reply", "text 7", {ErrorCode::no_space, "in vain"});
    EXPECT_THAT(error.message, HasSubstr(file_of("unsent/7").string())) << "it is there already";
  }
  EXPECT_FALSE(journal->keep_draft("d", "threads/t/reply", "text 7 and more"));
  const std::vector<RequestStep> as_json{{"messages", {{"body", "text 7"}}}};
  for (int again = 0; again < 3; ++again) {
    ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "text 7"));
    const auto request = journal->begin("threads/t/reply", as_json, again, "", "d").value();
    journal->drop_draft("d");
    const Error error = journal->give_up(request, {ErrorCode::invalid_argument, "refused"});
    EXPECT_THAT(error.message, HasSubstr(file_of("unsent/7").string()));
    journal->end(request);  // the next one has a key of its own
  }
  EXPECT_THAT(unsent_texts(file_of("unsent")), SizeIs(kMostTexts));
}

TEST_F(RequestJournalTest, EqualTextsAreSavedAsManyTimesAsTheyWereAdmitted) {
  auto journal = open();
  const Error why{ErrorCode::stale, "renamed"};
  std::vector<JournalledRequest> requests;
  for (const std::string thread : {"a", "b"}) {
    ASSERT_TRUE(journal->keep_draft(thread, "threads/" + thread + "/reply", "hello"));
    requests.push_back(journal->begin("threads/" + thread + "/reply", hello(), 0, "", thread).value());
    journal->drop_draft(thread);
  }
  std::filesystem::create_directories(file_of("unsent"));
  std::ofstream(file_of("unsent/large")) << "x";
  std::filesystem::resize_file(file_of("unsent/large"), kMostTextBytes);
  for (const auto& request : requests) {
    EXPECT_THAT(journal->give_up(request, why).message, HasSubstr(request.steps[0].key + ".json"));
    EXPECT_THAT(unsent(request), HasSubstr("hello"));
  }
  // Each saved text admits one text at a time, and is there until its user removes it.
  std::ofstream(file_of("unsent/d.txt")) << "again";
  ASSERT_TRUE(journal->keep_draft("d", "threads/a/reply", "again"));
  EXPECT_FALSE(journal->keep_draft("e", "threads/b/reply", "again"));
  const auto sent = journal->begin("threads/a/reply", {{"messages", {{"body", "again"}}}}, 0, "", "d").value();
  journal->drop_draft("d");
  EXPECT_FALSE(journal->keep_draft("e", "threads/b/reply", "again")) << "what it admitted is under way";
  std::filesystem::remove(file_of("unsent/d.txt"));
  EXPECT_THAT(journal->give_up(sent, why).message, HasSubstr(sent.steps[0].key + ".json"));
  EXPECT_THAT(unsent(sent), HasSubstr("again"));
  std::ofstream(file_of("unsent/d.txt")) << "again";
  ASSERT_TRUE(journal->keep_draft("e", "threads/b/reply", "again"));
  // It grows where there is room by now: what was saved is not all of it.
  std::filesystem::remove(file_of("unsent/large"));
  ASSERT_TRUE(journal->keep_draft("e", "threads/b/reply", "again, and more"));
  EXPECT_THAT(journal->give_up_draft("e", "threads/b/reply", "again, and more", why).message, HasSubstr("e.txt"));
}

TEST_F(RequestJournalTest, WhatIsBeingWrittenIsNoSavedText) {
  std::filesystem::create_directories(file_of("unsent"));
  for (const char* name : {"key.json.R3SN0S", "d.txt.aaaaaa", "of the user", "key.json"})
    std::ofstream(file_of(std::string("unsent/") + name)) << "text";
  EXPECT_THAT(unsent_texts(file_of("unsent")),
              ElementsAre(file_of("unsent/key.json").string(), file_of("unsent/of the user").string()));
}

TEST_F(RequestJournalTest, ARequestOfAMountThatIsGoneIsTakenOverOnce) {
  auto first = open();
  const auto sent = first->begin("threads/t/reply", hello());
  ASSERT_TRUE(sent);
  auto other = open();
  EXPECT_THAT(other->left_behind().requests, IsEmpty()) << "its mount is alive";
  first.reset();
  auto left = other->left_behind();
  ASSERT_THAT(left.requests, SizeIs(1));
  EXPECT_EQ(left.requests[0].steps[0].key, sent->steps[0].key);
  EXPECT_EQ(left.requests[0].steps[0].body, sent->steps[0].body);
  EXPECT_THAT(open()->left_behind().requests, IsEmpty());
  other->end(left.requests[0]);
  other.reset();
  EXPECT_THAT(open()->left_behind().requests, IsEmpty());
}

TEST_F(RequestJournalTest, WhoRepeatsAFailedRequestRepeatsItsKey) {
  auto journal = open();
  auto request = journal->begin("threads/t/reply", hello()).value();
  EXPECT_NE(journal->begin("threads/t/reply", hello())->steps[0].key, request.steps[0].key) << "that one is under way";
  request.is_told = true;
  request.steps[0].made = "id";
  ASSERT_TRUE(journal->record(request));
  EXPECT_NE(journal->begin("threads/other/reply", hello())->steps[0].key, request.steps[0].key);
  const auto again = journal->begin("threads/t/reply", hello()).value();
  EXPECT_EQ(again.steps[0].key, request.steps[0].key);
  EXPECT_EQ(again.steps[0].made, "id");
  EXPECT_NE(journal->begin("threads/t/reply", hello())->steps[0].key, request.steps[0].key);
}

TEST_F(RequestJournalTest, WhoRepeatsWhatIsResumedJoinsItsKey) {
  auto journal = open();
  const auto sent = journal->begin("threads/t/reply", hello(), 1).value();
  ASSERT_TRUE(journal->begin("threads/t/reply", {{"messages", {{"body", "later"}}}}, 2));
  journal.reset();
  journal = open();
  auto left = journal->left_behind();
  ASSERT_THAT(left.requests, SizeIs(2));
  EXPECT_EQ(left.requests[0].steps[0].key, sent.steps[0].key) << "in their order";
  const auto joined = journal->begin("threads/t/reply", hello(), 3).value();
  EXPECT_EQ(joined.steps[0].key, sent.steps[0].key);
  EXPECT_TRUE(journal->is_unfinished(left.requests[0]));
  journal->end(joined);
  EXPECT_FALSE(journal->is_unfinished(left.requests[0]));
  EXPECT_NE(journal->begin("threads/t/reply", hello(), 4)->steps[0].key, sent.steps[0].key)
      << "its writer has the answer";
  journal->end(left.requests[1]);
  const std::vector<RequestStep> later{{"messages", {{"body", "later"}}}};
  EXPECT_EQ(journal->begin("threads/t/reply", later, 5)->steps[0].key, left.requests[1].steps[0].key)
      << "just answered";
  EXPECT_NE(journal->begin("threads/t/reply", later, 6)->steps[0].key, left.requests[1].steps[0].key) << "lent once";
}

TEST_F(RequestJournalTest, AnOldRequestIsNotSentAgain) {
  auto journal = open();
  ASSERT_TRUE(journal->begin("threads/t/reply", hello()));
  clock.advance(RequestJournal::kLongest + std::chrono::minutes(1));
  ASSERT_THAT(left_to_the_next(journal).requests, SizeIs(1));
  const auto left = left_to_the_next(journal);
  ASSERT_THAT(left.requests, SizeIs(1)) << "the process before died before it kept the text";
  const JournalledRequest& old = left.requests[0];
  const Status may_be_sent = journal->may_be_sent(old);
  ASSERT_FALSE(may_be_sent);
  EXPECT_NE(journal->begin("threads/t/reply", hello())->steps[0].key, old.steps[0].key);
  EXPECT_TRUE(journal->is_unfinished(old)) << "its text is not kept yet";
  EXPECT_THAT(journal->give_up(old, may_be_sent.error()).message, HasSubstr("/unsent/" + old.steps[0].key));
  EXPECT_THAT(unsent(old), HasSubstr("hello"));
  EXPECT_FALSE(std::filesystem::exists(file_of(old.name)));
}

TEST_F(RequestJournalTest, WhatIsGivenUpLeavesOnlyAfterItsTextIsKept) {
  for (const bool is_too_old : {false, true}) {
    std::filesystem::remove_all(file_of(""));
    auto journal = open();
    ASSERT_TRUE(journal->begin("threads/t/reply", hello()));
    if (is_too_old) clock.advance(RequestJournal::kLongest + std::chrono::minutes(1));
    auto left = left_to_the_next(journal);
    ASSERT_THAT(left.requests, SizeIs(1));
    std::ofstream(file_of("unsent")) << "in the way";
    const Error told = journal->give_up(left.requests[0], {ErrorCode::unauthorized, "why"});
    EXPECT_THAT(told.message, HasSubstr("hello"));
    EXPECT_THAT(told.hint, HasSubstr("nothing need be done"));
    left = left_to_the_next(journal);
    ASSERT_THAT(left.requests, SizeIs(1)) << is_too_old;
    std::filesystem::remove(file_of("unsent"));
    EXPECT_THAT(journal->give_up(left.requests[0], {ErrorCode::unauthorized, "why"}).message, Not(HasSubstr("hello")));
    EXPECT_THAT(unsent(left.requests[0]), HasSubstr("hello"));
    EXPECT_THAT(left_to_the_next(journal).requests, IsEmpty()) << is_too_old;
  }
}

TEST_F(RequestJournalTest, WhoRepeatsWhatWasGivenUpRepeatsItsKey) {
  auto journal = open();
  const auto sent = journal->begin("threads/t/reply", hello(), 0, "account ann@example.org").value();
  const auto left = left_to_the_next(journal);
  ASSERT_THAT(left.requests, SizeIs(1));
  EXPECT_TRUE(journal->may_be_sent(left.requests[0]));
  // A process that dies in between leaves both.
  for (int i = 0; i < 2; ++i) {
    std::ignore = journal->give_up(left.requests[0], {ErrorCode::unauthorized, "why"});
    EXPECT_THAT(unsent(sent), HasSubstr("hello"));
  }
  EXPECT_THAT(left_to_the_next(journal).requests, IsEmpty());
  const auto again = journal->begin("threads/t/reply", hello(), 0, "account ann@example.org").value();
  EXPECT_EQ(again.steps[0].key, sent.steps[0].key);
}

TEST_F(RequestJournalTest, WhatItsWriterHasFinishedIsNotGivenUp) {
  auto journal = open();
  ASSERT_TRUE(journal->begin("threads/t/reply", hello()));
  const auto left = left_to_the_next(journal);
  ASSERT_THAT(left.requests, SizeIs(1));
  journal->end(journal->begin("threads/t/reply", hello()).value());
  std::ignore = journal->give_up(left.requests[0], {ErrorCode::unauthorized, "why"});
  EXPECT_NE(journal->begin("threads/t/reply", hello())->steps[0].key, left.requests[0].steps[0].key);
}

TEST_F(RequestJournalTest, WhatAnEarlierVersionLeftIsSentByWhoRepeatsItOnly) {
  auto journal = open();
  const auto sent = journal->begin("threads/t/reply", hello(), 0, "account ann@example.org").value();
  make_earlier(sent, R"("caller":"account ann@example.org")", R"("other":1)");
  const auto left = left_to_the_next(journal);
  ASSERT_THAT(left.requests, SizeIs(1));
  const Status may_be_sent = journal->may_be_sent(left.requests[0]);
  ASSERT_FALSE(may_be_sent);
  std::ignore = journal->give_up(left.requests[0], may_be_sent.error());
  EXPECT_THAT(unsent(sent), HasSubstr("hello"));
  EXPECT_THAT(left_to_the_next(journal).requests, IsEmpty());
  const auto again = journal->begin("threads/t/reply", hello(), 0, "account bob@example.org").value();
  EXPECT_EQ(again.steps[0].key, sent.steps[0].key);
  EXPECT_EQ(again.caller, "account bob@example.org");
  const auto of_bob = left_to_the_next(journal);
  ASSERT_THAT(of_bob.requests, SizeIs(1));
  EXPECT_TRUE(journal->may_be_sent(of_bob.requests[0]));
}

TEST_F(RequestJournalTest, WhetherARequestMayHaveBeenSentOutlivesItsMount) {
  auto journal = open();
  auto checked = journal->begin("agents/new", hello(), 1).value();
  const auto unchecked = journal->begin("agents/new", hello(), 2).value();
  checked.may_have_arrived = true;
  ASSERT_TRUE(journal->record(checked));
  auto left = left_to_the_next(journal).requests;
  ASSERT_THAT(left, SizeIs(2));
  EXPECT_TRUE(left[0].may_have_arrived);
  EXPECT_FALSE(left[1].may_have_arrived);

  // Its writer repeats it while it is resumed: whatever one of them finds holds for both.
  journal->end(left[0]);
  const auto answered = journal->begin("agents/new", hello(), 3).value();
  EXPECT_EQ(answered.steps[0].key, unchecked.steps[0].key);
  EXPECT_FALSE(journal->may_have_arrived(answered));
  left[1].may_have_arrived = true;
  ASSERT_TRUE(journal->record(left[1]));
  EXPECT_TRUE(journal->may_have_arrived(answered));
  journal->end(left[1]);
  EXPECT_TRUE(journal->may_have_arrived(answered)) << "it has just been answered";

  const auto old = journal->begin("agents/new", {{"agents", {{"handle", "zoe"}}}}).value();
  make_earlier(old, R"("checked":false,)", "");
  left = left_to_the_next(journal).requests;
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_TRUE(left[0].may_have_arrived) << "an earlier version has perhaps sent it";
}

TEST_F(RequestJournalTest, WhatADiskHasChangedIsNotSent) {
  for (const char* part : {"hello", "\"key\":\"", "\"told\":f", "\"format\"", "xxh3"}) {
    auto journal = open();
    const auto request = journal->begin("threads/t/reply", hello()).value();
    std::string text = read_file(file_of(request.name), 1 << 20).value();
    const std::size_t at = text.find(part);
    ASSERT_NE(at, text.npos) << part;
    for (const std::size_t bit : {1U, 2U}) {
      std::string changed = text;
      char& flipped = changed[at + std::string_view(part).size() - 1];
      flipped = static_cast<char>(flipped ^ bit);
      std::ofstream(file_of(request.name)) << changed;
      EXPECT_THAT(examine_journal(file_of("")).damaged, SizeIs(1)) << part;
    }
    EXPECT_THAT(left_to_the_next(journal).requests, IsEmpty()) << part;
    EXPECT_THAT(examine_journal(file_of("")).damaged, IsEmpty()) << "it is set aside";
  }
  auto journal = open();
  ASSERT_TRUE(journal->keep_draft("d", "threads/t/reply", "a text"));
  EXPECT_THAT(examine_journal(file_of("")).damaged, IsEmpty());
}

TEST_F(RequestJournalTest, WhatAnEarlierVersionCalledToldIsKeptOnceItIsOld) {
  auto journal = open();
  auto told = journal->begin("threads/t/reply", hello()).value();
  told.is_told = true;
  ASSERT_TRUE(journal->record(told));
  make_earlier(told, R"("resumed":false,)", "");
  clock.advance(RequestJournal::kLongest + std::chrono::minutes(1));
  EXPECT_THAT(left_to_the_next(journal).drafts, SizeIs(1));
  EXPECT_THAT(unsent(told), HasSubstr("hello"));
  EXPECT_FALSE(std::filesystem::exists(file_of(told.name)));
}

TEST_F(RequestJournalTest, WhoWasInterruptedAndRepeatsRepeatsTheKey) {
  auto journal = open();
  const auto sent = journal->begin("threads/t/reply", hello(), 1, "", "d").value();
  EXPECT_NE(journal->begin("threads/t/reply", hello(), 2)->steps[0].key, sent.steps[0].key) << "its writer waits";
  journal->set_left("d", true);
  const auto joined = journal->begin("threads/t/reply", hello(), 3).value();
  EXPECT_EQ(joined.steps[0].key, sent.steps[0].key);
  journal->end(sent);
  journal->end(joined);
  EXPECT_NE(journal->begin("threads/t/reply", hello(), 4)->steps[0].key, sent.steps[0].key) << "its writer has it";
}

TEST_F(RequestJournalTest, WhoRepeatsInAnotherMountRepeatsTheKey) {
  auto journal = open();
  auto other = open();
  auto told = journal->begin("threads/t/reply", hello()).value();
  EXPECT_NE(other->begin("threads/t/reply", hello())->steps[0].key, told.steps[0].key) << "its writer waits";
  told.is_told = true;
  ASSERT_TRUE(journal->record(told));
  const auto again = other->begin("threads/t/reply", hello()).value();
  EXPECT_EQ(again.steps[0].key, told.steps[0].key);
  other->end(again);
  EXPECT_NE(journal->begin("threads/t/reply", hello())->steps[0].key, told.steps[0].key) << "it has its answer";

  auto kept = journal->begin("threads/u/reply", hello()).value();
  ASSERT_TRUE(journal->keep_sending(kept));
  const auto beside = other->begin("threads/u/reply", hello()).value();
  EXPECT_EQ(beside.steps[0].key, kept.steps[0].key);
  EXPECT_TRUE(journal->is_sent_again(kept));
}

TEST_F(RequestJournalTest, IsBounded) {
  auto journal = open();
  auto told = journal->begin("threads/t/reply", hello()).value();
  told.is_told = true;
  ASSERT_TRUE(journal->record(told));
  for (std::size_t at = 0; at < RequestJournal::kMost; ++at) ASSERT_TRUE(journal->begin("a", {{"agents", {}}}));
  EXPECT_EQ(journal->begin("a", {{"agents", {}}}).error().code, ErrorCode::busy);
}

TEST_F(RequestJournalTest, ADamagedFileIsSetAsideAsItIs) {
  auto journal = open();
  const auto request = journal->begin("threads/t/reply", hello()).value();
  const std::string damaged = "{\"steps\": [" + std::string(3'000, 'x') + "the end";
  std::ofstream(file_of(request.name)) << damaged;
  const std::string aside = file_of("unsent/damaged" + request.name.substr(request.name.find('.')));
  std::filesystem::remove_all(file_of("unsent"));
  std::ofstream(file_of("unsent")) << "in the way";
  ASSERT_THAT(left_to_the_next(journal).unreadable, SizeIs(1));
  std::filesystem::remove(file_of("unsent"));
  const auto left = left_to_the_next(journal);
  EXPECT_THAT(left.requests, IsEmpty());
  ASSERT_THAT(left.unreadable, SizeIs(1));
  EXPECT_THAT(left.unreadable[0].message, HasSubstr(aside));
  EXPECT_EQ(read_file(aside, 1 << 20).value(), damaged);
  EXPECT_THAT(left_to_the_next(journal).unreadable, IsEmpty());
}

TEST_F(RequestJournalTest, AFileThatCannotBeReadIsLeftForTheNextMount) {
  auto journal = open();
  const auto request = journal->begin("threads/t/reply", hello()).value();
  std::filesystem::rename(file_of(request.name), home.path() + "/away");
  std::filesystem::create_symlink(home.path() + "/back", file_of(request.name));
  const auto left = left_to_the_next(journal);
  EXPECT_THAT(left.requests, IsEmpty());
  EXPECT_THAT(left.unreadable, SizeIs(1));
  std::filesystem::rename(home.path() + "/away", home.path() + "/back");
  const auto again = left_to_the_next(journal);
  EXPECT_THAT(again.unreadable, IsEmpty());
  ASSERT_THAT(again.requests, SizeIs(1));
  EXPECT_EQ(again.requests[0].steps[0].key, request.steps[0].key);
}

}  // namespace
}  // namespace playfs::vfs
