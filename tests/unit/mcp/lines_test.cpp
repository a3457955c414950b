#include "mcp/lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace playfs::mcp {
namespace {

std::vector<std::string> lines_of(const std::vector<std::string>& pieces, std::size_t longest = 10) {
  std::vector<std::string> lines;
  Lines parser(longest, {[&](std::string_view line) { lines.emplace_back(line); }, [&] { lines.emplace_back("!"); }});
  for (const std::string& piece : pieces) parser.feed(piece);
  parser.end();
  return lines;
}

using Wanted = std::vector<std::string>;

TEST(Lines, AreTheSameWhereverPiecesEnd) {
  EXPECT_EQ(lines_of({"one\ntwo\n"}), (Wanted{"one", "two"}));
  EXPECT_EQ(lines_of({"o", "ne", "\nt", "wo\n"}), (Wanted{"one", "two"}));
}

TEST(Lines, TheLastNeedsNoEnd) { EXPECT_EQ(lines_of({"one\nha", "lf"}), (Wanted{"one", "half"})); }

TEST(Lines, BlankOnesDoNotCount) { EXPECT_EQ(lines_of({"\n\r\n  \n", "one\n\n"}), Wanted{"one"}); }

TEST(Lines, OneThatIsTooLongIsReportedOnceAndSkipped) {
  EXPECT_EQ(lines_of({"0123456789\n"}), Wanted{"0123456789"});
  EXPECT_EQ(lines_of({"0123456789x\none\n"}), (Wanted{"!", "one"}));
  EXPECT_EQ(lines_of({"01234567", "89x", "yz01234567890", "\none\n"}), (Wanted{"!", "one"}));
  EXPECT_EQ(lines_of({"0123456789x"}), Wanted{"!"});
}

}  // namespace
}  // namespace playfs::mcp
