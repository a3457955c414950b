#include "model/repository.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

TEST(Repository, IsAFolderThatAVersionControlSystemRunsThingsFrom) {
  for (auto name : {".git", ".hg",   ".HG",    ".hg.",      ".hg:x",  ".svn",      ".bzr",
                    ".jj",  ".sl",   ".pijul", "_darcs",    "CVS",    ".fslckout", "_FOSSIL_",
                    ".fos", ".repo", "_MTN",   "BitKeeper", "{arch}", ".\u200chg", ".\u017fvn"})
    EXPECT_TRUE(is_repository_folder(name)) << name;
  for (auto name : {"hg", ".hgignore", ".hgtags", "cvs", "darcs", ".svnignore", "svn", ".gitignore", "HEAD", "a.hg"})
    EXPECT_FALSE(is_repository_folder(name)) << name;
}

}  // namespace
}  // namespace playfs
