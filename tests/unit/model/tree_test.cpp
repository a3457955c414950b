#include "model/tree.h"

#include <gtest/gtest.h>

namespace playfs {
namespace {

Manifest manifest_of(std::initializer_list<const char*> paths) {
  Manifest manifest;
  for (const char* path : paths) {
    FileEntry entry;
    entry.inline_text = path;
    manifest.files.emplace(path, entry);
  }
  return manifest;
}

TEST(Tree, NestsDirectories) {
  Tree tree(manifest_of({"README", "src/a.c", "src/deep/b.c", "src-old/a.c"}));
  EXPECT_EQ(tree.root().children.size(), 3u);
  ASSERT_NE(tree.directory_at("src"), nullptr);
  EXPECT_EQ(tree.directory_at("src")->children.size(), 2u);
  ASSERT_NE(tree.directory_at("src/deep"), nullptr);
  EXPECT_EQ(tree.directory_at(""), &tree.root());
  ASSERT_NE(tree.file_at("src/deep/b.c"), nullptr);
  EXPECT_EQ(tree.file_at("src/deep/b.c")->inline_text, "src/deep/b.c");
  EXPECT_EQ(tree.file_at("README"), &tree.manifest().files.find("README")->second);
}

TEST(Tree, FindsNothingElse) {
  Tree tree(manifest_of({"a", "b/c"}));
  for (auto path : {"a", "b/c", "x", "b/x", "a/b", "b/c/d"}) EXPECT_EQ(tree.directory_at(path), nullptr) << path;
  for (auto path : {"b", "x", "b/x", "a/b", "b/c/d", ""}) EXPECT_EQ(tree.file_at(path), nullptr) << path;
  EXPECT_TRUE(Tree(Manifest{}).root().children.empty());
}

TEST(Tree, TakesTheDeepestPath) {
  std::string deep = "a";
  while (deep.size() + 2 <= kMaxPathLength) deep += "/a";
  Tree tree(manifest_of({deep.c_str()}));
  EXPECT_NE(tree.file_at(deep), nullptr);
}

}  // namespace
}  // namespace playfs
