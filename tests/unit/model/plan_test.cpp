#include "model/plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/random.h"
#include "model/chunking.h"
#include "support/known_pieces.h"
#include "wire/continuation.h"
#include "wire/json.h"
#include "wire/records.h"

namespace playfs {
namespace {

class PrintedSizes final : public RecordSizes {
 public:
  std::size_t entry(const FileEntry& entry) const override { return printed(wire::encode_file_entry(entry)); }
  std::size_t revision(const RevisionDraft& draft) const override {
    return printed(wire::encode_revision_draft(draft));
  }
  std::size_t chunk(const ChunkDraft& draft) const override { return printed(wire::encode_chunk_draft(draft)); }
  std::string continuation(const std::map<std::string, FileEntry, std::less<>>& files) const override {
    return wire::continuation_text(files);
  }

 private:
  static std::size_t printed(const Json& json) { return wire::to_text(json).size(); }
};
const PrintedSizes sizes;

PutFile put(std::string path, std::string content, FileMode mode = FileMode::regular) {
  auto hash = ContentHash::of(content);
  auto size = content.size();
  auto encoding = encoding_for(content);
  return {.path = std::move(path),
          .mode = mode,
          .published = {},
          .content = std::move(content),
          .size = size,
          .hash = hash,
          .encoding = encoding};
}

/// Words that do not repeat, so no two pieces are equal by chance.
std::string text_of(std::size_t size, int seed) {
  std::string text;
  for (std::size_t i = 0; text.size() < size; ++i)
    text += std::to_string(i * 7919 + static_cast<std::size_t>(seed)) + " ";
  text.resize(size);
  return text;
}

PlanInput commit(std::vector<PutFile> puts, Manifest base = {}) {
  PlanInput input;
  input.draft.project = ProjectId("p");
  input.draft.parents = {RevisionId("base")};
  input.draft.agent = "a";
  input.draft.message = "m";
  input.draft.manifest = carried_forward(std::move(base), std::string(32, 'a'));
  input.base = RevisionId("base");
  input.puts = std::move(puts);
  return input;
}

/// The part of the service that a plan needs: assigns ids to chunks and stores their text.
struct Uploaded {
  std::map<ChunkId, std::string> texts;
  std::vector<ChunkId> ids;
  test::PiecesInMemory pieces;

  void take(const Plan& plan, std::size_t id_size = kUsualIdSize) {
    ids.clear();
    for (const auto& chunk : plan.uploads) {
      std::string id = std::to_string(texts.size());
      ids.emplace_back(std::string(id_size - id.size(), '0') + id);
      texts[ids.back()] = draft_of(plan, chunk)->content;
      pieces.add(chunk.hash, chunk.size, ids.back());
    }
  }
  std::optional<std::string> content(const FileEntry& entry) const {
    if (entry.inline_text) return entry.inline_content();
    std::string text;
    for (const auto& id : entry.chunks) text += texts.at(id);
    return decode_content(text, entry.encoding);
  }
};

std::size_t printed(const RevisionDraft& draft) { return wire::to_text(wire::encode_revision_draft(draft)).size(); }

TEST(Plan, SmallFilesStandInline) {
  auto plan = make_plan(commit({put("a", "hello\n"), put("empty", ""), put("run", "#!", FileMode::executable),
                                put("bin", std::string("\0\xff", 2))}),
                        sizes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->uploads.empty());
  const auto& files = plan->draft.manifest.files;
  EXPECT_EQ(files.at("a").inline_text, "hello\n");
  EXPECT_EQ(files.at("a").hash_claim, ContentHash::of("hello\n").hex());
  EXPECT_EQ(files.at("a").size_claim, 6u);
  EXPECT_EQ(files.at("empty").inline_text, "");
  EXPECT_EQ(files.at("run").mode, FileMode::executable);
  EXPECT_EQ(files.at("bin").encoding, ContentEncoding::base64);
  EXPECT_EQ(files.at("bin").size_claim, 2u);
  EXPECT_EQ(plan->draft.manifest.tx, std::string(32, 'a'));
}

TEST(Plan, InlineEndsAtEightKilobytes) {
  EXPECT_EQ(make_plan(commit({put("a", text_of(kMaxInlineText, 1))}), sizes)->uploads.size(), 0u);
  EXPECT_EQ(make_plan(commit({put("a", text_of(kMaxInlineText + 1, 1))}), sizes)->uploads.size(), 1u);
  EXPECT_EQ(make_plan(commit({put("a", text_of(kMaxChunkText, 1))}), sizes)->uploads.size(), 1u);
  EXPECT_EQ(make_plan(commit({put("a", text_of(kMaxChunkText + 1, 1))}), sizes)->uploads.size(), 2u);
}

TEST(Plan, SmallestStayInlineWhenRoomEnds) {
  auto plan = make_plan(commit({put("a", text_of(7000, 1)), put("b", text_of(4500, 2)), put("c", text_of(5000, 3)),
                                put("d", text_of(100, 4))}),
                        sizes);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->uploads.size(), 1u);
  EXPECT_EQ(plan->texts[plan->uploads[0].text].path, "a");
}

TEST(Plan, EqualTextIsUploadedOnce) {
  auto plan = make_plan(commit({put("a", text_of(30'000, 1)), put("b", text_of(30'000, 1))}), sizes);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->uploads.size(), 3u);
  EXPECT_EQ(plan->holes.size(), 6u);
  auto zeros = make_plan(commit({put("z", std::string(5 * kMaxChunkText, '0'))}), sizes);
  ASSERT_TRUE(zeros);
  EXPECT_EQ(zeros->uploads.size(), 1u);
}

