#include "runtime/credentials.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "runtime/toml_table.h"
#include "support/temporary_directory.h"
#include "support/test_io.h"

namespace playfs::runtime {
namespace {

class LoginFile : public testing::Test {
 protected:
  LoginFile() {
    places_.config = root_ / "config";
    std::filesystem::create_directory(places_.config);
    chmod(places_.config.c_str(), 0700);
  }

  Source source(const std::string& site = "https://example.org") { return *parse_source(site, {}, places_, test_.io); }
  Status store(const std::string& site, const Login& login) { return store_login(source(site), places_, login); }
  std::string key_at(const std::string& site) {
    auto login = login_at(source(site), places_);
    return login ? std::move(*login).value_or(Login()).api_key : "(refused)";
  }
  [[nodiscard]] std::string path() const { return credentials_path(places_); }
  [[nodiscard]] std::string text() const { return read_file(path(), 1 << 20).value_or("(none)"); }
  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path()) << text;
    chmod(path().c_str(), mode);
  }
  [[nodiscard]] bool nothing_is_left() const { return access((path() + ".new").c_str(), F_OK) != 0; }

  test::TemporaryDirectory root_;
  Places places_;
  test::TestIo test_;
};

TEST_F(LoginFile, IsMadePrivate) {
  std::filesystem::remove(places_.config);
  const mode_t before = umask(0);
  ASSERT_TRUE(store("https://example.org", {"key", "ada@example.org", "ada"}));
  umask(before);
  struct stat file {
  }, directory{};
  ASSERT_EQ(stat(path().c_str(), &file), 0);
  ASSERT_EQ(stat(places_.config.c_str(), &directory), 0);
  EXPECT_EQ(file.st_mode & 07777, 0600u);
  EXPECT_EQ(directory.st_mode & 07777, 0700u);
  auto login = login_at(source(), places_);
  ASSERT_TRUE(login && *login);
  EXPECT_EQ((*login)->api_key, "key");
  EXPECT_EQ((*login)->email, "ada@example.org");
  EXPECT_EQ((*login)->agent, "ada");
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LoginFile, KeepsWhateverElseIsThere) {
  const std::string before =
      "# my keys\nplain = 1 # unknown\n\n['https://example.org'] # old\napi_key = 'old'\nnote = 'mine'\n\n"
      "# the other one\n['https://other.org']\napi_key = 'other'\n";
  write(before);
  ASSERT_TRUE(store("https://example.org", {"new", "ada@example.org", ""}));
  EXPECT_EQ(key_at("https://example.org"), "new");
  EXPECT_EQ(key_at("https://other.org"), "other");
  for (const char* kept : {"# my keys\nplain = 1 # unknown\n", "note = 'mine'", "# the other one\n"})
    EXPECT_NE(text().find(kept), std::string::npos) << text();
  EXPECT_EQ(text().find("old'"), std::string::npos) << text();

  ASSERT_TRUE(store("http://127.0.0.1:8787", {"third", "", ""}));
  EXPECT_EQ(key_at("http://127.0.0.1:8787"), "third");
  auto forgotten = forget_login(source(), places_);
  ASSERT_TRUE(forgotten);
  EXPECT_TRUE(*forgotten);
  EXPECT_EQ(key_at("https://example.org"), "");
  EXPECT_EQ(key_at("https://other.org"), "other");
  EXPECT_EQ(key_at("http://127.0.0.1:8787"), "third");
  EXPECT_NE(text().find("# the other one\n"), std::string::npos) << text();
  EXPECT_EQ(text().find("new"), std::string::npos) << text();
  EXPECT_FALSE(*forget_login(source(), places_));
}

TEST_F(LoginFile, KeepsValuesInEveryLayout) {
  for (const char* before :
       {"'https://example.org' = { api_key = 'old', note = 'mine' }\nafter = 2\n",
        "'https://example.org'.api_key = 'old'\n'https://example.org'.note = 'mine'\nafter = 2\n",
        "after = 2\n['https://example.org']\napi_key = '''old\n'''\nnote = 'mine'\n[x.y]\nz = 1",
        "after = 2\r\n['https://example.org']\r\nnote = 'mine'\r\napi_key = 'old'",
        "after = 2\n['https://example.org'.deep]\nk = 1\n['https://example.org']\nnote = 'mine'"}) {
    write(before);
    auto document = *parse_secret_toml(before, "");
    ASSERT_TRUE(store("https://example.org", {"new\"'\\", "", ""})) << before;
    auto& entry = *document["https://example.org"].as_table();
    entry.insert_or_assign("api_key", "new\"'\\");
    EXPECT_EQ(*parse_secret_toml(text(), ""), document) << text();
    ASSERT_TRUE(forget_login(source(), places_));
    document.erase("https://example.org");
    EXPECT_EQ(*parse_secret_toml(text(), ""), document) << text();
  }
}

