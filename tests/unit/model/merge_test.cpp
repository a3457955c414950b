#include "model/merge.h"

#include <gtest/gtest.h>

#include "model/chunking.h"

namespace playfs {
namespace {

FileEntry entry(const std::string& content, FileMode mode = FileMode::regular) {
  FileEntry entry;
  entry.hash_claim = ContentHash::of(content).hex();
  entry.size_claim = content.size();
  entry.mode = mode;
  entry.encoding = encoding_for(content);
  entry.inline_text = encode_content(content, entry.encoding);
  return entry;
}

using Files = std::map<std::string, FileEntry>;

Manifest manifest(const Files& files) {
  Manifest manifest;
  for (const auto& [path, entry] : files) manifest.files[path] = entry;
  return manifest;
}

Merge merged(const Manifest& base, const Manifest& ours, const Manifest& theirs, const Json& base_state = {},
             const Json& our_state = {}, const Json& their_state = {}) {
  auto read = [](MergeSide, const std::string&, const FileEntry& entry) -> Result<std::string> {
    return *entry.inline_content();
  };
  return merge_versions({base, base_state}, {ours, our_state}, {theirs, their_state}, read).value();
}

std::string content(const Merge& merge, const std::string& path) {
  auto file = merge.files.find(path);
  if (file == merge.files.end()) return "(absent)";
  return file->second.text ? *file->second.text : *file->second.entry.inline_content();
}

const std::string kText = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

TEST(MergeTest, WhatOneSideDidIsTaken) {
  auto base = manifest({{"kept", entry("k")}, {"edited", entry("e")}, {"deleted", entry("d")}});
  auto theirs = manifest({{"kept", entry("k")}, {"edited", entry("E")}, {"added", entry("a")}});
  for (const auto& merge : {merged(base, base, theirs), merged(base, theirs, base)}) {
    EXPECT_TRUE(merge.conflicts.empty());
    EXPECT_EQ(content(merge, "kept"), "k");
    EXPECT_EQ(content(merge, "edited"), "E");
    EXPECT_EQ(content(merge, "deleted"), "(absent)");
    EXPECT_EQ(content(merge, "added"), "a");
  }
}

TEST(MergeTest, EqualContentUsesTheNewerChunks) {
  auto stored_as = [](const char* chunk) {
    FileEntry file = entry("the same");
    file.inline_text.reset();
    file.chunks = {ChunkId(chunk)};
    return manifest({{"f", file}});
  };
  const Manifest lost = stored_as("1m3vrstx0srfwbwfnpr8"), there = stored_as("1m3vrzfxek0xf6f2wb9z");
  for (const auto& merge : {merged({}, lost, there), merged({}, there, lost)}) {
    EXPECT_TRUE(merge.conflicts.empty());
    EXPECT_EQ(merge.files.at("f").entry.chunks, there.files.at("f").chunks);
  }
}

TEST(MergeTest, LinesThatLieApartAreJoined) {
  std::string ours = "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n", theirs = "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n";
  auto merge = merged(manifest({{"f", entry(kText)}}), manifest({{"f", entry(ours, FileMode::executable)}}),
                      manifest({{"f", entry(theirs)}}));
  EXPECT_TRUE(merge.conflicts.empty());
  EXPECT_EQ(content(merge, "f"), "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
  EXPECT_EQ(merge.files.at("f").entry.mode, FileMode::executable);
}

TEST(MergeTest, TheSameLinesAreAConflictWithMarkers) {
  auto merge = merged(manifest({{"f", entry(kText)}}), manifest({{"f", entry("1\n" + kText)}}),
                      manifest({{"f", entry("2\n" + kText)}}));
  ASSERT_EQ(merge.conflicts.size(), 1u);
  EXPECT_EQ(merge.conflicts[0].path, "f");
  EXPECT_EQ(merge.conflicts[0].kind, ConflictKind::text);
  EXPECT_EQ(merge.conflicts[0].marked, "<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\n" + kText);
  EXPECT_TRUE(has_conflict_markers(merge.conflicts[0].marked));
  EXPECT_FALSE(has_conflict_markers(kText + "=======\n<<<<<<< x\n"));
  EXPECT_EQ(content(merge, "f"), "1\n" + kText);
}

TEST(MergeTest, MarkersAreSeenInPieces) {
  const std::string with = "a\n<<<<<<< ours\nb\n=======\r\nc\n>>>>>>> theirs";
  const std::string without = "a\n<<<<<<< ours\nb\n======= \nc\n>>>>>>> theirs\n";
  for (const std::string& text : {with, without}) {
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      MarkerSearch search;
      search.take(std::string_view(text).substr(0, cut));
      search.take(std::string_view(text).substr(cut));
      EXPECT_EQ(search.found(), text == with) << cut;
    }
  }
}

TEST(MergeTest, WhatIsTooLargeForMemoryIsAConflict) {
  auto text_of = [](std::size_t size) {
    std::string text;
    for (std::size_t i = 0; text.size() < size; ++i) text += "line " + std::to_string(i) + "\n";
    return text;
  };
  const std::string large = text_of(kMaxMergedText + 1);
  // With the additions of both sides exactly the maximum that is merged; four of them are the maximum merged at a time.
  std::string some = text_of(kMaxMergedText);
  some.resize(kMaxMergedText - std::string_view("ours\ntheirs\n").size());
  some.back() = '\n';
  auto all = [&](const std::string& before, const std::string& behind) {
    Files files = {{"large", entry(before + large + behind)}};
    for (int i = 0; i < 5; ++i) files["some" + std::to_string(i)] = entry(before + some + behind);
    return manifest(files);
  };
  auto merge = merged(all("", ""), all("ours\n", ""), all("", "theirs\n"));
  ASSERT_EQ(merge.conflicts.size(), 2u);
  EXPECT_EQ(merge.conflicts[0].path, "large");
  EXPECT_EQ(merge.conflicts[0].kind, ConflictKind::content);
  EXPECT_EQ(content(merge, "large"), "ours\n" + large);
  EXPECT_EQ(merge.conflicts[1].path, "some4") << "four fit together";
  EXPECT_EQ(content(merge, "some0"), "ours\n" + some + "theirs\n");
}

TEST(MergeTest, BinariesDeletionsLinksAndDirectoriesConflict) {
  auto base = manifest({{"bin", entry(std::string("\0b", 2))}, {"gone", entry("g")}, {"what", entry("w")}});
  auto ours = manifest({{"bin", entry(std::string("\0o", 2))},
                        {"gone", entry("changed")},
                        {"what", entry("target", FileMode::symlink)},
                        {"place", entry("file")}});
  auto theirs =
      manifest({{"bin", entry(std::string("\0t", 2))}, {"what", entry("edited")}, {"place/below", entry("x")}});
  for (const auto& merge : {merged(base, ours, theirs), merged(base, theirs, ours)}) {
    ASSERT_EQ(merge.conflicts.size(), 4u);
    EXPECT_EQ(merge.conflicts[0].path, "bin");
    EXPECT_EQ(merge.conflicts[0].kind, ConflictKind::content);
    EXPECT_EQ(merge.conflicts[1].path, "gone");
    EXPECT_EQ(merge.conflicts[1].kind, ConflictKind::deleted);
    EXPECT_EQ(content(merge, "gone"), "changed");
    EXPECT_EQ(merge.conflicts[2].path, "place");
    EXPECT_EQ(merge.conflicts[2].kind, ConflictKind::kind);
    EXPECT_NE(merge.files.contains("place"), merge.files.contains("place/below"));
    ASSERT_EQ(merge.conflicts[2].displaced.size(), 1u) << "what has to find another name";
    EXPECT_FALSE(merge.files.contains(merge.conflicts[2].displaced.begin()->first));
    EXPECT_EQ(merge.conflicts[3].path, "what");
    EXPECT_EQ(merge.conflicts[3].kind, ConflictKind::kind);
  }
}

TEST(MergeTest, MetadataMergesTheSameFromEitherSide) {
  auto with = [](const char* content, const char* word) {
    FileEntry with_word = entry(content);
    with_word.extra.set("note", word);
    return manifest({{"f", with_word}});
  };
  auto base = with("x", "old"), ours = with("y", "beta"), theirs = with("y", "alpha");
  for (const auto& merge : {merged(base, ours, theirs), merged(base, theirs, ours)}) {
    EXPECT_TRUE(merge.conflicts.empty());
    EXPECT_EQ(content(merge, "f"), "y");
    EXPECT_EQ(*merge.files.at("f").entry.extra.find("note"), Json("alpha"));
  }
}

TEST(MergeTest, ALinkThatBecameAFileAndAScriptIsAScriptWhoeverMerges) {
  auto with = [](FileMode mode) {
    FileEntry file = entry("same");
    file.mode = mode;
    return manifest({{"f", file}});
  };
  auto base = with(FileMode::symlink), ours = with(FileMode::regular), theirs = with(FileMode::executable);
  for (const auto& merge : {merged(base, ours, theirs), merged(base, theirs, ours)}) {
    EXPECT_TRUE(merge.conflicts.empty());
    EXPECT_EQ(merge.files.at("f").entry.mode, FileMode::executable);
  }
}

TEST(MergeTest, WhatIsSaidToBeTooLargeIsNotRead) {
  auto read = [](MergeSide, const std::string&, const FileEntry&) -> Result<std::string> {
    return fail(ErrorCode::internal, "nothing has to be read");
  };
  const Json none;
  for (std::size_t large = 0; large < 3; ++large) {
    std::vector<Manifest> sides;
    for (std::size_t side = 0; side < 3; ++side) {
      FileEntry chunked;
      chunked.hash_claim = ContentHash::of(std::to_string(side)).hex();
      chunked.size_claim = side == large ? kMaxMergedText + 1 : 10;
      chunked.chunks = {ChunkId("c" + std::to_string(side))};
      sides.push_back(manifest({{"f", chunked}}));
    }
    auto merge = merge_versions({sides[0], none}, {sides[1], none}, {sides[2], none}, read);
    ASSERT_TRUE(merge) << large << ": " << merge.error().message;
    ASSERT_EQ(merge->conflicts.size(), 1u);
    EXPECT_EQ(merge->conflicts[0].kind, ConflictKind::content);
  }
}

TEST(MergeTest, AModeAndAnEditOfTheSameFileAreJoinedWithoutReading) {
  FileEntry chunked;
  chunked.hash_claim = ContentHash::of("x").hex();
  chunked.chunks = {ChunkId("c1")};
  FileEntry executable = chunked, other = chunked;
  executable.mode = FileMode::executable;
  other.hash_claim = ContentHash::of("y").hex();
  other.chunks = {ChunkId("c2")};
  auto read = [](MergeSide, const std::string&, const FileEntry&) -> Result<std::string> {
    return fail(ErrorCode::internal, "nothing has to be read");
  };
  const Json none;
  auto base = manifest({{"f", chunked}}), ours = manifest({{"f", executable}}), theirs = manifest({{"f", other}});
  auto merge = merge_versions({base, none}, {ours, none}, {theirs, none}, read);
  ASSERT_TRUE(merge);
  EXPECT_TRUE(merge->conflicts.empty());
  EXPECT_EQ(merge->files.at("f").entry.mode, FileMode::executable);
  EXPECT_EQ(merge->files.at("f").entry.chunks, other.chunks);
}

TEST(MergeTest, StateMergesKeyByKey) {
  JsonObject base{{"score", 1}, {"world", JsonObject{{"x", 1}, {"y", 1}}}, {"gone", true}};
  JsonObject ours{{"score", 2}, {"world", JsonObject{{"x", 5}, {"y", 1}}}, {"gone", true}};
  JsonObject theirs{{"score", 1}, {"world", JsonObject{{"x", 1}, {"y", 7}}}, {"new", "n"}};
  auto merge = merged({}, {}, {}, Json(base), Json(ours), Json(theirs));
  EXPECT_TRUE(merge.conflicts.empty());
  EXPECT_EQ(merge.state, Json(JsonObject{{"score", 2}, {"world", JsonObject{{"x", 5}, {"y", 7}}}, {"new", "n"}}));
  theirs.set("score", 3);
  merge = merged({}, {}, {}, Json(base), Json(ours), Json(theirs));
  ASSERT_EQ(merge.conflicts.size(), 1u);
  EXPECT_EQ(merge.conflicts[0].path, "(state) score");
}

TEST(MergeTest, WhatIsNotUnderstoodIsCarriedFromBothSides) {
  Manifest base, ours, theirs;
  base.refused = {{"../a", "why", Json(1)}};
  ours.refused = {{"../a", "why", Json(1)}, {"../b", "why", Json(2)}};
  theirs.refused = {{"../a", "why", Json(3)}};
  ours.extra = JsonObject{{"x", 1}};
  theirs.extra = JsonObject{{"y", 2}};
  auto merge = merged(base, ours, theirs);
  EXPECT_TRUE(merge.conflicts.empty());
  ASSERT_EQ(merge.refused.size(), 2u);
  EXPECT_EQ(merge.refused[0].entry, Json(3));
  EXPECT_EQ(merge.refused[1].entry, Json(2));
  EXPECT_EQ(merge.extra, (JsonObject{{"x", 1}, {"y", 2}}));
}

}  // namespace
}  // namespace playfs
