#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/private_place.h"
#include "support/temporary_directory.h"

namespace playfs {
namespace {

unsigned mode_of(const std::string& path) {
  struct stat attributes {};
  return stat(path.c_str(), &attributes) == 0 ? attributes.st_mode & 07777 : 0;
}

TEST(PrivateDirectory, IsForOneUser) {
  const test::TemporaryDirectory made;
  ASSERT_TRUE(make_private_directory(made / "a/b"));
  EXPECT_EQ(mode_of(made / "a/b"), 0700u);
  std::filesystem::create_directory_symlink(made / "a/b", made / "link");
  EXPECT_FALSE(make_private_directory(made / "link"));
  if (geteuid() == 0) {
    ASSERT_EQ(chown((made / "a/b").c_str(), 65534, 65534), 0);
    auto others = make_private_directory(made / "a/b");
    ASSERT_FALSE(others);
    EXPECT_EQ(others.error().code, ErrorCode::permission_denied);
  }
}

TEST(PrivateDirectory, IsNotWhatIsSharedOnPurpose) {
  for (const mode_t mode : {01777, 02775}) {
    const test::TemporaryDirectory made;
    ASSERT_EQ(chmod(made.path().c_str(), mode), 0);
    auto shared = make_private_directory(made.path());
    ASSERT_FALSE(shared);
    EXPECT_EQ(shared.error().code, ErrorCode::permission_denied);
    EXPECT_EQ(mode_of(made.path()), mode) << "as it was";
  }
}

TEST(PrivateDirectory, MayBeReachedThroughTheUsersLinks) {
  const test::TemporaryDirectory made;
  std::filesystem::create_directory(made / "disk");
  std::filesystem::create_directory_symlink(made / "disk", made / "state");
  EXPECT_TRUE(make_private_directory_below(made / "state", made / "state/sites"));
  EXPECT_TRUE(std::filesystem::is_directory(made / "disk/sites"));
}

TEST(PrivateDirectory, IsNotWrittenByOthers) {
  const test::TemporaryDirectory made;
  ASSERT_TRUE(make_private_directory(made / "a/b/c"));
  for (const char* name : {"a", "a/b", "a/b/c"})
    ASSERT_EQ(chmod((made / name).c_str(), name == std::string("a/b") ? 0770 : 0777), 0);
  ASSERT_TRUE(make_private_directory_below(made / "a/b", made / "a/b/c"));
  EXPECT_EQ(mode_of(made / "a"), 0777u) << "not ours to judge";
  EXPECT_EQ(mode_of(made / "a/b"), 0700u);
  EXPECT_EQ(mode_of(made / "a/b/c"), 0700u);
  ASSERT_EQ(chmod((made / "a/b").c_str(), 0755), 0);
  ASSERT_TRUE(make_private_directory(made / "a/b"));
  EXPECT_EQ(mode_of(made / "a/b"), 0755u) << "others may read if the user says so";
  if (geteuid() == 0) {
    ASSERT_EQ(chown((made / "a/b").c_str(), 65534, 65534), 0);
    EXPECT_TRUE(make_private_directory(made / "a/b/c"));
    EXPECT_FALSE(make_private_directory_below(made / "a/b", made / "a/b/c"));
  }
}

class PrivateFile : public testing::Test {
 protected:
  void make(const std::string& path, mode_t mode) {
    ASSERT_TRUE(write_file_atomically(path, "x", 0600));
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  const test::TemporaryDirectory made_;
};

TEST_F(PrivateFile, IsNotWrittenByOthers) {
  EXPECT_TRUE(keep_file_private(made_ / "none"));
  make(made_ / "file", 0666);
  EXPECT_TRUE(keep_file_private(made_ / "file"));
  EXPECT_EQ(mode_of(made_ / "file"), 0600u);
  make(made_ / "readable", 0644);
  EXPECT_TRUE(keep_file_private(made_ / "readable"));
  EXPECT_EQ(mode_of(made_ / "readable"), 0644u);
}

TEST_F(PrivateFile, IsAFileOfThisUser) {
  make(made_ / "file", 0666);
  std::filesystem::create_symlink(made_ / "file", made_ / "link");
  EXPECT_FALSE(keep_file_private(made_ / "link"));
  EXPECT_FALSE(keep_file_private(made_.path()));
  if (geteuid() == 0) {
    ASSERT_EQ(chown((made_ / "file").c_str(), 65534, 65534), 0);
    auto others = keep_file_private(made_ / "file");
    ASSERT_FALSE(others);
    EXPECT_EQ(others.error().code, ErrorCode::permission_denied);
  }
  EXPECT_EQ(mode_of(made_ / "file"), 0666u);
}

TEST_F(PrivateFile, IsTheOneThatWasLookedAt) {
  make(made_ / "file", 0600);
  const UniqueFd file(open((made_ / "file").c_str(), O_RDONLY));
  make(made_ / "victim", 0666);
  std::filesystem::create_symlink(made_ / "victim", made_ / "link");
  std::atomic<bool> is_over = false;
  std::thread swaps([&] {
    while (!is_over) renameat2(AT_FDCWD, (made_ / "file").c_str(), AT_FDCWD, (made_ / "link").c_str(), RENAME_EXCHANGE);
  });
  set_log_level(LogLevel::error);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(fchmod(file.get(), 0622), 0);
    static_cast<void>(keep_file_private(made_ / "file"));
  }
  set_log_level(LogLevel::info);
  is_over = true;
  swaps.join();
  EXPECT_EQ(mode_of(made_ / "victim"), 0666u);
}

}  // namespace
}  // namespace playfs
