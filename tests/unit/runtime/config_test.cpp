#include "runtime/config.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/credentials.h"
#include "runtime/mount_options.h"
#include "support/temporary_directory.h"
#include "support/test_io.h"

namespace playfs::runtime {
namespace {

using test::TestIo;

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    places_.config = root_ / "config";
    places_.system_config = root_ / "system.toml";
    std::filesystem::create_directory(places_.config);
    chmod(places_.config.c_str(), 0700);
  }

  void write(const std::string& path, const std::string& text, mode_t mode = 0600) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  Result<Settings> load() { return load_settings(test_.io, places_, warnings_); }

  test::TemporaryDirectory root_;
  Places places_;
  TestIo test_;
  std::vector<std::string> warnings_;
};

class Config : public FilesTest {};

TEST_F(Config, NothingAnywhereIsNoSetting) {
  auto settings = load();
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->text("agent"));
  EXPECT_FALSE(settings->flag("offline"));
}

TEST_F(Config, FlagBeatsEnvironmentBeatsUserBeatsSystem) {
  write(places_.system_config, "agent = 'system'\nrefresh = 1\ncache_size = '1M'\ncafile = '/system.pem'\n");
  write(places_.config + "/config.toml", "agent = 'user'\nrefresh = 2\ncache_size = '2M'\n");
  test_.io.environment = {{"PLAYFS_AGENT", "environment"}, {"PLAYFS_REFRESH", "3"}};
  auto settings = load();
  ASSERT_TRUE(settings);
  ASSERT_TRUE(settings->set(Settings::Layer::flag, "agent", "flag"));
  EXPECT_EQ(settings->text("agent"), "flag");
  EXPECT_EQ(settings->seconds("refresh"), std::chrono::seconds(3));
  EXPECT_EQ(settings->size("cache_size"), 2u << 20);
  EXPECT_EQ(settings->text("cafile"), "/system.pem");
}

TEST_F(Config, AServicesOwnTableWinsWithinItsFileOnly) {
  write(places_.system_config, "[sites.'https://example.org']\nagent = 'system-there'\ncafile = '/there.pem'\n");
  write(places_.config + "/config.toml", "agent = 'user'\n[sites.'https://example.org']\noffline = true\n");
  auto settings = load();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->text("agent", "https://example.org"), "user");
  EXPECT_EQ(settings->text("cafile", "https://example.org"), "/there.pem");
  EXPECT_FALSE(settings->text("cafile", "https://example.com"));
  EXPECT_TRUE(settings->flag("offline", "https://example.org"));
  EXPECT_FALSE(settings->flag("offline"));
}

TEST_F(Config, AnEmptyVariableIsUnset) {
  write(places_.config + "/config.toml", "agent = 'user'\n");
  test_.io.environment = {{"PLAYFS_AGENT", ""}};
  EXPECT_EQ(load()->text("agent"), "user");
}

TEST_F(Config, SaysWhereAValueIsWrong) {
  write(places_.config + "/config.toml", "refresh = 'often'\n");
  auto refused = load();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("config.toml"), std::string::npos);

  write(places_.config + "/config.toml", "refresh = 1\nagent = \n");
  refused = load();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("line 2"), std::string::npos);
}

TEST_F(Config, WarnsOfWhatItDoesNotKnow) {
  write(places_.config + "/config.toml", "colour = 'blue'\nagent = ['a']\n");
  auto settings = load();
  ASSERT_TRUE(settings);
  EXPECT_EQ(warnings_.size(), 2u);
}

TEST(ConfigValues, HaveOneForm) {
  EXPECT_EQ(parse_seconds("0.5"), std::chrono::milliseconds(500));
  for (const char* bad : {"", "0", "-1", "1s", "1e3", "inf", "nan", "1e99"}) EXPECT_FALSE(parse_seconds(bad)) << bad;
  EXPECT_EQ(parse_size("512"), 512u);
  EXPECT_EQ(parse_size("2GiB"), 2ull << 30);
  EXPECT_EQ(parse_size("16777215T"), 16777215ull << 40);
  for (const char* bad : {"", "G", "-1", "1X", "1KK", "16777216T", "99999999999999999999"})
    EXPECT_FALSE(parse_size(bad)) << bad;
  EXPECT_EQ(parse_flag("On"), true);
  EXPECT_EQ(parse_flag("no"), false);
  EXPECT_FALSE(parse_flag("2"));
}

class Credentials : public FilesTest {
 protected:
  Result<std::string> key_for(const std::string& site) {
    PLAYFS_TRY(auto login, login_at(*parse_source(site, {}, places_, test_.io), places_));
    return login ? login->api_key : std::string();
  }
  std::string path() const { return credentials_path(places_); }
  const std::string text_ =
      "['https://example.org']\napi_key = 'secret'\n['http://example.org']\napi_key = 'plain'\n"
      "['http://127.0.0.1:8787']\napi_key = 'loopback'\n";
};

TEST_F(Credentials, GoOnlyToTheirOwnHost) {
  write(path(), text_);
  EXPECT_EQ(key_for("https://example.org"), "secret");
  EXPECT_EQ(key_for("https://example.org:8443"), "");
  EXPECT_EQ(key_for("https://sub.example.org"), "");
  EXPECT_EQ(key_for("http://127.0.0.1:8787"), "loopback");
  EXPECT_EQ(key_for("local:default"), "");
}

TEST_F(Credentials, NeverGoOverPlainHttp) {
  write(path(), text_);
  EXPECT_EQ(key_for("http://example.org"), "");
}

