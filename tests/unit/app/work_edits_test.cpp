#include "app/work_edits.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "app/mounted_tree.h"
#include "support/temporary_directory.h"

namespace playfs::app {
namespace {

namespace fs = std::filesystem;

class WorkEditsTest : public testing::Test {
 protected:
  void write(const test::TemporaryDirectory& directory, const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(directory / path).parent_path());
    std::ofstream(directory / path) << text;
  }
  [[nodiscard]] std::string text_of(const std::string& path) const {
    std::ifstream file(work_directory_ / path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] FileStateNow now(const std::string& path) const { return state_at(work_, path).value(); }

  const test::TemporaryDirectory work_directory_, source_directory_;
  const MountedTree work_{work_directory_.path()}, source_{source_directory_.path()};
  WorkEdits edits_{work_directory_.path(), work_, source_};
};

TEST_F(WorkEditsTest, PutsAndRemovesAsPlanned) {
  write(source_directory_, "a", "theirs\n");
  write(work_directory_, "a", "ours\n");
  write(work_directory_, "d/old", "old\n");
  EXPECT_TRUE(edits_.put("a", FileMode::executable, "a", now("a")));
  EXPECT_TRUE(edits_.put_text("d", FileMode::regular, "a file now\n", now("d")));
  EXPECT_TRUE(edits_.remove("d/old", now("d/old")));
  EXPECT_FALSE(edits_.remove("a", now("a"))) << "it is planned already";
  ASSERT_TRUE(edits_.carry_out());
  EXPECT_EQ(text_of("a"), "theirs\n");
  EXPECT_EQ(text_of("d"), "a file now\n");
  struct stat info {};
  ASSERT_EQ(stat((work_directory_ / "a").c_str(), &info), 0);
  EXPECT_NE(info.st_mode & S_IXUSR, 0U);
}

TEST_F(WorkEditsTest, WhatWasSavedMeanwhileStays) {
  for (const char* path : {"a", "b", "c", "new"}) write(source_directory_, path, "theirs\n");
  for (const char* path : {"a", "b", "c"}) write(work_directory_, path, "ours\n");
  for (const char* path : {"a", "b", "c", "new"}) edits_.put(path, FileMode::regular, path, now(path));
  write(work_directory_, "b", "saved meanwhile\n");
  const Status done = edits_.carry_out();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::conflict);
  EXPECT_NE(done.error().message.find("'b' was changed meanwhile; done before that: a"), std::string::npos)
      << done.error().message;
  EXPECT_EQ(text_of("b"), "saved meanwhile\n");
  EXPECT_EQ(text_of("c"), "ours\n");

  WorkEdits later(work_directory_.path(), work_, source_);
  later.put("new", FileMode::regular, "new", now("new"));
  write(work_directory_, "new", "there now\n");
  EXPECT_FALSE(later.carry_out());
  EXPECT_EQ(text_of("new"), "there now\n");
  WorkEdits removing(work_directory_.path(), work_, source_);
  removing.remove("c", now("c"));
  write(work_directory_, "c", "saved meanwhile\n");
  EXPECT_FALSE(removing.carry_out());
  EXPECT_EQ(text_of("c"), "saved meanwhile\n");
}

TEST_F(WorkEditsTest, WhatCannotBeDoneChangesNothing) {
  write(source_directory_, "a", "theirs\n");
  write(work_directory_, "a", "ours\n");
  write(work_directory_, "file", "in the way\n");
  edits_.put("a", FileMode::regular, "a", now("a"));
  edits_.put_text("file/below", FileMode::regular, "text\n", now("file/below"));
  EXPECT_EQ(edits_.carry_out().error().code, ErrorCode::conflict);
  EXPECT_EQ(text_of("a"), "ours\n");

  WorkEdits lost(work_directory_.path(), work_, source_);
  lost.put("a", FileMode::regular, "a", now("a"));
  lost.put("b", FileMode::regular, "nowhere", now("b"));
  lost.remove("file", now("file"));
  EXPECT_EQ(lost.carry_out().error().code, ErrorCode::not_found);
  EXPECT_EQ(text_of("a"), "ours\n");
  EXPECT_EQ(text_of("file"), "in the way\n");
}

TEST_F(WorkEditsTest, AnEmptyDirectoryMakesWay) {
  fs::create_directories(work_directory_ / "d");
  edits_.put_text("d", FileMode::regular, "a file\n", now("d"));
  ASSERT_TRUE(edits_.carry_out());
  EXPECT_EQ(text_of("d"), "a file\n");
}

}  // namespace
}  // namespace playfs::app
