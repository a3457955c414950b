#include "base/fd.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace playfs {
namespace {

TEST(PrivateDirectory, IsForOneUser) {
  const test::TemporaryDirectory made;
  auto mode_of = [](const std::string& path) {
    struct stat attributes {};
    return stat(path.c_str(), &attributes) == 0 ? attributes.st_mode & 07777 : 0;
  };
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

}  // namespace
}  // namespace playfs
