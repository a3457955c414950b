#include "command_fixture.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "app/run.h"

namespace playfs::app {

namespace fs = std::filesystem;

CommandTest::Ran CommandTest::run(std::vector<std::string> words, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out, err;
  SystemClock clock;
  SystemRandom random;
  runtime::Io io{in, out, err, clock, random, environment_, home_};
  words.insert(words.begin(), "playfs");
  int code = app::run(std::move(words), io);
  return {code, out.str(), err.str()};
}

void CommandTest::write(const std::string& path, const std::string& text, bool executable) {
  fs::path whole = fs::path(home_) / path;
  fs::create_directories(whole.parent_path());
  std::ofstream(whole, std::ios::binary) << text;
  if (executable) fs::permissions(whole, fs::perms::owner_exec, fs::perm_options::add);
}

std::string CommandTest::read(const std::string& path) const {
  std::ifstream file(fs::path(home_) / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string CommandTest::stable(std::string text) {
  for (auto at = text.find(home_); at != std::string::npos; at = text.find(home_))
    text.replace(at, home_.size(), "<home>");
  text = std::regex_replace(text, std::regex("\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z"), "<time>");
  static const std::regex id("\\b[0-9][0-9a-z]{19}\\b");
  std::string result;
  auto end = std::sregex_iterator();
  std::size_t done = 0;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), id); match != end; ++match) {
    auto number = ids_.try_emplace(match->str(), ids_.size() + 1).first->second;
    result.append(text, done, static_cast<std::size_t>(match->position()) - done)
        .append("<id ")
        .append(std::to_string(number))
        .append(">");
    done = static_cast<std::size_t>(match->position() + match->length());
  }
  return result.append(text, done);
}

void CommandTest::expect_golden(const std::string& name, const std::string& text) {
  fs::path path = fs::path(PLAYFS_GOLDEN) / name;
  std::string got = stable(text);
  if (std::getenv("PLAYFS_ACCEPT") != nullptr) {
    std::ofstream(path, std::ios::binary) << got;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing; PLAYFS_ACCEPT=1 writes it";
  EXPECT_EQ(got, std::string(std::istreambuf_iterator<char>(file), {})) << "PLAYFS_ACCEPT=1 takes the new text over";
}

}  // namespace playfs::app
