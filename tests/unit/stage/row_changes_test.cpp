// Changes of rows as bytes: what is written reads back the same, whatever it contains, and damaged bytes are rejected.
#include "stage/store/row_changes.h"

#include <limits>

#include <gtest/gtest.h>

#include "support/workbench.h"

namespace playfs::stage {
namespace {

constexpr auto kLargest = std::numeric_limits<std::uint64_t>::max();

std::vector<RowChange> one_of_each() {
  InodeRow inode;
  inode.ino = kLargest;
  inode.kind = Kind::symlink;
  inode.metadata = {
      07777, 65534, 4294967295U, {-1}, {std::numeric_limits<std::int64_t>::min()}, {1'700'000'000'000'000'000}};
  inode.spool = 127;
  inode.target = std::string("a\0b", 3);
  inode.device = 128;
  inode.opaque = true;
  inode.lower_path = "d/f";
  inode.lower_revision = "r1";
  FrozenFile own;
  own.path = "p";
  own.mode = FileMode::executable;
  own.hash = ContentHash::of("x");
  own.size = 1;
  own.spool = 9;
  FrozenFile carried;
  carried.published = test::entry_of({"text"});
  return {PutInode{inode},
          DropInode{0},
          PutEntry{{1, std::string(255, '\xff'), 2}},
          DropEntry{3, "n"},
          DropWhiteouts{4},
          Touch{5, {6}, {-7}},
          ClearOpaque{},
          PutRescued{{"r", "p", "t", "path", test::entry_of({"old"})}},
          DropUnusedRescued{},
          PutValue{"key", std::string(70'000, 'v')},
          DropValue{"key"},
          PutTime{"path", {8}},
          DropTime{"path"},
          PutPending{own},
          PutPending{carried},
          PutPendingDeletion{"gone"},
          DropPending{},
          PutReplacement{{9, 10, ~std::uint64_t{0}, 11, "below"}},
          DropReplacement{12}};
}

std::string bytes_of(const RowChange& change) {
  std::string bytes;
  encode(bytes, change);
  return bytes;
}

TEST(RowChanges, EachKindComesBackAsItWas) {
  auto changes = one_of_each();
  ASSERT_GE(changes.size(), std::variant_size_v<RowChange>);
  std::string bytes;
  for (const auto& change : changes) encode(bytes, change);
  std::string_view left = bytes;
  for (const auto& change : changes) {
    auto read = decode(left);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->index(), change.index());
    EXPECT_EQ(bytes_of(*read), bytes_of(change));
  }
  EXPECT_TRUE(left.empty());
  auto inode = std::get<PutInode>(changes[0]).row;
  std::string_view first = bytes;
  auto again = std::get<PutInode>(*decode(first)).row;
  EXPECT_EQ(again.ino, inode.ino);
  EXPECT_EQ(again.metadata.gid, inode.metadata.gid);
  EXPECT_EQ(again.metadata.atime, inode.metadata.atime);
  EXPECT_EQ(again.metadata.mtime, inode.metadata.mtime);
  EXPECT_EQ(again.target, inode.target);
  EXPECT_EQ(again.lower_revision, inode.lower_revision);
}

// What older versions wrote must stay readable: the order of kinds and fields is the format.
TEST(RowChanges, TheFormatIsThis) {
  EXPECT_EQ(bytes_of(PutEntry{{300, "name", 1}}), std::string("\x02\xac\x02\x04name\x01", 9));
  EXPECT_EQ(bytes_of(Touch{1, {1}, {-1}}), std::string("\x05\x01\x02\x01", 4));
  EXPECT_EQ(bytes_of(DropPending{}), "\x0f");
}

TEST(RowChanges, CutOffBytesAreRefused) {
  for (const auto& change : one_of_each()) {
    const std::string whole = bytes_of(change);
    for (std::size_t size = 0; size < std::min<std::size_t>(whole.size(), 300); ++size) {
      std::string_view left = std::string_view(whole).substr(0, size);
      EXPECT_FALSE(decode(left)) << change.index() << " of " << size;
    }
  }
  for (std::string_view nonsense : {"\x10", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x01"}) {
    EXPECT_FALSE(decode(nonsense));
  }
}

}  // namespace
}  // namespace playfs::stage
