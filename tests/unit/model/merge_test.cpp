#include "model/merge.h"

#include <array>
#include <ctime>

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
    for (std::size_t i = 0; text.size() < size; ++i) text += std::string(500, '-') + std::to_string(i) + "\n";
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

std::vector<std::size_t> in_conflict(const Merge& merge, ConflictKind kind) {
  std::vector<std::size_t> numbers;
  for (const auto& conflict : merge.conflicts)
    if (conflict.kind == kind) numbers.push_back(std::stoul(conflict.path));
  return numbers;
}

TEST(MergeTest, ATextOfTooManyLinesIsAConflict) {
  const std::string most(kMaxMergedLines - 1, '\n'), more = most + "\n";
  auto all = [&](const std::string& before, const std::string& behind) {
    return manifest({{"0", entry(before + most + behind)}, {"1", entry(before + more + behind)}});
  };
  auto merge = merged(all("", ""), all("ours\n", ""), all("", "theirs\n"));
  ASSERT_EQ(merge.conflicts.size(), 1u);
  EXPECT_EQ(merge.conflicts[0].path, "1");
  EXPECT_EQ(merge.conflicts[0].kind, ConflictKind::content);
  EXPECT_EQ(content(merge, "0"), "ours\n" + most + "theirs\n");
}

TEST(MergeTest, AMergeComparesSoManyLinesAndThenTakesFilesWhole) {
  // Every line may have changed, so the cost of a file is seven times its lines, beside its bytes.
  constexpr std::size_t kLines = 25'000, kFiles = 15;
  auto all = [](char side) {
    Files files;
    for (std::size_t i = 0; i < kFiles; ++i) {
      std::string text = std::string(1, side) + "\n";
      for (std::size_t line = 2; line < kLines; ++line) text += "\n";
      files[std::to_string(10 + i)] = entry(text + side + "\n");
    }
    files["99"] = entry(std::string(1, side) + "\nsmall\n");
    return manifest(files);
  };
  const auto base = all('b'), ours = all('o'), theirs = all('t');
  const auto merge = merged(base, ours, theirs), turned = merged(base, theirs, ours);
  const std::size_t per_file = 7 * kLines + 1 + 3 * (kLines + 2) / kBytesPerCost, fit = kMostMergeCost / per_file;
  ASSERT_LT(fit, kFiles);
  const auto by_lines = in_conflict(merge, ConflictKind::text);
  ASSERT_EQ(by_lines.size(), fit + 1);
  EXPECT_EQ(by_lines[fit - 1], 10 + fit - 1) << "in the order of paths";
  EXPECT_EQ(by_lines.back(), 99u) << "what is left is enough for it";
  EXPECT_EQ(in_conflict(merge, ConflictKind::content).size(), kFiles - fit);
  for (auto kind : {ConflictKind::text, ConflictKind::content})
    EXPECT_EQ(in_conflict(turned, kind), in_conflict(merge, kind)) << "whichever side is ours";
}

TEST(MergeTest, AMergeReadsSoMuchAndThenTakesFilesWhole) {
  constexpr std::size_t kSize = 1 << 20;
  auto side = [](const std::string& name) {
    Manifest manifest;
    for (int i = 0; i < 1000; ++i) manifest.files[std::to_string(i)].chunks = {ChunkId(name)};
    return manifest;
  };
  std::size_t bytes = 0;
  auto read = [&](MergeSide side, const std::string&, const FileEntry&) -> Result<std::string> {
    bytes += kSize;
    return std::string(kSize, side == MergeSide::base ? 'b' : side == MergeSide::ours ? 'o' : 't') + '\0';
  };
  const Json none;
  const Manifest base = side("b"), ours = side("o"), theirs = side("t");
  auto merge = merge_versions({base, none}, {ours, none}, {theirs, none}, read);
  ASSERT_TRUE(merge);
  EXPECT_EQ(merge->conflicts.size(), 1000u);
  EXPECT_GT(bytes, kMostMergeCost * kBytesPerCost - 3 * kSize);
  EXPECT_LT(bytes, kMostMergeCost * kBytesPerCost + 3 * kSize);
}

