// Ignore rules by themselves, compared with git if it is installed, and in the tree.
#include "stage/ignore.h"

#include <fstream>
#include <random>
#include <tuple>

#include "support/workbench.h"

namespace playfs::stage {
namespace {

using Names = std::vector<std::string>;

bool matches(std::string_view pattern, std::string_view text) {
  Effort all;
  return Pattern(pattern).matches(text, all).value();
}

Verdict judged(const IgnoreRules& rules, std::string_view path, bool directory) {
  Effort all;
  return rules.judge(path, directory, all).value();
}

TEST(Wildmatch, KeepsToGit) {
  struct Case {
    const char* pattern;
    const char* text;
    bool matches;
  };
  const Case cases[] = {
      {"foo", "foo", true},
      {"foo", "fo", false},
      {"*", "foo", true},
      {"f*", "foo", true},
      {"*/foo", "a/foo", true},
      {"*", "a/b", false},
      {"?", "a", true},
      {"?", "/", false},
      {"a?b", "a/b", false},
      {"**/foo", "foo", true},
      {"**/foo", "a/b/foo", true},
      {"**/foo", "xfoo", false},
      {"a/**", "a/b", true},
      {"a/**", "a/b/c", true},
      {"a/**", "a", false},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "axb", false},
      {"a**b", "axxb", true},
      {"a**b", "ax/xb", false},
      {"**", "a/b/c", true},
      {"[abc]", "b", true},
      {"[!abc]", "b", false},
      {"[^abc]", "d", true},
      {"[a-c]x", "bx", true},
      {"[]]", "]", true},
      {"[!]]", "]", false},
      {"[]-]", "-", true},
      {"[a-]", "-", true},
      {"[9-0]", "9", true},
      {"[9-0]", "0", false},
      {"a[/]b", "a/b", false},
      {"a[!x]b", "a/b", false},
      {"[[:digit:]]", "7", true},
      {"[[:digit:][:upper:]]", "x", false},
      {"[\\]]", "]", true},
      {"\\*", "*", true},
      {"\\*", "x", false},
      {"[", "[", false},
      {"[a", "a", false},
      {"a\\", "a", false},
      {"***/b", "a/b", true},
      {"", "", true},
      {"", "a", false},
      {"[[:nonsense:]]", "n", false},
      {"[[:xdigit:]]", "f", true},
      {"[[:xdigit:]]", "g", false},
      {"**/**/x", "x", true},
      {"a/**/**/x", "a/x", true},
  };
  for (const auto& each : cases)
    EXPECT_EQ(matches(each.pattern, each.text), each.matches) << each.pattern << " " << each.text;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}

TEST(Wildmatch, TakesNoMoreStepsThanTheProductOfTheLengths) {
  struct Case {
    std::string pattern, text;
  };
  const std::string flat(4000, 'a'), deep = repeated("a/", 2000) + "a";
  const std::vector<Case> cases = {
      {repeated("*a", 500) + "b", flat},
      {repeated("*a", 500) + "b*", flat},
      {"*" + repeated("a", 2000) + "b*", flat},
      {repeated("*", 4000) + "b?", flat},
      {repeated("**/a/", 300) + "b", deep},
      {repeated("**/a/", 300) + "b*", deep},
      {"**/" + repeated("a/", 1000) + "b*", deep},
      {repeated("**/*a*/", 300) + "b*", deep},
      {"**/" + repeated("*a*/", 500) + "b*", deep},
      {repeated("**/", 1300) + "b*", deep},
      {repeated("[a-z]", 800) + "b?", flat},
  };
  for (const auto& each : cases) {
    const std::uint64_t most = (each.pattern.size() + 1) * (each.text.size() + 1);
    Effort effort(most);
    EXPECT_EQ(Pattern(each.pattern).matches(each.text, effort), false) << each.pattern.substr(0, 30);
  }
}

TEST(Wildmatch, StopsWhereTheEffortDoesNotSuffice) {
  Effort effort(1000);
  EXPECT_EQ(Pattern("*" + repeated("a", 50) + "b*").matches(std::string(200, 'a'), effort), std::nullopt);
  EXPECT_EQ(effort.left(), 0U);
  EXPECT_EQ(Pattern("a").matches("a", effort), std::nullopt) << "and nothing is decided from then on";
}

/// The same by trying every way to read a pattern, which takes exponential time.
bool matches_somehow(std::string_view pattern, std::string_view text, bool after_slash = true) {
  if (pattern.empty()) return text.empty();
  if (after_slash && pattern.starts_with("**/")) {
    for (std::size_t at = 0; at <= text.size(); ++at) {
      bool at_component = at == 0 || text[at - 1] == '/';
      if (at_component && matches_somehow(pattern.substr(3), text.substr(at), true)) return true;
    }
    return false;
  }
  if (after_slash && pattern == "**") return true;
  if (pattern[0] == '*') {
    auto rest = pattern.substr(std::min(pattern.find_first_not_of('*'), pattern.size()));
    for (std::size_t at = 0; at <= text.size(); ++at) {
      if (matches_somehow(rest, text.substr(at), false)) return true;
      if (at < text.size() && text[at] == '/') break;
    }
    return false;
  }
  if (text.empty() || (pattern[0] == '?' ? text[0] == '/' : pattern[0] != text[0])) return false;
  return matches_somehow(pattern.substr(1), text.substr(1), pattern[0] == '/');
}

TEST(Wildmatch, OneWayOfReadingAPatternIsEnough) {
  std::mt19937 random(11);
  const std::vector<std::string> parts = {"a", "b", "a", "*", "*", "?", "/", "**/", "/**/", "/**", "*a", "a*"};
  int matched = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string pattern, text;
    for (unsigned n = 1 + random() % 7; n > 0; --n) pattern += parts[random() % parts.size()];
    for (unsigned n = 1 + random() % 9; n > 0; --n) text += "aaabb//"[random() % 7];
    // Three stars between slashes mean two.
    if (pattern.find("***") != std::string::npos) continue;
    bool expected = matches_somehow(pattern, text);
    matched += expected ? 1 : 0;
    ASSERT_EQ(matches(pattern, text), expected) << pattern << " " << text;
  }
  EXPECT_GT(matched, 5000);
}

