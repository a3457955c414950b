// Taking in and bringing out, over a real stage and directory: edits, and edits that come between the two.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "clone/bring_out.h"
#include "clone/take_in.h"
#include "support/workbench.h"

namespace playfs::clone {
namespace {

using test::revision_of;
using test::Texts;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class CloneTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(top / ".playfs");
    bench.open(revision_of("r1", {{"a", "one"}, {"d/b", "two"}}));
    reopen();
    ASSERT_THAT(bring_out(), IsEmpty());
    settle();
  }
  void reopen() {
    index.reset();
    auto opened = PlainDirectory::open(top.path());
    ASSERT_TRUE(opened) << opened.error().message;
    directory.emplace(std::move(*opened));
    auto rows = Index::open(top / ".playfs/index.db");
    ASSERT_TRUE(rows) << rows.error().message;
    index.emplace(std::move(*rows));
  }
  /// As a command that has ended.
  void settle() {
    index->set_behind(false);
    ASSERT_TRUE(index->commit());
  }
  void take_in() {
    TakeIn take_in(*bench.stage, *directory, *index, [](const FileRef&) { return Status(); });
    auto seen = clone::look(*directory, *index);
    ASSERT_TRUE(seen) << seen.error().message;
    auto taken = take_in.run(*std::move(seen));
    ASSERT_TRUE(taken) << taken.error().message;
    ASSERT_TRUE(index->commit());
  }
  /// Returns what was changed in the directory meanwhile.
  std::vector<std::string> bring_out() {
    BringOut bring_out(*bench.stage, *directory, *index, [](const FileRef& file) -> Result<content::Blob> {
      auto owner = std::make_shared<std::string>(test::text_of(file));
      return content::Blob(owner, *owner);
    });
    auto brought = bring_out.run();
    EXPECT_TRUE(brought) << brought.error().message;
    return bring_out.result().contested;
  }
  /// Head moves while the directory is as it is.
  void head_is(const Texts& files) {
    index->set_behind(true);
    auto moved = bench.move_base(revision_of("r2", files));
    ASSERT_TRUE(moved) << moved.error().message;
  }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(top / path).parent_path());
    std::ofstream(top / path) << text;
  }
  [[nodiscard]] std::string read(const std::string& path) const {
    std::stringstream text;
    text << std::ifstream(top / path).rdbuf();
    return text.str();
  }
  [[nodiscard]] std::vector<std::string> conflicts() const {
    std::vector<std::string> paths;
    for (const auto& each : bench.stage->conflicted()) paths.push_back(each.path + " beside " + each.beside);
    return paths;
  }

  const test::TemporaryDirectory top;
  test::Workbench bench;
  std::optional<PlainDirectory> directory;
  std::optional<Index> index;
};

TEST_F(CloneTest, BringsOutTheBaseAndTakesInEdits) {
  EXPECT_EQ(read("a"), "one");
  EXPECT_EQ(read("d/b"), "two");
  take_in();
  EXPECT_THAT(bench.changes(), IsEmpty());
  write("a", "changed");
  write("new/deep/c", "three");
  std::filesystem::remove_all(top / "d");
  std::filesystem::create_symlink("a", top / "link");
  take_in();
  EXPECT_THAT(bench.changes(), UnorderedElementsAre("M a", "D d/b", "A new/deep/c", "A link"));
  EXPECT_EQ(*bench.read("a"), "changed");
  EXPECT_EQ(*bench.read("new/deep/c"), "three");
  EXPECT_EQ(bench.stage->symlink_target(bench.find("link")), "a");
  reopen();
  take_in();
  EXPECT_THAT(bench.changes(), UnorderedElementsAre("M a", "D d/b", "A new/deep/c", "A link"));
}

TEST_F(CloneTest, AnEditWithinTheSameTickIsSeen) {
  take_in();
  for (int round = 0; round < 20; ++round) {
    // Of the same size, in the same file, as fast as possible after it was looked at.
    const std::string text = "o" + std::to_string(10 + round);
    write("a", text);
    take_in();
    EXPECT_EQ(*bench.read("a"), text);
  }
}

TEST_F(CloneTest, AFileThatWasOnlyTouchedIsNoChange) {
  std::filesystem::last_write_time(top / "a", std::filesystem::file_time_type::clock::now());
  const auto before = bench.find("a");
  take_in();
  EXPECT_TRUE(bench.stage->lower_content(before)) << "its bytes were not copied";
  EXPECT_THAT(bench.changes(), IsEmpty());
}

TEST_F(CloneTest, AnEditBetweenTheTwoIsKeptAndInConflict) {
  take_in();
  head_is({{"a", "theirs"}, {"d/b", "two"}});
  write("a", "mine");
  EXPECT_THAT(bring_out(), ElementsAre("a"));
  EXPECT_EQ(read("a"), "mine");
  take_in();
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_EQ(read("a"), "mine");
  EXPECT_EQ(read("a.head"), "theirs");
  EXPECT_THAT(conflicts(), ElementsAre("a beside a.head"));
}

