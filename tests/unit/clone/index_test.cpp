// The index: what it says survives, all of it or nothing.
#include "clone/index.h"

#include <gtest/gtest.h>

#include "support/temporary_directory.h"

namespace playfs::clone {
namespace {

Row a_row() {
  Row row;
  row.kind = RowKind::file;
  row.seen = {1, 2, 3, 4, 0100644};
  row.hash = ContentHash::of("text");
  row.mode = FileMode::executable;
  row.staged = "local 7";
  return row;
}

TEST(IndexTest, RowsSurvive) {
  const test::TemporaryDirectory directory;
  const std::string path = directory / "index.db";
  Row other = a_row();
  other.kind = RowKind::local_only;
  other.hash = {};
  other.is_begun = true;
  {
    auto index = Index::open(path);
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_TRUE(index->is_behind()) << "a new one knows of nothing in the directory";
    index->put("dir/a", a_row());
    index->put(std::string("\xff\n", 2), other);
    index->put("gone", a_row());
    index->set_looked(42);
    index->set_behind(false);
    ASSERT_TRUE(index->commit());
    index->erase("gone");
    ASSERT_TRUE(index->commit());
    index->put("uncommitted", a_row());
  }
  auto index = Index::open(path);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->rows(), (Index::Rows{{"dir/a", a_row()}, {std::string("\xff\n", 2), other}}));
  EXPECT_EQ(index->looked(), 42);
  EXPECT_FALSE(index->is_behind());
}

TEST(IndexTest, ADamagedOneIsReported) {
  const test::TemporaryDirectory directory;
  ASSERT_TRUE(write_file_atomically(directory / "index.db", std::string(8192, 'x')));
  auto index = Index::open(directory / "index.db");
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().code, ErrorCode::corrupt);
  EXPECT_NE(index.error().hint.find("rm "), std::string::npos);
}

TEST(SignatureTest, RacyIsWhatMayHaveChangedSinceItWasLookedAt) {
  const Signature seen{1, 2, 100, 90, 0100644};
  EXPECT_FALSE(seen.is_racy(101));
  EXPECT_TRUE(seen.is_racy(100));
  const Signature changed{1, 2, 90, 100, 0100644};
  EXPECT_TRUE(changed.is_racy(100)) << "its mtime was set back";
}

}  // namespace
}  // namespace playfs::clone
