// What a process recorded right before it sent a revision, as another process finds it.
#include "publish/sent_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "support/publish_world.h"

namespace playfs::publish {
namespace {

namespace fs = std::filesystem;

class SentFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return database + "-sent"; }
  void put(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }

  test::TemporaryDirectory directory;
  const std::string database = directory.path() + "/publish.db";
  const std::string tx = std::string(kTxDigits, 'a');
};

TEST_F(SentFileTest, TheLastOneIsReadBack) {
  EXPECT_FALSE(read_sent(database).value()) << "nothing was sent";
  ASSERT_TRUE(write_sent(database, {1, std::string(kTxDigits, 'b')}));
  ASSERT_TRUE(write_sent(database, {23, tx}));
  auto sent = read_sent(database).value();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->number, 23);
  EXPECT_EQ(sent->tx, tx);
}

TEST_F(SentFileTest, ADamagedOneIsRejected) {
  ASSERT_TRUE(write_sent(database, {23, tx}));
  const std::string whole = read_file(file(), 1000).value();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put(changed);
    EXPECT_FALSE(read_sent(database).value()) << at;
    put(whole.substr(0, at));
    EXPECT_FALSE(read_sent(database).value()) << "cut at " << at;
  }
  put(whole + "x");
  EXPECT_FALSE(read_sent(database).value());
  put(std::string(1 << 20, '1'));
  EXPECT_FALSE(read_sent(database).value());
  put(whole);
  EXPECT_TRUE(read_sent(database).value());
}

TEST_F(SentFileTest, RemovingTwiceIsAllowed) {
  ASSERT_TRUE(write_sent(database, {23, tx}));
  for (int times = 0; times < 2; ++times) {
    auto removed = remove_sent(database);
    EXPECT_TRUE(removed) << removed.error().message;
    EXPECT_FALSE(read_sent(database).value());
  }
}

TEST_F(SentFileTest, ErrorsOfReadingAndRemovingAreReported) {
  fs::create_directory(file());
  EXPECT_FALSE(read_sent(database));
  EXPECT_FALSE(remove_sent(database));
}

}  // namespace
}  // namespace playfs::publish