TEST_F(CloneTest, TheSameEditOnBothSidesIsNoConflict) {
  take_in();
  head_is({{"a", "same"}, {"d/b", "two"}});
  write("a", "same");
  EXPECT_THAT(bring_out(), ElementsAre("a"));
  take_in();
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_THAT(conflicts(), IsEmpty());
  EXPECT_THAT(bench.changes(), IsEmpty());
}

TEST_F(CloneTest, AFileDeletedBetweenTheTwoComesBackInConflict) {
  take_in();
  head_is({{"a", "theirs"}, {"d/b", "two"}});
  std::filesystem::remove(top / "a");
  EXPECT_THAT(bring_out(), ElementsAre("a"));
  take_in();
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_EQ(read("a"), "theirs");
  EXPECT_THAT(conflicts(), ElementsAre("a beside "));
}

TEST_F(CloneTest, AFileEditedWhileOthersDeletedItStays) {
  take_in();
  head_is({{"d/b", "two"}});
  write("a", "mine");
  EXPECT_THAT(bring_out(), ElementsAre("a"));
  take_in();
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_EQ(read("a"), "mine");
  EXPECT_THAT(conflicts(), ElementsAre("a beside "));
}

TEST_F(CloneTest, ANewFileInTheWayIsKept) {
  take_in();
  head_is({{"a", "one"}, {"d/b", "two"}, {"n", "theirs"}});
  write("n", "mine");
  EXPECT_THAT(bring_out(), ElementsAre("n"));
  take_in();
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_EQ(read("n"), "mine");
  EXPECT_EQ(read("n.head"), "theirs");
}

