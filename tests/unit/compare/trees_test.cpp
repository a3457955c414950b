#include "compare/trees.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compare/similarity.h"
#include "model/content_hash.h"

namespace playfs::compare {
namespace {

using testing::ElementsAre;
using Files = std::map<std::string, std::string>;

std::string lines(int first, int last) {
  std::string text;
  for (int i = first; i < last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

/// A tree as its attributes tell it: no hash is known, as of files that are only staged.
Manifest tree_of(const Files& files) {
  Manifest tree;
  for (const auto& [path, content] : files)
    tree.files[path].mode = path.ends_with(".link") ? FileMode::symlink : FileMode::regular;
  return tree;
}

/// The same as a manifest that has the hashes.
Manifest hashed(const Files& files) {
  Manifest tree = tree_of(files);
  for (auto& [path, entry] : tree.files) entry.hash_claim = ContentHash::of(files.at(path)).hex();
  return tree;
}

Files found_in(const Manifest& before, const Manifest& after, const Files& gone, const Files& come,
               std::size_t* reads = nullptr) {
  auto changes = changes_between(before, after);
  EXPECT_TRUE(pair_renames(changes, [&](const FileChange& change) {
    if (reads) ++*reads;
    return std::optional((change.after ? come : gone).at(change.path));
  }));
  Files pairs;
  for (const FileChange& change : changes)
    if (change.kind == ChangeKind::renamed) pairs[change.path] = change.old_path;
  return pairs;
}

/// The renames, which are the same whatever is known before the contents are read: the command knows some hashes, and
/// the web page those in the manifests.
Files found(const Files& gone, const Files& come) {
  Files pairs = found_in(tree_of(gone), tree_of(come), gone, come);
  EXPECT_EQ(found_in(hashed(gone), hashed(come), gone, come), pairs);
  EXPECT_EQ(found_in(hashed(gone), tree_of(come), gone, come), pairs);
  return pairs;
}

unsigned alike(std::string_view before, std::string_view after) {
  return similarity(fingerprint_of(before), fingerprint_of(after), std::max(before.size(), after.size()));
}

TEST(Renames, ContentsAreAlikeByTheirLines) {
  EXPECT_EQ(alike("a\nb\n", "b\na\n"), 99u) << "not the same for all that";
  EXPECT_EQ(alike("a\nb\n", "a\nc\n"), 50u);
  EXPECT_EQ(alike("a\n", "b\n"), 0u);
  EXPECT_EQ(alike("a\n", "a\na\na\na\n"), 25u) << "each line as often as it is there";
  EXPECT_EQ(alike(std::string(6400, 'x') + "y", std::string(6400, 'x')), 99u);
  EXPECT_EQ(alike("", "a"), 0u);
}

TEST(Renames, TheMostSimilarFileIsTaken) {
  EXPECT_EQ(found({{"a", lines(0, 20)}, {"b", lines(100, 120)}}, {{"x", lines(101, 120)}, {"y", lines(0, 18)}}),
            (Files{{"x", "b"}, {"y", "a"}}));
  EXPECT_EQ(found({{"a", lines(0, 20)}}, {{"x", lines(0, 15)}, {"y", lines(0, 19)}}), (Files{{"y", "a"}}))
      << "each goes to one place only";
  EXPECT_EQ(found({{"one/a", lines(0, 20)}, {"one/b", lines(0, 20)}}, {{"two/b", lines(0, 20)}}),
            (Files{{"two/b", "one/b"}}))
      << "of equal ones that of the same name";
}

TEST(Renames, DissimilarFilesAreNoRename) {
  EXPECT_EQ(found({{"a", lines(0, 20)}}, {{"x", lines(12, 40)}}), Files());
  EXPECT_EQ(found({{"empty", ""}}, {{"x", ""}}), Files());
  EXPECT_EQ(found({{"a", "target"}}, {{"x.link", "target"}}), Files()) << "a file does not become a link";
  EXPECT_EQ(found({{"a.link", "target"}}, {{"x.link", "target"}}), (Files{{"x.link", "a.link"}}));
}

TEST(Renames, PastTheBoundsOnlyEqualOnesAreFound) {
  std::string large = lines(0, 200'000);
  ASSERT_GT(large.size(), kLargestSimilar);
  EXPECT_EQ(found({{"a", large}}, {{"x", large + "more\n"}}), Files());
  EXPECT_EQ(found({{"a", large}}, {{"x", large}}), (Files{{"x", "a"}}));

  Files gone, come, all;
  auto add = [&](int i) {
    const std::string number = std::to_string(i);
    gone["a" + number] = lines(i * 100, i * 100 + 10);
    come["b" + number] = lines(i * 100, i * 100 + 9);
    all["b" + number] = "a" + number;
  };
  for (int i = 0; i < 101; ++i) add(i);
  come["b7"] = gone["a7"];
  ASSERT_EQ((gone.size() - 1) * (come.size() - 1), kMostPairs);
  EXPECT_EQ(found(gone, come), all) << "only those without an identical one count";
  for (const char* name : {"empty", "link.link"}) gone[name] = "";
  EXPECT_EQ(found(gone, come), all) << "nor what is never similar";
  add(101);
  EXPECT_EQ(found(gone, come), (Files{{"b7", "a7"}}));
}

TEST(Renames, TheCallerLearnsThatThereAreTooManyToCompare) {
  auto looks_at_all = [](int count) {
    Files gone, come;
    for (int i = 0; i < count; ++i) {
      gone["a" + std::to_string(i)] = "a" + std::to_string(i);
      come["b" + std::to_string(i)] = "b" + std::to_string(i);
    }
    const Manifest before = hashed(gone), after = hashed(come);
    auto changes = changes_between(before, after);
    auto looked = pair_renames(
        changes, [&](const FileChange& change) { return std::optional((change.after ? come : gone).at(change.path)); });
    return looked.value();
  };
  EXPECT_TRUE(looks_at_all(0));
  EXPECT_TRUE(looks_at_all(100));
  EXPECT_FALSE(looks_at_all(101));
}

TEST(Renames, NothingIsReadWhereNothingCanBeFound) {
  const Files files{{"a", "1"}}, moved{{"b", "1"}};
  std::size_t reads = 0;
  EXPECT_EQ(found_in(tree_of(files), Manifest(), files, {}, &reads), Files());
  EXPECT_EQ(found_in(Manifest(), tree_of(files), {}, files, &reads), Files());
  EXPECT_EQ(found_in(hashed(files), hashed(moved), files, moved, &reads), (Files{{"b", "a"}}));
  EXPECT_EQ(reads, 0u);
  const Files edited{{"b", lines(0, 19)}}, original{{"a", lines(0, 20)}};
  EXPECT_EQ(found_in(tree_of(original), tree_of(edited), original, edited, &reads), (Files{{"b", "a"}}));
  EXPECT_EQ(reads, 2u) << "each once";
}

TEST(Renames, AfterAnErrorOnlyIdenticalFilesAreFound) {
  const Files gone{{"a", "1"}, {"b", lines(0, 20)}}, come{{"x", "1"}, {"y", lines(0, 19)}};
  const Manifest before = hashed(gone), after = hashed(come);
  auto changes = changes_between(before, after);
  auto status = pair_renames(
      changes, [](const FileChange&) -> Result<std::optional<std::string>> { return fail(ErrorCode::io, "no"); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::io);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[1].path, "x");
  EXPECT_EQ(changes[1].kind, ChangeKind::renamed);
}

FileEntry text(std::string content, FileMode mode = FileMode::regular) {
  FileEntry entry;
  entry.hash_claim = ContentHash::of(content).hex();
  entry.size_claim = content.size();
  entry.mode = mode;
  entry.inline_text = std::move(content);
  return entry;
}

/// What its publisher claims to be `claimed`, or claims nothing of.
FileEntry chunks(const std::vector<std::string>& ids, const std::optional<std::string>& claimed) {
  FileEntry entry = claimed ? text(*claimed) : FileEntry();
  entry.inline_text.reset();
  for (const std::string& id : ids) entry.chunks.emplace_back(id);
  return entry;
}

std::vector<std::string> said(const std::vector<FileChange>& changes) {
  std::vector<std::string> lines;
  for (const auto& change : changes)
    lines.push_back(std::string(name_of(change.kind)) + " " + change.old_path + " " + change.path);
  return lines;
}

/// With nothing to read.
std::vector<FileChange> paired(const Manifest& before, const Manifest& after) {
  auto changes = changes_between(before, after);
  EXPECT_TRUE(pair_renames(changes, [](const FileChange&) { return std::optional<std::string>(); }));
  return changes;
}

TEST(Changes, NamesEachKind) {
  Manifest before, after;
  before.files = {{"gone", text("1")},
                  {"kept", text("2")},
                  {"mode", text("3")},
                  {"new/changed", text("4")},
                  {"old-name", text("5")}};
  after.files = {{"added", text("6")},
                 {"kept", text("2")},
                 {"mode", text("3", FileMode::executable)},
                 {"new/changed", text("7")},
                 {"z-name", text("5")}};
  EXPECT_THAT(said(paired(before, after)), ElementsAre("added added added", "removed gone gone", "mode mode mode",
                                                       "modified new/changed new/changed", "renamed old-name z-name"));
  EXPECT_TRUE(paired(after, after).empty());
}

TEST(Changes, OneRemovedFileIsRenamedOnlyOnce) {
  Manifest before, after;
  before.files = {{"a", text("same")}};
  after.files = {{"b", text("same")}, {"c", text("same")}};
  EXPECT_THAT(said(paired(before, after)), ElementsAre("renamed a b", "added c c"));
}

TEST(Changes, WhatIsStoredTellsARenameAndAHashIsAClaim) {
  FileEntry liar = text("one thing");
  liar.hash_claim = text("another").hash_claim;
  Manifest before, after;
  before.files = {{"a", chunks({"c1"}, "same")}, {"b", chunks({"c2"}, "b")}, {"c", text("another")}};
  after.files = {{"x", chunks({"c3"}, "same")}, {"y", chunks({"c2"}, "something else")}, {"z", liar}};
  const auto changes = paired(before, after);
  EXPECT_THAT(said(changes), ElementsAre("removed c c", "renamed a x", "renamed b y", "added z z"));
  EXPECT_TRUE(changes[1].by_claim);
  EXPECT_FALSE(changes[2].by_claim);
}

TEST(Changes, WhatIsInTheSameChunksIsTheSameWhateverIsClaimed) {
  std::optional<std::string> nothing, truth = "one\ntwo\n", lie = "else";
  for (const auto& [older, newer] : {std::pair(nothing, truth), {nothing, lie}, {truth, nothing}, {lie, nothing}}) {
    Manifest before, after;
    before.files = {{"a", chunks({"c1", "c2"}, older)}};
    after.files = {{"x", chunks({"c1", "c2"}, newer)}};
    auto changes = changes_between(before, after);
    EXPECT_TRUE(pair_renames(changes, [&](const FileChange&) { return truth; }));
    EXPECT_THAT(said(changes), ElementsAre("renamed a x"));
    EXPECT_EQ(changes.front().similarity, 100u);
    EXPECT_FALSE(changes.front().by_claim);
  }
}

TEST(Changes, AFileWithoutChunksIsOnlyClaimedToBeTheSame) {
  Manifest inlined, chunkless;
  inlined.files = {{"a", text("same")}};
  chunkless.files = {{"x", chunks({}, "same")}};
  for (const auto& changes : {paired(inlined, chunkless), paired(chunkless, inlined)}) {
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes.front().kind, ChangeKind::renamed);
    EXPECT_TRUE(changes.front().by_claim);
  }
}

TEST(Changes, WhatIsStoredComesBeforeWhatIsClaimed) {
  Manifest before, after;
  before.files = {{"a", chunks({"c1"}, "same")}, {"b", chunks({"c2"}, "same")}, {"c", text("same")}};
  after.files = {{"x", chunks({"c2"}, "same")}};
  auto changes = paired(before, after);
  EXPECT_THAT(said(changes), ElementsAre("removed a a", "removed c c", "renamed b x"));
  EXPECT_FALSE(changes.back().by_claim);
  after.files = {{"new/a", text("same")}};
  changes = paired(before, after);
  EXPECT_THAT(said(changes), ElementsAre("removed a a", "removed b b", "renamed c new/a"))
      << "also if the name differs";
  EXPECT_FALSE(changes.back().by_claim);
}

}  // namespace
}  // namespace playfs::compare
