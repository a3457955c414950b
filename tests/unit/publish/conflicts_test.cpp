// Which of the conflicts that a merge left are still to be resolved.
#include "publish/conflicts.h"

#include <gtest/gtest.h>

#include "support/workbench.h"

namespace playfs::publish {
namespace {

class ConflictsTest : public testing::Test {
 protected:
  ConflictsTest() { bench.open(test::revision_of("r1", {{"f", "published"}, {"l", {"f", FileMode::symlink}}})); }
  /// Says that a merge left `content` there, in conflict.
  void leave(const std::string& path, const std::string& content, bool has_markers = false) {
    ASSERT_TRUE(bench.stage->record_conflicted(
        {{.path = path, .reason = "", .has_markers = has_markers, .left = ContentHash::of(content), .beside = ""}}));
  }
  bool is_resolved() {
    auto left = unresolved(*bench.stage);
    EXPECT_TRUE(left) << left.error().message;
    return left && left->empty();
  }
  test::Workbench bench;
};

TEST_F(ConflictsTest, AsLongAsMarkersStandInItAFileIsInConflict) {
  const std::string marked = "<<<<<<< ours\n1\n=======\n2\n>>>>>>> theirs\n";
  ASSERT_TRUE(bench.put("f", marked));
  leave("f", marked, true);
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.put("f", "a line more\n" + marked));
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.put("f", "1 and 2\n"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, WithoutMarkersAnyEditResolvesIt) {
  ASSERT_TRUE(bench.put("f", "ours"));
  leave("f", "ours");
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.put("f", "both"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, ALinkIsInConflictUntilItPointsElsewhere) {
  ASSERT_TRUE(bench.unlink("l") && bench.symlink("ours", "l"));
  leave("l", "ours");
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.unlink("l") && bench.symlink("theirs", "l"));
  EXPECT_TRUE(is_resolved());
}

TEST_F(ConflictsTest, AnotherKindOrNothingInItsPlaceResolvesIt) {
  leave("f", "published");
  EXPECT_FALSE(is_resolved());
  ASSERT_TRUE(bench.unlink("f"));
  EXPECT_TRUE(is_resolved());
  leave("f", "published");
  ASSERT_TRUE(bench.mkdir("f"));
  EXPECT_TRUE(is_resolved());
}

}  // namespace
}  // namespace playfs::publish
