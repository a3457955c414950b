// Properties of every merge, and equality with git: compared with `git merge-file` line by line, and with `git merge`
// file by file, on generated edits. MERGE_ROUNDS in the environment: how many of each.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "model/chunking.h"
#include "model/merge.h"
#include "support/temporary_directory.h"

namespace playfs {
namespace {

int rounds(int usual) {
  const char* text = std::getenv("MERGE_ROUNDS");
  return text ? std::atoi(text) : usual;
}

using Random = std::mt19937;
using Files = std::map<std::string, std::string>;

std::size_t below(Random& random, std::size_t limit) { return random() % limit; }

std::string some_lines(Random& random, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += "line " + std::to_string(below(random, 30)) + "\n";
  return text;
}

std::string edited(Random& random, const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    auto end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  for (std::size_t edits = 1 + below(random, 3); edits > 0; --edits) {
    std::size_t at = below(random, lines.size() + 1);
    switch (below(random, 3)) {
      case 0: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), some_lines(random, 1)); break;
      case 1:
        if (at < lines.size()) lines[at] = some_lines(random, 1);
        break;
      default:
        if (at < lines.size()) lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  std::string joined;
  for (const auto& line : lines) joined += line;
  return joined;
}

std::string with_crlf(const std::string& text) {
  std::string changed;
  for (char c : text) changed += c == '\n' ? std::string("\r\n") : std::string(1, c);
  return changed;
}

/// Every file changes a little, disappears, or is created.
Files edited(Random& random, Files files) {
  for (auto file = files.begin(); file != files.end();) {
    std::size_t what = below(random, 6);
    if (what == 0) {
      file = files.erase(file);
      continue;
    }
    if (what < 3) file->second = edited(random, file->second);
    ++file;
  }
  if (below(random, 2) == 0) files["new" + std::to_string(below(random, 3))] = some_lines(random, 4);
  return files;
}

Manifest manifest_of(const Files& files) {
  Manifest manifest;
  for (const auto& [path, content] : files) {
    FileEntry entry;
    entry.hash_claim = ContentHash::of(content).hex();
    entry.inline_text = content;
    manifest.files[path] = entry;
  }
  return manifest;
}

Merge merged(const Files& base, const Files& ours, const Files& theirs) {
  auto read = [](MergeSide, const std::string&, const FileEntry& entry) -> Result<std::string> {
    return *entry.inline_text;
  };
  const Json none;
  Manifest b = manifest_of(base), o = manifest_of(ours), t = manifest_of(theirs);
  return merge_versions({b, none}, {o, none}, {t, none}, read).value();
}

Files files_of(const Merge& merge) {
  Files files;
  for (const auto& [path, file] : merge.files) files[path] = file.text ? *file.text : *file.entry.inline_text;
  return files;
}

class MergeProperty : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return read_file(directory_ / name, 1 << 20).value();
  }
  /// The exit status of a shell command in the directory.
  [[nodiscard]] int run(const std::string& command) const {
    std::string line = "cd '" + directory_.path() + "' && { " + command + "; } >out 2>err </dev/null";
    int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static bool has_git() { return std::system("git --version >/dev/null 2>&1") == 0; }

  test::TemporaryDirectory directory_;
};

TEST_F(MergeProperty, NothingChangedOnOneSideIsTheOther) {
  for (int round = 0; round < rounds(300); ++round) {
    Random random(static_cast<unsigned>(round));
    Files base = edited(random, {{"a", some_lines(random, 8)}, {"b", some_lines(random, 8)}});
    Files other = edited(random, base);
    EXPECT_EQ(files_of(merged(base, base, other)), other);
    EXPECT_EQ(files_of(merged(base, other, base)), other);
    EXPECT_EQ(files_of(merged(base, other, other)), other);
    EXPECT_TRUE(merged(base, other, other).conflicts.empty());
  }
}

TEST_F(MergeProperty, ItDoesNotMatterWhoseSideIsOurs) {
  for (int round = 0; round < rounds(300); ++round) {
    Random random(static_cast<unsigned>(round));
    Files base = {{"a", some_lines(random, 12)}, {"b", some_lines(random, 12)}, {"c", some_lines(random, 3)}};
    Files ours = edited(random, base), theirs = edited(random, base);
    Merge one = merged(base, ours, theirs), other = merged(base, theirs, ours);
    ASSERT_EQ(one.conflicts.size(), other.conflicts.size()) << round;
    for (std::size_t i = 0; i < one.conflicts.size(); ++i) EXPECT_EQ(one.conflicts[i].path, other.conflicts[i].path);
    if (one.conflicts.empty()) {
      EXPECT_EQ(files_of(one), files_of(other)) << round;
    }
  }
}

TEST_F(MergeProperty, TextIsMergedAsGitMergeFileDoesIt) {
  if (!has_git()) GTEST_SKIP() << "there is no git";
  int clean = 0, conflicts = 0;
  for (int round = 0; round < rounds(150); ++round) {
    Random random(static_cast<unsigned>(round));
    std::string base = some_lines(random, 3 + below(random, 20));
    std::string ours = edited(random, base), theirs = edited(random, base);
    for (std::string* text : {&base, &ours, &theirs}) {
      if (round % 3 == 0) *text = with_crlf(*text);
      if (!text->empty() && below(random, 5) == 0) text->pop_back();
    }
    write("base", base);
    write("ours", ours);
    write("theirs", theirs);
    int status = run("git merge-file -p -L ours -L base -L theirs ours base theirs");
    auto merge = merge_text(base, ours, theirs);
    ASSERT_TRUE(merge);
    EXPECT_EQ(merge->conflicts, status != 0) << round;
    EXPECT_EQ(merge->text, read("out")) << round;
    ++(status == 0 ? clean : conflicts);
  }
  EXPECT_GT(clean, 10);
  EXPECT_GT(conflicts, 10);
}

TEST_F(MergeProperty, TreesAreMergedAsGitMergeDoesIt) {
  if (!has_git()) GTEST_SKIP() << "there is no git";
  const std::string git =
      "git -c user.name=t -c user.email=t@example.org -c init.defaultBranch=main -c merge.renames=false -c gc.auto=0 ";
  ASSERT_EQ(run(git + "init -q repo"), 0) << read("err");
  auto commit = [&](const Files& files, const std::string& branch, const std::string& from) {
    std::string checkout = from.empty() ? "checkout -q --orphan " + branch : "checkout -q -b " + branch + " " + from;
    EXPECT_EQ(run("cd repo && " + git + checkout), 0) << read("err");
    EXPECT_EQ(run("cd repo && git rm -rfq --ignore-unmatch . "), 0) << read("err");
    for (const auto& [path, content] : files) write("repo/" + path, content);
    EXPECT_EQ(run("cd repo && git add -A . && " + git + "commit -q --allow-empty -m m"), 0) << read("err");
  };
  int clean = 0;
  for (int round = 0; round < rounds(20); ++round) {
    Random random(static_cast<unsigned>(round) + 1000);
    std::string name = std::to_string(round);
    Files base = {{"a", some_lines(random, 14)}, {"b", some_lines(random, 14)}, {"c", some_lines(random, 14)}};
    Files ours = edited(random, base), theirs = edited(random, base);
    commit(base, "base" + name, "");
    commit(theirs, "theirs" + name, "base" + name);
    commit(ours, "ours" + name, "base" + name);
    int status = run("cd repo && " + git + "merge -q -m m theirs" + name);
    Merge merge = merged(base, ours, theirs);
    EXPECT_EQ(merge.conflicts.empty(), status == 0) << round << read("out");
    if (status == 0) {
      ++clean;
      Files result;
      for (const auto& file : std::filesystem::directory_iterator(directory_ / "repo"))
        if (file.is_regular_file()) result[file.path().filename()] = read("repo/" + file.path().filename().string());
      EXPECT_EQ(files_of(merge), result) << round;
    } else {
      EXPECT_EQ(run("cd repo && git merge --abort || git reset -q --hard"), 0) << read("err");
    }
  }
  EXPECT_GT(clean, 0);
}

}  // namespace
}  // namespace playfs
