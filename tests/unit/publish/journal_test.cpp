#include "publish/journal.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "base/sqlite.h"
#include "publish/damaged_journal.h"
#include "support/publish_world.h"

namespace playfs::publish {
namespace {

class JournalTest : public testing::Test {
 protected:
  std::unique_ptr<Journal> open() {
    auto opened = Journal::open(directory_.path());
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }
  static Publication front(Journal& journal) {
    auto front = journal.front();
    EXPECT_TRUE(front && *front);
    return **front;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(JournalTest, KeepsEveryStepAcrossARestart) {
  auto journal = open();
  ASSERT_TRUE(journal->enqueue("tx1", "agent", "message"));
  ASSERT_TRUE(journal->enqueue("tx2", "agent", "second"));
  auto publication = front(*journal);
  EXPECT_EQ(publication.tx, "tx1");
  EXPECT_EQ(publication.step, Step::queued);
  ASSERT_TRUE(journal->record_frozen(publication, RevisionId("base"), 3));
  Upload upload{0, "key", "{\"content\":\"ä\"}", ContentHash::of("ä"), 2, {}};
  ASSERT_TRUE(journal->record_uploads(publication, {upload}));
  journal = open();
  auto uploads = journal->unsent(publication, 0, 10);
  ASSERT_TRUE(uploads && uploads->size() == 1);
  EXPECT_EQ(uploads->front().body, upload.body);
  EXPECT_EQ(uploads->front().key, "key");
  EXPECT_EQ(uploads->front().text_size, 2u);
  upload.chunk = ChunkId("chunk");
  ASSERT_TRUE(journal->record_acknowledged(publication, {upload}));
  ASSERT_TRUE(journal->record_posting(publication, "key2", "body"));
  ASSERT_TRUE(journal->record_posted(publication, RevisionId("r")));
  ASSERT_TRUE(journal->record_patching(publication));

  journal = open();
  publication = front(*journal);
  EXPECT_EQ(publication.step, Step::patching);
  EXPECT_EQ(publication.agent, "agent");
  EXPECT_EQ(publication.message, "message");
  EXPECT_EQ(publication.base, RevisionId("base"));
  EXPECT_EQ(publication.files_changed, 3u);
  EXPECT_EQ(publication.key, "key2");
  EXPECT_EQ(publication.body, "body");
  EXPECT_EQ(publication.revision, RevisionId("r"));
  EXPECT_EQ(publication.chunks, 1u);
  EXPECT_EQ(publication.writes, 3u);
  EXPECT_TRUE(journal->unsent(publication, 0, 10)->empty());
  EXPECT_EQ(journal->totals(publication)->chunks_done, 1u);
  EXPECT_EQ(journal->totals(publication)->bytes_done, 2u);
}

TEST_F(JournalTest, AnEndedPublicationLeavesItsOutcomeAndItsChunks) {
  auto journal = open();
  ASSERT_TRUE(journal->enqueue("tx1", "a", "m"));
  ASSERT_TRUE(journal->enqueue("tx2", "a", "m"));
  auto publication = front(*journal);
  ASSERT_TRUE(journal->record_frozen(publication, {}, 1));
  Upload upload{0, "key", "{}", ContentHash::of("text"), 4, ChunkId("chunk")};
  ASSERT_TRUE(journal->record_uploads(publication, {upload}));
  ASSERT_TRUE(journal->record_acknowledged(publication, {upload}));
  ASSERT_TRUE(journal->record_posting(publication, "key2", "body"));
  ASSERT_TRUE(journal->record_posted(publication, RevisionId("r")));
  const std::vector<std::string> conflicts = {"a\nline break", "", "b", ""};
  ASSERT_TRUE(journal->record_settling(publication, Ending::branched, {}, conflicts));
  EXPECT_EQ(*journal->branch(), RevisionId("r"));
  ASSERT_TRUE(journal->record_ended(publication));

  journal = open();
  auto last = journal->last();
  ASSERT_TRUE(last && *last);
  EXPECT_EQ((*last)->ending, Ending::branched);
  EXPECT_EQ((*last)->conflicts, conflicts);
  EXPECT_EQ((*last)->body, "");
  EXPECT_EQ(journal->totals(**last)->chunks, 0u);
  EXPECT_EQ(journal->known_chunk(ContentHash::of("text")).value()->id, ChunkId("chunk"));
  EXPECT_EQ(journal->known_text(ChunkId("chunk")).value()->hash, ContentHash::of("text"));
  EXPECT_EQ(journal->known_sizes()->count(4), 1u);
  EXPECT_EQ(*journal->longest_id(), 5u);
  EXPECT_EQ(*journal->branch(), RevisionId("r"));

  publication = front(*journal);
  EXPECT_EQ(publication.tx, "tx2");
  ASSERT_TRUE(journal->record_settling(publication, Ending::published));
  EXPECT_TRUE(journal->branch()->empty());
  ASSERT_TRUE(journal->record_thawing(publication, Error{ErrorCode::file_too_big, "too big", "a hint"}));
  ASSERT_TRUE(journal->record_ended(publication));
  last = journal->last();
  EXPECT_EQ((*last)->tx, "tx2");
  EXPECT_EQ((*last)->error_code, "file_too_big");
  EXPECT_EQ((*last)->error_hint, "a hint");
  EXPECT_FALSE(*journal->front());
}

TEST_F(JournalTest, KnowsOnlyTheLatestChunks) {
  Journal journal(*open_journal_database(directory_.path(), 3));
  auto know = [&](const std::string& text) {
    ASSERT_TRUE(journal.record_known({{0, "", "", ContentHash::of(text), text.size(), ChunkId("id of " + text)}}));
  };
  auto is_known = [&](const std::string& text) { return journal.known_chunk(ContentHash::of(text))->has_value(); };
  for (const char* text : {"a", "bb", "ccc"}) know(text);
  EXPECT_TRUE(is_known("a"));
  know("a");  // again: now it is the latest
  know("dddd");
  EXPECT_FALSE(is_known("bb"));
  EXPECT_FALSE(journal.known_text(ChunkId("id of bb"))->has_value());
  EXPECT_TRUE(is_known("a") && is_known("ccc") && is_known("dddd"));
  EXPECT_EQ(*journal.longest_id(), std::string("id of dddd").size());
}

TEST_F(JournalTest, UpgradesFromVersion2) {
  {
    auto database = Database::open(directory_.path() + "/publish.db", Database::Durability::full);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute(R"(
      CREATE TABLE publications(number INTEGER PRIMARY KEY AUTOINCREMENT, tx TEXT NOT NULL UNIQUE, agent TEXT NOT NULL,
        message TEXT NOT NULL, step INTEGER NOT NULL, base TEXT NOT NULL DEFAULT '',
        files_changed INTEGER NOT NULL DEFAULT 0, key TEXT NOT NULL DEFAULT '', body TEXT NOT NULL DEFAULT '',
        revision TEXT NOT NULL DEFAULT '', merged TEXT NOT NULL DEFAULT '', conflicts TEXT NOT NULL DEFAULT '',
        may_merge INTEGER NOT NULL DEFAULT 1, chunks INTEGER NOT NULL DEFAULT 0, writes INTEGER NOT NULL DEFAULT 0,
        ending INTEGER NOT NULL DEFAULT 0, error_code TEXT NOT NULL DEFAULT '', error_message TEXT NOT NULL DEFAULT '',
        error_hint TEXT NOT NULL DEFAULT '');
      CREATE TABLE uploads(publication INTEGER NOT NULL REFERENCES publications(number) ON DELETE CASCADE,
        number INTEGER NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL, text_hash TEXT NOT NULL,
        text_size INTEGER NOT NULL, chunk TEXT NOT NULL DEFAULT '', PRIMARY KEY(publication, number)) WITHOUT ROWID;
      CREATE TABLE known_chunks(text_hash TEXT PRIMARY KEY, text_size INTEGER NOT NULL, chunk TEXT NOT NULL)
        WITHOUT ROWID;
      CREATE TABLE facts(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      PRAGMA user_version = 2;
      INSERT INTO publications(tx, agent, message, step, chunks) VALUES('tx', 'a', 'm', 2, 1);
      INSERT INTO facts VALUES('branch', 'r');)"));
    auto insert = database->prepare("INSERT INTO uploads VALUES(1, 0, 'key', 'body', ?, 4, '')");
    ASSERT_TRUE(insert->bind(1, ContentHash::of("text").hex()).run());
    insert = database->prepare("INSERT INTO known_chunks VALUES(?, 3, 'chunk')");
    ASSERT_TRUE(insert->bind(1, ContentHash::of("old").hex()).run());
  }
  auto journal = open();
  auto publication = front(*journal);
  EXPECT_EQ(publication.step, Step::uploading);
  auto unsent = journal->unsent(publication, 0, 10);
  ASSERT_TRUE(unsent && unsent->size() == 1);
  EXPECT_EQ(unsent->front().body, "body");
  EXPECT_FALSE(unsent->front().recipe);
  EXPECT_EQ(journal->known_chunk(ContentHash::of("old")).value()->id, ChunkId("chunk"));
  EXPECT_EQ(*journal->known_sizes(), std::set<std::size_t>{3});
  EXPECT_EQ(*journal->longest_id(), 5u);
  EXPECT_EQ(*journal->branch(), RevisionId("r"));
}

TEST_F(JournalTest, UpgradesFromVersion3) {
  {
    auto journal = open();
    ASSERT_TRUE(journal->enqueue("tx", "agent", "message"));
    auto publication = front(*journal);
    Upload upload{0, "key", "{}", ContentHash::of("text"), 4, ChunkId("chunk")};
    ASSERT_TRUE(journal->record_uploads(publication, {upload}));
    ASSERT_TRUE(journal->record_acknowledged(publication, {upload}));
    ASSERT_TRUE(journal->record_posting(publication, "key2", "body"));
  }
  {
    auto database = Database::open(directory_.path() + "/publish.db", Database::Durability::full);
    for (const char* table : {"publications", "uploads", "known_chunks", "facts"})
      ASSERT_TRUE(database->execute(std::string("ALTER TABLE ") + table + " DROP COLUMN digest"));
    ASSERT_TRUE(database->execute("PRAGMA user_version = 3"));
  }
  for (int times = 0; times < 2; ++times) {
    auto journal = open();
    EXPECT_EQ(front(*journal).body, "body");
    EXPECT_EQ(journal->known_chunk(ContentHash::of("text")).value()->id, ChunkId("chunk"));
    EXPECT_EQ(*journal->longest_id(), 5u);
  }
}

/// What a journal contains, or why it cannot be read.
struct Said {
  std::string publication, uploads, facts;
  std::optional<KnownChunk> known;
};
std::optional<Said> say(const std::string& directory) {
  auto journal = Journal::open(directory);
  if (!journal) return std::nullopt;
  auto front = (*journal)->front();
  if (!front || !*front) return std::nullopt;
  Said said;
  const Publication& row = **front;
  said.publication = row.tx + row.agent + row.message + row.base.text() + row.key + row.body +
                     std::to_string(static_cast<int>(row.step)) + std::to_string(row.chunks);
  auto uploads = (*journal)->unsent(row, 0, 10);
  if (!uploads) return std::nullopt;
  for (const auto& upload : *uploads)
    said.uploads += upload.key + upload.body + upload.text_hash.hex() + std::to_string(upload.text_size);
  auto branch = (*journal)->branch();
  auto found = (*journal)->scan_found();
  if (!branch || !found) return std::nullopt;
  said.facts = branch->text();
  for (const auto& [id, time] : *found) said.facts += id.text() + std::to_string(time.nanoseconds);
  auto known = (*journal)->known_chunk(ContentHash::of("text"));
  if (known) said.known = *known;
  return said;
}

TEST_F(JournalTest, AnAlteredByteIsDetected) {
  {
    auto journal = open();
    ASSERT_TRUE(journal->enqueue("earlier", "agent", "message"));
    auto earlier = front(*journal);
    ASSERT_TRUE(journal->record_settling(earlier, Ending::branched));
    ASSERT_TRUE(journal->record_ended(earlier));
    ASSERT_TRUE(journal->record_scan({"position", {{RevisionId("found"), WallTime{7}}}, {}}));
    ASSERT_TRUE(journal->enqueue("tx", "agent", "message"));
    auto publication = front(*journal);
    ASSERT_TRUE(journal->record_frozen(publication, RevisionId("base"), 1));
    Upload sent{0, "key", R"({"content":"text"})", ContentHash::of("text"), 4, ChunkId("chunk")};
    Upload unsent{1, "key2", R"({"content":"more"})", ContentHash::of("more"), 4, {}};
    ASSERT_TRUE(journal->record_uploads(publication, {sent, unsent}));
    ASSERT_TRUE(journal->record_acknowledged(publication, {sent}));
    ASSERT_TRUE(journal->record_posting(publication, "the key", R"({"the":"body of the revision"})"));
  }
  const std::string path = directory_.path() + "/publish.db";
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  auto truth = say(directory_.path());
  ASSERT_TRUE(truth && truth->known);
  std::mt19937 dice(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same positions each time
  int refused = 0;
  // At meaningful bytes, and anywhere.
  std::vector<std::size_t> positions;
  for (const char* part : {"the key", "body of", "content", "found", "chunk", "base", "agent"})
    for (auto at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1)) positions.push_back(at);
  while (positions.size() < 200) positions.push_back(dice() % whole.size());
  for (std::size_t at : positions) {
    test::TemporaryDirectory damaged;
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice() % 8));
    std::ofstream(damaged.path() + "/publish.db", std::ios::binary) << bytes;
    auto said = say(damaged.path());
    refused += said ? 0 : 1;
    if (!said) continue;
    EXPECT_EQ(said->publication, truth->publication) << at;
    EXPECT_EQ(said->uploads, truth->uploads) << at;
    EXPECT_EQ(said->facts, truth->facts) << at;
    EXPECT_TRUE(!said->known || said->known->id == truth->known->id) << at;
  }
  EXPECT_GT(refused, 20);
}

TEST_F(JournalTest, AnAlteredRowIsFoundBeforeItIsUsed) {
  {
    auto journal = open();
    ASSERT_TRUE(journal->enqueue("earlier", "agent", "message"));
    auto earlier = front(*journal);
    ASSERT_TRUE(journal->record_settling(earlier, Ending::branched));
    ASSERT_TRUE(journal->record_ended(earlier));
    ASSERT_TRUE(journal->record_thread("thread"));
    ASSERT_TRUE(journal->enqueue("tx", "agent", "message"));
    auto publication = front(*journal);
    Upload upload{0, "key", R"({"content":"text"})", ContentHash::of("text"), 4, {}};
    ASSERT_TRUE(journal->record_uploads(publication, {upload}));
  }
  const std::map<std::string, std::string> changes = {{"publications", "message = 'another' WHERE tx = 'earlier'"},
                                                      {"uploads", "key = 'another'"},
                                                      {"facts", "value = value || 'x'"}};
  for (const auto& [table, change] : changes) {
    test::TemporaryDirectory changed;
    test::copy_directory(directory_.path(), changed.path() + "/journal");
    {
      auto database = Database::open(changed.path() + "/journal/publish.db", Database::Durability::full);
      ASSERT_TRUE(database->execute("UPDATE " + table + " SET " + change));
      auto count = database->prepare("SELECT changes()");
      ASSERT_TRUE(count && *count->step() && count->integer(0) > 0) << table;
    }
    auto opened = Journal::open(changed.path() + "/journal");
    ASSERT_FALSE(opened) << table;
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
    EXPECT_NE(opened.error().message.find("a row in " + table), std::string::npos) << opened.error().message;
  }
}

TEST_F(JournalTest, ATableThatIsMissingIsDamageAndANewerFormatIsNone) {
  for (auto [change, code] : {std::pair("DROP TABLE facts", ErrorCode::corrupt),
                              std::pair("ALTER TABLE publications DROP COLUMN message", ErrorCode::corrupt),
                              std::pair("PRAGMA user_version = 1000", ErrorCode::not_supported)}) {
    test::TemporaryDirectory changed;
    ASSERT_TRUE(Journal::open(changed.path()));
    ASSERT_TRUE(Database::open(changed.path() + "/publish.db", Database::Durability::full)->execute(change)) << change;
    auto opened = Journal::open(changed.path());
    ASSERT_FALSE(opened) << change;
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
  }
}

TEST_F(JournalTest, WhatIsDamagedIsKept) {
  std::ofstream(directory_.path() + "/publish.db") << std::string(8192, 'x');
  auto opened = Journal::open(directory_.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::corrupt);
  for (const char* folder : {"/damaged-1", "/damaged-2"}) {
    auto kept = set_journal_aside(directory_.path());
    ASSERT_TRUE(kept);
    EXPECT_EQ(*kept, directory_.path() + folder);
    EXPECT_EQ(std::filesystem::file_size(*kept + "/publish.db"), 8192u);
    EXPECT_FALSE(*open()->front());
    std::ofstream(directory_.path() + "/publish.db") << std::string(8192, 'x');
  }
}

TEST_F(JournalTest, AFailedChangeLeavesTheValueAsItWas) {
  auto journal = open();
  Publication unknown;
  unknown.number = 77;
  EXPECT_FALSE(journal->record_posted(unknown, RevisionId("r")));
  EXPECT_EQ(unknown.step, Step::queued);
  EXPECT_TRUE(unknown.revision.empty());
}

}  // namespace
}  // namespace playfs::publish
