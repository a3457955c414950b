#include "app/places.h"
#include "base/shell.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "app/exit_code.h"
#include "app/mounted.h"
#include "app/output.h"
#include "test_io.h"
#include "wire/json.h"

namespace playfs::app {
namespace {

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
  std::string made = testing::TempDir() + "playfs-paths-XXXXXX";
  ASSERT_TRUE(mkdtemp(made.data()));
  const std::string top = std::filesystem::canonical(made).string();
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
  std::filesystem::remove_all(top);
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

TEST(ExitCodes, AreTheContract) {
  EXPECT_EQ(static_cast<int>(exit_code_for(ErrorCode::invalid_argument)), 2);
  EXPECT_EQ(static_cast<int>(exit_code_for(ErrorCode::rate_limited)), 4);
  EXPECT_EQ(static_cast<int>(exit_code_for(ErrorCode::not_found)), 5);
  for (ErrorCode code : {ErrorCode::permission_denied, ErrorCode::unauthorized, ErrorCode::not_permitted})
    EXPECT_EQ(static_cast<int>(exit_code_for(code)), 6);
  for (ErrorCode code : {ErrorCode::unreachable, ErrorCode::timed_out, ErrorCode::offline})
    EXPECT_EQ(static_cast<int>(exit_code_for(code)), 7);
  for (ErrorCode code : {ErrorCode::io, ErrorCode::internal, ErrorCode::corrupt, ErrorCode::busy, ErrorCode::no_space})
    EXPECT_EQ(static_cast<int>(exit_code_for(code)), 1);
}

TEST(MountTable, IsParsedWithItsEscapes) {
  auto table = parse_mount_table(
      "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n"
      "40 22 0:50 / /home/ada/my\\040play rw,nosuid shared:7 master:1 - fuse.playfs local:default rw,user_id=0\n"
      "41 22 0:51 /projects/p /bound rw - fuse.playfs https://example.org rw\n"
      "rubbish\n");
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[1].mount_point, "/home/ada/my play");
  EXPECT_EQ(table[1].type, kMountType);
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
  EXPECT_EQ(table[0].type, kMountType);
  EXPECT_EQ(table[1].source, "");
  EXPECT_EQ(table[2].source, "none");
}

TEST(Commands, ArePrintedAsAShellReadsThem) {
  EXPECT_EQ(shell_line({"playfs", "mount", "-o", "project=p,agent=ada", "https://example.org", "/home/ada/play"}),
            "playfs mount -o project=p,agent=ada https://example.org /home/ada/play");
  EXPECT_EQ(shell_word("/my play/it's"), "'/my play/it'\\''s'");
  EXPECT_EQ(shell_word("two\nlines; it's a \\"), "$'two\\012lines; it\\047s a \\134'");
  for (const char* word : {"", "~", "a;b", "$HOME", "*", "#", "=ls"})
    EXPECT_EQ(shell_word(word), "'" + std::string(word) + "'");
}

TEST(Json, SaysTheSameWithNothingForATerminalToObey) {
  const std::string text =
      "a\x7f\xc2\x9b"
      "31m\xe2\x80\xae\xc3\xa4\t\x1b";
  TestIo io;
  Output(io.io, true).document(JsonObject{{"name", text}});
  const std::string printed = io.out.str();
  EXPECT_NE(printed.find("a\\u007f\\u009b31m\\u202e\xc3\xa4\\t\\u001B"), std::string::npos) << printed;
  for (const char* raw : {"\x7f", "\xc2\x9b", "\xe2\x80\xae", "\x1b"}) EXPECT_EQ(printed.find(raw), std::string::npos);
  auto parsed = wire::parse_json(printed);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed->object()->find("name")->string(), text);
}

TEST(Errors, AreWordsOnStderrOrADocumentOnStdout) {
  Error error{
      ErrorCode::rate_limited, "post revision: too many\x1b[2J", "playfs status", std::chrono::seconds(30), 429, {}};
  TestIo words;
  EXPECT_EQ(Output(words.io, false).error(error), ExitCode::pending);
  EXPECT_EQ(words.out.str(), "");
  EXPECT_NE(words.err.str().find("30 s"), std::string::npos);
  EXPECT_NE(words.err.str().find("Try: playfs status"), std::string::npos);
  EXPECT_EQ(words.err.str().find('\x1b'), std::string::npos);

  TestIo data;
  Output(data.io, true).error(error);
  EXPECT_EQ(data.err.str(), "");
  auto document = wire::parse_json(data.out.str());
  ASSERT_TRUE(document);
  EXPECT_EQ(document->object()->find("schema_version")->integer(), 1);
  const JsonObject* fields = document->object()->find("error")->object();
  EXPECT_EQ(*fields->find("code")->string(), "rate_limited");
  EXPECT_EQ(fields->find("retryable")->boolean(), true);
  EXPECT_EQ(fields->find("retry_after_s")->integer(), 30);
  EXPECT_EQ(*fields->find("hint")->string(), "playfs status");
}

}  // namespace
}  // namespace playfs::app
