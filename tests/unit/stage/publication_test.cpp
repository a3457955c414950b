// Freezing, settling, thawing, moving the base and discarding.
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "support/workbench.h"

namespace playfs {
namespace stage {
bool operator==(const FrozenFile& a, const FrozenFile& b) {
  return a.path == b.path && a.mode == b.mode && a.hash == b.hash && a.size == b.size && a.published == b.published &&
         a.spool == b.spool && a.target == b.target;
}
bool operator==(const Frozen& a, const Frozen& b) {
  return a.tx == b.tx && a.base == b.base && a.files == b.files && a.deletions == b.deletions && a.state == b.state;
}
}  // namespace stage
namespace {

using stage::Frozen;
using test::revision_of;
using test::Text;
using test::Texts;
using Names = std::vector<std::string>;

class PublicationTest : public testing::Test {
 protected:
  void SetUp() override { bench.open(revision_of("r1", base)); }

  Frozen freeze() {
    auto layer = bench.stage->freeze("tx");
    EXPECT_TRUE(layer && *layer) << (layer ? "nothing staged" : layer.error().message);
    return **layer;
  }
  /// Publishes the pending layer unchanged.
  std::vector<stage::Invalidation> settle(const Frozen& layer, const std::string& id) {
    base = bench.published(layer, base);
    bench.clock.advance(std::chrono::hours(1));
    return settle_on(layer, base, id);
  }
  std::vector<stage::Invalidation> settle_on(const Frozen& layer, const Texts& texts, const std::string& id) {
    std::vector<stage::Invalidation> changed;
    auto settled = bench.stage->settle(layer.tx, revision_of(id, texts, bench.clock.wall()), {},
                                       [&](const auto& invalidations) { changed = invalidations; });
    EXPECT_TRUE(settled) << settled.error().message;
    return changed;
  }
  Names told(const std::vector<stage::Invalidation>& invalidations) {
    Names lines;
    for (const auto& each : invalidations) {
      std::string directory = bench.stage->path_of(each.directory).value_or("(gone)");
      lines.push_back((directory.empty() ? "" : directory + "/") + each.name + (each.before ? "" : " new"));
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  Texts base = {{"a", "one"}, {"d/b", "two"}, {"d/e/c", "three"}, {"run", {"#!", FileMode::executable}}};
  test::Workbench bench;
};

TEST_F(PublicationTest, ALayerHoldsWhatDiffers) {
  ASSERT_TRUE(bench.put("new", "bytes"));
  ASSERT_TRUE(bench.put("empty", ""));
  ASSERT_TRUE(bench.symlink("a", "l"));
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.rename("d/e/c", "moved"));
  ASSERT_TRUE(bench.chmod("a", 0700));
  ASSERT_TRUE(bench.chmod("run", 0711));
  Frozen layer = freeze();
  EXPECT_EQ(layer.base, RevisionId("r1"));
  EXPECT_EQ(layer.deletions, (Names{"d/b", "d/e/c"}));
  std::map<std::string, stage::FrozenFile> files;
  for (const auto& file : layer.files) files[file.path] = file;
  ASSERT_EQ(files.size(), 5U);
  EXPECT_EQ(files["a"].mode, FileMode::executable);
  EXPECT_EQ(files["a"].published->mode, FileMode::executable);
  EXPECT_EQ(files["a"].published->hash_claim, ContentHash::of("one").hex());
  EXPECT_TRUE(files["moved"].published);
  EXPECT_EQ(files["l"].mode, FileMode::symlink);
  EXPECT_EQ(bench.stage->read_frozen(files["l"]), "a");
  EXPECT_EQ(bench.stage->read_frozen(files["new"]), "bytes");
  EXPECT_EQ(bench.stage->read_frozen(files["empty"]), "");
  EXPECT_EQ(files["empty"].hash, ContentHash::of(""));
  EXPECT_FALSE(bench.stage->read_frozen(files["a"]));
  EXPECT_EQ(bench.published(layer, base), bench.files());
}

TEST_F(PublicationTest, WhatComesOutEqualIsNoChange) {
  ASSERT_TRUE(bench.put("a", "one"));
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.put("d/b", "two"));
  ASSERT_TRUE(bench.chmod("run", 0644));
  ASSERT_TRUE(bench.chmod("run", 0700));
  ASSERT_TRUE(bench.mkdir("hollow"));
  EXPECT_EQ(bench.changes(), Names());
  EXPECT_TRUE(bench.stage->is_clean());
  EXPECT_EQ(bench.stage->freeze("tx").value(), std::nullopt);
  EXPECT_EQ(bench.stage->pending().value(), std::nullopt);
}

TEST_F(PublicationTest, WhatIsFrozenStaysWhateverIsWritten) {
  ASSERT_TRUE(bench.put("f", "first"));
  ASSERT_TRUE(bench.put("g", "first"));
  ASSERT_TRUE(bench.put("h", "first"));
  auto open = bench.find("f");
  Frozen layer = freeze();
  EXPECT_EQ(bench.changes(), (Names{"A f*", "A g*", "A h*"}));
  ASSERT_TRUE(bench.write(open, 5, " and second"));
  ASSERT_TRUE(bench.truncate(bench.find("g"), 0));
  ASSERT_TRUE(bench.unlink("h"));
  EXPECT_EQ(bench.read("f"), "first and second");
  EXPECT_EQ(bench.changes(), (Names{"A f", "A g", "D h"}));
  Texts as_frozen = base;
  for (const char* name : {"f", "g", "h"}) as_frozen.emplace(name, "first");
  EXPECT_EQ(bench.published(layer, base), as_frozen);
  bench.reopen();
  EXPECT_EQ(bench.stage->pending().value(), layer);
  EXPECT_EQ(bench.published(layer, base), as_frozen);
  EXPECT_EQ(bench.read("f"), "first and second");
  EXPECT_EQ(bench.changes(), (Names{"A f", "A g", "D h"}));
  settle(layer, "r2");
  EXPECT_EQ(bench.changes(), (Names{"M f", "M g", "D h"}));
  EXPECT_EQ(bench.read("f"), "first and second");
  bench.reopen();
  EXPECT_EQ(bench.changes(), (Names{"M f", "M g", "D h"}));
  EXPECT_EQ(bench.spool_files(), 1U);
}

TEST_F(PublicationTest, ASeenFileKnowsWhetherItIsAsFrozen) {
  ASSERT_TRUE(bench.put("f", "first"));
  EXPECT_FALSE(bench.stage->seen_at("f").as_frozen);
  Frozen layer = freeze();
  EXPECT_TRUE(bench.stage->seen_at("f").as_frozen);
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "other"));  // as long as the frozen content
  EXPECT_FALSE(bench.stage->seen_at("f").as_frozen);
  settle(layer, "r2");
  EXPECT_FALSE(bench.stage->seen_at("f").as_frozen);
}

TEST_F(PublicationTest, EitherNameOfAPublishedFileMayBeRemoved) {
  // The published name is the first or the second of the two in name order, and stays or goes.
  ASSERT_TRUE(bench.link("a", "0"));
  ASSERT_TRUE(bench.link("d/b", "d/0"));
  ASSERT_TRUE(bench.link("d/e/c", "d/e/z"));
  ASSERT_TRUE(bench.link("run", "z"));
  const Texts first = base;
  settle(freeze(), "r2");
  EXPECT_EQ(bench.stat("0").links, 2U);
  EXPECT_EQ(bench.stat("0").ino, bench.stat("a").ino);
  for (const char* name : {"0", "d/b", "d/e/z", "run"}) ASSERT_TRUE(bench.unlink(name)) << name;
  auto layer = bench.stage->freeze("tx2");
  ASSERT_TRUE(layer && *layer);
  settle(**layer, "r3");
  bench.reopen();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(bench.files(), (Texts{{"a", "one"}, {"d/0", "two"}, {"d/e/c", "three"}, {"z", first.at("run")}}));
  for (const char* name : {"a", "d/0", "d/e/c", "z"}) EXPECT_EQ(bench.stat(name).links, 1U) << name;
  EXPECT_TRUE(bench.stage->is_clean());
}

