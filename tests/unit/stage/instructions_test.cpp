// Files that give instructions to agents, hidden in a work tree: only lookups and listings leave them out.
#include <gtest/gtest.h>

#include "support/workbench.h"

namespace playfs::stage {
namespace {

using test::revision_of;
using test::Texts;
using Lines = std::vector<std::string>;

class HiddenInstructions : public testing::Test {
 protected:
  void open(Instructions shown, RevisionTreePtr base) {
    bench_.stage.reset();
    StageOptions options = bench_.options();
    options.instructions = shown;
    auto opened = Stage::open(options, bench_.clock, std::move(base));
    ASSERT_TRUE(opened) << opened.error().message;
    bench_.stage = std::move(*opened);
  }
  void reopen(Instructions shown) { open(shown, bench_.stage->base()); }
  std::string read(std::string_view path) { return bench_.read(path).value_or("<nothing>"); }
  /// What is published of the staged changes.
  Texts freeze(const std::string& tx, const Texts& on) {
    auto frozen = bench_.stage->freeze(tx);
    EXPECT_TRUE(frozen && *frozen);
    return frozen && *frozen ? bench_.published(**frozen, on) : Texts();
  }

  const Texts files_ = {{"AGENTS.md", "obey"}, {".claude/settings.json", "hooks"}, {"src/CLAUDE.md", "obey"},
                        {"src/x.c", "int x;"}, {"only/AGENTS.md", "obey"},         {"README.md", "read"}};
  const RevisionTreePtr base_ = revision_of("one", files_);
  test::Workbench bench_;
};

TEST_F(HiddenInstructions, AreNeitherListedNorFound) {
  open(Instructions::hide, base_);
  EXPECT_EQ(bench_.list(""), (Lines{"README.md", "only", "src"}));
  EXPECT_EQ(bench_.list("src"), Lines{"x.c"});
  EXPECT_EQ(bench_.find("AGENTS.md"), nullptr);
  EXPECT_EQ(bench_.find(".claude"), nullptr);
  EXPECT_EQ(bench_.stage->hidden(), (Lines{".claude/settings.json", "AGENTS.md", "only/AGENTS.md", "src/CLAUDE.md"}));
  EXPECT_TRUE(bench_.stage->is_hidden("AGENTS.md"));
  EXPECT_FALSE(bench_.stage->is_hidden("README.md"));
  EXPECT_EQ(bench_.changes(), Lines{}) << "to hide is no change";
  reopen(Instructions::show);
  EXPECT_EQ(read("src/CLAUDE.md"), "obey");
  EXPECT_EQ(bench_.stage->hidden(), Lines{});
}

TEST_F(HiddenInstructions, ListingsGoOnAfterThem) {
  Texts many = {{"z", "last"}};
  for (int i = 0; i < 300; ++i) many.emplace(".claude/" + std::to_string(i), "x");
  for (const char* name : {".claude.md", "AGENTS.md", "CLAUDE.md", "GEMINI.md"}) many.emplace(name, "x");
  open(Instructions::hide, revision_of("many", many));
  Lines names;
  for (std::uint64_t after = 0;;) {
    auto some = bench_.stage->list(bench_.stage->root(), after, 1);
    if (some->empty()) break;
    names.push_back(some->front().name);
    after = some->front().cookie;
  }
  EXPECT_EQ(names, (Lines{".claude.md", "z"}));
}

TEST_F(HiddenInstructions, AreCarriedForward) {
  open(Instructions::hide, base_);
  ASSERT_TRUE(bench_.put("src/x.c", "int y;"));
  ASSERT_TRUE(bench_.put("new", "file"));
  Texts after = files_;
  after.at("src/x.c") = "int y;";
  after.emplace("new", "file");
  EXPECT_EQ(freeze("tx", files_), after);
}

TEST_F(HiddenInstructions, KeepTheirDirectoryFromBeingRemoved) {
  open(Instructions::hide, base_);
  ASSERT_TRUE(bench_.unlink("src/x.c"));
  EXPECT_TRUE(bench_.stage->has_but_hidden(bench_.find("src")));
  const Status removed = bench_.rmdir("src");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::not_empty);
  EXPECT_NE(removed.error().message.find("hidden"), std::string::npos);
  EXPECT_EQ(bench_.changes(), Lines{"D src/x.c"});
}

TEST_F(HiddenInstructions, MoveWithTheirDirectoryAndStayHidden) {
  open(Instructions::hide, base_);
  ASSERT_TRUE(bench_.rename("src", "lib"));
  EXPECT_EQ(bench_.list("lib"), Lines{"x.c"});
  EXPECT_TRUE(bench_.stage->is_hidden("lib/CLAUDE.md"));
  Texts after = files_;
  after.erase("src/CLAUDE.md"), after.erase("src/x.c");
  after.insert({{"lib/CLAUDE.md", "obey"}, {"lib/x.c", "int x;"}});
  EXPECT_EQ(freeze("tx", files_), after);
}

TEST_F(HiddenInstructions, AreNotReplacedUnaware) {
  open(Instructions::hide, base_);
  for (const Status& refused :
       {bench_.put("AGENTS.md", "mine"), bench_.mkdir(".claude"), bench_.symlink("x", "AGENTS.md"),
        bench_.link("README.md", "AGENTS.md"), bench_.rename("README.md", "AGENTS.md"),
        bench_.rename("README.md", "AGENTS.md", RenameMode::exchange)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::not_permitted);
    EXPECT_FALSE(refused.error().hint.empty());
  }
  EXPECT_EQ(bench_.changes(), Lines{});
}

TEST_F(HiddenInstructions, OfOnesOwnAreVisibleAndStaySoWhenPublished) {
  open(Instructions::hide, base_);
  ASSERT_TRUE(bench_.put("GEMINI.md", "mine"));
  ASSERT_TRUE(bench_.rename("README.md", "src/AGENTS.md"));
  EXPECT_EQ(read("GEMINI.md"), "mine");
  EXPECT_EQ(read("src/AGENTS.md"), "read");
  Texts after = freeze("tx", files_);
  ASSERT_TRUE(bench_.stage->settle("tx", revision_of("two", after)));
  EXPECT_EQ(bench_.changes(), Lines{});
  EXPECT_EQ(read("GEMINI.md"), "mine");
  reopen(Instructions::hide);
  EXPECT_EQ(bench_.find("GEMINI.md"), nullptr) << "published, and asked to be hidden";
  reopen(Instructions::hide_others);
  EXPECT_EQ(read("GEMINI.md"), "mine");
  EXPECT_EQ(bench_.find("AGENTS.md"), nullptr);
}

TEST_F(HiddenInstructions, AreThoseOfOthersWhereverTheSameContentIsTrusted) {
  open(Instructions::hide_others, base_);
  ASSERT_TRUE(bench_.stage->trust_instructions({ContentHash::of("hooks")}));
  EXPECT_EQ(bench_.list(""), (Lines{".claude", "README.md", "only", "src"}));
  EXPECT_EQ(bench_.list(".claude"), Lines{"settings.json"});
  // Others change it: it is theirs now.
  Texts theirs = files_;
  theirs.at(".claude/settings.json") = "their hooks";
  ASSERT_TRUE(bench_.move_base(revision_of("two", theirs)));
  EXPECT_EQ(bench_.find(".claude"), nullptr);
  // They take it back.
  ASSERT_TRUE(bench_.move_base(revision_of("three", files_)));
  EXPECT_EQ(read(".claude/settings.json"), "hooks");
}

TEST_F(HiddenInstructions, ThatWereStagedWhileShownStayVisibleAndArePublished) {
  open(Instructions::show, base_);
  ASSERT_TRUE(bench_.put("AGENTS.md", "edited"));
  ASSERT_TRUE(bench_.put(".claude/mine", "mine"));
  ASSERT_TRUE(bench_.unlink("only/AGENTS.md"));
  ASSERT_TRUE(bench_.chmod("src/CLAUDE.md", 0755));
  const Lines staged = bench_.changes();
  for (auto shown : {Instructions::hide, Instructions::show, Instructions::hide_others}) {
    reopen(shown);
    EXPECT_EQ(bench_.changes(), staged);
    EXPECT_EQ(read("AGENTS.md"), "edited");
    EXPECT_EQ(read("src/CLAUDE.md"), "obey");
  }
  EXPECT_EQ(bench_.list(".claude"), Lines{"mine"}) << "beside one that is hidden";
  EXPECT_EQ(bench_.stage->hidden(), Lines{".claude/settings.json"});
  Texts after = files_;
  after.at("AGENTS.md") = "edited";
  after.at("src/CLAUDE.md").mode = FileMode::executable;
  after.emplace(".claude/mine", "mine");
  after.erase("only/AGENTS.md");
  EXPECT_EQ(freeze("tx", files_), after);
}

TEST_F(HiddenInstructions, AreHiddenAgainWhenWhatWasStagedIsDiscarded) {
  open(Instructions::show, base_);
  ASSERT_TRUE(bench_.put("AGENTS.md", "edited"));
  ASSERT_TRUE(bench_.unlink("only/AGENTS.md"));
  reopen(Instructions::hide);
  ASSERT_TRUE(bench_.stage->discard(""));
  EXPECT_EQ(bench_.find("AGENTS.md"), nullptr);
  EXPECT_EQ(bench_.changes(), Lines{});
  EXPECT_EQ(bench_.stage->hidden().size(), 4U);
}

TEST_F(HiddenInstructions, FollowTheBase) {
  open(Instructions::hide, base_);
  ASSERT_TRUE(bench_.put("mine", "mine"));
  Texts theirs = files_;
  theirs.erase("AGENTS.md");
  theirs.at("src/CLAUDE.md") = "changed";
  theirs.emplace("new/AGENTS.md", "more");
  ASSERT_TRUE(bench_.stage->integrate(revision_of("two", theirs), {}, {}));
  EXPECT_EQ(bench_.changes(), Lines{"A mine"});
  EXPECT_EQ(bench_.list("new"), Lines{});
  Texts after = theirs;
  after.emplace("mine", "mine");
  EXPECT_EQ(freeze("tx", theirs), after);
}

TEST_F(HiddenInstructions, ThatAMergePutsAreHiddenUnlessTheyAreInConflict) {
  auto put = [&](const std::string& path, const std::string& text) {
    return MergedPath{path, MergedPath::Action::put, {}, bench_.stage->prepare(Bytes(text), FileMode::regular).value()};
  };
  open(Instructions::hide, base_);
  ASSERT_TRUE(bench_.put("GEMINI.md", "mine"));
  Merged merged;
  merged.paths = {put("AGENTS.md", "theirs too"), put("GEMINI.md", "mine and theirs"), put("src/CLAUDE.md", "<<<<<<<")};
  merged.conflicted = {{.path = "src/CLAUDE.md", .reason = "both", .has_markers = true, .left = std::nullopt}};
  ASSERT_TRUE(bench_.stage->integrate(base_, merged, {RevisionId("branch")}));
  for (int round = 0; round < 2; ++round, reopen(Instructions::hide)) {
    EXPECT_EQ(bench_.find("AGENTS.md"), nullptr) << "nobody here has seen it";
    EXPECT_EQ(read("GEMINI.md"), "mine and theirs");
    EXPECT_EQ(read("src/CLAUDE.md"), "<<<<<<<") << "it has to be resolved";
    EXPECT_EQ(bench_.changes(), (Lines{"M AGENTS.md", "A GEMINI.md", "M src/CLAUDE.md"}));
  }
  ASSERT_TRUE(bench_.stage->record_conflicted({}));
  Texts after = freeze("tx", files_);
  EXPECT_EQ(after.at("AGENTS.md").content, "theirs too");
  ASSERT_TRUE(bench_.stage->settle("tx", revision_of("two", after)));
  reopen(Instructions::hide_others);
  EXPECT_EQ(bench_.find("AGENTS.md"), nullptr) << "publishing it makes it nobody's own";
  EXPECT_EQ(read("GEMINI.md"), "mine and theirs");
}

TEST_F(HiddenInstructions, ThatAMergePutStayHiddenWhenACheckpointOfThemIsRestored) {
  open(Instructions::hide, base_);
  ASSERT_TRUE(bench_.put("GEMINI.md", "mine"));
  Merged merged;
  merged.paths = {{"AGENTS.md",
                   MergedPath::Action::put,
                   {},
                   bench_.stage->prepare(Bytes("theirs too"), FileMode::regular).value()}};
  ASSERT_TRUE(bench_.stage->integrate(base_, merged, {RevisionId("branch")}));
  ASSERT_TRUE(bench_.stage->checkpoint("merging"));
  ASSERT_TRUE(bench_.stage->discard(""));
  ASSERT_TRUE(bench_.stage->restore(1, {}));
  for (int round = 0; round < 2; ++round, reopen(Instructions::hide)) {
    EXPECT_EQ(bench_.find("AGENTS.md"), nullptr);
    EXPECT_EQ(read("GEMINI.md"), "mine");
    EXPECT_EQ(bench_.changes(), (Lines{"M AGENTS.md", "A GEMINI.md"}));
  }
}

TEST_F(HiddenInstructions, ThatWerePublishedFromHereAreOfOthersOnceTheirChangesAreMerged) {
  open(Instructions::show, base_);
  ASSERT_TRUE(bench_.put("AGENTS.md", "edited"));
  reopen(Instructions::hide_others);
  Texts after = freeze("tx", files_);
  after.at("AGENTS.md") = "edited, and their lines";
  after.at("src/CLAUDE.md") = "theirs";
  ASSERT_TRUE(bench_.stage->settle("tx", revision_of("two", after)));
  for (int round = 0; round < 2; ++round, reopen(Instructions::hide_others)) {
    EXPECT_EQ(bench_.find("AGENTS.md"), nullptr);
    EXPECT_EQ(bench_.find("src/CLAUDE.md"), nullptr);
  }
}

TEST_F(HiddenInstructions, ThatAMergePutStayHiddenInCheckpoints) {
  open(Instructions::hide_others, base_);
  ASSERT_TRUE(bench_.stage->trust_instructions({ContentHash::of("hooks")}));
  Merged merged;
  for (const char* path : {"AGENTS.md", ".claude/settings.json"})
    merged.paths.push_back({path,
                            MergedPath::Action::put,
                            {},
                            bench_.stage->prepare(Bytes(std::string("theirs")), FileMode::regular).value()});
  ASSERT_TRUE(bench_.stage->integrate(base_, merged, {RevisionId("branch")}));
  EXPECT_EQ(bench_.find(".claude"), nullptr) << "what was one's own, and is theirs now";
  ASSERT_TRUE(bench_.put("GEMINI.md", "mine"));
  const auto kept = bench_.stage->checkpoint("all");
  ASSERT_TRUE(kept && *kept);
  ASSERT_TRUE(bench_.stage->discard(""));
  EXPECT_EQ(read(".claude/settings.json"), "hooks");
  ASSERT_TRUE(bench_.stage->restore((*kept)->id, {}));
  for (int round = 0; round < 2; ++round, reopen(Instructions::hide_others)) {
    EXPECT_EQ(bench_.changes(), (Lines{"M .claude/settings.json", "M AGENTS.md", "A GEMINI.md"}));
    EXPECT_EQ(bench_.find("AGENTS.md"), nullptr);
    EXPECT_EQ(bench_.find(".claude"), nullptr);
    EXPECT_EQ(read("GEMINI.md"), "mine");
  }
  freeze("tx", files_);
  EXPECT_EQ(bench_.stage->published_instructions(), (std::vector{ContentHash::of("mine")}));
}

TEST_F(HiddenInstructions, ThatAreLinksAreNoTextsOfTheSameBytes) {
  open(Instructions::hide_others, base_);
  ASSERT_TRUE(bench_.put("GEMINI.md", "README.md"));
  ASSERT_TRUE(bench_.symlink("src", "new.md"));
  ASSERT_TRUE(bench_.rename("new.md", "only/CLAUDE.md"));
  Texts after = freeze("tx", files_);
  after.at("GEMINI.md").mode = FileMode::symlink;
  ASSERT_TRUE(bench_.stage->settle("tx", revision_of("two", after)));
  EXPECT_EQ(bench_.find("GEMINI.md"), nullptr);
  EXPECT_NE(bench_.find("only/CLAUDE.md"), nullptr);
}

}  // namespace
}  // namespace playfs::stage