TEST_F(LoginFile, IsNotWrittenWhereOthersCanReadOrReplaceIt) {
  const std::string before = "['https://other.org']\napi_key = 'other'\n";
  auto refuses = [&](const char* why) {
    for (const Status& refused : {store("https://example.org", {"key", "", ""}), prepare_to_store(places_)}) {
      ASSERT_FALSE(refused) << why;
      EXPECT_EQ(refused.error().code, ErrorCode::permission_denied) << why;
    }
    EXPECT_FALSE(forget_login(source("https://other.org"), places_)) << why;
    EXPECT_EQ(text(), before) << why;
  };
  for (mode_t mode : {0640, 0604, 0660}) {
    write(before, mode);
    refuses("the file's mode");
  }
  std::filesystem::rename(path(), root_ / "elsewhere");
  chmod((root_ / "elsewhere").c_str(), 0600);
  ASSERT_EQ(symlink((root_ / "elsewhere").c_str(), path().c_str()), 0);
  refuses("a link");
  std::filesystem::remove(path());
  write(before);
  chmod(places_.config.c_str(), 0777);
  refuses("the directory's mode");
}

TEST_F(LoginFile, IsNotReplacedIfItCannotBeUnderstood) {
  write("['https://other.org']\napi_key = hunter2\n");
  auto refused = store("https://example.org", {"key", "", ""});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("hunter2"), std::string::npos);
  EXPECT_NE(refused.error().message.find("line 2"), std::string::npos);
  EXPECT_NE(text().find("hunter2"), std::string::npos);
}

/// Runs `change` in a child process. Returns its exit status, negative for a signal.
template <class Change>
int in_a_child(Change change) {
  const pid_t child = fork();
  if (child == 0) _exit(change() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(LoginFile, SurvivesAProcessThatDiesInTheMiddle) {
  ASSERT_TRUE(store("https://other.org", {"other", "", ""}));
  const std::string before = text();
  // The kernel kills whoever writes past the limit: in the middle of the new file.
  EXPECT_EQ(in_a_child([&] {
              const rlimit limit{20, 20};
              setrlimit(RLIMIT_FSIZE, &limit);
              return store("https://example.org", {"key", "", ""}).has_value();
            }),
            -SIGXFSZ);
  EXPECT_EQ(text(), before);
  EXPECT_FALSE(nothing_is_left());
  ASSERT_TRUE(store("https://example.org", {"key", "", ""}));
  EXPECT_EQ(key_at("https://other.org"), "other");
  EXPECT_EQ(key_at("https://example.org"), "key");
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(LoginFile, LeavesNoKeyBesideIt) {
  std::ofstream(path() + ".new") << "api_key = 'left by a process that died'\n";
  EXPECT_FALSE(*forget_login(source(), places_));
  EXPECT_TRUE(nothing_is_left());
  // Nor does it write through a link that somebody put there.
  std::ofstream(root_ / "elsewhere") << "precious";
  ASSERT_EQ(symlink((root_ / "elsewhere").c_str(), (path() + ".new").c_str()), 0);
  ASSERT_TRUE(store("https://example.org", {"key", "", ""}));
  EXPECT_EQ(read_file(root_ / "elsewhere", 100).value_or(""), "precious");
}

TEST_F(LoginFile, LosesNoEntryOfSeveralWriters) {
  constexpr int writers = 4, entries = 25;
  auto site = [](int writer, int entry) {
    return "https://host" + std::to_string(writer) + "-" + std::to_string(entry) + ".example.org";
  };
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      for (int entry = 0; entry < entries; ++entry)
        if (!store(site(writer, entry), {"key", "", ""})) _exit(1);
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  for (int writer = 0; writer < writers; ++writer)
    for (int entry = 0; entry < entries; ++entry) EXPECT_EQ(key_at(site(writer, entry)), "key") << site(writer, entry);
}

}  // namespace
}  // namespace playfs::runtime