TEST_F(PublicationTest, ANameThatOthersReplaceIsNoNameOfTheFileAnyMore) {
  ASSERT_TRUE(bench.link("a", "0"));
  ASSERT_TRUE(bench.link("a", "z"));
  settle(freeze(), "r2");
  const auto before = bench.stat("z");
  auto kept = bench.find("z");
  base.at("a") = "of others";
  base.erase("0");
  bench.clock.advance(std::chrono::hours(1));
  auto moved = bench.move_base(revision_of("r3", base, bench.clock.wall()));
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(told(*moved), (Names{"0", "a"}));
  for (const auto& each : *moved) EXPECT_EQ(each.before, kept);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.stat("z").links, 1U);
    EXPECT_EQ(bench.stat("z").ino, before.ino);
    EXPECT_EQ(bench.stat("z").mtime, before.mtime);
    EXPECT_EQ(bench.stat("z").ctime, bench.clock.wall());
    EXPECT_EQ(bench.read("z"), "one");
    EXPECT_EQ(bench.stat("a").links, 1U);
    EXPECT_EQ(bench.read("a"), "of others");
    if (round == 0) bench.reopen();
  }
}

TEST_F(PublicationTest, ABaseWithOtherRulesIsNotFollowedOverLocalOnlyFiles) {
  base.insert_or_assign(".gitignore", "*.log\n");
  ASSERT_TRUE(bench.move_base(revision_of("r3", base, bench.clock.wall())));
  ASSERT_TRUE(bench.put("secret.log", "mine"));
  base.insert_or_assign("a", "of others");
  ASSERT_TRUE(bench.move_base(revision_of("r4", base, bench.clock.wall()))) << "the rules are the same";
  base.insert_or_assign(".gitignore", "*.tmp\n");
  auto moved = bench.move_base(revision_of("r5", base, bench.clock.wall()));
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.unlink("secret.log"));
  EXPECT_TRUE(bench.move_base(revision_of("r5", base, bench.clock.wall())));
}

TEST_F(PublicationTest, ABaseWhoseRulesHaveAnotherModeOnlyIsFollowed) {
  base.insert_or_assign(".gitignore", "*.log\n");
  ASSERT_TRUE(bench.move_base(revision_of("r3", base, bench.clock.wall())));
  ASSERT_TRUE(bench.put("secret.log", "mine"));
  base.insert_or_assign(".gitignore", test::Text("*.log\n", FileMode::executable));
  EXPECT_TRUE(bench.move_base(revision_of("r4", base, bench.clock.wall())));
}

TEST_F(PublicationTest, ADeletionIsNotDiscardedUnderWhatStandsThereNow) {
  ASSERT_TRUE(bench.unlink("a"));
  ASSERT_TRUE(bench.stage->make_special(bench.stage->root(), "a", stage::Kind::fifo, {}));
  for (const char* path : {"a", ""}) {
    auto discarded = bench.stage->discard(path);
    ASSERT_FALSE(discarded);
    EXPECT_EQ(discarded.error().code, ErrorCode::busy);
    EXPECT_EQ(bench.stat("a").kind, stage::Kind::fifo);
  }
  ASSERT_TRUE(bench.unlink("a"));
  ASSERT_TRUE(bench.stage->discard("a"));
  EXPECT_EQ(bench.read("a"), base.at("a").content);
}

TEST_F(PublicationTest, AHeadThatWasComparedWithAnotherBaseIsNotFollowed) {
  const auto seen = bench.stage->base()->revision.id;
  auto older = base;
  older.at("a") = "of others";
  ASSERT_TRUE(bench.put("a", "mine"));
  settle(freeze(), "r2");  // between the comparison and the move
  auto moved = bench.stage->move_base(revision_of("r1b", older, bench.clock.wall()), seen);
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, ErrorCode::busy);
  EXPECT_EQ(bench.stage->base()->revision.id.text(), "r2");
  EXPECT_EQ(bench.read("a"), "mine");
  EXPECT_TRUE(bench.stage->move_base(revision_of("r3", older, bench.clock.wall()), RevisionId("r2")));
}

TEST_F(PublicationTest, TimesOfADirectoryThatOthersChangeAreKept) {
  bench.stat("d");
  bench.stat("d/e");
  base.emplace("d/more", "new");
  bench.clock.advance(std::chrono::hours(1));
  ASSERT_TRUE(bench.move_base(revision_of("r2", base, bench.clock.wall())));
  for (const char* path : {"d", "d/e"}) {
    auto before = bench.stat(path);
    bench.reopen();
    auto after = bench.stat(path);
    EXPECT_EQ(before.atime, after.atime) << path;
    EXPECT_EQ(before.mtime, after.mtime) << path;
    EXPECT_EQ(before.ctime, after.ctime) << path;
  }
}

TEST_F(PublicationTest, OnlyOneLayerAtATime) {
  ASSERT_TRUE(bench.put("f", "x"));
  Frozen layer = freeze();
  EXPECT_EQ(bench.stage->freeze("tx").value(), layer);
  EXPECT_EQ(bench.stage->freeze("other").error().code, ErrorCode::busy);
  EXPECT_EQ(bench.stage->settle("other", revision_of("r2", base)).error().code, ErrorCode::not_found);
  EXPECT_EQ(bench.stage->thaw("other").error().code, ErrorCode::not_found);
  EXPECT_FALSE(bench.stage->is_clean());
}

TEST_F(PublicationTest, SettlingLeavesACleanTreeWithItsOwnMetadata) {
  ASSERT_TRUE(bench.put("f", "text"));
  ASSERT_TRUE(bench.chmod("f", 0600));
  ASSERT_TRUE(bench.rename("d", "moved"));
  auto open = bench.find("f");
  auto before = bench.stat("f");
  auto moved = bench.stat("moved/b");
  auto invalidations = settle(freeze(), "r2");
  EXPECT_EQ(told(invalidations), Names());
  EXPECT_TRUE(bench.stage->is_clean());
  EXPECT_EQ(bench.files(), base);
  EXPECT_EQ(bench.spool_files(), 0U);
  // The same object keeps working for whoever has it open.
  EXPECT_EQ(bench.find("f"), open);
  EXPECT_EQ(bench.stage->write(open, 0, "x").error().code, ErrorCode::busy);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.stat("f").ino, before.ino);
    EXPECT_EQ(bench.stat("f").mtime, before.mtime);
    EXPECT_EQ(bench.stat("f").permissions, 0600U);
    EXPECT_EQ(bench.stat("moved/b").ino, moved.ino);
    EXPECT_EQ(bench.stat("moved/b").mtime, moved.mtime);
    bench.reopen();
    EXPECT_TRUE(bench.stage->is_clean());
    EXPECT_EQ(bench.files(), base);
  }
  ASSERT_TRUE(bench.write(bench.find("f"), 4, "+"));
  EXPECT_EQ(bench.changes(), Names{"M f"});
}

TEST_F(PublicationTest, SettlingTwiceIsSettlingOnce) {
  ASSERT_TRUE(bench.put("f", "text"));
  Frozen layer = freeze();
  settle(layer, "r2");
  bench.reopen();
  bool is_told = false;
  ASSERT_TRUE(bench.stage->settle(layer.tx, bench.stage->base(), {}, [&](const auto&) { is_told = true; }));
  EXPECT_FALSE(is_told);
}

TEST_F(PublicationTest, ThawingStagesItAgain) {
  ASSERT_TRUE(bench.put("f", "text"));
  ASSERT_TRUE(bench.put("g", "text"));
  Frozen layer = freeze();
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "T"));
  ASSERT_TRUE(bench.stage->thaw(layer.tx));
  EXPECT_EQ(bench.changes(), (Names{"A f", "A g"}));
  EXPECT_EQ(bench.spool_files(), 2U);
  bench.reopen();
  EXPECT_EQ(bench.stage->pending().value(), std::nullopt);
  EXPECT_EQ(bench.read("f"), "Text");
  ASSERT_TRUE(bench.write(bench.find("g"), 0, "T"));
  EXPECT_EQ(bench.spool_files(), 2U);
}

