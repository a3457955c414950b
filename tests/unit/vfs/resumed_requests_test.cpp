// Texts that wait for an earlier one to the same file, which gets no answer.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace playfs::vfs::test {
namespace {

using playfs::test::Fault;
using testing::ElementsAre;
using testing::IsEmpty;

class ResumedRequestsTest : public testing::Test {
 protected:
  ResumedRequestsTest() {
    mount_.network.set_plan([](const HttpRequest& request) {
      return is_message(request, "first") ? playfs::test::lose_request() : Fault{};
    });
  }

  static bool is_message(const HttpRequest& request, const std::string& text) {
    return request.method == "POST" && request.body.find("\"" + text + "\"") != std::string::npos;
  }
  /// Writes a text, and waits until it has been tried.
  void write(const std::string& text) {
    ASSERT_TRUE(mount_.write_file(reply_, text));
    ASSERT_TRUE(mount_.read_file(reply_));
  }
  /// Those that arrived, in their order.
  std::vector<std::string> arrived() {
    std::vector<std::string> texts;
    for (const playfs::test::Sent& sent : mount_.network.sent())
      for (const char* text : {"first", "second", "third", "fourth"})
        if (is_message(sent.request, text) && sent.status == 200) texts.emplace_back(text);
    return texts;
  }

  Service service_;
  Mounted mount_{service_};
  const std::string reply_ =
      "threads/" + service_.create("threads", {{"title", "t"}, {"agent", "a"}, {"kind", "help"}}).id + "/reply";
};

TEST_F(ResumedRequestsTest, OvertakeOneThatGetsNoAnswerForTenMinutes) {
  write("first");
  write("second");
  mount_.clock.advance(std::chrono::minutes(9));
  write("third");
  EXPECT_THAT(arrived(), IsEmpty());
  mount_.clock.advance(std::chrono::minutes(2));
  write("fourth");
  EXPECT_TRUE(eventually([&] { return arrived().size() == 3; }));
  EXPECT_THAT(arrived(), ElementsAre("second", "third", "fourth"));
  // The one that was overtaken is still sent once it can be.
  mount_.network.open();
  EXPECT_TRUE(eventually([&] { return arrived().size() == 4; }));
}

}  // namespace
}  // namespace playfs::vfs::test
