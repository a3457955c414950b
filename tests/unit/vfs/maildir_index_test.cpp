#include "vfs/directories/maildir_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace playfs::vfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

using Records = std::vector<content::Listed>;

content::Listed thread(const std::string& id, const std::string& title, const std::string& kind) {
  content::Listed item;
  item.id = id, item.name = title, item.kind = kind;
  return item;
}

content::Listed message(const std::string& id, const std::string& in, std::int64_t updated = 1) {
  content::Listed item;
  item.id = id, item.project = in;
  item.created_at = {1'000'000'000};
  item.updated_at = {updated * 1'000'000'000};
  return item;
}

content::ListPtr list(Records records) { return std::make_shared<const Records>(std::move(records)); }

class MaildirIndex : public ::testing::Test {
 protected:
  FolderIndex::Change bring_up(const content::ListPtr& messages, const content::ListPtr& threads) {
    return index.bring_up({messages, threads, nullptr}, {});
  }
  /// In the order of listings.
  std::vector<std::string> ids() const {
    std::vector<FolderLetterPtr> all = index.letters()->all;
    EXPECT_TRUE(
        std::is_sorted(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->unique < b->unique; }));
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->position < b->position; });
    std::vector<std::string> ids;
    for (const auto& letter : all) ids.push_back(letter->id);
    return ids;
  }
  static std::vector<std::string> ids(const std::vector<FolderLetterPtr>& letters) {
    std::vector<std::string> ids;
    for (const auto& letter : letters) ids.push_back(letter->id);
    return ids;
  }

  const std::shared_ptr<ThreadsOfMessages> threads = std::make_shared<ThreadsOfMessages>();
  FolderIndex index{"help", "example.org", threads};
  const content::ListPtr two = list({thread("t2", "Other", "intro"), thread("t1", "Title", "help")});
};

TEST_F(MaildirIndex, ANewMessageMakesOneLetter) {
  Records messages;
  for (int i = 0; i < 1000; ++i) messages.insert(messages.begin(), message("m" + std::to_string(i), "t1"));
  EXPECT_EQ(bring_up(list(messages), two).made, 1000U);
  const FolderLettersPtr before = index.letters();
  messages.insert(messages.begin(), message("new", "t1"));
  messages.insert(messages.begin(), message("elsewhere", "t2"));
  const auto change = bring_up(list(messages), two);
  EXPECT_EQ(change.made, 1U);
  EXPECT_THAT(change.gone, IsEmpty());
  EXPECT_THAT(index.letters()->all, SizeIs(1001));
  EXPECT_EQ(index.letters()->find(before->all[7]->unique), before->all[7]) << "the others are the same";
  EXPECT_EQ(ids().back(), "new");
  EXPECT_TRUE(threads->is_of("new", "t1"));
  EXPECT_FALSE(threads->is_of("elsewhere", "t2"));
  EXPECT_EQ(bring_up(list(messages), two).made, 0U);
}