TEST(IgnoreRules, ReadAsGitReadsThem) {
  auto judge = [](std::string_view rules, std::string_view path, bool directory = false) {
    return judged(IgnoreRules::parse(rules), path, directory);
  };
  EXPECT_EQ(judge("*.o", "a.o"), Verdict::ignored);
  EXPECT_EQ(judge("*.o", "sub/a.o"), Verdict::ignored);
  EXPECT_EQ(judge("/*.o", "sub/a.o"), Verdict::none);
  EXPECT_EQ(judge("sub/*.o", "sub/a.o"), Verdict::ignored);
  EXPECT_EQ(judge("sub/*.o", "x/sub/a.o"), Verdict::none);
  EXPECT_EQ(judge("build/", "build", true), Verdict::ignored);
  EXPECT_EQ(judge("build/", "build", false), Verdict::none);
  EXPECT_EQ(judge("*.o\n!keep.o", "keep.o"), Verdict::included);
  EXPECT_EQ(judge("!keep.o\n*.o", "keep.o"), Verdict::ignored);
  EXPECT_EQ(judge("# a comment\n\n \n", "# a comment"), Verdict::none);
  EXPECT_EQ(judge("\\#x\n", "#x"), Verdict::ignored);
  EXPECT_EQ(judge("\\!x\n", "!x"), Verdict::ignored);
  EXPECT_EQ(judge("x  \r\n", "x"), Verdict::ignored);
  EXPECT_EQ(judge("x  \n", "x"), Verdict::ignored);
  EXPECT_EQ(judge("x\\ \n", "x "), Verdict::ignored);
  EXPECT_EQ(judge("x\r\n", "x"), Verdict::ignored);
  EXPECT_EQ(judge("\xef\xbb\xbfx\n", "x"), Verdict::ignored);
  EXPECT_EQ(judge("/\n", "a", true), Verdict::none);
}

