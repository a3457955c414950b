// Untrusted ignore rules: what is bounded, what is reported, and what is done without the stage's lock.
#include "stage/verdicts.h"

#include <future>

#include "support/workbench.h"

namespace playfs::stage {
namespace {

using Names = std::vector<std::string>;

std::string lines(std::size_t count, const std::string& line = "a") {
  std::string text;
  for (; count > 0; --count) text += line + "\n";
  return text;
}

class StrangersRulesTest : public testing::Test {
 protected:
  /// On a base whose `.gitignore` is in a chunk that contains `rules`.
  void open_on(const std::string& rules) {
    text = rules;
    reopen_on(revision("r1", "chunk"));
  }
  static RevisionTreePtr revision(const std::string& id, const std::string& chunk) {
    Revision revision;
    revision.id = RevisionId(id);
    FileEntry entry;
    entry.chunks = {ChunkId(chunk)};
    revision.manifest.files.emplace(".gitignore", entry);
    return std::make_shared<RevisionTree>(std::move(revision));
  }
  void reopen_on(const RevisionTreePtr& base) {
    auto options = bench.options();
    options.read_lower = [this](const FileRef&, std::size_t most) {
      ++reads;
      if (while_reading) while_reading();
      return std::optional(text.substr(0, most));
    };
    options.tell_of_rules = [this](const Error& error) { told.push_back(error.message); };
    bench.stage.reset();
    bench.stage = Stage::open(options, bench.clock, base).value();
  }
  std::string refusal() {
    auto frozen = bench.stage->freeze("tx");
    return frozen ? "" : frozen.error().message;
  }

