#include "model/repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace playfs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> heads(std::initializer_list<const char*> paths) {
  std::map<std::string, FileEntry, std::less<>> files;
  for (const char* path : paths) files.emplace(path, FileEntry());
  return find_repository_heads(files);
}

TEST(Repository, IsAFolderThatAVersionControlSystemRunsThingsFrom) {
  for (auto name : {".git", ".hg", ".HG", ".hg.", ".hg:x", ".svn", ".bzr", ".jj", ".sl", ".pijul", "_darcs", "CVS",
                    ".fslckout", "_FOSSIL_", ".\u200chg"})
    EXPECT_TRUE(is_repository_folder(name)) << name;
  for (auto name : {"hg", ".hgignore", ".hgtags", "cvs", "darcs", ".svnignore", "svn", ".gitignore", "HEAD", "a.hg"})
    EXPECT_FALSE(is_repository_folder(name)) << name;
}

TEST(Repository, IsAnyFolderWithHeadObjectsAndRefs) {
  EXPECT_THAT(heads({"HEAD", "config", "objects/x", "refs/heads/x"}), ElementsAre("HEAD"));
  EXPECT_THAT(heads({"a/HEAD", "a/b", "a/objects", "a/refs/x", "HEAD"}), ElementsAre("a/HEAD"));
  EXPECT_THAT(heads({"a/b/head ", "a/b/OBJECTS/x", "a/b/Refs"}), ElementsAre("a/b/head "));
  EXPECT_THAT(heads({"a/HEAD", "a/commondir", "a/config"}), ElementsAre("a/HEAD"));
  // `-` and `.` stand before '/', where what lies in a folder is not all in one place.
  EXPECT_THAT(heads({"d-/x", "d.x", "d/HEAD", "d/objects-/y", "d/objects.z", "d/objects/x", "d/refs/y"}),
              ElementsAre("d/HEAD"));
}

TEST(Repository, IsNoFolderThatLacksOneOfThem) {
  EXPECT_THAT(heads({"HEAD", "config", "objects/x"}), IsEmpty());
  EXPECT_THAT(heads({"HEAD", "refs/x"}), IsEmpty());
  EXPECT_THAT(heads({"objects/x", "refs/x", "config"}), IsEmpty());
  EXPECT_THAT(heads({"a/HEAD", "objects/x", "refs/x", "a/b/objects/x", "a/b/refs/x"}), IsEmpty());
  EXPECT_THAT(heads({"HEAD/x", "objects-/x", "refs/x"}), IsEmpty());
  EXPECT_THAT(heads({"HEADS", "objects/x", "refs/x"}), IsEmpty());
}

}  // namespace
}  // namespace playfs
