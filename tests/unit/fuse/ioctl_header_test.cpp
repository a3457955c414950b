#include <playfs/ioctl.h>

#include <gtest/gtest.h>

extern "C" unsigned long playfs_test_commit_request(void);

namespace {

TEST(IoctlHeader, MeansTheSameInCAndCxx) { EXPECT_EQ(playfs_test_commit_request(), PLAYFS_IOC_COMMIT); }

// A restricted ioctl carries at most 16 KiB - 1, the limit of its size field.
TEST(IoctlHeader, PayloadsFitTheirCommands) {
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_COMMIT), sizeof(playfs_commit));
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_STATUS), sizeof(playfs_status));
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_DISCARD), sizeof(playfs_discard));
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_UPDATE), sizeof(playfs_update));
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_MERGE), sizeof(playfs_merge));
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_CANCEL), sizeof(playfs_cancel));
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_CHECKPOINT), sizeof(playfs_checkpoint));
  EXPECT_EQ(_IOC_SIZE(PLAYFS_IOC_RESTORE), sizeof(playfs_restore));
}

}  // namespace