TEST(Plan, AppendingToALargeFileUploadsItsEnd) {
  Uploaded service;
  auto first = make_plan(commit({put("log", text_of(200'000, 1))}), sizes);
  ASSERT_TRUE(first);
  service.take(*first);
  auto input = commit({put("log", text_of(200'000, 1) + "more")}, fill(*first, service.ids).manifest);
  input.stored.pieces = &service.pieces;
  auto second = make_plan(std::move(input), sizes);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->uploads.size(), 1u);
}

/// A file whose text is in so many small stored chunks that a record has no room to name them all.
PlanInput commit_of_many_small_chunks() {
  const std::string text = text_of(60'000, 1);
  auto input = commit({put("file", text)});
  for (std::size_t at = 0; at < text.size(); at += 100)
    input.stored.near["file"].push_back(
        stored_piece(ChunkId(std::string(kUsualIdSize - 6, '0') + std::to_string(100'000 + at)), text.substr(at, 100)));
  return input;
}

TEST(Plan, WhereStoredChunksAreTooManyAFileIsCutAnew) {
  auto plan = make_plan(commit_of_many_small_chunks(), sizes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->continuation.empty());
  EXPECT_EQ(plan->uploads.size(), (60'000 + kMaxChunkText - 1) / kMaxChunkText);
  EXPECT_LE(plan->revision_size, kRecordRoom);
}

TEST(Plan, AFileIsNotCutAnewWhereThatDoesNotHelp) {
  auto input = commit_of_many_small_chunks();
  for (int i = 0; i < 200; ++i) input.puts.push_back(put("other" + std::to_string(i), text_of(300, i)));
  auto plan = make_plan(std::move(input), sizes);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->continuation.empty());
  for (const auto& upload : plan->uploads) EXPECT_NE(plan->texts[upload.text].path, "file") << "all of it is stored";
}

TEST(Plan, RenamingUploadsNothing) {
  Uploaded service;
  auto first = make_plan(commit({put("old", text_of(50'000, 1)), put("s", "small")}), sizes);
  ASSERT_TRUE(first);
  service.take(*first);
  auto base = fill(*first, service.ids).manifest;
  base.files.at("old").extra.set("licence", "MIT");
  PutFile moved{.path = "new",
                .mode = FileMode::executable,
                .published = base.files.at("old"),
                .content = {},
                .size = 0,
                .hash = {},
                .encoding = ContentEncoding::text};
  auto input = commit({moved}, base);
  input.deletions = {"old"};
  auto second = make_plan(std::move(input), sizes);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->uploads.empty());
  const auto& files = second->draft.manifest.files;
  EXPECT_FALSE(files.contains("old"));
  EXPECT_EQ(files.at("new").chunks, base.files.at("old").chunks);
  EXPECT_EQ(files.at("new").mode, FileMode::executable);
  EXPECT_EQ(*files.at("new").extra.find("licence")->string(), "MIT");
  EXPECT_EQ(files.at("s").inline_text, "small");
}

TEST(Plan, StoredContentIsReferencedInItsOwnEncoding) {
  auto content = text_of(20'000, 1);
  auto input = commit({put("copy", content)});
  // Published as base64, in differently cut pieces.
  input.stored.contents[ContentHash::of(content)] = {ContentEncoding::base64, {ChunkId("x"), ChunkId("y")}};
  auto plan = make_plan(std::move(input), sizes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->uploads.empty());
  EXPECT_EQ(plan->draft.manifest.files.at("copy").encoding, ContentEncoding::base64);
  EXPECT_EQ(plan->draft.manifest.files.at("copy").chunks, (std::vector{ChunkId("x"), ChunkId("y")}));
}

TEST(Plan, MakesRoomByMovingOneInlineEntryOfTheBase) {
  Manifest base;
  for (int i = 0; i < 3; ++i) {
    FileEntry entry;
    entry.hash_claim = "crc:" + std::to_string(i);  // as another client writes it
    entry.inline_text = text_of(4900, i);
    entry.extra.set("note", "kept");
    base.files["old" + std::to_string(i)] = entry;
  }
  base.files["old1"].inline_text = text_of(5100, 1);
  auto plan = make_plan(commit({put("new", text_of(1000, 9))}, base), sizes);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->uploads.size(), 1u);
  EXPECT_EQ(plan->texts[plan->uploads[0].text].path, "old1");
  const auto& moved = plan->draft.manifest.files.at("old1");
  EXPECT_FALSE(moved.inline_text);
  EXPECT_EQ(moved.hash_claim, "crc:1");
  EXPECT_EQ(*moved.extra.find("note")->string(), "kept");
}

TEST(Plan, LargeInlineEntriesOfOthersStayWhereTheyAre) {
  Manifest base;
  base.files["long"].inline_text = text_of(10'000, 1);
  auto plan = make_plan(commit({put("new", "x")}, base), sizes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->uploads.empty());
}

TEST(Plan, CarriesForwardWhatItDoesNotKnow) {
  auto base = wire::decode_manifest(*wire::parse_json(
      R"({"files":{"a":{"h":"1","s":3.0,"inline":"abc","x":[1]},"../up":{"h":"2","inline":"?"},"b":{"z":9,"inline":"b"}},
          "tx":"00000000000000000000000000000000","auto":{"of":["p"]},"theirs":{"k":null}})"));
  ASSERT_TRUE(base);
  auto plan = make_plan(commit({put("b", "changed")}, *base), sizes);
  ASSERT_TRUE(plan);
  auto printed = wire::to_text(wire::encode_manifest(plan->draft.manifest));
  auto expected = wire::parse_json(
      R"({"files":{"a":{"h":"1","s":3.0,"inline":"abc","x":[1]},"../up":{"h":"2","inline":"?"},"b":{"h":")" +
      ContentHash::of("changed").hex() + R"(","s":7,"inline":"changed","z":9}},
          "tx":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","theirs":{"k":null}})");
  EXPECT_EQ(*wire::parse_json(printed), *expected) << printed;
}

TEST(Plan, AFilePutWhereARefusedEntryStandsReplacesIt) {
  Manifest base;
  base.refused.push_back({"a", "a file where a directory has to stand", JsonObject{{"inline", "1"}}});
  base.files["a/b"].inline_text = "2";
  auto input = commit({put("a", "3")}, base);
  input.deletions = {"a/b"};
  auto plan = make_plan(std::move(input), sizes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->draft.manifest.refused.empty());
  EXPECT_EQ(plan->draft.manifest.files.at("a").inline_text, "3");
}

TEST(Plan, NothingElseStandsWhereTheManifestGoesOn) {
  std::vector<PutFile> puts;
  for (int i = 0; i < 200; ++i) puts.push_back(put("dir/file" + std::to_string(i), text_of(300, i)));
  Manifest base;
  base.refused.push_back({kContinuationPath, "no form that is known", JsonObject{{"inline", 1}}});
  auto plan = make_plan(commit(puts, base), sizes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->draft.manifest.continuation);
  EXPECT_TRUE(plan->draft.manifest.refused.empty());
}

TEST(Plan, RefusesWithTheCostsLargestFirst) {
  std::vector<PutFile> puts;
  for (int i = 0; i < 200; ++i) puts.push_back(put("dir/file" + std::to_string(i), text_of(300, i)));
  EXPECT_TRUE(check_could_fit(commit(puts), sizes)) << "in a continuation";
  const JsonObject not_shown{{"inline", std::string(5'000, 'y')}};
  Manifest base;
  base.refused.push_back({"../up", "no path", not_shown});
  auto input = commit(puts, base);
  input.draft.state = std::string(16'000, 'x');  // which stays in the record itself, whatever else moves out
  auto plan = make_plan(input, sizes);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::file_too_big);
  auto& message = plan.error().message;
  const std::size_t around = std::string_view(R"("../up":)").size();
  const std::string largest = ": (the project's state) 16002, (hidden entries) " +
                              std::to_string(around + wire::to_text(not_shown).size()) + ", dir/file";
  auto files = message.find(largest);
  ASSERT_NE(files, std::string::npos) << message;
  EXPECT_LT(std::stoi(message.substr(message.find(' ', files + largest.size()))), 300) << "a file costs no text";
  EXPECT_NE(message.find("and 193 more"), std::string::npos) << message;

  EXPECT_TRUE(check_could_fit(commit({put("a", text_of(9000, 1))}), sizes));
  PutFile huge = put("huge", "");
  huge.size = std::uint64_t{4} << 30;
  auto refused = check_could_fit(commit({huge}), sizes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::file_too_big);
  huge.size = kMaxFileSize;
  EXPECT_TRUE(check_could_fit(commit({huge}), sizes));
  ++huge.size;
  EXPECT_FALSE(check_could_fit(commit({huge}), sizes));
}

TEST(Plan, WhereChunksSaveNothingARefusalCountsTheText) {
  auto input = commit({put("a", "x")});
  input.draft.state = std::string(16'000, 'x');
  auto plan = make_plan(input, sizes);
  ASSERT_FALSE(plan);
  FileEntry entry;
  entry.hash_claim = ContentHash::of("x").hex();
  entry.size_claim = 1;
  entry.inline_text = "x";
  const std::string cost = ", a " + std::to_string(std::string_view(R"("a":)").size() + sizes.entry(entry)) + ", ";
  EXPECT_NE(plan.error().message.find(cost), std::string::npos) << plan.error().message << cost;
}

TEST(Plan, WhatCannotFitByItsSizesAloneIsRefusedUnreadWithTheCosts) {
  const std::size_t chunks = 64, id_size = 1000;
  std::vector<PutFile> puts;
  for (int i = 0; i < 10; ++i) {
    puts.push_back(put("file" + std::to_string(i), ""));
    puts.back().size = chunks * kMaxRecordSize;
  }
  auto input = commit(puts);
  EXPECT_TRUE(check_could_fit(input, sizes));
  input.chunk_id_size = id_size;
  auto refused = check_could_fit(input, sizes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::file_too_big);
  FileEntry entry;
  entry.hash_claim = puts[0].hash.hex();
  entry.size_claim = puts[0].size;
  entry.chunks.assign(chunks, ChunkId(std::string(id_size, 'x')));
  const std::size_t each = std::string_view(R"("file0":)").size() + sizes.entry(entry);
  const std::string& message = refused.error().message;
  EXPECT_NE(message.find("needs " + std::to_string(10 * each) + " bytes"), std::string::npos) << message;
  EXPECT_NE(message.find(": file0 " + std::to_string(each) + ", "), std::string::npos) << message;
}

TEST(Plan, RefusesAPathThatLeavesNoRoomForAChunk) {
  auto plan = make_plan(commit({put(std::string(2630, '\x01'), text_of(9000, 1))}), sizes);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::file_too_big);
}

TEST(Plan, IdsOfAnotherLengthAreCounted) {
  auto input = commit({put("a", text_of(1'000'000, 1))});
  input.chunk_id_size = 100;
  auto plan = make_plan(std::move(input), sizes);
  ASSERT_TRUE(plan);
  Uploaded service;
  service.take(*plan, 100);
  EXPECT_EQ(plan->revision_size, printed(fill(*plan, service.ids)));
  input = commit({put("a", text_of(2'500'000, 1))});
  EXPECT_TRUE(make_plan(input, sizes));
  input.chunk_id_size = 100;
  plan = make_plan(input, sizes);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->continuation.empty()) << "no room for so many ids";
}

// Manifests too large for one record.

/// Plans, uploads and plans again until nothing is left to upload; returns the number of uploads.
std::size_t publish(Uploaded& service, const PlanInput& input, RevisionDraft& draft, std::string& continuation) {
  std::size_t uploads = 0;
  for (int round = 0; round < 3; ++round) {
    auto again = input;
    again.stored.pieces = &service.pieces;
    auto plan = make_plan(again, sizes);
    EXPECT_TRUE(plan) << plan.error().message;
    std::size_t to_follow = plan->uploads_to_follow;
    uploads += plan->uploads.size();
    service.take(*plan);
    EXPECT_LE(plan->revision_size, kRecordRoom);
    if (to_follow > 0) continue;
    draft = fill(*plan, service.ids);
    EXPECT_EQ(printed(draft), plan->revision_size);
    continuation = plan->continuation;
    return uploads;
  }
  ADD_FAILURE() << "it does not come to an end";
  return uploads;
}

/// The manifest as another mount reads it, from records alone.
Manifest read_back(const Uploaded& service, const RevisionDraft& draft) {
  auto manifest = wire::decode_manifest(wire::encode_manifest(draft.manifest));
  EXPECT_TRUE(manifest->continuation);
  auto text = service.content(manifest->continuation->entry);
  EXPECT_TRUE(wire::read_continuation(*manifest, *text));
  return *std::move(manifest);
}

std::vector<StoredPiece> near_of(const Uploaded& service, const FileEntry& entry) {
  std::vector<StoredPiece> near;
  for (const auto& id : entry.chunks) near.push_back(stored_piece(id, service.texts.at(id)));
  return near;
}

TEST(Plan, TwoThousandFilesGoOnElsewhere) {
  Uploaded service;
  std::vector<PutFile> puts;
  for (int i = 0; i < 2000; ++i) {
    std::string path = "folder" + std::to_string(i % 40) + "/file" + std::to_string(i);
    puts.push_back(put(path, text_of(i % 100 == 0 ? 20'000 : 400, i)));
  }
  RevisionDraft draft;
  std::string text;
  std::size_t uploads = publish(service, commit(puts), draft, text);
  EXPECT_TRUE(draft.manifest.files.empty());
  EXPECT_LE(uploads, 20 * 2 + text.size() / kMaxChunkText + 1) << "small files share chunks";
  Manifest base = read_back(service, draft);
  ASSERT_EQ(base.files.size(), 2000u);
  for (const auto& file : puts) EXPECT_EQ(service.content(base.files.at(file.path)), *file.content.all());

  // A small change, a new file, one less, a rename: one chunk each, at most two.
  auto change = [&](const std::function<void(PlanInput&)>& make) {
    auto input = commit({}, base);
    input.draft.manifest = carried_forward(base, std::string(32, 'b'));
    input.stored.near[kContinuationPath] = near_of(service, base.continuation->entry);
    make(input);
    std::size_t cost = publish(service, input, draft, text);
    base = read_back(service, draft);
    return cost;
  };
  EXPECT_EQ(change([](PlanInput& input) { input.puts = {put("folder7/file7", text_of(400, 7) + "changed\n")}; }), 1u);
  EXPECT_EQ(service.content(base.files.at("folder7/file7")), text_of(400, 7) + "changed\n");
  EXPECT_LE(change([](PlanInput& input) { input.puts = {put("folder8/new", text_of(500, 77))}; }), 2u);
  EXPECT_LE(change([](PlanInput& input) { input.deletions = {"folder9/file9"}; }), 1u);
  EXPECT_LE(change([](PlanInput& input) { input.puts = {put("folder7/file7", text_of(400, 7))}; }), 1u);
  EXPECT_EQ(base.files.size(), 2000u);

  // Once it fits again, it is an ordinary manifest.
  auto input = commit({}, base);
  input.draft.manifest = carried_forward(base, std::string(32, 'c'));
  for (const auto& [path, entry] : base.files)
    if (path != "folder1/file1") input.deletions.push_back(path);
  auto plan = make_plan(input, sizes);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->continuation.empty());
  EXPECT_FALSE(plan->draft.manifest.continuation);
  EXPECT_EQ(plan->draft.manifest.files.size(), 1u);
}

TEST(Plan, TheNameOfTheContinuationIsTaken) {
  for (std::string path : {std::string(kContinuationPath), std::string(kContinuationPath) + "/x"}) {
    auto plan = make_plan(commit({put(path, "x")}), sizes);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::invalid_argument);

    // A foreign one is carried forward while there is room, and never dropped.
    Manifest base;
    base.files[path].inline_text = "theirs";
    plan = make_plan(commit({put("a", "x")}, base), sizes);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->draft.manifest.files.at(path).inline_text, "theirs");
    std::vector<PutFile> many;
    for (int i = 0; i < 300; ++i) many.push_back(put("file" + std::to_string(i), text_of(300, i)));
    plan = make_plan(commit(many, base), sizes);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::file_too_big);
  }
}

/// Content with many characters whose encoded size differs, of any size up to several chunks.
rc::Gen<std::string> any_content() {
  return rc::gen::exec([] {
    auto unit = *rc::gen::element<std::string>("a", "\n", "\"\\", "\x01", "ä", "😀", std::string("\0", 1), "\xff");
    auto size = *rc::gen::weightedOneOf<int>(
        {{4, rc::gen::inRange(0, 300)}, {3, rc::gen::inRange(0, 9000)}, {1, rc::gen::inRange(0, 60'000)}});
    auto seed = *rc::gen::inRange(0, 6);  // few, so that contents are sometimes equal
    std::string content = text_of(static_cast<std::size_t>(size / 2), seed);
    while (static_cast<int>(content.size()) < size) content += unit;
    return content;
  });
}

TEST(PlanProperties, ReassembledContentIsWhatWasPutAndRecordsFit) {
  EXPECT_TRUE(rc::check([] {
    Uploaded service;
    Manifest base;
    std::map<std::string, std::string> expected;
    for (int round = 0; round < 3; ++round) {
      std::vector<PutFile> puts;
      std::vector<std::string> deletions;
      auto attempted = expected;
      for (std::string name : {"a", "b", "c/d", "ä", "e\n", "f"}) {
        auto action = *rc::gen::inRange(0, 5);
        if (action == 0) continue;
        if (action == 1) {
          deletions.push_back(name);
          attempted.erase(name);
        } else {
          auto mode = *rc::gen::element(FileMode::regular, FileMode::executable, FileMode::symlink);
          puts.push_back(put(name, *any_content(), mode));
          attempted[name] = *puts.back().content.all();
        }
      }
      auto input = commit(puts, base);
      input.deletions = deletions;
      input.stored.pieces = &service.pieces;
      auto plan = make_plan(input, sizes);
      if (!plan) {
        RC_ASSERT(plan.error().code == ErrorCode::file_too_big);
        RC_TAG("refused");
        break;
      }
      service.take(*plan);
      auto draft = fill(*plan, service.ids);
      RC_ASSERT(printed(draft) == plan->revision_size);
      RC_ASSERT(plan->revision_size <= kRecordRoom);
      std::set<std::string> texts;
      for (const auto& planned : plan->uploads) {
        auto chunk = *draft_of(*plan, planned);
        RC_ASSERT(sizes.chunk(chunk) <= kRecordRoom);
        RC_ASSERT(chunk.content.size() <= kMaxChunkText);
        RC_ASSERT(chunk.hash == ContentHash::of(chunk.content));
        RC_ASSERT(texts.insert(chunk.content).second);
      }
      RC_ASSERT(draft.manifest.files.size() == attempted.size());
      for (const auto& [path, content] : attempted) {
        const auto& entry = draft.manifest.files.at(path);
        RC_ASSERT(service.content(entry) == content);
        RC_ASSERT(entry.hash_claim == ContentHash::of(content).hex());
      }
      base = std::move(draft.manifest);
      expected = std::move(attempted);
    }
  }));
}

/// The fewest uploads over all choices of what is inline, by brute force. Pieces shared by two texts count twice, but
/// the planner uploads them once, so it may need fewer.
std::optional<std::size_t> fewest_uploads(const PlanInput& input) {
  auto everything_inline = input.draft;
  for (const auto& file : input.puts) {
    auto& entry = everything_inline.manifest.files[file.path];
    entry.hash_claim = file.hash.hex();
    entry.size_claim = file.size;
    entry.inline_text = *file.content.all();
  }
  std::vector<std::string> paths;
  for (const auto& [path, entry] : everything_inline.manifest.files) paths.push_back(path);
  std::optional<std::size_t> fewest;
  for (unsigned choice = 0; choice < 1u << paths.size(); ++choice) {
    auto draft = everything_inline;
    std::size_t uploads = 0;
    bool allowed = true;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      auto& entry = draft.manifest.files.at(paths[i]);
      if (choice >> i & 1) {
        auto pieces = cut_text(*entry.inline_text);
        uploads += pieces.size();
        entry.chunks.assign(pieces.size(), ChunkId(std::string(kUsualIdSize, 'x')));
        entry.inline_text.reset();
      } else {
        allowed &= entry.inline_text->size() <= kMaxInlineText;
      }
    }
    if (allowed && printed(draft) <= kRecordRoom) fewest = std::min(uploads, fewest.value_or(uploads));
  }
  return fewest;
}

TEST(PlanProperties, NoChoiceNeedsFewerUploads) {
  EXPECT_TRUE(rc::check([] {
    Manifest base;
    std::vector<PutFile> puts;
    auto count = *rc::gen::inRange(1, 9);
    for (int i = 0; i < count; ++i) {
      // Many control characters make a short text that takes two chunks.
      auto content = text_of(static_cast<std::size_t>(*rc::gen::inRange(1, 7000)), i) +
                     std::string(static_cast<std::size_t>(*rc::gen::element(0, 0, 0, 1000, 2600)), '\x01');
      auto path = "file" + std::to_string(i);
      if (*rc::gen::arbitrary<bool>()) {
        puts.push_back(put(path, content));
      } else {
        auto& entry = base.files[path];
        entry.hash_claim = ContentHash::of(content).hex();
        entry.size_claim = content.size();
        entry.inline_text = content;
      }
    }
    auto input = commit(puts, base);
    auto best = fewest_uploads(input);
    auto plan = make_plan(input, sizes);
    RC_ASSERT(plan.has_value() == best.has_value());
    if (plan) {
      RC_TAG(std::min<std::size_t>(plan->uploads.size(), 3));
      RC_ASSERT(plan->uploads.size() <= *best);
    }
  }));
}

}  // namespace
}  // namespace playfs