TEST_F(Credentials, AreRefusedWhereOthersCanReadThem) {
  for (mode_t mode : {0640, 0604, 0660, 0620}) {
    write(path(), text_, mode);
    auto refused = key_for("https://example.org");
    ASSERT_FALSE(refused) << std::oct << mode;
    EXPECT_EQ(refused.error().code, ErrorCode::permission_denied);
    EXPECT_EQ(refused.error().hint, "chmod 600 " + path());
  }
}

TEST_F(Credentials, AreNotReadThroughLinksOrFromADirectoryOfOthers) {
  write(root_ / "elsewhere", text_);
  ASSERT_EQ(symlink((root_ / "elsewhere").c_str(), path().c_str()), 0);
  EXPECT_EQ(key_for("https://example.org").error().code, ErrorCode::permission_denied);
  std::filesystem::remove(path());
  write(path(), text_);
  chmod(places_.config.c_str(), 0777);
  EXPECT_EQ(key_for("https://example.org").error().code, ErrorCode::permission_denied);
}

TEST_F(Credentials, AreNotCutOffWhereTheFileIsTooLarge) {
  write(path(), text_ + "#" + std::string(1 << 20, '-'));
  EXPECT_EQ(key_for("https://example.org").error().code, ErrorCode::file_too_big);
}

TEST_F(Credentials, AreNotQuotedInErrors) {
  write(path(), "['https://example.org']\napi_key = hunter2\n");
  auto refused = key_for("https://example.org");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("hunter2"), std::string::npos);
}

TEST_F(Credentials, MayBeMissing) {
  EXPECT_EQ(key_for("https://example.org"), "");
  places_.config = root_ / "nowhere";
  EXPECT_EQ(key_for("https://example.org"), "");
}

struct Parsed {
  MountOptions options;
  Settings settings;
  Status status;
};

Parsed parse(std::string_view list) {
  Parsed parsed;
  parsed.status = parse_mount_options(list, parsed.options, parsed.settings);
  return parsed;
}

TEST(MountOptionList, KnowsAllOptions) {
  auto parsed = parse(
      "project=p,revision=r,ro,allow_other,uid=1000,gid=100,umask=027,nonempty,refresh=5,agent=ada,offline,cache_size="
      "1G,noprefetch");
  ASSERT_TRUE(parsed.status);
  EXPECT_EQ(parsed.options.project, "p");
  EXPECT_EQ(parsed.options.revision, "r");
  EXPECT_TRUE(parsed.options.read_only && parsed.options.allow_other && parsed.options.nonempty);
  EXPECT_EQ(parsed.options.uid, 1000u);
  EXPECT_EQ(parsed.options.gid, 100u);
  EXPECT_EQ(parsed.options.umask, 027u);
  EXPECT_EQ(parsed.settings.text("agent"), "ada");
  EXPECT_TRUE(parsed.settings.flag("offline") && parsed.settings.flag("noprefetch"));
  EXPECT_TRUE(parsed.options.safe_symlinks) << "on by itself with allow_other";
}

TEST(MountOptionList, SaysWhoseInstructionsAreShown) {
  EXPECT_EQ(instructions_for(parse("instructions=show").settings, ""), Instructions::show);
  EXPECT_EQ(instructions_for(parse("instructions=show,instructions=hide").settings, "site"), Instructions::hide);
  EXPECT_EQ(instructions_for(parse("ro").settings, ""), Instructions::hide_others);
}

TEST(MountOptionList, AValueOfAStrangerIsOneValue) {
  for (const char* id : {"p,allow_other,umask=0", "p\\", "p\\,ro", "a=b", ",", "\\\\,"}) {
    auto parsed = parse(mount_option("project", id) + ",noexec");
    ASSERT_TRUE(parsed.status) << id;
    EXPECT_EQ(parsed.options.project, id);
    EXPECT_TRUE(parsed.options.no_exec);
    EXPECT_FALSE(parsed.options.allow_other || parsed.options.read_only || parsed.options.umask) << id;
  }
}

TEST(MountOptionList, TakesWhatEveryFileSystemTakes) {
  EXPECT_TRUE(parse("default_permissions,suid,dev,nosuid,nodev,atime,noatime,relatime").status);
  auto parsed = parse("exec,noexec,async,sync");
  ASSERT_TRUE(parsed.status);
  EXPECT_TRUE(parsed.options.no_exec && parsed.options.synchronous);
  parsed = parse("noexec,exec,sync,async");
  ASSERT_TRUE(parsed.status);
  EXPECT_FALSE(parsed.options.no_exec || parsed.options.synchronous);
}

TEST(MountOptionList, IgnoresWhatIsForTheBoot) {
  EXPECT_TRUE(parse("rw,_netdev,nofail,x-systemd.automount,x-gvfs-show,defaults,user,noauto,nosuid,nodev,,comment=mine")
                  .status);
}

TEST(MountOptionList, RefusesWhatItDoesNotKnowOrCannotRead) {
  for (const char* bad :
       {"nosuch", "ro=1", "project=", "project", "uid=root", "umask=999", "umask=7777", "refresh", "refresh=x", "agent",
        "instructions", "instructions=", "instructions=yes", "site=x", "noexec=1", "dirsync", "revision=r"})
    EXPECT_EQ(parse(bad).status.error().code, ErrorCode::invalid_argument) << bad;
}

}  // namespace
}  // namespace playfs::runtime