TEST(IgnoreRules, AgreeWithGitOnRandomPatterns) {
  if (std::system("git --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "git is not installed";
  test::Workbench bench;
  std::string directory = std::filesystem::path(bench.options().directory).parent_path().string() + "/repository";
  ASSERT_EQ(std::system(("git init -q " + directory).c_str()), 0);
  std::mt19937 random(7);
  auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  const std::vector<std::string> parts = {"a",  "b", "*", "**",  "?",   "[ab]", "[!a]",  "a*",
                                          "*b", "/", "/", "**/", "/**", "\\a",  "[a-b]*"};
  const std::vector<std::string> names = {"a", "b", "ab", "ba", "abc", "a.b"};
  for (int round = 0; round < 60; ++round) {
    std::string rules;
    for (int line = 0; line < 4; ++line) {
      std::string rule = random() % 4 == 0 ? "!" : "";
      for (unsigned n = 1 + random() % 4; n > 0; --n) rule += pick(parts);
      if (random() % 4 == 0) rule += "/";
      // git 2.53 reads more than two stars in another way than earlier ones.
      if (rule.find("***") == rule.npos) rules += rule + "\n";
    }
    std::ofstream(directory + "/.gitignore") << rules;
    Names paths;
    for (int i = 0; i < 30; ++i) {
      std::string path = pick(names);
      for (unsigned n = random() % 3; n > 0; --n) path += "/" + pick(names);
      paths.push_back(path);
    }
    std::ofstream input(directory + "/../paths");
    for (const auto& path : paths) input << path << "\n";
    input.close();
    std::ignore =
        std::system(("cd " + directory + " && git check-ignore --no-index --stdin <../paths >../ignored").c_str());
    std::set<std::string> ignored;
    std::ifstream output(directory + "/../ignored");
    for (std::string line; std::getline(output, line);) ignored.insert(line);
    auto parsed = IgnoreRules::parse(rules);
    for (const auto& path : paths) {
      // git is asked about files that do not exist: parents count as directories, the last component does not.
      bool expected = false;
      for (std::size_t slash = path.find('/'); !expected && slash != path.npos; slash = path.find('/', slash + 1))
        expected = judged(parsed, path.substr(0, slash), true) == Verdict::ignored;
      expected = expected || judged(parsed, path, false) == Verdict::ignored;
      EXPECT_EQ(expected, ignored.contains(path)) << path << " under\n" << rules;
    }
  }
}

class IgnoredFilesTest : public testing::Test {
 protected:
  test::Workbench bench;
};

TEST_F(IgnoredFilesTest, StayHereAndTrackedOnesStayTracked) {
  bench.open(test::revision_of("r1", {{".gitignore", "*.o\nbuild/\n"}, {"kept.o", "tracked"}, {"build/x", "tracked"}}));
  ASSERT_TRUE(bench.put("a.o", "object"));
  ASSERT_TRUE(bench.put("kept.o", "changed"));
  ASSERT_TRUE(bench.put("build/x", "changed"));
  ASSERT_TRUE(bench.put("build/y", "new"));
  ASSERT_TRUE(bench.put("build.o", "object"));
  ASSERT_TRUE(bench.mkdir("sub"));
  ASSERT_TRUE(bench.mkdir("sub/build"));
  ASSERT_TRUE(bench.put("sub/build/z", "new"));
  ASSERT_TRUE(bench.put("sub/.gitignore", "!b.o\n"));
  ASSERT_TRUE(bench.put("sub/b.o", "taken back"));
  ASSERT_TRUE(bench.mkdir("file"));
  ASSERT_TRUE(bench.put("file/build", "no directory"));
  ASSERT_TRUE(bench.mkdir("hollow"));
  ASSERT_TRUE(bench.stage->make_special(bench.find(""), "fifo", Kind::fifo, {}));
  EXPECT_EQ(bench.changes(), (Names{"M build/x", "A file/build", "M kept.o", "A sub/.gitignore", "A sub/b.o"}));
  EXPECT_EQ(bench.stage->unpublished(), (Names{"a.o", "build.o", "build/y", "fifo", "hollow/", "sub/build/"}));
  auto layer = bench.stage->freeze("tx");
  ASSERT_TRUE(layer && *layer);
  EXPECT_EQ((*layer)->files.size(), 5U);
}

TEST_F(IgnoredFilesTest, ThePlayfsRulesAreStrongerAndBuiltInOnesWeaker) {
  bench.open(test::revision_of("r1", {}));
  ASSERT_TRUE(bench.put(".gitignore", "*.log\n!x.swp\n"));
  ASSERT_TRUE(bench.put(".playfsignore", "!keep.log\nsecret\n"));
  for (const char* name : {"a.log", "keep.log", "secret", "x.swp", "y.swp", "f~", ".#lock", "4913", ".DS_Store"})
    ASSERT_TRUE(bench.put(name, "text"));
  ASSERT_TRUE(bench.mkdir(".git"));
  ASSERT_TRUE(bench.put(".git/config", "text"));
  ASSERT_TRUE(bench.mkdir(".hg"));
  ASSERT_TRUE(bench.put(".hg/x", "text"));
  ASSERT_TRUE(bench.put("git~1", "text"));
  ASSERT_TRUE(bench.put("not utf8 \xff", "text"));
  EXPECT_EQ(bench.changes(), (Names{"A .gitignore", "A .playfsignore", "A keep.log", "A x.swp"}));
}

TEST_F(IgnoredFilesTest, RulesThatAreNotAtHandStopAFreeze) {
  Revision revision;
  revision.id = RevisionId("r1");
  FileEntry rules;
  rules.chunks = {ChunkId("c1")};
  revision.manifest.files.emplace(".gitignore", rules);
  auto base = std::make_shared<RevisionTree>(std::move(revision));
  bench.open(base);
  ASSERT_TRUE(bench.put("secret.key", "text"));
  EXPECT_EQ(bench.stage->freeze("tx").error().code, ErrorCode::offline);
  auto needed = bench.stage->rules_needed();
  ASSERT_EQ(needed.size(), 1U);
  EXPECT_EQ(needed[0].path, ".gitignore");
  EXPECT_EQ(bench.stage->pending().value(), std::nullopt);
  ASSERT_TRUE(bench.put("secret.key", "still writable"));

  bench.stage.reset();
  auto options = bench.options();
  options.read_lower = [](const FileRef&, std::size_t) { return std::optional<std::string>("*.key\n"); };
  auto stage = Stage::open(options, bench.clock, base);
  ASSERT_TRUE(stage);
  EXPECT_EQ((*stage)->freeze("tx").value(), std::nullopt);
}

TEST_F(IgnoredFilesTest, RulesThatCannotBeReadStopAFreeze) {
  bench.open(nullptr);
  ASSERT_TRUE(bench.put("secret.key", "text"));
  ASSERT_TRUE(bench.put(".gitignore", std::string(1 << 20, '#') + "\n*.key\n"));
  auto frozen = bench.stage->freeze("tx");
  ASSERT_FALSE(frozen) << "rules that were cut off let secret.key through";
  EXPECT_NE(frozen.error().message.find(".gitignore"), std::string::npos) << frozen.error().message;

  ASSERT_TRUE(bench.put(".gitignore", "*.key\n"));
  bench.reopen();
  for (const auto& file : std::filesystem::directory_iterator(bench.spool())) {
    std::string text = read_file(file.path(), 1 << 20).value();
    if (text == "*.key\n") std::filesystem::remove(file.path());
  }
  frozen = bench.stage->freeze("tx");
  ASSERT_FALSE(frozen) << "rules that are gone let secret.key through";
  EXPECT_EQ(frozen.error().code, ErrorCode::corrupt);
  EXPECT_EQ(bench.stage->pending().value(), std::nullopt);
}

}  // namespace
}  // namespace playfs::stage