TEST_F(PublicationTest, RevertingWhatIsPendingIsAChangeOfItsOwn) {
  ASSERT_TRUE(bench.put("a", "changed"));
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.put("new", "x"));
  Frozen layer = freeze();
  ASSERT_TRUE(bench.put("a", "one"));
  ASSERT_TRUE(bench.put("d/b", "two"));
  ASSERT_TRUE(bench.unlink("new"));
  EXPECT_EQ(bench.changes(), (Names{"M a", "A d/b", "D new"}));
  settle(layer, "r2");
  EXPECT_EQ(bench.changes(), (Names{"M a", "A d/b", "D new"}));
  EXPECT_EQ(bench.read("a"), "one");
}

TEST_F(PublicationTest, AMergedBaseBringsWhatOthersChanged) {
  ASSERT_TRUE(bench.put("f", "mine"));
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.chmod("run", 0755));
  bench.files();
  Frozen layer = freeze();
  ASSERT_TRUE(bench.put("late", "after the freeze"));
  Texts merged = bench.published(layer, base);
  merged.insert_or_assign("a", "theirs");
  merged.erase("d/e/c");
  merged.emplace("d/theirs/x", "new");
  bench.clock.advance(std::chrono::hours(1));
  auto old_a = bench.find("a");
  auto ino = bench.stat("a").ino;
  EXPECT_EQ(told(settle_on(layer, merged, "r2")), (Names{"(gone)/c", "a", "d/e", "d/theirs new"}));
  EXPECT_EQ(bench.changes(), Names{"A late"});
  for (int round = 0; round < 2; ++round) {
    Texts expected = merged;
    expected.emplace("late", "after the freeze");
    EXPECT_EQ(bench.files(), expected);
    EXPECT_EQ(bench.stat("a").ino, ino);
    EXPECT_EQ(bench.stat("a").mtime, bench.clock.wall());
    EXPECT_NE(bench.stat("run").mtime, bench.clock.wall());
    if (round == 0) {
      // Whoever had it open keeps the old bytes, and learns that a change would be lost.
      EXPECT_EQ(bench.read(old_a), "one");
      EXPECT_EQ(bench.write(old_a, 0, "ONE").error().code, ErrorCode::stale);
      EXPECT_EQ(bench.read("a"), "theirs");
      old_a.reset();
      bench.reopen();
    }
  }
}

/// Puts a merge's result at these paths, together with the base that it was made for.
Status put_merged(test::Workbench& bench, const Texts& files, const RevisionTreePtr& next,
                  const std::vector<RevisionId>& parents = {}) {
  stage::Merged merged;
  for (const auto& [path, text] : files) {
    PLAYFS_TRY(auto content, bench.stage->prepare(Bytes(text.content), text.mode));
    merged.paths.push_back({path, stage::MergedPath::Action::put, {}, content});
  }
  return bench.stage->integrate(next, merged, parents);
}

TEST_F(PublicationTest, WhatAMergeMadeIsPutWhereverItBelongs) {
  ASSERT_TRUE(bench.chmod("a", 0640));
  Texts put = {{"a", "merged"},
               {"new", "text"},
               {"script", {"#!", FileMode::executable}},
               {"link", {"new", FileMode::symlink}},
               {"x/y/z", "deep"},
               {"x/w", "beside"}};
  auto done = put_merged(bench, put, revision_of("r2", base));
  ASSERT_TRUE(done) << done.error().message;
  Texts expected = put;
  expected.merge(Texts(base));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.files(), expected);
    EXPECT_EQ(bench.stat("a").permissions, 0640U) << "what its user gave it";
    EXPECT_EQ(bench.stat("new").permissions, 0666U & ~bench.options().umask);
    EXPECT_EQ(bench.stat("script").permissions, 0777U & ~bench.options().umask);
    EXPECT_EQ(bench.stat("link").permissions, 0777U);
    bench.reopen();
  }
}

TEST_F(PublicationTest, WhatIsPutInADirectoryThatWasRemovedBringsNothingElseBack) {
  ASSERT_TRUE(bench.unlink("d/b") && bench.unlink("d/e/c") && bench.rmdir("d/e") && bench.rmdir("d"));
  auto done = put_merged(bench, {{"d/new", "merged"}, {"d/e/new", "merged"}}, revision_of("r2", base));
  ASSERT_TRUE(done) << done.error().message;
  Texts expected = {{"a", "one"}, {"d/new", "merged"}, {"d/e/new", "merged"}, {"run", base.at("run")}};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.files(), expected);
    bench.reopen();
  }
}

TEST_F(PublicationTest, WhatAMergeRemovesStaysRemoved) {
  stage::Merged merged;
  for (const char* path : {"a", "d/b"}) merged.paths.push_back({path, stage::MergedPath::Action::remove, {}, {}});
  ASSERT_TRUE(bench.stage->integrate(revision_of("r2", base), merged, {}));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.changes(), (Names{"D a", "D d/b"}));
    EXPECT_EQ(bench.files(), (Texts{{"d/e/c", "three"}, {"run", base.at("run")}}));
    bench.reopen();
  }
}

/// The file that came back under its name has a new number, which is recorded when something looks it up.
TEST_F(PublicationTest, ARefusedSettleWritesNothingDownThatItHasLookedAt) {
  ASSERT_TRUE(bench.put("a", "ours"));
  auto layer = freeze();
  ASSERT_TRUE(bench.stage->make_special(bench.find(""), "f", stage::Kind::fifo, {}));
  ASSERT_TRUE(bench.rename("d", "moved"));
  ASSERT_TRUE(bench.stage->discard("d"));
  Texts theirs = bench.published(layer, base);
  theirs.insert_or_assign("f", "in the way");
  auto settled = bench.stage->settle(layer.tx, revision_of("r2", theirs));
  ASSERT_FALSE(settled);
  EXPECT_EQ(settled.error().code, ErrorCode::busy);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.stage->base()->revision.id, RevisionId("r1"));
    EXPECT_EQ(bench.read("d/b"), "two");
    EXPECT_EQ(bench.read("moved/e/c"), "three");
    EXPECT_TRUE(bench.stage->pending().value());
    bench.reopen();
  }
}

TEST_F(PublicationTest, WhatASettleRemovesIsNotWrittenDownMeanwhile) {
  ASSERT_TRUE(bench.put("a", "ours") && bench.put("run", "ours"));
  auto layer = freeze();
  ASSERT_TRUE(bench.put("run", "later"));
  ASSERT_TRUE(bench.rename("d", "moved"));
  ASSERT_TRUE(bench.stage->discard("d"));
  stage::Merged merged;
  merged.paths.push_back({"run", stage::MergedPath::Action::keep, {}, {}});
  auto settled =
      bench.stage->settle(layer.tx, revision_of("r2", {{"a", "ours"}, {"d", "a file"}, {"run", "theirs"}}), merged);
  ASSERT_TRUE(settled) << settled.error().message;
  Texts expected = {{"a", "ours"},
                    {"d", "a file"},
                    {"moved/b", "two"},
                    {"moved/e/c", "three"},
                    {"run", {"later", FileMode::executable}}};
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.files(), expected);
    bench.reopen();
  }
}

TEST_F(PublicationTest, NothingIsPutBelowAFileThatStays) {
  ASSERT_TRUE(bench.put("f", "staged"));
  auto done = put_merged(bench, {{"f/below", "merged"}}, revision_of("r2", base));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::busy);
  EXPECT_EQ(bench.read("f"), "staged");
  EXPECT_EQ(bench.stage->base()->revision.id, RevisionId("r1"));
}