  test::Workbench bench;
  std::string text;
  std::function<void()> while_reading;
  int reads = 0;
  Names told;
};

TEST_F(StrangersRulesTest, ALineLongerThanAnyPathIsNoRuleAndIsTold) {
  open_on("*.o\n" + std::string(600'000, '*') + "x*\n" + std::string(kMaxPathLength, '?') + "\n*.key\n");
  ASSERT_TRUE(bench.put("a.o", "object"));
  ASSERT_TRUE(bench.put("b.key", "secret"));
  ASSERT_TRUE(bench.put("x", "text"));
  EXPECT_EQ(bench.changes(), Names{"A x"});
  EXPECT_EQ(bench.stage->unpublished(), (Names{"a.o", "b.key"}));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find(".gitignore: 1 lines"), std::string::npos) << told[0];
  ASSERT_TRUE(bench.stage->freeze("tx").value());
}

TEST_F(StrangersRulesTest, AFileOverABoundStopsACommitUntilItIsShortened) {
  for (const std::string& rules : {lines(kMaxRules + 1), std::string(kMaxRuleFile, '#') + "\n"}) {
    open_on(rules);
    ASSERT_TRUE(bench.put("secret.key", "text"));
    EXPECT_NE(refusal().find(".gitignore"), std::string::npos) << refusal();
    EXPECT_EQ(bench.changes(), Names{"A secret.key"});
    ASSERT_EQ(told.size(), 1U) << "once, not at every look";
    EXPECT_EQ(reads, 1) << "nor read at every look";
    ASSERT_TRUE(bench.put(".gitignore", "*.key\n"));
    EXPECT_EQ(bench.changes(), Names{"M .gitignore"});
    ASSERT_TRUE(bench.stage->freeze("tx").value());
    ASSERT_TRUE(bench.stage->thaw("tx"));
    ASSERT_TRUE(bench.stage->discard(""));
    ASSERT_TRUE(bench.unlink("secret.key"));
    told.clear();
    reads = 0;
  }
}

TEST_F(StrangersRulesTest, ManyFilesOverABoundTogetherStopACommit) {
  bench.open(nullptr);
  std::string longest;
  for (std::size_t size = 0; size < kMaxRuleFile - 5000; size += 4001) longest += "#" + std::string(3999, ' ') + "\n";
  for (const std::string& rules : {lines(kMaxRules), longest}) {
    const std::size_t fit = rules == longest ? kMaxTreeRuleBytes / longest.size() : kMaxTreeRules / kMaxRules;
    for (std::size_t i = 0; i <= fit; ++i) {
      const std::string directory = "d" + std::to_string(i);
      ASSERT_TRUE(bench.mkdir(directory));
      ASSERT_TRUE(bench.put(directory + "/.gitignore", rules));
      auto frozen = bench.stage->freeze("tx");
      ASSERT_EQ(frozen.has_value(), i < fit) << directory;
      if (frozen) {
        ASSERT_TRUE(bench.stage->thaw("tx"));
      }
    }
    ASSERT_TRUE(bench.stage->discard(""));
    bench.reopen();
  }
}

TEST_F(StrangersRulesTest, AreReadOnceAndWithoutTheLock) {
  open_on("*.o\n");
  bool is_free = true;
  while_reading = [&] {
    auto look = std::async(std::launch::async, [&] { static_cast<void>(bench.stage->find("x")); });
    is_free = look.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    if (!is_free) GTEST_FAIL() << "it waits for whoever reads ignore rules";
  };
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(bench.put("a" + std::to_string(i), "text"));
    EXPECT_EQ(bench.changes().size(), static_cast<std::size_t>(i + 1));
    EXPECT_EQ(bench.stage->unpublished(), Names());
  }
  ASSERT_TRUE(bench.stage->freeze("tx").value());
  EXPECT_EQ(reads, 1);
}

TEST_F(StrangersRulesTest, FollowWhatIsWrittenToThem) {
  open_on("*.o\n");
  ASSERT_TRUE(bench.put("a.o", "text"));
  ASSERT_TRUE(bench.put("a.c", "text"));
  EXPECT_EQ(bench.changes(), Names{"A a.c"});
  ASSERT_TRUE(bench.put(".gitignore", "*.c\n"));
  EXPECT_EQ(bench.changes(), (Names{"M .gitignore", "A a.o"}));
  ASSERT_TRUE(bench.put(".gitignore", "*.[oc]\n"));
  EXPECT_EQ(bench.changes(), Names{"M .gitignore"});
  ASSERT_TRUE(bench.unlink(".gitignore"));
  EXPECT_EQ(bench.changes(), (Names{"D .gitignore", "A a.c", "A a.o"}));
}

TEST_F(StrangersRulesTest, ApplyToNewFilesWhereTheyAre) {
  bench.open(nullptr);
  ASSERT_TRUE(bench.mkdir("a"));
  ASSERT_TRUE(bench.mkdir("b"));
  ASSERT_TRUE(bench.put("a/.gitignore", "/x\n"));
  ASSERT_TRUE(bench.put("a/x", "text"));
  EXPECT_EQ(bench.changes(), Names{"A a/.gitignore"});
  ASSERT_TRUE(bench.rename("a/x", "b/x"));
  EXPECT_EQ(bench.changes(), (Names{"A a/.gitignore", "A b/x"}));
  ASSERT_TRUE(bench.rename("a", "b/a"));
  ASSERT_TRUE(bench.rename("b/x", "b/a/x"));
  EXPECT_EQ(bench.changes(), Names{"A b/a/.gitignore"});
}

/// Each takes many steps per name, and there are almost as many as allowed.
std::string costly_rules() { return lines(kMaxRules - 3, "*" + std::string(20, 'a') + "b*"); }

TEST(Verdicts, WhatTakesLongIsAskedForAndThenKnown) {
  auto rules = std::make_shared<IgnoreRules>(IgnoreRules::parse("/ignored*\n" + costly_rules()));
  Verdicts verdicts;
  verdicts.begin_survey(Effort(1000));
  auto chain = verdicts.chain("", {nullptr, 0, {rules}});
  const std::string name(100, 'a');
  EXPECT_EQ(verdicts.is_ignored(chain, name, false), std::nullopt);
  EXPECT_EQ(verdicts.is_ignored(chain, "ignored" + name, true), std::nullopt) << "all the rest is asked for too";
  auto questions = verdicts.end_survey();
  ASSERT_EQ(questions.names.size(), 2U);

  test::Workbench bench;
  auto spool = Spool::open(bench.options().directory + "-spool", 1).value();
  auto answers = answer(questions, bench.options(), *spool);
  EXPECT_EQ(verdicts.learn(std::move(questions), std::move(answers)).size(), 0U);
  for (int round = 0; round < 3; ++round) {
    verdicts.begin_survey(Effort(0));
    chain = verdicts.chain("", {nullptr, 0, {rules}});
    EXPECT_EQ(verdicts.is_ignored(chain, name, false), false);
    EXPECT_EQ(verdicts.is_ignored(chain, "ignored" + name, true), true);
    EXPECT_TRUE(verdicts.end_survey().empty());
  }
  // Other rules need another answer, and answers that no survey uses any more are forgotten.
  verdicts.begin_survey(Effort(1000));
  chain = verdicts.chain("", {nullptr, 0, {std::make_shared<IgnoreRules>(*rules)}});
  EXPECT_EQ(verdicts.is_ignored(chain, name, false), std::nullopt);
}

TEST_F(StrangersRulesTest, CostlyOnesGiveTheSameAnswers) {
  open_on(costly_rules() + "!ignored-not\nignored*\n!*/taken-back*\n");
  const std::string name(200, 'a');
  Names added, ignored;
  ASSERT_TRUE(bench.mkdir("new"));
  ASSERT_TRUE(bench.mkdir("ignored-directory"));
  ASSERT_TRUE(bench.put("ignored-directory/x", "text"));
  ignored.emplace_back("ignored-directory/");
  for (int i = 10; i < 20; ++i) {
    ASSERT_TRUE(bench.put("new/" + std::to_string(i) + name, "text"));
    added.push_back("A new/" + std::to_string(i) + name);
    ASSERT_TRUE(bench.put("new/ignored" + std::to_string(i) + name, "text"));
    ignored.push_back("new/ignored" + std::to_string(i) + name);
  }
  EXPECT_EQ(bench.changes(), added);
  EXPECT_EQ(bench.stage->unpublished(), ignored);
  EXPECT_EQ(bench.stage->freeze("tx").value()->files.size(), added.size());
}

}  // namespace
}  // namespace playfs::stage
