// The directory: nothing is reached through a link, and nothing is replaced that is not what the caller expects.
#include "clone/plain_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace playfs::clone {
namespace {

class PlainDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(top / ".playfs");
    reopen();
  }
  void reopen() {
    auto opened = PlainDirectory::open(top.path());
    ASSERT_TRUE(opened) << opened.error().message;
    directory.emplace(std::move(*opened));
  }
  void write(const std::string& path, const std::string& text) const { std::ofstream(top / path) << text; }
  [[nodiscard]] std::string read(const std::string& path) const {
    std::stringstream text;
    text << std::ifstream(top / path).rdbuf();
    return text.str();
  }
  [[nodiscard]] PlainDirectory::Prepared prepared(const std::string& text) const {
    return *directory->prepare_file(false, [&](int file) { return write_all(file, text); });
  }
  static Result<bool> always(const std::optional<struct stat>&, int) { return true; }
  static Result<bool> if_absent(const std::optional<struct stat>& info, int) { return !info; }

  const test::TemporaryDirectory top;
  std::optional<PlainDirectory> directory;
};

TEST_F(PlainDirectoryTest, PutsWhereNothingIsAndInPlaceOfWhatMayGo) {
  auto put = directory->put(prepared("one"), "file", if_absent);
  ASSERT_TRUE(put && *put);
  EXPECT_EQ(read("file"), "one");
  put = directory->put(prepared("two"), "file", if_absent);
  ASSERT_TRUE(put);
  EXPECT_FALSE(*put);
  EXPECT_EQ(read("file"), "one");
  put = directory->put(prepared("two"), "file", always);
  ASSERT_TRUE(put && *put);
  EXPECT_EQ((*put)->size, 3U);
  EXPECT_EQ(read("file"), "two");
  EXPECT_TRUE(std::filesystem::is_empty(top / ".playfs/new")) << "nothing stays there";
}

TEST_F(PlainDirectoryTest, WhatChangesDuringTheExchangeIsPutBack) {
  write("file", "before");
  int looks = 0;
  auto changing = [&](const std::optional<struct stat>&, int) -> Result<bool> {
    if (++looks > 1) return false;
    std::filesystem::remove(top / "file");
    write("file", "edited");
    return true;
  };
  auto put = directory->put(prepared("theirs"), "file", changing);
  ASSERT_TRUE(put) << put.error().message;
  EXPECT_FALSE(*put);
  EXPECT_EQ(read("file"), "edited");
  looks = 0;
  auto removed = directory->remove("file", changing);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(*removed);
  EXPECT_EQ(read("file"), "edited");
  EXPECT_TRUE(std::filesystem::is_empty(top / ".playfs/new"));
}

TEST_F(PlainDirectoryTest, AppearingMeanwhileIsNotReplaced) {
  auto put = directory->put(prepared("theirs"), "file", [&](const auto& info, int) -> Result<bool> {
    write("file", "mine");
    return !info;
  });
  ASSERT_TRUE(put) << put.error().message;
  EXPECT_FALSE(*put);
  EXPECT_EQ(read("file"), "mine");
}

TEST_F(PlainDirectoryTest, LinksLeadNowhere) {
  const test::TemporaryDirectory outside;
  std::ofstream(outside / "file") << "outside";
  std::filesystem::create_directory_symlink(outside.path(), top / "link");
  std::filesystem::create_symlink(outside / "file", top / "to-file");
  for (const std::string path : {"link/file", "link/../file", "../x", "to-file"}) {
    auto file = directory->open_file(path);
    EXPECT_TRUE(file && !*file) << path;
  }
  auto put = directory->put(prepared("evil"), "link/file", always);
  EXPECT_TRUE(put && !*put);
  put = directory->put(prepared("evil"), "link/new", always);
  EXPECT_TRUE(put && !*put);
  EXPECT_TRUE(directory->remove("link/file", always));
  EXPECT_TRUE(directory->remove_directory("link/dir"));
  EXPECT_FALSE(std::filesystem::exists(outside / "new"));
  EXPECT_TRUE(std::filesystem::exists(outside / "file"));
  put = directory->put(prepared("ours"), "to-file", always);
  ASSERT_TRUE(put && *put);
  EXPECT_FALSE(std::filesystem::is_symlink(top / "to-file")) << "the link is replaced, not followed";
}

TEST_F(PlainDirectoryTest, ADirectoryWithSomethingInItStays) {
  ASSERT_TRUE(directory->make_directory("dir"));
  write("dir/file", "x");
  ASSERT_TRUE(directory->remove_directory("dir"));
  EXPECT_EQ(read("dir/file"), "x");
  auto removed = directory->remove("dir", always);
  EXPECT_TRUE(removed && !*removed);
}

TEST_F(PlainDirectoryTest, WhatAKilledCommandTookOutIsKept) {
  std::ofstream(top / ".playfs/new/7.out") << "an edit";
  std::ofstream(top / ".playfs/new/8") << "half a file";
  reopen();
  ASSERT_TRUE(std::filesystem::exists(top / ".playfs/lost+found"));
  std::size_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(top / ".playfs/lost+found")) {
    ++kept;
    EXPECT_TRUE(entry.path().filename().string().ends_with("7.out"));
  }
  EXPECT_EQ(kept, 1U);
}

}  // namespace
}  // namespace playfs::clone