TEST_F(PublicationTest, NothingIsPutInThePlaceOfADirectoryThatStays) {
  ASSERT_TRUE(bench.put("d/mine", "staged"));
  auto done = put_merged(bench, {{"d", "a file"}}, revision_of("r2", {{"a", "one"}, {"run", base.at("run")}}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::busy);
  EXPECT_EQ(bench.read("d/mine"), "staged");
}

/// Content that checks the spool while it is read.
class Watching final : public ByteSource {
 public:
  explicit Watching(std::string spool) : spool_(std::move(spool)) {}
  [[nodiscard]] Result<std::string> read(std::uint64_t, std::size_t size) const override {
    for (const auto& file : std::filesystem::directory_iterator(spool_)) seen.push_back(file.path().filename());
    return std::string(size, 'x');
  }
  mutable Names seen;

 private:
  const std::string spool_;
};

TEST_F(PublicationTest, APreparedFileGetsItsNumberOnceComplete) {
  // What a crash leaves of it is deleted at the next start, and does not count as a lost file.
  constexpr std::uint64_t several_pieces = 3 << 20;
  auto source = std::make_shared<Watching>(bench.spool());
  auto made = bench.stage->prepare(Bytes(source, several_pieces), FileMode::regular);
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_FALSE(source->seen.empty());
  for (const auto& name : source->seen) EXPECT_EQ(name.back(), '~') << name;
  Names whole;
  for (const auto& file : std::filesystem::directory_iterator(bench.spool())) whole.push_back(file.path().filename());
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_NE(whole[0].back(), '~');
}

TEST_F(PublicationTest, MergedContentIsPublishedOnce) {
  auto done = put_merged(bench, {{"new", "theirs"}}, revision_of("r1", base), {RevisionId("branch")});
  ASSERT_TRUE(done) << done.error().message;
  bench.reopen();
  EXPECT_EQ(bench.stage->merge_parents(), std::vector{RevisionId("branch")});
  settle(freeze(), "r2");
  EXPECT_TRUE(bench.stage->merge_parents().empty());
  bench.reopen();
  EXPECT_TRUE(bench.stage->merge_parents().empty());
}

TEST_F(PublicationTest, MergeParentsAreForgottenOnlyIfEverythingIsDiscarded) {
  ASSERT_TRUE(put_merged(bench, {}, revision_of("r1", base), {RevisionId("branch")}));
  ASSERT_TRUE(bench.put("f", "mine") && bench.put("g", "mine"));
  ASSERT_TRUE(bench.stage->discard("f"));
  bench.reopen();
  EXPECT_EQ(bench.stage->merge_parents(), std::vector{RevisionId("branch")});
  ASSERT_TRUE(bench.stage->discard(""));
  bench.reopen();
  EXPECT_TRUE(bench.stage->merge_parents().empty());
}

TEST_F(PublicationTest, AFileThatBecomesALinkAndBackHasTheModeOfItsKind) {
  for (const char* path : {"a", "run"})
    ASSERT_TRUE(bench.chmod(path, 0640) && bench.chmod(path, path[0] == 'a' ? 0644 : 0755));
  ASSERT_TRUE(bench.stage->is_clean());
  base.at("a") = Text("d/b", FileMode::symlink);
  ASSERT_TRUE(bench.move_base(revision_of("r2", base)));
  EXPECT_EQ(bench.stat("a").permissions, 0777U);
  base.at("a") = "a file again";
  ASSERT_TRUE(bench.move_base(revision_of("r3", base)));
  EXPECT_EQ(bench.stat("a").permissions, 0666U & ~bench.options().umask);
}

TEST_F(PublicationTest, BytesThatNoBaseHasAnyMoreAreRescued) {
  // "a" is moved after the freeze, while the merge replaces it: its old bytes are nowhere in the new base.
  ASSERT_TRUE(bench.put("f", "mine"));
  Frozen layer = freeze();
  ASSERT_TRUE(bench.rename("a", "elsewhere"));
  Texts merged = bench.published(layer, base);
  merged.insert_or_assign("a", "theirs");
  // That "a" is gone here would undo theirs: the caller of settle must be told.
  auto undoing = bench.stage->settle(layer.tx, revision_of("r2", merged));
  ASSERT_FALSE(undoing);
  EXPECT_EQ(undoing.error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.stage->settle(layer.tx, revision_of("r2", merged), test::handled({"a"})));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(bench.read("elsewhere"), "one");
    EXPECT_EQ(bench.changes(), (Names{"D a", "A elsewhere"}));
    bench.reopen();
  }
  auto rescued = bench.stage->freeze("next");
  ASSERT_TRUE(rescued && *rescued);
  EXPECT_EQ((*rescued)->files[0].published->inline_text, "one");
  base = merged;
  settle(**rescued, "r3");
  bench.reopen();
  EXPECT_TRUE(bench.stage->is_clean());
  EXPECT_EQ(bench.read("elsewhere"), "one");
}

TEST_F(PublicationTest, DeletionsAfterTheFreezeStayDeletions) {
  ASSERT_TRUE(bench.put("d/new", "x"));
  Frozen layer = freeze();
  ASSERT_TRUE(bench.unlink("d/new"));
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.unlink("d/e/c"));
  ASSERT_TRUE(bench.rmdir("d/e"));
  ASSERT_TRUE(bench.rmdir("d"));
  Texts merged = bench.published(layer, base);
  merged.emplace("d/theirs", "y");
  ASSERT_TRUE(bench.stage->settle(layer.tx, revision_of("r2", merged)));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.list("d"), Names{"theirs"});
    EXPECT_EQ(bench.changes(), (Names{"D d/b", "D d/e/c", "D d/new"}));
    bench.reopen();
  }
}

TEST_F(PublicationTest, ADeletionBeforeItsDirectoryMovedAwayAndBackStaysADeletion) {
  ASSERT_TRUE(bench.put("new", "x"));
  Frozen layer = freeze();
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.rename("d", "moved") && bench.rename("moved", "d"));
  ASSERT_TRUE(bench.stage->settle(layer.tx, revision_of("r2", bench.published(layer, base))));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.list("d"), Names{"e"});
    EXPECT_EQ(bench.changes(), Names{"D d/b"});
    bench.reopen();
  }
}

TEST_F(PublicationTest, AnEmptyFileIsAsFrozenForAsLongAsItIsEmpty) {
  ASSERT_TRUE(bench.put("new", "") && bench.put("a", ""));
  freeze();
  EXPECT_EQ(bench.changes(), (Names{"M a*", "A new*"}));
  for (const char* path : {"new", "a"}) ASSERT_TRUE(bench.write(bench.find(path), 0, "x"));
  EXPECT_EQ(bench.changes(), (Names{"M a", "A new"}));
  for (const char* path : {"new", "a"}) ASSERT_TRUE(bench.truncate(bench.find(path), 0));
  EXPECT_EQ(bench.changes(), (Names{"M a*", "A new*"}));
}

TEST_F(PublicationTest, WhatIsPendingIsTheSameAfterARemount) {
  ASSERT_TRUE(bench.put("a", "changed") && bench.put("empty", "") && bench.put("tool", "#!"));
  ASSERT_TRUE(bench.chmod("tool", 0755) && bench.symlink("a", "link") && bench.rename("d/b", "moved"));
  ASSERT_TRUE(bench.unlink("run"));
  const Frozen layer = freeze();
  ASSERT_NO_FATAL_FAILURE(bench.reopen());
  auto pending = bench.stage->pending();
  ASSERT_TRUE(pending && *pending);
  EXPECT_EQ((*pending)->tx, layer.tx);
  EXPECT_EQ((*pending)->base, layer.base);
  EXPECT_EQ((*pending)->deletions, layer.deletions);
  EXPECT_EQ(bench.published(**pending, base), bench.published(layer, base));
}