TEST_F(MaildirIndex, AnEditedMessageIsAnotherLetterInItsPlace) {
  bring_up(list({message("c", "t1"), message("b", "t1"), message("a", "t1")}), two);
  const auto change =
      bring_up(list({message("d", "t1"), message("c", "t1"), message("b", "t1", 2), message("a", "t1")}), two);
  EXPECT_EQ(change.made, 2U);
  EXPECT_THAT(ids(change.gone), ElementsAre("b"));
  EXPECT_THAT(ids(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(MaildirIndex, WhatLeavesOrMovesIsGone) {
  bring_up(list({message("c", "t1"), message("b", "t1"), message("a", "t1")}), two);
  const auto change = bring_up(list({message("c", "t1"), message("a", "t2", 2)}), two);
  EXPECT_THAT(ids(change.gone), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(ids(), ElementsAre("c"));
  EXPECT_FALSE(threads->is_of("a", "t1"));
  EXPECT_THAT(ids(bring_up(list({message("x", "t1"), message("c", "t1"), message("y", "t1")}), two).gone), IsEmpty());
  EXPECT_THAT(ids(), UnorderedElementsAre("c", "x", "y")) << "also one that was inserted below";
}

TEST_F(MaildirIndex, AThreadsTitleAndKindAreItsLetters) {
  const auto messages = list({message("c", "t2"), message("b", "t1"), message("a", "t1")});
  bring_up(messages, two);
  auto change = bring_up(messages, list({thread("t2", "Other", "intro"), thread("t1", "New", "help")}));
  EXPECT_THAT(ids(change.gone), UnorderedElementsAre("a", "b"));
  EXPECT_EQ(index.letters()->all[0]->thread->title, "New");
  EXPECT_THAT(ids(), ElementsAre("a", "b"));
  change = bring_up(messages, list({thread("t2", "Other", "help"), thread("t1", "New", "intro")}));
  EXPECT_THAT(ids(change.gone), UnorderedElementsAre("a", "b"));
  EXPECT_THAT(ids(), ElementsAre("c"));
  EXPECT_EQ(bring_up(messages, list({thread("t2", "Other", "help"), thread("t3", "New", "help")})).made, 0U);
  EXPECT_EQ(bring_up(messages, list({thread("t3", "New", "help")})).gone.size(), 1U)
      << "a thread that is no longer listed";
  EXPECT_THAT(ids(), IsEmpty());
}

TEST_F(MaildirIndex, OfTooManyTheNewestStay) {
  Records messages;
  for (std::size_t i = 0; i < FolderIndex::kMost + FolderIndex::kSpare + 1; ++i)
    messages.push_back(message("m" + std::to_string(i), "t1"));
  EXPECT_TRUE(bring_up(list(messages), two).is_left_out);
  EXPECT_THAT(index.letters()->all, SizeIs(FolderIndex::kMost));
  EXPECT_EQ(ids().back(), "m0");
  messages.insert(messages.begin(), message("new", "t1"));
  EXPECT_EQ(bring_up(list(messages), two).made, 1U);
  EXPECT_EQ(ids().back(), "new");
}

TEST(MaildirIndexOfAnInbox, HasItsEntriesAndTheirThreads) {
  const auto known = std::make_shared<ThreadsOfMessages>();
  FolderIndex index(kInbox, "example.org", known);
  const auto threads = list({thread("t1", "Title", "help")});
  auto entry = [](const std::string& collection, const std::string& id, std::uint64_t position) {
    return content::Inbox::Entry{collection, id, {}, ForMe::mention, position};
  };
  FolderIndex::Lists lists{list({message("b", "t1"), message("a", "t1")}), threads, list({message("mail", "")})};
  auto change = index.bring_up(lists, {entry("messages", "b", 1), entry("domain_mail", "mail", 2)});
  EXPECT_EQ(change.made, 2U);
  EXPECT_TRUE(known->is_of("a", "t1")) << "what is answered";
  EXPECT_EQ(
      index.bring_up(lists, {entry("messages", "b", 1), entry("domain_mail", "mail", 2), entry("messages", "a", 3)})
          .made,
      1U);
  lists.messages = list({message("c", "t9"), message("b", "t1", 2), message("a", "t1")});
  change = index.bring_up(lists, {entry("messages", "b", 1), entry("messages", "a", 3), entry("messages", "c", 4)});
  EXPECT_EQ(change.made, 1U) << "the edited one; of the thread of another nothing is known";
  EXPECT_THAT(change.gone, SizeIs(2));
  lists.threads = list({thread("t9", "Nine", "help"), thread("t1", "Title", "help")});
  EXPECT_EQ(
      index.bring_up(lists, {entry("messages", "b", 1), entry("messages", "a", 3), entry("messages", "c", 4)}).made,
      1U);
}

}  // namespace
}  // namespace playfs::vfs
