#include "runtime/places.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "runtime/mount_table.h"
#include "support/temporary_directory.h"
#include "support/test_io.h"

namespace playfs::runtime {
namespace {

using test::TestIo;

TEST(FindPlaces, FollowsXdgAndIgnoresRelativeValues) {
  TestIo test;
  test.io.environment = {{"HOME", "/home/ada"}, {"XDG_STATE_HOME", "/var/state"}, {"XDG_CACHE_HOME", "relative"}};
  auto places = find_places(test.io);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->config, "/home/ada/.config/playfs");
  EXPECT_EQ(places->cache, "/home/ada/.cache/playfs");
  EXPECT_EQ(places->state, "/var/state/playfs");
  EXPECT_EQ(places->data, "/home/ada/.local/share/playfs");
}

TEST(Absolute, APathMeansWhatItMeansToTheKernel) {
  const test::TemporaryDirectory made;
  const std::string& top = made.path();
  std::filesystem::create_directories(top + "/src/deep");
  std::filesystem::create_directories(top + "/work/sub");
  std::filesystem::create_symlink("../src/deep", top + "/work/link");
  std::filesystem::create_symlink("work", top + "/alias");
  std::filesystem::create_symlink("nowhere", top + "/work/broken");
  std::ofstream(top + "/work/file") << "text";
  TestIo test;
  test.io.directory = top + "/work";
  const std::map<std::string, std::string> expected = {
      {"", top + "/work"},
      {".", top + "/work"},
      {"./x//y/./", top + "/work/x/y"},
      {"..", top},
      {"../../", std::filesystem::path(top).parent_path().string()},
      {"../work/x", top + "/work/x"},
      {"/", "/"},
      {"/..", "/"},
      {"/x", "/x"},
      {"sub/../x", top + "/work/x"},
      {"sub/..", top + "/work"},
      {"sub/../../work/sub/../x", top + "/work/x"},
      // Above the link's target.
      {"link/../x", top + "/src/x"},
      {"link/..", top + "/src"},
      {"link/../../work/x", top + "/work/x"},
      {"sub/../link/../x", top + "/src/x"},
      // The last link is followed only if requested.
      {"link", top + "/work/link"},
      {"link/", top + "/work/link"},
      {"link/x", top + "/work/link/x"},
      {"../alias/sub/../x", top + "/alias/x"},
      {"../alias/..", top},
      {"gone/x", top + "/work/gone/x"},
      // These lead nowhere.
      {"gone/../x", top + "/work/gone/../x"},
      {"gone/../../sub/../x", top + "/work/gone/../../sub/../x"},
      {"file/../x", top + "/work/file/../x"},
      {"broken/..", top + "/work/broken/.."},
  };
  for (const auto& [path, absolute] : expected) EXPECT_EQ(test.io.absolute(path), absolute) << path;
}

TEST(AsComponent, IsSafeAndDifferentForDifferentTexts) {
  std::set<std::string> seen;
  std::string lengthy(200, 'a');
  for (const std::string& text : {std::string("plain-1.2_x"), std::string(".."), std::string("."), std::string(""),
                                  std::string("a/b"), std::string("a_b"), std::string("https://example.org/.site/data"),
                                  lengthy, lengthy + "b", std::string("\0x", 2), std::string("ä")}) {
    std::string component = as_component(text);
    EXPECT_TRUE(seen.insert(component).second) << text;
    EXPECT_FALSE(component.empty() || component.front() == '.' || component.find('/') != std::string::npos ||
                 component.size() > 200)
        << component;
  }
  EXPECT_EQ(as_component("plain-1.2_x"), "plain-1.2_x");
}

TEST(MountTable, IsParsedWithItsEscapes) {
  auto table = parse_mount_table(
      "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
      "40 22 0:50 / /home/ada/my\\040play rw,nosuid shared:7 master:1 - fuse.playfs local:default rw,user_id=0\n"
      "41 22 0:51 /projects/p /bound rw - fuse.playfs https://example.org rw\n"
      "rubbish\n");
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[1].mount_point, "/home/ada/my play");
  EXPECT_EQ(table[1].type, "fuse.playfs");
  EXPECT_EQ(table[1].source, "local:default");
  EXPECT_EQ(table[2].root, "/projects/p");
  EXPECT_EQ(table[1].device, "0:50");
  EXPECT_TRUE(has_option(table[1].options, "nosuid"));
  EXPECT_TRUE(has_option(table[1].super_options, "user_id=0"));
  EXPECT_FALSE(has_option("user_id=01,norw", "user_id=0") || has_option("norw", "rw") || has_option("", "rw"));
  EXPECT_EQ(mount_holding(table, "/home/ada/my play/projects"), &table[1]);
  EXPECT_EQ(mount_holding(table, "/home/ada/my playground"), &table[0]);
  EXPECT_EQ(mount_holding(table, "/bound"), &table[2]);
}

TEST(MountTable, EndsFieldsAtSpacesAlone) {
  auto table = parse_mount_table(
      "40 22 0:50 / /home/ada/a\rb\vc\fd rw - fuse.playfs local:default rw\n"
      "41 22 0:51 / /no/source rw -  \n"
      "42 22 0:52 / /cut rw - tmpfs\n"
      "43 22 0:53 / /no/options rw - tmpfs none");
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[0].mount_point, "/home/ada/a\rb\vc\fd");
  EXPECT_EQ(table[0].type, "fuse.playfs");
  EXPECT_EQ(table[1].source, "");
  EXPECT_EQ(table[2].source, "none");
}

}  // namespace
}  // namespace playfs::runtime