TEST_F(PublicationTest, HardLinksThroughAPublication) {
  ASSERT_TRUE(bench.link("a", "a2"));
  ASSERT_TRUE(bench.put("f", "text"));
  ASSERT_TRUE(bench.link("f", "d/f2"));
  settle(freeze(), "r2");
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(bench.stage->is_clean());
    EXPECT_EQ(bench.stat("a").links, 2U);
    EXPECT_EQ(bench.stat("d/f2").links, 2U);
    EXPECT_EQ(bench.stat("f").ino, bench.stat("d/f2").ino);
    bench.reopen();
  }
  ASSERT_TRUE(bench.write(bench.find("f"), 0, "T"));
  EXPECT_EQ(bench.read("d/f2"), "Text");
  EXPECT_EQ(bench.changes(), (Names{"M d/f2", "M f"}));
}

TEST_F(PublicationTest, ALinkWhoseOtherNameOthersChangedLosesThatName) {
  ASSERT_TRUE(bench.link("a", "a2"));
  Frozen layer = freeze();
  Texts merged = bench.published(layer, base);
  merged.insert_or_assign("a", "theirs");
  ASSERT_TRUE(bench.stage->settle(layer.tx, revision_of("r2", merged)));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.read("a"), "theirs");
    EXPECT_EQ(bench.read("a2"), "one");
    EXPECT_EQ(bench.stat("a2").links, 1U);
    EXPECT_TRUE(bench.stage->is_clean());
    bench.reopen();
  }
}

TEST_F(PublicationTest, TheStateOfTheProject) {
  ASSERT_TRUE(bench.stage->stage_state("{\"k\":1}"));
  EXPECT_FALSE(bench.stage->is_clean());
  bench.reopen();
  EXPECT_EQ(bench.stage->staged_state(), "{\"k\":1}");
  Frozen layer = freeze();
  EXPECT_EQ(layer.state, "{\"k\":1}");
  bench.reopen();
  EXPECT_EQ(bench.stage->pending().value(), layer);
  settle(layer, "r2");
  EXPECT_EQ(bench.stage->staged_state(), std::nullopt);
  EXPECT_TRUE(bench.stage->is_clean());
  ASSERT_TRUE(bench.stage->stage_state("1"));
  layer = freeze();
  ASSERT_TRUE(bench.stage->stage_state("2"));
  settle(layer, "r3");
  bench.reopen();
  EXPECT_EQ(bench.stage->staged_state(), "2");
  ASSERT_TRUE(bench.stage->discard(""));
  EXPECT_EQ(bench.stage->staged_state(), std::nullopt);
}

TEST_F(PublicationTest, ACleanTreeFollowsItsBase) {
  bench.files();
  auto open = bench.find("a");
  auto kept = bench.stat("d/b");
  auto ino = bench.stat("a").ino;
  bench.clock.advance(std::chrono::hours(1));
  Texts next = base;
  next.insert_or_assign("a", "newer");
  next.insert_or_assign("run", Text("#!", FileMode::regular));
  next.erase("d/e/c");
  next.emplace("d/e2/c", "x");
  next.emplace("n", "y");
  auto moved = bench.move_base(revision_of("r2", next, bench.clock.wall()));
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(told(*moved), (Names{"(gone)/c", "a", "d/e", "d/e2 new", "n new", "run"}));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.files(), next);
    EXPECT_TRUE(bench.stage->is_clean());
    EXPECT_EQ(bench.stat("a").ino, ino);
    EXPECT_EQ(bench.stat("a").mtime, bench.clock.wall());
    EXPECT_EQ(bench.stat("d/b").mtime, kept.mtime);
    EXPECT_EQ(bench.stat("d/b").ino, kept.ino);
    EXPECT_EQ(bench.stat("d").mtime, bench.clock.wall());
    EXPECT_EQ(bench.stat("n").mtime, bench.clock.wall());
    if (round == 0) {
      EXPECT_EQ(bench.read(open), "one");
      open.reset();
      bench.reopen();
    }
  }
}

TEST_F(PublicationTest, ADirectoryOfOnesOwnHasTheTimeOfTheRevisionThatChangedItsNames) {
  ASSERT_TRUE(bench.chmod("d", 0700));
  ASSERT_TRUE(bench.chmod("d/e", 0700));
  const auto kept = bench.stat("d/e");
  bench.clock.advance(std::chrono::hours(1));
  const auto published = bench.clock.wall();
  bench.clock.advance(std::chrono::hours(1));
  Texts next = base;
  next.emplace("d/n", "new");
  bench.files();
  ASSERT_TRUE(bench.move_base(revision_of("r2", next, published)));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.files(), next);
    EXPECT_EQ(bench.stat("d").mtime, published);
    EXPECT_EQ(bench.stat("d").ctime, bench.clock.wall());
    EXPECT_EQ(bench.stat("d/e").mtime, kept.mtime);
    EXPECT_EQ(bench.stat("d/e").ctime, kept.ctime);
    if (round == 0) bench.reopen();
  }
}

TEST_F(PublicationTest, NoInvalidationsForUnseenNames) {
  Texts next = base;
  next.insert_or_assign("d/e/c", "newer");
  next.emplace("n", "y");
  bench.find("a");
  auto moved = bench.move_base(revision_of("r2", next));
  ASSERT_TRUE(moved);
  EXPECT_EQ(told(*moved), Names{"n new"});
  EXPECT_EQ(bench.files(), next);
}

TEST_F(PublicationTest, AFileMayComeAndGoBeforeItsNumberIsWrittenDown) {
  ASSERT_TRUE(bench.rename("a", "z"));  // and keeps the number that belongs to "a"
  settle(freeze(), "r2");
  Texts next = base;
  next.emplace("a", "again");
  for (bool is_held : {false, true}) {
    ASSERT_TRUE(bench.move_base(revision_of(is_held ? "r5" : "r3", next)));
    auto gone = bench.move_base(revision_of(is_held ? "r6" : "r4", base));
    ASSERT_TRUE(gone);
    EXPECT_EQ(told(*gone), Names{"a"});
    if (!is_held) gone->clear();
    EXPECT_EQ(bench.files(), base);
  }
}

TEST_F(PublicationTest, FilesTouchedButEqualFollowToo) {
  ASSERT_TRUE(bench.put("a", "one"));
  ASSERT_TRUE(bench.chmod("d/b", 0600));
  ASSERT_TRUE(bench.put("run", "#!"));
  ASSERT_TRUE(bench.rename("d/e", "d/x"));
  ASSERT_TRUE(bench.rename("d/x", "d/e"));
  auto ino = bench.stat("d/b").ino;
  Texts next = base;
  next.insert_or_assign("a", "newer");
  next.insert_or_assign("d/b", Text("newer", FileMode::executable));
  next.insert_or_assign("d/e/c", "newer");
  next.emplace("d/e/more", "new");
  auto moved = bench.move_base(revision_of("r2", next));
  ASSERT_TRUE(moved) << moved.error().message;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.files(), next);
    EXPECT_TRUE(bench.stage->is_clean());
    EXPECT_EQ(bench.stat("d/b").permissions, 0700U);
    EXPECT_EQ(bench.stat("d/b").ino, ino);
    bench.reopen();
  }
}

TEST_F(PublicationTest, ABaseThatWouldCoverLocalFilesIsRefused) {
  ASSERT_TRUE(bench.mkdir("hollow"));
  ASSERT_TRUE(bench.mkdir("d/hollow"));
  ASSERT_TRUE(bench.put("4913", "ignored"));
  Texts next = base;
  next.emplace("4913", "theirs");
  auto moved = bench.move_base(revision_of("r2", next));
  EXPECT_EQ(moved.error().code, ErrorCode::busy);
  EXPECT_NE(moved.error().message.find("4913"), std::string::npos);
  EXPECT_EQ(bench.stage->base()->revision.id, RevisionId("r1"));
  EXPECT_EQ(bench.read("4913"), "ignored");
  ASSERT_TRUE(bench.unlink("4913"));
  ASSERT_TRUE(bench.move_base(revision_of("r2", next)));
  EXPECT_EQ(bench.read("4913"), "theirs");
  EXPECT_EQ(bench.list("d/hollow"), Names());
}

