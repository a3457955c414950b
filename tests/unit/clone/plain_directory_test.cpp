// The directory: nothing is reached through a link, and nothing is replaced that is not what the caller expects.
#include "clone/plain_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "support/temporary_directory.h"

namespace playfs::clone {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

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
  std::ofstream(top / ".playfs/new/7-1.out-rose") << "an edit";
  std::ofstream(top / ".playfs/new/8") << "half a file";
  // Of one that was killed before or after the exchange: what it would have put in place.
  struct stat info {};
  std::ofstream(top / ".playfs/new/9") << "theirs";
  ASSERT_EQ(stat((top / ".playfs/new/9").c_str(), &info), 0);
  const std::string own = "9-" + std::to_string(info.st_ino) + ".out-rose";
  std::filesystem::rename(top / ".playfs/new/9", top / (".playfs/new/" + own));
  reopen();
  EXPECT_THAT(directory->newly_kept(), ElementsAre(EndsWith("-7-rose")));
  EXPECT_THAT(directory->newly_kept(), IsEmpty());
  reopen();
  EXPECT_THAT(directory->newly_kept(), IsEmpty());
  const auto kept = directory->lost_and_found();
  ASSERT_TRUE(kept);
  ASSERT_THAT(*kept, ElementsAre(EndsWith("-7-rose"))) << "as long as it is there";
  EXPECT_EQ(read(kept->front()), "an edit");
}

TEST_F(PlainDirectoryTest, WhatIsSavedTwiceDuringTheExchangeIsKept) {
  write("rose", "before");
  int looks = 0;
  auto saving_twice = [&](const std::optional<struct stat>&, int) -> Result<bool> {
    write("saved", "save " + std::to_string(++looks));
    std::filesystem::rename(top / "saved", top / "rose");
    return looks == 1;
  };
  auto put = directory->put(prepared("theirs"), "rose", saving_twice);
  ASSERT_TRUE(put) << put.error().message;
  EXPECT_FALSE(*put);
  EXPECT_EQ(read("rose"), "save 2") << "the last one is in place";
  const auto kept = directory->newly_kept();
  ASSERT_THAT(kept, ElementsAre(EndsWith("-rose")));
  EXPECT_EQ(read(kept.front()), "save 1");
  looks = 0;
  auto removed = directory->remove("rose", saving_twice);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_FALSE(*removed);
  EXPECT_EQ(read("rose"), "save 2");
  EXPECT_THAT(directory->newly_kept(), ElementsAre(EndsWith("-rose")));
  EXPECT_TRUE(std::filesystem::is_empty(top / ".playfs/new"));
}

TEST_F(PlainDirectoryTest, WhatIsWrittenIntoWhatWasPutInPlaceIsKept) {
  write("rose", "before");
  int looks = 0;
  auto writing = [&](const std::optional<struct stat>&, int) -> Result<bool> {
    write("rose", "save " + std::to_string(++looks) + " of the editor");
    return looks == 1;
  };
  auto put = directory->put(prepared("theirs"), "rose", writing);
  ASSERT_TRUE(put) << put.error().message;
  EXPECT_FALSE(*put);
  const auto kept = directory->newly_kept();
  ASSERT_THAT(kept, ElementsAre(EndsWith("-rose")));
  EXPECT_THAT((std::vector<std::string>{read("rose"), read(kept.front())}),
              UnorderedElementsAre("save 1 of the editor", "save 2 of the editor"));
}

}  // namespace
}  // namespace playfs::clone
