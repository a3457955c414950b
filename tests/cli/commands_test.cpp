#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "command_fixture.h"

namespace playfs::app {
namespace {

namespace fs = std::filesystem;

class Commands : public CommandTest {
 protected:
  void SetUp() override {
    write("garden/beds/rose.txt", "rosa\n");
    write("garden/water.sh", "#!/bin/sh\necho wet\n", true);
    write("garden/bytes", std::string("\0\xff\n", 3));
    write("garden/.gitignore", "*.o\n");
    write("garden/ignored.o", "object");
    write("garden/.git/config", "[core]");
    fs::create_symlink("beds/rose.txt", home_ + "/garden/first");
  }

  std::string import_garden() {
    Ran ran = run({"import", "garden", "-m", "Plant"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out.substr(0, ran.out.find(' '));
  }
};

TEST_F(Commands, PrintOneDocumentWithStableKeys) {
  Ran imported = run({"import", "garden", "-m", "Plant", "--json"});
  ASSERT_EQ(imported.code, 0) << imported.err;
  expect_golden("import.json", imported.out);
  expect_golden("ls-projects.json", run({"ls", "--json"}).out);
  expect_golden("ls.json", run({"ls", "garden", "--json"}).out);
  expect_golden("ls-recursive.json", run({"ls", "-R", "garden", "--json"}).out);
  expect_golden("cat.json", run({"cat", "garden", "beds/rose.txt", "bytes", "--json"}).out);
  expect_golden("show.json", run({"show", "garden", "--json"}).out);
  expect_golden("log.json", run({"log", "--project", "garden", "--json"}).out);
  expect_golden("export.json", run({"export", "garden", "copy", "--json"}).out);
  expect_golden("init.json", run({"init", "empty", "--json"}).out);
  expect_golden("error.json", run({"ls", "desert", "--json"}).out);
  expect_golden("usage.json", run({"cat", "--json"}).out);
}

TEST_F(Commands, SpeakToPeople) {
  import_garden();
  expect_golden("ls.txt", run({"ls", "-l", "-R", "garden"}).out);
  expect_golden("log.txt", run({"log", "--project", "garden"}).out);
  expect_golden("show.txt", run({"show", "garden"}).out);
  Ran missing = run({"cat", "garden", "weed"});
  EXPECT_EQ(missing.out, "");
  expect_golden("error.txt", missing.err);
}

TEST_F(Commands, BringBackWhatWasImported) {
  import_garden();
  ASSERT_EQ(run({"export", "garden", "copy"}).code, 0);
  EXPECT_EQ(read("copy/beds/rose.txt"), "rosa\n");
  EXPECT_EQ(read("copy/bytes"), std::string("\0\xff\n", 3));
  EXPECT_EQ(fs::read_symlink(home_ + "/copy/first"), "beds/rose.txt");
  EXPECT_NE(fs::status(home_ + "/copy/water.sh").permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_EQ(fs::status(home_ + "/copy/bytes").permissions() & fs::perms::owner_exec, fs::perms::none);
  EXPECT_FALSE(fs::exists(home_ + "/copy/ignored.o"));
  EXPECT_FALSE(fs::exists(home_ + "/copy/.git"));
  EXPECT_EQ(run({"cat", "garden", "bytes"}).out, std::string("\0\xff\n", 3));
}

TEST_F(Commands, MakeAProjectEqualToADirectory) {
  std::string project = import_garden();
  fs::remove(home_ + "/garden/first");
  fs::remove_all(home_ + "/garden/beds");
  write("garden/beds", "a file now\n");
  write("garden/water.sh", "#!/bin/sh\necho wet\n");
  write("garden/new/deep/file", "");
  Ran again = run({"import", "garden", "--project", "garden", "-m", "Dig"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out.substr(0, again.out.find(' ')), project);
  EXPECT_EQ(run({"ls", "-R", project}).out, ".gitignore\nbeds\nbytes\nnew/deep/file\nwater.sh\n");
  EXPECT_EQ(run({"cat", project, "beds"}).out, "a file now\n");

  Ran same = run({"import", "garden", "--project", project});
  EXPECT_EQ(same.code, 0);
  EXPECT_NE(same.err.find("Nothing to commit"), std::string::npos) << same.err;
}

TEST_F(Commands, ImportAnExportedTreeAgainstWhatItWasMadeFrom) {
  const std::string project = import_garden();
  for (const char* copy : {"mine", "theirs"}) ASSERT_EQ(run({"export", "garden", copy}).code, 0);
  write("theirs/docs/ADA.md", "by ada\n");
  write("theirs/beds/rose.txt", "rosa\nspina\n");
  ASSERT_EQ(run({"import", "theirs", "--project", "garden"}).code, 0);

  write("mine/water.sh", "#!/bin/sh\necho soaked\n", true);
  fs::remove(home_ + "/mine/bytes");
  Ran merged = run({"import", "mine", "--project", "garden", "--json"});
  EXPECT_EQ(merged.code, 0) << merged.out << merged.err;
  EXPECT_NE(merged.out.find("\"merged\""), std::string::npos) << merged.out;
  const std::string both = ".gitignore\nbeds/rose.txt\ndocs/ADA.md\nfirst\nwater.sh\n";
  EXPECT_EQ(run({"ls", "-R", "garden"}).out, both);
  EXPECT_EQ(run({"cat", "garden", "beds/rose.txt"}).out, "rosa\nspina\n");
  EXPECT_FALSE(fs::exists(home_ + "/mine/docs")) << "the directory is its user's";
  EXPECT_NE(run({"import", "mine", "--project", "garden"}).err.find("Nothing to commit"), std::string::npos);

  // It reverts its own line, and still lacks the other's file: neither is a conflict.
  write("mine/water.sh", "#!/bin/sh\necho drowned\n", true);
  Ran again = run({"import", "mine", "--project", "garden"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(run({"ls", "-R", "garden"}).out, both);
  EXPECT_EQ(run({"cat", "garden", "water.sh"}).out, "#!/bin/sh\necho drowned\n");
}

TEST_F(Commands, ImportOfWhatClashesIsABranchUntilBothAreBroughtTogether) {
  import_garden();
  for (const char* copy : {"mine", "theirs"}) ASSERT_EQ(run({"export", "garden", copy}).code, 0);
  write("theirs/beds/rose.txt", "rosa canina\n");
  ASSERT_EQ(run({"import", "theirs", "--project", "garden"}).code, 0);
  write("mine/beds/rose.txt", "rosa rugosa\n");
  Ran branched = run({"import", "mine", "--project", "garden"});
  EXPECT_EQ(branched.code, 3) << branched.err;
  EXPECT_NE(branched.err.find("conflict  beds/rose.txt"), std::string::npos) << branched.err;
  EXPECT_EQ(run({"cat", "garden", "beds/rose.txt"}).out, "rosa canina\n");

  write("mine/beds/rose.txt", "rosa canina\nrosa rugosa\n");
  const auto at = branched.err.find(" --base ");
  ASSERT_NE(at, std::string::npos) << branched.err;
  const std::string head = branched.err.substr(at + 8, branched.err.find('\n', at) - at - 8);
  Ran joined = run({"import", "mine", "--project", "garden", "--base", head});
  EXPECT_EQ(joined.code, 0) << joined.err;
  EXPECT_EQ(run({"cat", "garden", "beds/rose.txt"}).out, "rosa canina\nrosa rugosa\n");
  const std::string log = run({"log", "--project", "garden", "--oneline"}).out;
  EXPECT_EQ(std::count(log.begin(), log.end(), '*'), 4) << "the branch is in head: " << log;
}

TEST_F(Commands, ImportTakesNothingBackThatItsDirectoryNeverHad) {
  const std::string project = import_garden();
  ASSERT_EQ(run({"export", "garden", "plain"}).code, 0);
  fs::remove_all(home_ + "/plain/.playfs");
  const std::string before = run({"ls", "garden", "--json"}).out;
  write("plain/new", "new\n");
  EXPECT_EQ(run({"import", "plain", "--project", "garden"}).code, 0) << "nothing goes";
  ASSERT_EQ(run({"export", "garden", "other"}).code, 0);
  fs::remove_all(home_ + "/other/.playfs");
  fs::remove(home_ + "/other/first");
  write("other/new", "newer\n");
  Ran refused = run({"import", "other", "--project", "garden"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("delete first, change new"), std::string::npos) << refused.err;
  EXPECT_EQ(run({"cat", "garden", "new"}).out, "new\n");
  EXPECT_EQ(run({"import", "other", "--project", "garden", "--base", "nonsense"}).code, 5);
  EXPECT_EQ(run({"import", "other", "--project", "garden", "--base", "garden"}).code, 0);
  EXPECT_EQ(run({"ls", "-R", "garden"}).out, ".gitignore\nbeds/rose.txt\nbytes\nnew\nwater.sh\n");
  // From now on its base is known.
  write("plain/more", "");
  ASSERT_EQ(run({"import", "plain", "--project", "garden"}).code, 0);
  write("other/new", "newest\n");
  EXPECT_EQ(run({"import", "other", "--project", "garden"}).code, 0);
  EXPECT_EQ(run({"ls", "-R", "garden"}).out, ".gitignore\nbeds/rose.txt\nbytes\nmore\nnew\nwater.sh\n");
}

TEST_F(Commands, ImportFromARevisionThatIsLostTakesNothingBack) {
  const std::string project = import_garden();
  ASSERT_EQ(run({"export", "garden", "copy"}).code, 0);
  std::string mark = read("copy/.playfs/tree.json");
  const auto at = mark.find("\"revision\":");
  ASSERT_NE(at, std::string::npos) << mark;
  write("copy/.playfs/tree.json", mark.substr(0, at) + "\"revision\": \"1m0000000000000000000\"}");
  fs::remove(home_ + "/copy/first");
  Ran refused = run({"import", "copy", "--project", "garden"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("delete first"), std::string::npos) << refused.err;
}

TEST_F(Commands, BelieveNoMarkThatWasPublished) {
  const std::string project = import_garden();
  const std::string mark =
      R"({\"schema_version\":1,\"site\":\"http://127.0.0.1:1\",\"project\":\"p\",\"revision\":\"r\"})";
  auto file = [&](const std::string& path) {
    return '"' + path + R"(": {"h": "x", "s": )" + std::to_string(mark.size() - 14) + R"(, "inline": ")" + mark + "\"}";
  };
  Ran created =
      run({"api", "POST", "/revisions", "-d",
           R"({"project": ")" + project +
               R"(", "parents": [], "agent": "eve", "message": "", "state": {}, "manifest": {"files": {)" +
               file(".playfs/tree.json") + ", " + file("sub/.playfs/tree.json") + ", " + file("sub/a") + "}}}",
           "--json"});
  ASSERT_EQ(created.code, 0) << created.out << created.err;
  std::smatch id;
  ASSERT_TRUE(std::regex_search(created.out, id, std::regex("\"id\": ?\"([0-9a-z]{20})\""))) << created.out;
  Ran exported = run({"export", id[1], "copy", "--json"});
  ASSERT_EQ(exported.code, 1) << exported.err;
  EXPECT_NE(exported.out.find("\"refused\": 2"), std::string::npos) << exported.out;
  EXPECT_NE(read("copy/.playfs/tree.json").find("local:default"), std::string::npos);
  EXPECT_FALSE(fs::exists(home_ + "/copy/sub/.playfs"));
  // One of another user's is not believed, but it may say that files are missing.
  if (geteuid() != 0) return;
  ASSERT_EQ(chown((home_ + "/copy/.playfs/tree.json").c_str(), 12345, 12345), 0);
  fs::remove(home_ + "/copy/sub/a");
  EXPECT_EQ(run({"import", "copy", "--project", "garden"}).code, 6);
}

TEST_F(Commands, KeepNothingOfAnImportThatIsDone) {
  import_garden();
  std::size_t left = 0;
  for (const auto& entry : fs::recursive_directory_iterator(home_ + "/.local/state/playfs/sites"))
    if (entry.path().parent_path().filename() == "imports") ++left;
  EXPECT_EQ(left, 0u);
}

TEST_F(Commands, LeaveOutWhatNoProjectCanHoldAndSayIt) {
  ASSERT_EQ(mkfifo((home_ + "/garden/pipe").c_str(), 0600), 0);
  write("garden/\xff", "bytes for a name");
  Ran ran = run({"import", "garden"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.err.find("Skipped pipe"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("Skipped \\"), std::string::npos) << ran.err;
}

TEST_F(Commands, ExportOnlyIntoAnEmptyDirectory) {
  import_garden();
  write("full/file", "mine");
  Ran refused = run({"export", "garden", "full"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("not empty"), std::string::npos);
  EXPECT_EQ(read("full/file"), "mine");
}

TEST_F(Commands, SayWhichExitCode) {
  import_garden();
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"ls", "--nonsense"}).code, 2);
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistyped = {
      {{"psot", "ID"}, "post"},
      {{"thread", "lsit", "--kind", "help"}, "list"},
      {{"--site", "x", "stauts"}, "status"},
      {{"publsh"}, "publish"},
      {{"mail", "--json", "shw"}, "show"}};
  for (const auto& [words, meant] : mistyped) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE((ran.out + ran.err).find("did you mean '" + meant + "'?"), std::string::npos) << ran.out << ran.err;
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"clone", "ID"}, {"x"}, {"thread", "clone"}, {"post", "--mesage", "x"}, {"thread"}}) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err.find("did you mean"), std::string::npos) << ran.err;
  }
  EXPECT_EQ(run({"commit"}).code, 2) << "no message";
  EXPECT_EQ(run({"mount", "ftp://example.org", "."}).code, 2);
  EXPECT_EQ(run({"ls", "desert"}).code, 5);
  EXPECT_EQ(run({"status"}).code, 5) << "no mount here";
  EXPECT_EQ(run({"umount", "garden"}).code, 5);
  EXPECT_EQ(run({"ls", "--site", "http://127.0.0.1:1"}).code, 7);
  EXPECT_EQ(run({"--version"}).code, 0);
}

TEST_F(Commands, AsMountHelperFailWithItsCode) {
  EXPECT_EQ(run({"local:/nowhere/x", "missing", "-o", "rw,_netdev"}).code, 32) << "mount -t fuse.playfs";
  EXPECT_EQ(run({"mount", "missing"}).code, 5) << "the same, typed by a person";
}

TEST_F(Commands, NeverMountOverWhatTheMountItselfNeeds) {
  fs::create_directory(home_ + "/elsewhere");
  fs::create_directory(home_ + "/play");
  fs::create_symlink(home_, home_ + "/elsewhere/home");
  auto refused = [&](std::vector<std::string> words, int code = 2) {
    Ran ran = run(std::move(words));
    EXPECT_EQ(ran.code, code) << ran.err;
    EXPECT_NE(ran.err.find("playfs's own "), std::string::npos) << ran.err;
    return ran.err;
  };
  EXPECT_NE(refused({"mount", "--fake", "-o", "nonempty", home_}).find("staged changes"), std::string::npos);
  refused({"mount", "--fake", home_ + "/elsewhere/home"});
  refused({"init", "name", home_});
  refused({"local:default", home_, "--fake", "-o", "nonempty"}, 32);
  refused({"mount", "--fake", "-o", "nonempty", "/"});
  // Each place separately: the cache, the store, a store of another name.
  for (const char* variable : {"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"})
    environment_[variable] = home_ + "/elsewhere";
  EXPECT_EQ(run({"mount", "--fake", home_ + "/play"}).code, 0);
  for (const char* variable :
       {"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "TMPDIR", "SQLITE_TMPDIR"}) {
    auto before = environment_;
    environment_[variable] = home_ + "/play/not/yet";
    refused({"mount", "--fake", home_ + "/play"});
    environment_ = before;
  }
  refused({"mount", "--fake", "local:" + home_ + "/play/store", home_ + "/play"});
  // The mount may also hide a link on the way.
  fs::create_symlink("../elsewhere", home_ + "/play/link");
  environment_["XDG_STATE_HOME"] = home_ + "/play/link";
  refused({"mount", "--fake", "-o", "nonempty", home_ + "/play"});
  Ran document = run({"mount", "--fake", "-o", "nonempty", home_ + "/play", "--json"});
  EXPECT_NE(document.out.find("\"code\": \"invalid_argument\""), std::string::npos) << document.out;
  EXPECT_FALSE(fs::exists(home_ + "/.local") || fs::exists(home_ + "/.cache") ||
               fs::exists(home_ + "/elsewhere/playfs"));
}

TEST_F(Commands, CallTheApiAsItIs) {
  Ran created = run({"api", "post", "/threads", "-d", R"({"title":"Hello","agent":"ada","kind":"intro"})", "--json"});
  ASSERT_EQ(created.code, 0) << created.err;
  EXPECT_NE(created.out.find("\"status\": 200"), std::string::npos);
  EXPECT_EQ(run({"api", "POST", "/threads", "-d", "-"}, R"({"title":"From stdin","agent":"ada","kind":"intro"})").code,
            0);
  EXPECT_NE(run({"api", "GET", "/.site/data/threads?limit=1"}).out.find("From stdin"), std::string::npos);
  Ran missing = run({"api", "GET", "/threads/nothing"});
  EXPECT_EQ(missing.code, 5);
  EXPECT_NE(missing.out.find("not_found"), std::string::npos) << "the answer itself";
}

TEST_F(Commands, EscapeWhatStrangersWrote) {
  ASSERT_EQ(run({"api", "POST", "/projects", "-d", R"({"name":"evil\u001b[2Jname"})"}).code, 0);
  EXPECT_EQ(run({"ls"}).out.find('\x1b'), std::string::npos);
}

/// From `begin` up to `end`; nothing if they are not there.
std::string part_of(const std::string& text, const std::string& begin, const std::string& end) {
  const auto at = text.find(begin);
  return at == std::string::npos ? "" : text.substr(at, text.find(end, at) - at);
}

/// Whether a line has both.
bool has_line(const std::string& text, const std::string& one, const std::string& other = "") {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.find(one) != std::string::npos && line.find(other) != std::string::npos) return true;
  return false;
}

TEST_F(Commands, ManualAndCompletionNameWhatHelpNames) {
  const std::string page = run({"--generate", "man"}).out, completion = run({"completion", "bash"}).out,
                    zsh = run({"completion", "zsh"}).out, fish = run({"completion", "fish"}).out;
  std::string plain = page;
  for (auto at = plain.find("\\-"); at != std::string::npos; at = plain.find("\\-", at)) plain.erase(at, 1);
  std::istringstream overview(run({"--help"}).out);
  std::size_t commands = 0, options = 0;
  bool is_list = false;
  for (std::string line; std::getline(overview, line);) {
    if (line.starts_with("Subcommands:")) is_list = true;
    else if (is_list && line.starts_with("  ") && line.size() > 2 && line[2] != ' ') {
      const std::string name = line.substr(2, line.find_first_of(" ,", 2) - 2);
      ++commands;
      EXPECT_NE(plain.find(".SS \\fB" + name + "\\fR\n"), std::string::npos) << name;
      EXPECT_NE(run({"--generate", "man:" + name}).out.find(".SH NAME\nplayfs\\-" + name), std::string::npos) << name;
      std::istringstream help(run({name, "--help"}).out);
      for (std::string text; std::getline(help, text);) {
        std::smatch option;
        if (!std::regex_search(text, option, std::regex("^ +(-[a-z],)?(--[a-z][a-z-]*)"))) continue;
        ++options;
        const std::string word = option[2];
        EXPECT_TRUE(std::regex_search(completion, std::regex("    " + name + "(\\|[a-z|]+)?\\) options='[^']*" + word)))
            << name << " " << word;
        const bool is_everywhere = word == "--help" || word == "--json" || word == "--site";
        EXPECT_TRUE(has_line(part_of(zsh, "_playfs-" + name + "() {", "\n}\n"), word)) << name << " " << word;
        EXPECT_TRUE(has_line(fish, " -l " + word.substr(2) + " ", is_everywhere ? "" : "\\'" + name + "\\'"))
            << name << " " << word;
        EXPECT_TRUE(is_everywhere || plain.find("\\fB" + word + "\\fR") != std::string::npos) << name << " " << word;
      }
    }
  }
  EXPECT_GT(commands, 20u);
  EXPECT_GT(options, 80u);
  EXPECT_EQ(run({"--generate", "man:publish"}).out, ".so man1/playfs-commit.1\n");
  EXPECT_EQ(run({"--generate", "man:nothing"}).code, 2);
  EXPECT_EQ(run({"completion", "csh"}).code, 2);
  EXPECT_NE(run({"completion", "fish", "--json"}).out.find("\"script\": \"# Completion"), std::string::npos);
}

TEST_F(Commands, HelpNamesEveryOption) {
  for (const char* command : {"mount", "umount", "serve", "status", "diff", "log", "commit", "discard", "update",
                              "init", "import", "export", "ls", "cat", "show", "api"}) {
    Ran help = run({command, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("Examples:"), std::string::npos) << command;
    EXPECT_NE(help.out.find("--json"), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace playfs::app