TEST_F(PublicationTest, NoMergeOverwritesALocalOnlyFile) {
  ASSERT_TRUE(bench.put("4913", "ignored"));
  Texts next = base;
  next.emplace("4913", "theirs");
  auto merged = put_merged(bench, {}, revision_of("r2", next));
  ASSERT_FALSE(merged);
  EXPECT_NE(merged.error().message.find("4913 is local-only"), std::string::npos) << merged.error().message;
  EXPECT_EQ(bench.stage->base()->revision.id, RevisionId("r1"));
  EXPECT_EQ(bench.read("4913"), "ignored");
}

TEST_F(PublicationTest, WaitersContinueAfterAHold) {
  auto hold = bench.stage->hold_writers();
  std::atomic<bool> is_written = false;
  std::thread writer([&] {
    EXPECT_TRUE(bench.put("late", "text"));
    is_written = true;
  });
  // So that it waits. Nothing else depends on how long that takes.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(is_written);
  hold.reset();
  writer.join();
  EXPECT_EQ(bench.read("late"), "text");
}

TEST_F(PublicationTest, ABaseDoesNotMoveUnderStagedChanges) {
  ASSERT_TRUE(bench.put("f", "x"));
  EXPECT_EQ(bench.move_base(revision_of("r2", base)).error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.unlink("f"));
  EXPECT_TRUE(bench.move_base(revision_of("r2", base)));
  Frozen layer;
  ASSERT_TRUE(bench.put("f", "x"));
  layer = freeze();
  EXPECT_EQ(bench.move_base(revision_of("r3", base)).error().code, ErrorCode::busy);
}

TEST_F(PublicationTest, FilesBecomeDirectoriesAndBack) {
  bench.files();
  Texts next = {{"a/x", "below"}, {"d", "a file now"}, {"run", {"#!", FileMode::executable}}};
  ASSERT_TRUE(bench.move_base(revision_of("r2", next)));
  EXPECT_EQ(bench.files(), next);
  ASSERT_TRUE(bench.chmod("d", 0600));
  ASSERT_TRUE(bench.chmod("a/x", 0600));
  auto moved = bench.move_base(revision_of("r3", base));
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(bench.files(), base);
  bench.reopen();
  EXPECT_EQ(bench.files(), base);
  EXPECT_TRUE(bench.stage->is_clean());
}

TEST_F(PublicationTest, TheFirstRevisionOfAProject) {
  test::Workbench empty;
  empty.open(nullptr);
  ASSERT_TRUE(empty.put("f", "first"));
  auto layer = empty.stage->freeze("tx");
  ASSERT_TRUE(layer && *layer);
  EXPECT_TRUE((*layer)->base.empty());
  ASSERT_TRUE(empty.stage->settle("tx", revision_of("r1", {{"f", "first"}})));
  EXPECT_TRUE(empty.stage->is_clean());
  empty.reopen();
  EXPECT_EQ(empty.files(), (Texts{{"f", "first"}}));
  test::Workbench other;
  other.open(nullptr);
  ASSERT_TRUE(other.move_base(revision_of("r1", {{"f", "first"}})));
  EXPECT_EQ(other.files(), (Texts{{"f", "first"}}));
}

TEST_F(PublicationTest, DiscardBringsThePublishedFilesBack) {
  ASSERT_TRUE(bench.put("a", "changed"));
  ASSERT_TRUE(bench.put("new", "x"));
  ASSERT_TRUE(bench.put("4913", "ignored"));
  ASSERT_TRUE(bench.rename("d", "moved"));
  ASSERT_TRUE(bench.mkdir("moved/n"));
  ASSERT_TRUE(bench.put("moved/n/f", "x"));
  auto held = bench.find("a");
  auto dropped = bench.stage->discard("a");
  ASSERT_TRUE(dropped);
  EXPECT_EQ(told(dropped->changed), Names{"a"});
  EXPECT_EQ(bench.read("a"), "one");
  EXPECT_EQ(bench.read(held), "changed");
  EXPECT_EQ(bench.changes().size(), 6U);
  ASSERT_TRUE(bench.stage->discard("d/e"));
  EXPECT_EQ(bench.list("d"), Names{"e"});
  EXPECT_EQ(bench.read("d/e/c"), "three");
  ASSERT_TRUE(bench.stage->discard(""));
  held.reset();
  dropped->changed.clear();
  for (int round = 0; round < 2; ++round) {
    Texts expected = base;
    expected.emplace("4913", "ignored");
    EXPECT_EQ(bench.files(), expected);
    EXPECT_EQ(bench.find("moved"), nullptr);
    EXPECT_TRUE(bench.stage->is_clean());
    EXPECT_EQ(bench.spool_files(), 1U);
    bench.reopen();
  }
}

TEST_F(PublicationTest, DiscardTakesADirectoryOutOfAFilesWay) {
  ASSERT_TRUE(bench.unlink("a"));
  ASSERT_TRUE(bench.mkdir("a"));
  ASSERT_TRUE(bench.put("a/x", "1"));
  EXPECT_EQ(bench.changes(), (Names{"D a", "A a/x"}));
  ASSERT_TRUE(bench.stage->discard("a"));
  EXPECT_EQ(bench.files(), base);
  bench.reopen();
  EXPECT_EQ(bench.files(), base);
}

TEST_F(PublicationTest, DiscardingAllThatWasTakenInTakesItsRevisionOffTheParents) {
  const std::vector<RevisionId> parents{RevisionId("r9")};
  ASSERT_TRUE(put_merged(bench, {{"new", "theirs"}, {"x", "theirs"}}, revision_of("r1", base), parents));
  ASSERT_TRUE(bench.stage->discard("x"));
  EXPECT_EQ(bench.stage->merge_parents(), parents) << "something of it is here";
  ASSERT_TRUE(bench.put("mine", "mine") && bench.stage->discard("new"));
  EXPECT_EQ(bench.stage->merge_parents(), parents) << "what is here may be made of it";
  ASSERT_TRUE(bench.stage->discard("mine"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(bench.stage->is_clean());
    EXPECT_TRUE(bench.stage->merge_parents().empty());
    bench.reopen();
  }
}

TEST_F(PublicationTest, ADiscardCountsWhatItDrops) {
  ASSERT_TRUE(bench.put(".gitignore", "*.log\n") && bench.put("d/.gitignore", "*.key\n"));
  ASSERT_TRUE(bench.put("a.log", "mine") && bench.put("d/a.key", "mine") && bench.put("new", "new"));
  ASSERT_TRUE(bench.stage->stage_state("{}"));
  const std::set<std::string> all{".gitignore", "d/.gitignore", "new", stage::kStatePath};
  for (bool only_try : {true, false}) {
    auto discarded = bench.stage->discard("", only_try);
    ASSERT_TRUE(discarded);
    EXPECT_EQ(discarded->paths, all);
  }
  EXPECT_EQ(bench.changes(), (Names{"A a.log", "A d/a.key"})) << "they were local-only, so they stay";
}

TEST_F(PublicationTest, AListIsDiscardedAsOne) {
  ASSERT_TRUE(bench.put("a", "mine") && bench.put("d/new", "new") && bench.put("stays", "new"));
  for (bool only_try : {true, false}) {
    auto discarded = bench.stage->discard(PathSet{"a", "d", "d/new"}, only_try);
    ASSERT_TRUE(discarded);
    EXPECT_EQ(discarded->paths, (std::set<std::string>{"a", "d/new"}));
  }
  EXPECT_EQ(bench.changes(), (Names{"A stays"}));
}

TEST_F(PublicationTest, OfAListWithARuleFileTheRulesGoFirst) {
  ASSERT_TRUE(bench.put(".gitignore", "*.log\n") && bench.put("a.log", "mine") && bench.put("new", "new"));
  auto discarded = bench.stage->discard(PathSet{".gitignore", "a.log", "new"});
  ASSERT_TRUE(discarded);
  EXPECT_EQ(discarded->paths, (std::set<std::string>{".gitignore", "new"}));
  EXPECT_EQ(bench.changes(), (Names{"A a.log"})) << "it was local-only, so it stays, and";
  ASSERT_EQ(bench.stage->conflicted().size(), 1u) << "is not published unasked";
  EXPECT_EQ(bench.stage->conflicted().front().path, "a.log");
}

TEST_F(PublicationTest, WhatDiscardedRulesKeptHereOnlyIsInConflict) {
  ASSERT_TRUE(bench.put(".gitignore", "*.log\nout/\n") && bench.put(".playfsignore", "*.log\n"));
  ASSERT_TRUE(bench.mkdir("out") && bench.mkdir("out/deep"));
  ASSERT_TRUE(bench.put("a.log", "mine") && bench.put("out/deep/b", "mine"));
  const stage::Conflicted other{"b", "changed here and there", false, ContentHash::of("two")};
  ASSERT_TRUE(bench.stage->record_conflicted({other}));
  ASSERT_TRUE(bench.stage->accept_conflicted("tx"));
  ASSERT_TRUE(bench.stage->discard(".gitignore"));
  std::vector<std::string> paths;
  for (const auto& each : bench.stage->conflicted()) paths.push_back(each.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"b", "out"})) << "another rule ignores a.log";
  EXPECT_FALSE(bench.stage->is_accepted_by("tx")) << "that commit knows nothing of it";
  // Nobody gets it published by discarding more, and its own name discards it.
  ASSERT_TRUE(bench.stage->discard(""));
  paths.clear();
  for (const auto& each : bench.stage->conflicted()) {
    paths.push_back(each.path);
    EXPECT_TRUE(each.is_kept_here);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"a.log", "out"}));
  ASSERT_TRUE(bench.stage->discard("out"));
  ASSERT_TRUE(bench.stage->discard("a.log"));
  EXPECT_EQ(bench.files(), base);
  EXPECT_TRUE(bench.stage->conflicted().empty());
}