TEST_F(CloneTest, ALinkInPlaceOfADirectoryLeadsNowhere) {
  const test::TemporaryDirectory outside;
  std::ofstream(outside / "b") << "outside";
  take_in();
  head_is({{"a", "one"}, {"d/b", "theirs"}, {"d/new", "new"}});
  std::filesystem::remove_all(top / "d");
  std::filesystem::create_directory_symlink(outside.path(), top / "d");
  EXPECT_FALSE(bring_out().empty());
  take_in();
  static_cast<void>(bring_out());
  std::stringstream text;
  text << std::ifstream(outside / "b").rdbuf();
  EXPECT_EQ(text.str(), "outside");
  EXPECT_FALSE(std::filesystem::exists(outside / "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(top / "d"));
}

TEST_F(CloneTest, WhatAKilledTakeInLeftHalfWrittenIsTakenInAgain) {
  take_in();
  write("a", "changed");
  write("new", "new");
  // The stage as after kill -9 in the middle: rows noted, half of the bytes there.
  Row row = *index->find("a");
  row.is_begun = true;
  index->put("a", row);
  row = Row();
  row.is_begun = true;
  index->put("new", row);
  ASSERT_TRUE(index->commit());
  ASSERT_TRUE(bench.put("a", "cha"));
  ASSERT_TRUE(bench.put("new", "n"));
  reopen();
  write("a", "one");  // and the user takes one edit back, and the new file away
  std::filesystem::remove(top / "new");
  take_in();
  EXPECT_EQ(*bench.read("a"), "one");
  EXPECT_THAT(bench.changes(), IsEmpty());
  EXPECT_THAT(conflicts(), IsEmpty());
}

// As after kill -9 once the rows of new names were noted, and names in the stage stood for them.
TEST_F(CloneTest, OfNewNamesWhoseTakeInWasKilledTheRulesAreAskedAgain) {
  write(".gitignore", "*.o\nbuild/\n");
  take_in();
  write("x.o", "object");
  write("build/big", "big");
  write("src/b.c", "source");
  for (const bool is_behind : {false, true}) {
    for (const std::string path : {"build", "src"}) ASSERT_TRUE(bench.find(path) || bench.mkdir(path));
    Row row;
    row.is_begun = true;
    row.staged = "made here";
    index->put("x.o", row);
    row.kind = RowKind::directory;
    row.staged = "big";
    index->put("build", row);
    row.staged = "a.c";  // which was deleted since
    index->put("src", row);
    index->set_behind(is_behind);
    ASSERT_TRUE(index->commit());
    for (const std::string path : {"x.o", "build/big", "src/a.c"}) ASSERT_TRUE(bench.put(path, ""));
    reopen();
    take_in();
    EXPECT_THAT(bench.changes(), UnorderedElementsAre("A .gitignore", "A src/b.c"));
    EXPECT_THAT(*bench.stage->unpublished(), UnorderedElementsAre("build/", "x.o"));
    EXPECT_EQ(*bench.read("x.o"), "");
    EXPECT_EQ(*bench.read("build/big"), "");
    EXPECT_THAT(conflicts(), IsEmpty());
    for (const std::string path : {"src/b.c", "x.o", "build", "src"}) index->erase(path);
    ASSERT_TRUE(bench.unlink("src/b.c"));
  }
}

TEST_F(CloneTest, ANewDirectoryWhoseTakeInWasKilledAndThatIsGoneLeavesNothing) {
  take_in();
  Row row;
  row.is_begun = true;
  for (const bool is_behind : {false, true}) {
    row.kind = RowKind::file;
    row.staged = "made here";
    index->put("file", row);
    row.kind = RowKind::directory;
    row.staged = "first";
    index->put("new", row);
    index->set_behind(is_behind);
    ASSERT_TRUE(index->commit());
    ASSERT_TRUE(bench.mkdir("new"));
    ASSERT_TRUE(bench.put("new/first", ""));
    ASSERT_TRUE(bench.put("file", ""));
    reopen();
    take_in();
    EXPECT_THAT(bench.changes(), IsEmpty());
    EXPECT_THAT(conflicts(), IsEmpty());
    EXPECT_FALSE(bench.stage->find("new"));
  }
}

TEST_F(CloneTest, AnIndexOfAnotherStageSaysNothing) {
  index->belongs_to(1);
  take_in();
  settle();
  reopen();
  index->belongs_to(1);
  EXPECT_TRUE(index->find("a"));
  EXPECT_FALSE(index->is_behind());
  write("a", "mine");
  index->belongs_to(2);
  EXPECT_FALSE(index->find("a"));
  EXPECT_TRUE(index->is_behind());
  EXPECT_THAT(bring_out(), UnorderedElementsAre("a", "d/b")) << "whose files they are is not known";
  take_in();
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_EQ(read("a"), "mine");
  EXPECT_EQ(read("a.head"), "one");
}

TEST_F(CloneTest, ContentThatCannotBeHadIsTriedAgainAndTheOldVersionStays) {
  take_in();
  head_is({{"a", "theirs"}, {"d/b", "two"}, {"n", "new"}});
  for (const ErrorCode code : {ErrorCode::not_found, ErrorCode::corrupt}) {
    BringOut lacking(*bench.stage, *directory, *index,
                     [code](const FileRef&) -> Result<content::Blob> { return fail(code, "not to be had"); });
    auto brought = lacking.run();
    ASSERT_TRUE(brought) << brought.error().message;
    EXPECT_TRUE(lacking.result().lacks_some());
    EXPECT_EQ(read("a"), "one");
    EXPECT_THAT(index->left_out(), UnorderedElementsAre(Pair("a", "not to be had"), Pair("n", "not to be had")));
    ASSERT_TRUE(index->commit());
    reopen();
    take_in();
    EXPECT_THAT(bench.changes(), IsEmpty()) << "neither reverted nor deleted";
    EXPECT_EQ(index->left_out().size(), 2U);
  }
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_EQ(read("a"), "theirs");
  EXPECT_EQ(read("n"), "new");
  EXPECT_THAT(index->left_out(), IsEmpty());
}

TEST_F(CloneTest, IgnoredFilesAreNotRead) {
  write(".gitignore", "*.o\nbuild/\n");
  write("x.o", "object");
  write("build/deep/big", "big");
  write("src/y.o", "object");
  write("src/y.c", "source");
  take_in();
  EXPECT_THAT(bench.changes(), UnorderedElementsAre("A .gitignore", "A src/y.c"));
  EXPECT_THAT(*bench.stage->unpublished(), UnorderedElementsAre("build/", "src/y.o", "x.o"));
  EXPECT_EQ(*bench.read("x.o"), "");
  EXPECT_THAT(bring_out(), IsEmpty());
  EXPECT_EQ(read("x.o"), "object");
  write(".gitignore", "nothing\n");
  take_in();
  EXPECT_THAT(bench.changes(),
              UnorderedElementsAre("A .gitignore", "A src/y.c", "A src/y.o", "A x.o", "A build/deep/big"));
  EXPECT_EQ(*bench.read("x.o"), "object");
  EXPECT_EQ(*bench.read("build/deep/big"), "big");
  EXPECT_EQ(bench.stat("build/deep").kind, stage::Kind::directory);
  std::filesystem::remove_all(top / "build");
  std::filesystem::remove(top / "x.o");
  take_in();
  EXPECT_THAT(bench.changes(), UnorderedElementsAre("A .gitignore", "A src/y.c", "A src/y.o"));
}

TEST_F(CloneTest, AnIgnoredDirectoryThatShowsLeavesNothingOfWhatStoodForIt) {
  write(".gitignore", "build/\n");
  write("build/first", "1");
  take_in();
  std::filesystem::remove(top / "build/first");
  write("build/second", "2");
  std::filesystem::remove(top / ".gitignore");
  take_in();
  EXPECT_THAT(bench.changes(), ElementsAre("A build/second"));
}

}  // namespace
}  // namespace playfs::clone
