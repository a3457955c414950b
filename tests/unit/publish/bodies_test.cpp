// The check of a planned revision before it is sent: every kind of wrong body is refused.
#include "publish/request_bodies.h"

#include <gtest/gtest.h>

#include "wire/json.h"
#include "wire/records.h"

namespace playfs::publish {
namespace {

const std::string kTx(32, 'a');

class BodiesTest : public testing::Test {
 protected:
  BodiesTest() {
    base_ = *wire::decode_manifest(*wire::parse_json(
        R"({"files":{"kept":{"h":"opaque","inline":"1","x":1},"gone":{"inline":"2"},"changed":{"inline":"3","y":2},
            "../bad":{"inline":"4"},"big":{"h":"other","c":["b1","b2"]}},"unknown":true,"auto":{}})"));
    add("changed", "new");
    add("large", "part1part2");
    frozen_.tx = kTx;
    frozen_.deletions = {"gone"};
    chunks_[ChunkId("c1")] = {ContentHash::of("part1"), 5};
    chunks_[ChunkId("c2")] = {ContentHash::of("part2"), 5};
    manifest_ = carried_forward(base_, kTx);
    manifest_.files.erase("gone");
    entry("changed").inline_text = "new";
    entry("changed").hash_claim = ContentHash::of("new").hex();
    entry("large").chunks = {ChunkId("c1"), ChunkId("c2")};
    entry("large").hash_claim = ContentHash::of("part1part2").hex();
  }

  void add(const std::string& path, const std::string& content) {
    frozen_.files.push_back({.path = path,
                             .mode = FileMode::regular,
                             .hash = ContentHash::of(content),
                             .size = content.size(),
                             .published = {},
                             .spool = 0,
                             .target = {}});
    puts_.push_back({.path = path,
                     .mode = FileMode::regular,
                     .published = {},
                     .content = content,
                     .size = content.size(),
                     .hash = ContentHash::of(content),
                     .encoding = ContentEncoding::text});
  }
  FileEntry& entry(const std::string& path) { return manifest_.files[path]; }
  std::string body() const {
    RevisionDraft draft;
    draft.project = ProjectId("p");
    draft.parents = {RevisionId("base")};
    draft.manifest = manifest_;
    return wire::to_text(wire::encode_revision_draft(draft));
  }
  Status check() const {
    FindChunkText find = [&](const ChunkId& id) -> Result<std::optional<ChunkText>> {
      auto found = chunks_.find(id);
      return found == chunks_.end() ? std::nullopt : std::optional(found->second);
    };
    return check_revision_body(body(), {base_, frozen_, puts_, find, {}});
  }
  void expect_refused(std::string_view word) const {
    auto status = check();
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
  }

  Manifest base_;
  stage::Frozen frozen_;
  std::vector<PutFile> puts_;
  ChunkTexts chunks_;
  Manifest manifest_;
};

TEST_F(BodiesTest, AcceptsWhatWasFrozen) {
  auto status = check();
  EXPECT_TRUE(status) << status.error().message;
}

TEST_F(BodiesTest, AcceptsAnEntryOfTheBaseMovedToChunks) {
  chunks_[ChunkId("k")] = {ContentHash::of("1"), 1};
  entry("kept").inline_text.reset();
  entry("kept").chunks = {ChunkId("k")};
  auto status = check();
  EXPECT_TRUE(status) << status.error().message;
  chunks_[ChunkId("k")] = {ContentHash::of("9"), 1};
  expect_refused("kept");
}

TEST_F(BodiesTest, RefusesOtherContent) {
  entry("changed").inline_text = "neW";
  expect_refused("changed");
}

TEST_F(BodiesTest, RefusesAnotherHash) {
  entry("changed").hash_claim = ContentHash::of("x").hex();
  expect_refused("changed");
}

TEST_F(BodiesTest, RefusesAnotherMode) {
  entry("changed").mode = FileMode::executable;
  expect_refused("changed");
}

TEST_F(BodiesTest, RefusesChunksInAnotherOrder) {
  entry("large").chunks = {ChunkId("c2"), ChunkId("c1")};
  expect_refused("large");
}

TEST_F(BodiesTest, RefusesMissingAndUnknownChunks) {
  entry("large").chunks = {ChunkId("c1")};
  expect_refused("large");
  entry("large").chunks = {ChunkId("c1"), ChunkId("stranger")};
  expect_refused("large");
}

TEST_F(BodiesTest, RefusesTheWrongEncoding) {
  entry("changed").encoding = ContentEncoding::base64;
  expect_refused("changed");
}

TEST_F(BodiesTest, RefusesALostFileAndAForgottenDeletion) {
  auto kept = manifest_.files.extract("kept");
  expect_refused("kept");
  manifest_.files.insert(std::move(kept));
  manifest_.files["gone"] = base_.files["gone"];
  expect_refused("gone");
}

TEST_F(BodiesTest, RefusesAFileThatNobodyPut) {
  entry("extra").inline_text = "1";
  expect_refused("extra");
}

TEST_F(BodiesTest, RefusesAFileThatReadersWouldRefuse) {
  entry("changed/below").inline_text = "1";
  expect_refused("changed");
}

TEST_F(BodiesTest, RefusesToDropWhatItDoesNotKnow) {
  entry("changed").extra.erase("y");
  expect_refused("changed");
  entry("changed").extra.set("y", 2);
  manifest_.extra.erase("unknown");
  expect_refused("manifest");
  manifest_.extra.set("unknown", true);
  manifest_.refused.clear();
  expect_refused("../bad");
}

TEST_F(BodiesTest, RefusesAnotherCommitsId) {
  manifest_.tx = std::string(32, 'b');
  expect_refused("id");
}

TEST_F(BodiesTest, KnowsItsRevisionHoweverTheServicePrintsIt) {
  auto record = [&](const std::string& text) {
    auto json = *wire::parse_json(text);
    return *wire::decode_revision(Record{"r", "", "", "", *json.object()});
  };
  auto sent = body();
  EXPECT_TRUE(is_revision_of_body(record(sent), sent));
  for (auto change :
       {std::pair(R"("base")", R"("other")"), std::pair(R"("new")", R"("old")"), std::pair("aaaa", "bbbb"),
        std::pair(R"("p")", R"("q")"), std::pair(R"(["c1","c2"])", R"(["c1"])")}) {
    auto other = sent;
    other.replace(other.find(change.first), std::string(change.first).size(), change.second);
    EXPECT_FALSE(is_revision_of_body(record(other), sent)) << change.first;
  }
  // Fields may be reformatted and added.
  auto reprinted = sent;
  reprinted.insert(1, R"("more":1,)");
  EXPECT_TRUE(is_revision_of_body(record(reprinted), sent));
  for (const char* no_body : {"", "{", "[]", "null"})
    EXPECT_FALSE(is_revision_of_body(record(sent), no_body)) << no_body;
}

}  // namespace
}  // namespace playfs::publish