TEST_F(PublicationTest, RulesAreNotDiscardedWhileAPublicationWouldEndTheConflict) {
  ASSERT_TRUE(bench.put("new", "new"));
  Frozen layer = freeze();
  ASSERT_TRUE(bench.put(".gitignore", "*.log\n") && bench.put("a.log", "mine"));
  for (bool only_try : {true, false})
    EXPECT_EQ(bench.stage->discard(".gitignore", only_try).error().code, ErrorCode::busy);
  settle(layer, "r2");
  ASSERT_TRUE(bench.stage->discard(".gitignore"));
  EXPECT_EQ(bench.stage->conflicted().size(), 1u);
}

TEST_F(PublicationTest, WhatIsDiscardedOfAMergeStaysListedUntilTheMergeIsGivenUp) {
  const std::vector<RevisionId> parents{RevisionId("r9")};
  stage::Merged merged;
  for (const char* path : {"n1", "n2", "n3"}) {
    auto content = bench.stage->prepare(Bytes("theirs"), FileMode::regular);
    ASSERT_TRUE(content);
    merged.paths.push_back({path, stage::MergedPath::Action::put, {}, *content});
    merged.tracked.emplace(path, stage::TrackedAs::taken_in);
  }
  ASSERT_TRUE(bench.stage->integrate(bench.stage->base(), merged, parents));
  EXPECT_EQ(bench.stage->discard("n1")->paths, std::set<std::string>{"n1"});
  EXPECT_EQ(bench.changes(), (Names{"D n1", "A n2", "A n3"}));
  EXPECT_EQ(bench.stage->discard("n1")->paths, std::set<std::string>()) << "it was dropped before";
  ASSERT_TRUE(bench.unlink("n2"));
  ASSERT_TRUE(bench.stage->discard("n3"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.changes(), (Names{"D n1", "D n2", "D n3"}));
    EXPECT_EQ(bench.stage->merge_parents(), parents) << "n2 was deleted, not discarded";
    bench.reopen();
  }
  ASSERT_TRUE(bench.stage->discard("n2"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(bench.stage->is_clean());
    EXPECT_TRUE(bench.stage->merge_parents().empty());
    EXPECT_TRUE(bench.stage->tracked().empty());
    bench.reopen();
  }
}

/// If a conflict leaves head's version in place, nothing is staged at that path.
TEST_F(PublicationTest, AConflictStaysUntilItsOwnPathIsDiscarded) {
  const std::vector<stage::Conflicted> conflicts{
      {"a", "deleted here and changed there", false, ContentHash::of("one")},
      {"b", "a directory there", false, std::nullopt, "b.head"},
  };
  const std::map<std::string, std::vector<stage::Conflicted>> left = {
      {"mine", conflicts},
      {"a", {conflicts[1]}},  // theirs is beside it
      {"", {}},
  };
  for (const auto& [path, expected] : left) {
    ASSERT_TRUE(bench.put("mine", "mine") && bench.put("b.head", "theirs"));
    ASSERT_TRUE(bench.stage->record_conflicted(conflicts));
    ASSERT_TRUE(bench.stage->discard(path));
    EXPECT_EQ(bench.stage->conflicted(), expected) << path;
  }
}

TEST_F(PublicationTest, AMergeOfWhichOnlyConflictsAreLeftIsGivenUpWithTheLastOfThem) {
  const std::vector<RevisionId> parents{RevisionId("r9")};
  ASSERT_TRUE(put_merged(bench, {{"new", "theirs"}}, revision_of("r1", base), parents));
  ASSERT_TRUE(bench.stage->record_conflicted({{"a", "changed here and deleted there", false, ContentHash::of("one")}}));
  ASSERT_TRUE(bench.stage->discard("new"));
  EXPECT_EQ(bench.stage->merge_parents(), parents) << "how it ends is still to be decided";
  ASSERT_TRUE(bench.stage->discard("a"));
  EXPECT_TRUE(bench.stage->merge_parents().empty());
}

TEST_F(PublicationTest, WhatAMergeTracksIsStagedThoughItIsIgnored) {
  ASSERT_TRUE(bench.put(".gitignore", "*.log\nout/\n"));
  stage::Merged merged;
  for (const char* path : {"a.log", "out/deep/b", "d/c.log"}) {
    auto content = bench.stage->prepare(Bytes("theirs"), FileMode::regular);
    ASSERT_TRUE(content);
    merged.paths.push_back({path, stage::MergedPath::Action::put, {}, *content});
    merged.tracked.emplace(path, stage::TrackedAs::taken_in);
  }
  ASSERT_TRUE(bench.stage->integrate(bench.stage->base(), merged, {RevisionId("r9")}));
  ASSERT_TRUE(bench.put("own.log", "mine") && bench.put("out/own", "mine"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.changes(), (Names{"A .gitignore", "A a.log", "A d/c.log", "A out/deep/b"}));
    bench.reopen();
  }
  ASSERT_TRUE(bench.stage->discard("d/c.log"));
  ASSERT_TRUE(bench.put("d/c.log", "mine"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.changes(), (Names{"A .gitignore", "A a.log", "D d/c.log", "A out/deep/b"}))
        << "the commit deletes it, and what is there now is ignored";
    bench.reopen();
  }
  settle(freeze(), "r2");
  EXPECT_EQ(bench.changes(), Names());
  EXPECT_TRUE(bench.stage->tracked().empty());
}

TEST_F(PublicationTest, WhatWasTakenInAndIsGoneIsADeletion) {
  ASSERT_TRUE(bench.put(".gitignore", "*.log\n"));
  stage::Merged merged;
  for (const char* path : {"a.log", "b.log", "own.log"}) {
    auto content = bench.stage->prepare(Bytes("theirs"), FileMode::regular);
    ASSERT_TRUE(content);
    merged.paths.push_back({path, stage::MergedPath::Action::put, {}, *content});
    const bool is_own = path == std::string("own.log");
    merged.tracked.emplace(path, is_own ? stage::TrackedAs::staged : stage::TrackedAs::taken_in);
  }
  ASSERT_TRUE(bench.stage->integrate(bench.stage->base(), merged, {RevisionId("r9")}));
  ASSERT_TRUE(bench.rename("a.log", "c.log") && bench.unlink("own.log"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.changes(), (Names{"A .gitignore", "D a.log", "A b.log"}));
    bench.reopen();
  }
  Frozen layer = freeze();
  EXPECT_EQ(layer.deletions, Names{"a.log"});
  ASSERT_TRUE(bench.unlink("b.log"));
  settle(layer, "r2");
  EXPECT_EQ(bench.changes(), Names{"D b.log"}) << "as any file of the base";
}

TEST_F(PublicationTest, AConflictGoesOnInWhatIsRenamedOverItsFile) {
  ASSERT_TRUE(put_merged(bench, {{"new", "marked"}}, revision_of("r2", base)));
  const auto ino = bench.stat("new").ino;
  ASSERT_TRUE(bench.stage->record_conflicted(
      {{.path = "new", .reason = "both", .has_markers = true, .left = ContentHash::of("marked"), .ino = ino}}));
  ASSERT_TRUE(bench.rename("new", "moved") && bench.put("tmp", "edited") && bench.rename("tmp", "moved"));
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(bench.stage->conflicted().size(), 1u);
    EXPECT_EQ(bench.stage->conflicted().front().ino, bench.stat("moved").ino);
    EXPECT_EQ(bench.stage->find_recorded(bench.stat("moved").ino), bench.stage->find("moved"));
    bench.reopen();
  }
}