/// The spellings of parts of a line that leave the same hash in libgit2, h = h * 33 ^ c in 64 bits.
std::vector<std::array<std::string, 2>> colliding_parts(std::size_t count) {
  std::vector<std::array<std::string, 2>> parts;
  for (std::uint64_t hash = 5381; parts.size() < count;) {
    std::map<std::uint64_t, std::string> spelled;
    const std::size_t before = parts.size();
    for (unsigned char a = '!'; a <= '~' && parts.size() == before; ++a) {
      for (unsigned char b = '!'; b <= '~' && parts.size() == before; ++b) {
        const std::string part = {static_cast<char>(a), static_cast<char>(b)};
        auto [same, is_new] = spelled.emplace((((hash * 33) ^ a) * 33) ^ b, part);
        if (!is_new) parts.push_back({same->second, part}), hash = same->first;
      }
    }
  }
  return parts;
}

TEST(MergeTest, LinesWithEqualHashesCostNoMoreThanOthers) {
  auto cost = [](const std::string& base) {
    const std::clock_t begin = std::clock();
    auto merge = merge_text(base, "ours\n" + base, base + "theirs\n");
    EXPECT_TRUE(merge && !merge->conflicts && merge->text == "ours\n" + base + "theirs\n");
    return static_cast<double>(std::clock() - begin + 1);
  };
  const auto parts = colliding_parts(16);
  std::string colliding, plain;
  for (std::size_t i = 0; i < 20'000; ++i) {
    for (std::size_t part = 0; part < parts.size(); ++part) colliding += parts[part][i >> part & 1];
    colliding += '\n';
    plain += std::to_string(1'000'000 + i) + std::string(25, '.') + "\n";
  }
  EXPECT_LT(cost(colliding) / cost(plain), 20);
}

TEST(MergeTest, EachLineKeepsItsBreak) {
  // A line without one differs from the same line with one.
  auto merge = merge_text("1\r\n2\n3", "0\r\n1\r\n2\n3", "1\r\n2\n3\n");
  ASSERT_TRUE(merge);
  EXPECT_FALSE(merge->conflicts);
  EXPECT_EQ(merge->text, "0\r\n1\r\n2\n3\n");
  merge = merge_text("1\r\n2\r\n", "5\r\n2\r\n", "6\r\n2\r\n", {"a\n0", "b"});
  ASSERT_TRUE(merge);
  EXPECT_TRUE(merge->conflicts);
  EXPECT_EQ(merge->text, "<<<<<<< a\n0\r\n5\r\n=======\r\n6\r\n>>>>>>> b\r\n2\r\n") << "a label is any text";
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

TEST(MergeTest, WhatNobodyCanReadIsAConflictAndTheRestIsMerged) {
  auto chunked = [](const std::string& content) {
    FileEntry entry;
    entry.hash_claim = ContentHash::of(content).hex();
    entry.chunks = {ChunkId(content)};
    return entry;
  };
  const Json none;
  auto base = manifest({{"f", chunked("0")}, {"g", chunked("0")}}),
       ours = manifest({{"f", chunked("1")}, {"g", chunked("0")}}),
       theirs = manifest({{"f", chunked("2")}, {"g", chunked("2")}});
  for (auto code : {ErrorCode::corrupt, ErrorCode::refused_input, ErrorCode::not_found}) {
    for (auto unreadable : {MergeSide::base, MergeSide::ours, MergeSide::theirs}) {
      auto read = [&](MergeSide side, const std::string&, const FileEntry& entry) -> Result<std::string> {
        if (side == unreadable) return fail(code, "no such content");
        return entry.chunks.front().text();
      };
      auto merge = merge_versions({base, none}, {ours, none}, {theirs, none}, read);
      ASSERT_TRUE(merge);
      ASSERT_EQ(merge->conflicts.size(), 1u);
      EXPECT_EQ(merge->conflicts.front().path, "f");
      EXPECT_EQ(merge->conflicts.front().kind, ConflictKind::content);
      EXPECT_EQ(merge->files.at("f").entry, ours.files.at("f"));
      EXPECT_EQ(merge->files.at("g").entry, theirs.files.at("g"));
    }
  }
  auto unreachable = [](MergeSide, const std::string&, const FileEntry&) -> Result<std::string> {
    return fail(ErrorCode::unreachable, "no route");
  };
  auto merge = merge_versions({base, none}, {ours, none}, {theirs, none}, unreachable);
  ASSERT_FALSE(merge);
  EXPECT_EQ(merge.error().code, ErrorCode::unreachable);
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
