#include "app/renames.h"

#include <gtest/gtest.h>

namespace playfs::app {
namespace {

using Files = std::map<std::string, std::string>;

std::string lines(int first, int last) {
  std::string text;
  for (int i = first; i < last; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

ReadSide reader_of(const Files& files, std::size_t* reads = nullptr) {
  return [&files, reads](const std::string& path) -> Result<std::optional<DiffSide>> {
    if (reads) ++*reads;
    bool is_link = path.ends_with(".link");
    return std::optional(DiffSide{is_link ? "120000" : "100644", files.at(path)});
  };
}

std::map<std::string, std::string> found(const Files& gone, const Files& come) {
  std::set<std::string> before, after;
  for (const auto& [path, content] : gone) before.insert(path);
  for (const auto& [path, content] : come) after.insert(path);
  auto renames = find_renames(before, after, reader_of(gone), reader_of(come));
  EXPECT_TRUE(renames);
  std::map<std::string, std::string> pairs;
  for (const auto& [to, renamed] : *renames) pairs[to] = renamed.from;
  return pairs;
}

TEST(Renames, ContentsAreAlikeByTheirLines) {
  EXPECT_EQ(similarity("a\nb\n", "a\nb\n"), 100u);
  EXPECT_EQ(similarity("a\nb\n", "b\na\n"), 99u) << "not the same for all that";
  EXPECT_EQ(similarity("a\nb\n", "a\nc\n"), 50u);
  EXPECT_EQ(similarity("a\n", "b\n"), 0u);
  EXPECT_EQ(similarity("a\n", "a\na\na\na\n"), 25u) << "each line as often as it is there";
  EXPECT_EQ(similarity(std::string(6400, 'x') + "y", std::string(6400, 'x')), 99u);
  EXPECT_EQ(similarity("", "a"), 0u);
}

TEST(Renames, TheMostSimilarFileIsTaken) {
  EXPECT_EQ(found({{"a", lines(0, 20)}, {"b", lines(100, 120)}}, {{"x", lines(101, 120)}, {"y", lines(0, 18)}}),
            (Files{{"x", "b"}, {"y", "a"}}));
  EXPECT_EQ(found({{"a", lines(0, 20)}}, {{"x", lines(0, 15)}, {"y", lines(0, 19)}}), (Files{{"y", "a"}}))
      << "each goes to one place only";
  EXPECT_EQ(found({{"one/a", lines(0, 20)}, {"one/b", lines(0, 20)}}, {{"two/b", lines(0, 20)}}),
            (Files{{"two/b", "one/b"}}))
      << "of equal ones that of the same name";
}

TEST(Renames, DissimilarFilesAreNoRename) {
  EXPECT_EQ(found({{"a", lines(0, 20)}}, {{"x", lines(12, 40)}}), Files());
  EXPECT_EQ(found({{"empty", ""}}, {{"x", ""}}), Files());
  EXPECT_EQ(found({{"a", "target"}}, {{"x.link", "target"}}), Files()) << "a file does not become a link";
  EXPECT_EQ(found({{"a.link", "target"}}, {{"x.link", "target"}}), (Files{{"x.link", "a.link"}}));
}

TEST(Renames, PastTheBoundsOnlyEqualOnesAreFound) {
  std::string large = lines(0, 200'000);
  ASSERT_GT(large.size(), kLargestSimilar);
  EXPECT_EQ(found({{"a", large}}, {{"x", large + "more\n"}}), Files());
  EXPECT_EQ(found({{"a", large}}, {{"x", large}}), (Files{{"x", "a"}}));

  Files gone, come, moved;
  for (int i = 0; i < 101; ++i) {
    std::string number = std::to_string(i);
    gone["a" + number] = lines(i * 100, i * 100 + 10);
    come["b" + number] = lines(i * 100, i * 100 + 9);
  }
  ASSERT_GT(gone.size() * come.size(), kMostPairs);
  come["b7"] = gone["a7"];
  EXPECT_EQ(found(gone, come), (Files{{"b7", "a7"}}));
}

TEST(Renames, NothingIsReadWhereNothingCanBeFound) {
  Files files{{"a", "1"}};
  std::size_t reads = 0;
  auto read = reader_of(files, &reads);
  EXPECT_TRUE(find_renames({"a"}, {}, read, read)->empty());
  EXPECT_TRUE(find_renames({}, {"a"}, read, read)->empty());
  EXPECT_EQ(reads, 0u);
}

}  // namespace
}  // namespace playfs::app
