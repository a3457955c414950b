// Names: what lookup, listing, creating, linking, removing and renaming do, over a base and again after a remount.
#include <sys/sysmacros.h>

#include "support/workbench.h"

namespace playfs::stage {
namespace {

using test::revision_of;
using test::Texts;
using Names = std::vector<std::string>;

class NamesTest : public testing::Test {
 protected:
  void SetUp() override { bench.open(revision_of("r1", {{"a", "one"}, {"d/b", "two"}, {"d/e/c", "three"}})); }
  static ErrorCode code(const Status& status) { return status ? ErrorCode::internal : status.error().code; }
  test::Workbench bench;
};

TEST_F(NamesTest, ANewStageShowsItsBase) {
  EXPECT_EQ(bench.files(), (Texts{{"a", "one"}, {"d/b", "two"}, {"d/e/c", "three"}}));
  EXPECT_TRUE(bench.stage->is_clean());
  EXPECT_EQ(bench.stage->lookup(bench.stage->root(), "nothing").error().code, ErrorCode::not_found);
  EXPECT_EQ(bench.stage->lookup(bench.find("a"), "b").error().code, ErrorCode::not_a_directory);
  EXPECT_EQ(bench.stage->lookup(bench.stage->root(), std::string(256, 'x')).error().code, ErrorCode::name_too_long);
  EXPECT_EQ(bench.stat("a").permissions, 0644U);
  EXPECT_EQ(bench.stat("d").permissions, 0755U);
  EXPECT_EQ(bench.stat("d").links, 3U);
}

TEST_F(NamesTest, AProjectWithoutARevisionIsEmpty) {
  test::Workbench empty;
  empty.open(nullptr);
  EXPECT_EQ(empty.list(""), Names());
  ASSERT_TRUE(empty.put("f", "x"));
  empty.reopen();
  EXPECT_EQ(empty.files(), (Texts{{"f", "x"}}));
  EXPECT_EQ(empty.changes(), Names{"A f"});
}

TEST_F(NamesTest, WhatIsMadeIsThereAfterARemount) {
  ASSERT_TRUE(bench.mkdir("n"));
  ASSERT_TRUE(bench.put("n/f", "text"));
  ASSERT_TRUE(bench.put("empty", ""));
  ASSERT_TRUE(bench.symlink("n/f", "l"));
  ASSERT_TRUE(bench.stage->make_special(bench.find("d"), "fifo", Kind::fifo, {0600, 7, 8}));
  ASSERT_TRUE(bench.stage->make_special(bench.find("d"), "null", Kind::character_device, {0600, 0, 0}, makedev(1, 3)));
  auto before = bench.stat("n/f");
  bench.reopen();
  EXPECT_EQ(bench.read("n/f"), "text");
  EXPECT_EQ(bench.read("empty"), "");
  EXPECT_EQ(bench.stage->symlink_target(bench.find("l")), "n/f");
  EXPECT_EQ(bench.stat("d/fifo").kind, Kind::fifo);
  EXPECT_EQ(bench.stat("d/fifo").uid, 7U);
  EXPECT_EQ(bench.stat("d/null").kind, Kind::character_device);
  EXPECT_EQ(bench.stat("d/null").device, makedev(1, 3));
  EXPECT_EQ(bench.stat("n/f").ino, before.ino);
  EXPECT_EQ(bench.stat("n/f").mtime, before.mtime);
  EXPECT_EQ(bench.stat("n/f").ctime, before.ctime);
  EXPECT_EQ(bench.stat("n/f").size, 4U);
}

TEST_F(NamesTest, ATakenNameIsRefused) {
  for (const char* path : {"a", "d"}) {
    EXPECT_EQ(bench.stage->make_file(bench.stage->root(), path, {}).error().code, ErrorCode::already_exists);
    EXPECT_EQ(code(bench.mkdir(path)), ErrorCode::already_exists);
    EXPECT_EQ(code(bench.link("a", path)), ErrorCode::already_exists);
  }
  EXPECT_EQ(bench.stage->make_file(bench.find("a"), "x", {}).error().code, ErrorCode::not_a_directory);
  EXPECT_EQ(bench.stage->make_file(bench.stage->root(), std::string(256, 'x'), {}).error().code,
            ErrorCode::name_too_long);
  EXPECT_TRUE(bench.stage->make_file(bench.stage->root(), std::string(255, 'x'), {}));
  EXPECT_EQ(bench.stage->make_special(bench.stage->root(), "dev", Kind::file, {}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(bench.stage->make_symlink(bench.stage->root(), "l", "", {}).error().code, ErrorCode::not_found);
}

TEST_F(NamesTest, RemovedNamesStayAwayAndCanComeBack) {
  EXPECT_EQ(code(bench.unlink("d")), ErrorCode::is_a_directory);
  EXPECT_EQ(code(bench.rmdir("a")), ErrorCode::not_a_directory);
  EXPECT_EQ(code(bench.rmdir("d")), ErrorCode::not_empty);
  EXPECT_EQ(code(bench.unlink("nothing")), ErrorCode::not_found);
  ASSERT_TRUE(bench.unlink("a"));
  ASSERT_TRUE(bench.unlink("d/e/c"));
  ASSERT_TRUE(bench.rmdir("d/e"));
  bench.reopen();
  EXPECT_EQ(bench.files(), (Texts{{"d/b", "two"}}));
  EXPECT_EQ(bench.changes(), (Names{"D a", "D d/e/c"}));
  ASSERT_TRUE(bench.mkdir("a"));
  ASSERT_TRUE(bench.mkdir("d/e"));
  bench.reopen();
  EXPECT_EQ(bench.list("d/e"), Names());
  EXPECT_EQ(bench.list("a"), Names());
  ASSERT_TRUE(bench.rmdir("a"));
  bench.reopen();
  EXPECT_EQ(bench.list(""), Names{"d"});
}

TEST_F(NamesTest, ADirectoryMovesWithAllThatIsBelow) {
  ASSERT_TRUE(bench.put("d/new", "4"));
  ASSERT_TRUE(bench.rename("d", "moved"));
  Texts expected = {{"a", "one"}, {"moved/b", "two"}, {"moved/e/c", "three"}, {"moved/new", "4"}};
  EXPECT_EQ(bench.files(), expected);
  bench.reopen();
  EXPECT_EQ(bench.files(), expected);
  EXPECT_EQ(bench.changes(), (Names{"D d/b", "D d/e/c", "A moved/b", "A moved/e/c", "A moved/new"}));
  ASSERT_TRUE(bench.unlink("moved/new"));
  ASSERT_TRUE(bench.rename("moved", "d"));
  EXPECT_TRUE(bench.stage->is_clean());
  bench.reopen();
  EXPECT_TRUE(bench.stage->is_clean());
  EXPECT_EQ(bench.files(), (Texts{{"a", "one"}, {"d/b", "two"}, {"d/e/c", "three"}}));
}

TEST_F(NamesTest, ADirectoryMadeWhereALowerOneWasShowsNothingOfIt) {
  ASSERT_TRUE(bench.rename("d", "x"));
  ASSERT_TRUE(bench.mkdir("y"));
  ASSERT_TRUE(bench.mkdir("y/e"));
  ASSERT_TRUE(bench.rename("y", "d"));
  bench.reopen();
  EXPECT_EQ(bench.list("d"), Names{"e"});
  EXPECT_EQ(bench.list("d/e"), Names());
}

TEST_F(NamesTest, RenameKeepsToPosix) {
  ASSERT_TRUE(bench.mkdir("empty"));
  EXPECT_EQ(code(bench.rename("d", "d/e/in")), ErrorCode::invalid_argument);
  EXPECT_EQ(code(bench.rename("d", "d/in")), ErrorCode::invalid_argument);
  EXPECT_EQ(code(bench.rename("d", "a")), ErrorCode::not_a_directory);
  EXPECT_EQ(code(bench.rename("a", "d")), ErrorCode::is_a_directory);
  EXPECT_EQ(code(bench.rename("empty", "d")), ErrorCode::not_empty);
  EXPECT_EQ(code(bench.rename("nothing", "b")), ErrorCode::not_found);
  EXPECT_EQ(code(bench.rename("a", "d/b", RenameMode::no_replace)), ErrorCode::already_exists);
  EXPECT_EQ(code(bench.rename("a", "b", RenameMode::exchange)), ErrorCode::not_found);
  EXPECT_EQ(bench.changes(), Names());
  ASSERT_TRUE(bench.rename("d", "empty"));
  ASSERT_TRUE(bench.rename("a", "empty/b"));
  bench.reopen();
  EXPECT_EQ(bench.files(), (Texts{{"empty/b", "one"}, {"empty/e/c", "three"}}));
}

TEST_F(NamesTest, RenameTakesNoNameThatCouldNotBeMade) {
  EXPECT_EQ(code(bench.stage->rename(bench.stage->root(), "a", bench.find("d/b"), "x", RenameMode::replace)),
            ErrorCode::not_a_directory);
  EXPECT_EQ(code(bench.rename("a", std::string(256, 'n'))), ErrorCode::name_too_long);
  for (const char* name : {"", ".", ".."})
    EXPECT_EQ(code(bench.stage->rename(bench.stage->root(), "a", bench.find("d"), name, RenameMode::no_replace)),
              ErrorCode::invalid_argument)
        << name;
  EXPECT_TRUE(bench.stage->is_clean());
}

TEST_F(NamesTest, ADirectoryMovedWhereALowerOneWasShowsNothingOfIt) {
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.rename("d/e", "e") && bench.rmdir("d"));
  ASSERT_TRUE(bench.rename("e", "d"));
  Texts expected = {{"a", "one"}, {"d/c", "three"}};
  EXPECT_EQ(bench.files(), expected);
  bench.reopen();
  EXPECT_EQ(bench.files(), expected);
}

TEST_F(NamesTest, RenameBetweenTwoNamesOfOneFileDoesNothing) {
  ASSERT_TRUE(bench.link("a", "b"));
  ASSERT_TRUE(bench.rename("a", "b"));
  EXPECT_EQ(bench.list(""), (Names{"a", "b", "d"}));
  ASSERT_TRUE(bench.rename("a", "a"));
  EXPECT_EQ(bench.read("a"), "one");
}

TEST_F(NamesTest, ExchangeSwapsFilesAndDirectories) {
  ASSERT_TRUE(bench.rename("a", "d", RenameMode::exchange));
  Texts expected = {{"a/b", "two"}, {"a/e/c", "three"}, {"d", "one"}};
  EXPECT_EQ(bench.files(), expected);
  bench.reopen();
  EXPECT_EQ(bench.files(), expected);
  EXPECT_EQ(code(bench.rename("a", "a/e", RenameMode::exchange)), ErrorCode::invalid_argument);
  EXPECT_EQ(code(bench.rename("a/e", "a", RenameMode::exchange)), ErrorCode::invalid_argument);
  ASSERT_TRUE(bench.rename("a", "d", RenameMode::exchange));
  EXPECT_TRUE(bench.stage->is_clean());
}

TEST_F(NamesTest, HardLinksAreOneFile) {
  ASSERT_TRUE(bench.link("a", "d/a2"));
  EXPECT_EQ(bench.stat("a").links, 2U);
  EXPECT_EQ(bench.stat("a").ino, bench.stat("d/a2").ino);
  ASSERT_TRUE(bench.write(bench.find("d/a2"), 0, "ONE"));
  bench.reopen();
  EXPECT_EQ(bench.stat("d/a2").links, 2U);
  EXPECT_EQ(bench.read("a"), "ONE");
  EXPECT_EQ(bench.find("a"), bench.find("d/a2"));
  ASSERT_TRUE(bench.unlink("a"));
  bench.reopen();
  EXPECT_EQ(bench.read("d/a2"), "ONE");
  EXPECT_EQ(bench.stat("d/a2").links, 1U);
  EXPECT_EQ(code(bench.link("d", "d2")), ErrorCode::not_permitted);
}

TEST_F(NamesTest, AnUnlinkedFileLivesUntilItIsLetGo) {
  ASSERT_TRUE(bench.put("f", "text"));
  auto held = bench.find("f");
  auto lower = bench.find("a");
  ASSERT_TRUE(bench.unlink("f"));
  ASSERT_TRUE(bench.unlink("a"));
  EXPECT_EQ(bench.stage->attributes(held)->links, 0U);
  EXPECT_EQ(bench.read(held), "text");
  EXPECT_EQ(bench.read(lower), "one");
  ASSERT_TRUE(bench.write(held, 4, " more"));
  ASSERT_TRUE(bench.write(lower, 3, " more"));
  EXPECT_EQ(bench.read(held), "text more");
  EXPECT_EQ(bench.read(lower), "one more");
  EXPECT_EQ(code(bench.stage->link(held, bench.stage->root(), "again")), ErrorCode::not_found);
  EXPECT_EQ(bench.stage->path_of(held), std::nullopt);
  EXPECT_EQ(bench.spool_files(), 2U);
  held.reset();
  lower.reset();
  EXPECT_EQ(bench.spool_files(), 0U);
}

TEST_F(NamesTest, ARemovedDirectoryTakesNoNames) {
  ASSERT_TRUE(bench.mkdir("n"));
  auto held = bench.find("n");
  ASSERT_TRUE(bench.rmdir("n"));
  EXPECT_EQ(bench.stage->attributes(held)->links, 0U);
  EXPECT_EQ(bench.stage->make_file(held, "f", {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(bench.stage->lookup(held, "f").error().code, ErrorCode::not_found);
  EXPECT_EQ(code(bench.stage->rename(bench.stage->root(), "a", held, "a", RenameMode::replace)), ErrorCode::not_found);
}

TEST_F(NamesTest, ListingsGoOnWhileNamesComeAndGo) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(bench.put("d/f" + std::to_string(i), ""));
  std::multiset<std::string> seen;
  std::uint64_t cookie = 0;
  for (int round = 0;; ++round) {
    auto entries = bench.stage->list(bench.find("d"), cookie, 7);
    ASSERT_TRUE(entries);
    if (entries->empty()) break;
    for (const auto& entry : *entries) {
      EXPECT_GT(entry.cookie, 2U);
      seen.insert(entry.name);
      // rm -r removes what it has just read.
      if (entry.name.starts_with('f')) {
        EXPECT_TRUE(bench.unlink("d/" + entry.name));
      }
    }
    cookie = entries->back().cookie;
    if (round == 3) {
      EXPECT_TRUE(bench.rename("d/b", "d/e/b"));
    }
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen.count("f" + std::to_string(i)), 1U);
  EXPECT_EQ(bench.list("d"), (Names{"e"}));
}

TEST_F(NamesTest, AReplacedNameKeepsItsPlaceInListings) {
  auto before = bench.stage->list(bench.stage->root(), 0, 10);
  ASSERT_TRUE(bench.put("t", "new"));
  ASSERT_TRUE(bench.rename("t", "a"));
  auto after = bench.stage->list(bench.stage->root(), 0, 10);
  ASSERT_EQ(before->size(), after->size());
  for (std::size_t i = 0; i < before->size(); ++i) {
    EXPECT_EQ((*before)[i].name, (*after)[i].name);
    EXPECT_EQ((*before)[i].cookie, (*after)[i].cookie);
  }
}

TEST_F(NamesTest, DirectoriesPassOnTheirGroup) {
  ASSERT_TRUE(bench.stage->make_directory(bench.stage->root(), "team", {02775, 5, 50}));
  ASSERT_TRUE(bench.stage->make_file(bench.find("team"), "f", {0644, 6, 60}));
  ASSERT_TRUE(bench.stage->make_directory(bench.find("team"), "sub", {0755, 6, 60}));
  bench.reopen();
  EXPECT_EQ(bench.stat("team/f").gid, 50U);
  EXPECT_EQ(bench.stat("team/f").uid, 6U);
  EXPECT_EQ(bench.stat("team/sub").gid, 50U);
  EXPECT_EQ(bench.stat("team/sub").permissions, 02755U);
}

TEST_F(NamesTest, ParentsTimesAndLinksFollow) {
  auto before = bench.stat("d");
  bench.clock.advance(std::chrono::seconds(5));
  ASSERT_TRUE(bench.mkdir("d/sub"));
  auto after = bench.stat("d");
  EXPECT_EQ(after.mtime, bench.clock.wall());
  EXPECT_EQ(after.ctime, bench.clock.wall());
  EXPECT_EQ(after.links, before.links + 1);
  EXPECT_EQ(after.ino, before.ino);
  bench.clock.advance(std::chrono::seconds(5));
  auto mtime = bench.stat("a").mtime;
  ASSERT_TRUE(bench.rename("a", "d/sub/a"));
  EXPECT_EQ(bench.stat("d/sub/a").mtime, mtime);
  EXPECT_EQ(bench.stat("d/sub/a").ctime, bench.clock.wall());
  EXPECT_EQ(bench.stat("").mtime, bench.clock.wall());
  EXPECT_EQ(bench.stat("d/sub").mtime, bench.clock.wall());
  EXPECT_EQ(bench.stat("d").mtime, after.mtime);
}

TEST_F(NamesTest, TimesOfDirectoriesThatNobodyChangedBeforeAreKept) {
  // The first change below writes rows for the whole path; their times are older than the change's.
  using Bench = test::Workbench;
  const std::pair<const char*, Status (*)(Bench&)> changes[] = {
      {"rename", [](Bench& on) { return on.rename("d/e/c", "d/e/z"); }},
      {"rename upwards", [](Bench& on) { return on.rename("d/e/c", "d/z"); }},
      {"rename downwards", [](Bench& on) { return on.rename("d/b", "d/e/z"); }},
      {"exchange", [](Bench& on) { return on.rename("d/b", "d/e/c", RenameMode::exchange); }},
      {"link", [](Bench& on) { return on.link("d/e/c", "d/e/z"); }},
      {"link downwards", [](Bench& on) { return on.link("d/b", "d/e/z"); }},
      {"unlink", [](Bench& on) { return on.unlink("d/e/c"); }},
  };
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    Bench fresh;
    fresh.open(bench.stage->base());
    fresh.clock.advance(std::chrono::hours(1));
    ASSERT_TRUE(change(fresh));
    std::vector<WallTime> times[2];
    for (auto& seen : times) {
      for (const char* path : {"", "d", "d/e"}) {
        auto shown = fresh.stat(path);
        seen.insert(seen.end(), {shown.atime, shown.mtime, shown.ctime});
      }
      fresh.reopen();
    }
    EXPECT_EQ(times[0], times[1]);
  }
}

TEST_F(NamesTest, NumbersBelongToPathsAndStayApart) {
  auto a = bench.stat("a").ino;
  EXPECT_LT(a, std::uint64_t{1} << 53);
  bench.reopen();
  EXPECT_EQ(bench.stat("a").ino, a);
  ASSERT_TRUE(bench.rename("a", "z"));
  EXPECT_EQ(bench.stat("z").ino, a);
  ASSERT_TRUE(bench.put("a", "new"));
  EXPECT_NE(bench.stat("a").ino, a);
  ASSERT_TRUE(bench.unlink("a"));
  // The published file comes back under its path while its inode number lives on under another.
  ASSERT_TRUE(bench.stage->discard("a"));
  EXPECT_EQ(bench.read("a"), "one");
  EXPECT_NE(bench.stat("a").ino, a);
  bench.reopen();
  EXPECT_EQ(bench.stat("z").ino, a);
  EXPECT_NE(bench.stat("a").ino, a);
}

TEST_F(NamesTest, ANumberStaysWhenTheFileThatTookThePathsOwnIsGone) {
  ASSERT_TRUE(bench.rename("a", "z"));
  ASSERT_TRUE(bench.rename("d/e", "moved"));
  ASSERT_TRUE(bench.stage->discard("a"));
  ASSERT_TRUE(bench.stage->discard("d"));
  auto a = bench.stat("a").ino;
  auto c = bench.stat("d/e/c").ino;
  bench.reopen();
  EXPECT_EQ(bench.stat("a").ino, a);
  bench.reopen();
  // Nothing has looked them up since the stage was opened.
  ASSERT_TRUE(bench.unlink("z"));
  ASSERT_TRUE(bench.unlink("moved/c"));
  bench.reopen();
  EXPECT_EQ(bench.stat("a").ino, a);
  EXPECT_EQ(bench.stat("d/e/c").ino, c);
  EXPECT_EQ(bench.read("a"), "one");
}

TEST_F(NamesTest, WhatComesBackHasTheNumberOfItsPath) {
  auto before = bench.stat("a").ino;
  ASSERT_TRUE(bench.unlink("a"));
  ASSERT_TRUE(bench.stage->discard("a", false));
  EXPECT_EQ(bench.stat("a").ino, before);
}

TEST_F(NamesTest, NumbersAreNotGivenTwice) {
  std::set<std::uint64_t> seen;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1200; ++i) {
      ASSERT_TRUE(bench.put("f", ""));
      EXPECT_TRUE(seen.insert(bench.stat("f").ino).second);
      ASSERT_TRUE(bench.unlink("f"));
    }
    bench.reopen();
  }
}

TEST_F(NamesTest, PathsOfInodes) {
  EXPECT_EQ(bench.stage->path_of(bench.stage->root()), "");
  EXPECT_EQ(bench.stage->path_of(bench.find("d/e/c")), "d/e/c");
  auto held = bench.find("d/e/c");
  ASSERT_TRUE(bench.rename("d/e", "f"));
  EXPECT_EQ(bench.stage->path_of(held), "f/c");
}

TEST_F(NamesTest, DeepTreesOpenAndClose) {
  auto at = bench.stage->root();
  constexpr int depth = 3000;
  for (int i = 0; i < depth; ++i) {
    auto made = bench.stage->make_directory(at, "deep", {0755, 1, 1});
    ASSERT_TRUE(made) << made.error().message;
    at = *made;
  }
  ASSERT_TRUE(bench.stage->make_file(at, "f", {}));
  EXPECT_EQ(bench.changes(), Names());  // too long to be published: local-only
  at.reset();
  bench.reopen();
  at = bench.stage->root();
  for (int i = 0; i < depth; ++i) at = bench.stage->lookup(at, "deep").value();
  EXPECT_TRUE(bench.stage->lookup(at, "f"));
}

}  // namespace
}  // namespace playfs::stage
