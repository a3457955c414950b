#include "model/repository.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

TEST(GitAlias, IsWhatGitRefuses) {
  for (auto name : {".git",          ".GIT",         ".Git",        ".git.",      ".git ",
                    ".git. . ",      "git~1",        "GIT~1",       "git~1. ",    ".git::$INDEX_ALLOCATION",
                    ".git:stream",   ".git ::$DATA", ".git\\hooks", ".g\u200cit", "\ufeff.git",
                    ".git\u202e",    ".gi\u206ft.",  ".g\u00adit",  ".gi\ufe0ft", ".\u2060git",
                    ".g\u034fit",    ".git\u200b",   "\u200bgit~1", ".gi\u115ft", ".git\u180e",
                    ".git\U000E0101"})
    EXPECT_TRUE(is_git_alias(name)) << name;
  for (auto name : {"git", ".gi", ".gitignore", ".gitmodules", ".github", "git~2", "git~10", "a.git", " .git", ".git x",
                    "..git", ".g\u0131t", ".git\u00a0"})
    EXPECT_FALSE(is_git_alias(name)) << name;
}

TEST(Repository, IsAFolderThatAVersionControlSystemRunsThingsFrom) {
  for (auto name : {".git", ".hg",   ".HG",    ".hg.",      ".hg:x",  ".svn",      ".bzr",
                    ".jj",  ".sl",   ".pijul", "_darcs",    "CVS",    ".fslckout", "_FOSSIL_",
                    ".fos", ".repo", "_MTN",   "BitKeeper", "{arch}", ".\u200chg", ".\u017fvn"})
    EXPECT_TRUE(is_repository_folder(name)) << name;
  for (auto name : {"hg", ".hgignore", ".hgtags", "cvs", "darcs", ".svnignore", "svn", ".gitignore", "HEAD", "a.hg"})
    EXPECT_FALSE(is_repository_folder(name)) << name;
}

TEST(OwnFolder, IsWhatAFileSystemTakesForIt) {
  for (auto name : {".playfs", ".PLAYFS", ".Playfs.", ".play\u00adfs", ".playf\u017f", "\u00ad.playfs"})
    EXPECT_TRUE(is_own_folder(name)) << name;
  for (auto name : {"playfs", ".playfsignore", ".playf"}) EXPECT_FALSE(is_own_folder(name)) << name;
}

TEST(Repository, HasAHeadByItsName) {
  for (auto path : {"HEAD", "a/b/HEAD", "head", "a/Head.", "HEAD ", "HEAD::$DATA", "HE\u200cAD", "\u2060head"})
    EXPECT_TRUE(is_named_as_head(path)) << path;
  for (auto path : {"", "HEAD/a", "HEADS", "AHEAD", "a.HEAD", "ORIG_HEAD", "HEAD.md"})
    EXPECT_FALSE(is_named_as_head(path)) << path;
}

TEST(Repository, HasAHeadThatSaysWhereItLeads) {
  const std::string sha1(40, 'a'), sha256(64, 'F');
  for (const std::string& text : {std::string("ref: refs/heads/main\n"), std::string("ref:refs/"),
                                  std::string("ref:\t\n refs/x"), sha1, sha1 + "\n", sha256, sha1 + "g"})
    EXPECT_TRUE(is_content_of_head(FileMode::regular, text)) << text;
  for (const std::string& text :
       {std::string(), std::string("ref:"), std::string("ref: heads/main"), std::string("ref:\vrefs/x"),
        std::string(" ref: refs/x"), std::string("refs/heads/main"), sha1.substr(1), "g" + sha1})
    EXPECT_FALSE(is_content_of_head(FileMode::executable, text)) << text;
  EXPECT_TRUE(is_content_of_head(FileMode::symlink, "refs/heads/main"));
  EXPECT_FALSE(is_content_of_head(FileMode::symlink, "ref: refs/heads/main")) << "git looks at no link's content";
}

}  // namespace
}  // namespace playfs