TEST_F(PublicationTest, AConflictMovesWithTheDirectoryAboveIt) {
  ASSERT_TRUE(bench.mkdir("top") && bench.mkdir("top/in") && bench.mkdir("other") && bench.mkdir("topmost"));
  ASSERT_TRUE(bench.stage->record_conflicted({{"top/in/f", "", false, std::nullopt, "top/in/f.head"},
                                              {"topmost/f", "", true, ContentHash::of("marked")},
                                              {"top/in", "", false, std::nullopt, "", 0, true}}));
  auto expect = [&](const std::vector<std::string>& expected, const char* why) {
    for (int round = 0; round < 2; ++round) {
      std::vector<std::string> paths;
      for (const auto& each : bench.stage->conflicted()) {
        paths.push_back(each.path);
        if (!each.beside.empty()) paths.push_back(each.beside);
      }
      EXPECT_EQ(paths, expected) << why;
      bench.reopen();
    }
  };
  ASSERT_TRUE(bench.rename("top", "other/top"));
  expect({"other/top/in/f", "other/top/in/f.head", "topmost/f", "other/top/in"}, "moved");
  ASSERT_TRUE(bench.rename("other/top", "topmost", stage::RenameMode::exchange));
  expect({"topmost/in/f", "topmost/in/f.head", "other/top/f", "topmost/in"}, "exchanged");
  ASSERT_TRUE(bench.rename("topmost/in", "topmost/out"));
  expect({"topmost/out/f", "topmost/out/f.head", "other/top/f", "topmost/in"},
         "what is in conflict itself was moved away");
}

TEST_F(PublicationTest, AMergeDoesNotHoldIfALocalOnlyFileMovedThatItPutInConflict) {
  stage::Merged merged;
  merged.conflicted = {{".env", "not ignored any more", false, std::nullopt, "", 0, true}};
  EXPECT_EQ(bench.stage->integrate(revision_of("r2", base), merged, {}).error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.put(".env", "local"));
  EXPECT_TRUE(bench.stage->integrate(revision_of("r2", base), merged, {}));
}

TEST_F(PublicationTest, AFileMayBeCalledAsTheStateIs) {
  // Written after a merge looked, so that the merge does not hold.
  ASSERT_TRUE(bench.put("(state)", "mine"));
  stage::Merged merged;
  merged.has_state = true;
  auto next = base;
  next.insert_or_assign("(state)", test::Text("theirs"));
  EXPECT_EQ(bench.stage->integrate(revision_of("r2", next), merged, {}).error().code, ErrorCode::busy);
}

TEST_F(PublicationTest, DiscardTellsStateThatIsPendingFromWhatCameAfterIt) {
  ASSERT_TRUE(bench.stage->stage_state("{\"a\":1}"));
  freeze();
  EXPECT_EQ(bench.stage->discard("").error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.stage->stage_state("{\"a\":2}"));
  ASSERT_TRUE(bench.stage->discard(""));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bench.stage->staged_state(), "{\"a\":1}");
    bench.reopen();
  }
}

/// Staged files are compared without the lock, which takes a while if large files were overwritten.
TEST_F(PublicationTest, DiscardBesideAMergeDropsAllOfItOrNothing) {
  const std::string large(16 << 20, 'x');
  base.insert_or_assign("large", test::Text(large));
  for (int round = 0; round < 20; ++round) {
    test::Workbench other;
    other.open(revision_of("r1", base));
    ASSERT_TRUE(other.put("large", large));
    stage::Merged merged;
    auto content = other.stage->prepare(Bytes("<<<<<<<"), FileMode::regular);
    ASSERT_TRUE(content);
    merged.paths.push_back({"marked", stage::MergedPath::Action::put, {}, *content});
    merged.conflicted = {{"marked", "both wrote it", true, ContentHash::of("<<<<<<<")}};
    std::latch begins(2);
    std::thread merging([&] {
      begins.arrive_and_wait();
      EXPECT_TRUE(other.stage->integrate(revision_of("r2", base), merged, {RevisionId("r9")}));
    });
    begins.arrive_and_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(round));
    EXPECT_TRUE(other.stage->discard(""));
    merging.join();
    const bool is_there = static_cast<bool>(other.stage->find("marked"));
    EXPECT_EQ(!other.stage->conflicted().empty(), is_there) << round;
    EXPECT_EQ(!other.stage->merge_parents().empty(), is_there) << round;
  }
}

TEST_F(PublicationTest, DiscardLeavesThePendingLayerAlone) {
  ASSERT_TRUE(bench.put("f", "x"));
  Frozen layer = freeze();
  ASSERT_TRUE(bench.put("g", "y"));
  EXPECT_EQ(bench.stage->discard("").error().code, ErrorCode::busy);
  EXPECT_EQ(bench.stage->discard("f").error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.stage->discard("g"));
  EXPECT_EQ(bench.changes(), Names{"A f*"});
}

TEST_F(PublicationTest, AWriterThatMeetsASettledFileBringsItUpAgain) {
  ASSERT_TRUE(bench.put("f", "text"));
  auto open = bench.find("f");
  settle(freeze(), "r2");
  EXPECT_EQ(bench.stage->read(open, 0, 4).error().code, ErrorCode::busy);
  ASSERT_TRUE(bench.write(open, 4, " and more"));
  EXPECT_EQ(bench.read("f"), "text and more");
}

TEST_F(PublicationTest, DiscardingASiblingLeavesAFileThatStandsInADirectorysPlace) {
  ASSERT_TRUE(bench.unlink("d/b"));
  ASSERT_TRUE(bench.unlink("d/e/c"));
  ASSERT_TRUE(bench.rmdir("d/e"));
  ASSERT_TRUE(bench.rmdir("d"));
  ASSERT_TRUE(bench.put("d", "a file now"));
  // Their names sort before, right after ("d." < "d/b") and after it.
  for (const char* sibling : {"b", "d-", "d.txt", "e"}) {
    ASSERT_TRUE(bench.put(sibling, "new"));
    auto discarded = bench.stage->discard(sibling);
    ASSERT_TRUE(discarded) << sibling << ": " << discarded.error().message;
    EXPECT_EQ(bench.changes(), (Names{"A d", "D d/b", "D d/e/c"})) << sibling;
    EXPECT_EQ(bench.read("d").value(), "a file now");
  }
  EXPECT_EQ(bench.stage->discard("d/b").error().code, ErrorCode::busy) << "the file is in its way";
  ASSERT_TRUE(bench.stage->discard("d"));
  EXPECT_EQ(bench.changes(), Names());
  EXPECT_EQ(bench.files(), base);
}

}  // namespace
}  // namespace playfs
