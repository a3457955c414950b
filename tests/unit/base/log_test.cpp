#include "base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "base/fd.h"

namespace playfs {
namespace {

/// Temporarily replaces standard error by a pipe.
class Pipe {
 public:
  Pipe() : kept_(dup(STDERR_FILENO)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    out_ = UniqueFd(ends[0]);
    EXPECT_EQ(fcntl(out_.get(), F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
  }
  ~Pipe() { dup2(kept_.get(), STDERR_FILENO); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  std::string all() const {
    std::string text(1 << 20, '\0');
    ssize_t got = read(out_.get(), text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  UniqueFd kept_, out_;
};

TEST(Log, APipeThatNobodyReadsStopsNobody) {
  Pipe pipe;
  const std::string line(1000, 'x');
  for (int i = 0; i < 1000; ++i) log_warning(line);
  const std::string first = pipe.all();
  const std::size_t written = first.size() / 1000;
  EXPECT_GT(written, 10u);
  EXPECT_LT(written, 1000u);
  log_warning("somebody reads again");
  const std::string then = pipe.all();
  EXPECT_NE(then.find(" lines dropped"), std::string::npos) << then;
  EXPECT_NE(then.find("somebody reads again\n"), std::string::npos) << then;
  log_warning("as ever");
  EXPECT_EQ(pipe.all().find("dropped"), std::string::npos);
}

TEST(Log, ALineIsCutToWhatAPipeTakesAtOnce) {
  Pipe pipe;
  log_warning(std::string(100'000, 'x'));
  const std::string line = pipe.all();
  EXPECT_EQ(line.size(), 4096u);
  EXPECT_TRUE(line.ends_with("x\n"));
}

}  // namespace
}  // namespace playfs
