#include "fuse/errno_table.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace playfs::fuse {
namespace {

// An errno of the local disk must leave the mount unchanged.
TEST(ErrnoTable, LocalErrorsPassThroughUnchanged) {
  for (int number :
       {ENOENT,  EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EROFS, EINVAL, ENAMETOOLONG, EPERM,  EACCES,    EBUSY, EOPNOTSUPP,
        ENODATA, EMLINK, ELOOP,   EXDEV,  ENXIO,     EFBIG, ENOSPC, EDQUOT,       ERANGE, ETIMEDOUT, EINTR, EIO})
    EXPECT_EQ(errno_of(error_from_errno(number, "test").code), number);
}

TEST(ErrnoTable, ServiceErrorsAreTheDocumentedOnes) {
  EXPECT_EQ(errno_of(ErrorCode::not_found), ENOENT);
  EXPECT_EQ(errno_of(ErrorCode::permission_denied), EACCES);
  EXPECT_EQ(errno_of(ErrorCode::unauthorized), EACCES);
  EXPECT_EQ(errno_of(ErrorCode::rate_limited), EAGAIN);
  EXPECT_EQ(errno_of(ErrorCode::record_too_large), EMSGSIZE);
  EXPECT_EQ(errno_of(ErrorCode::unreachable), EHOSTUNREACH);
  EXPECT_EQ(errno_of(ErrorCode::corrupt), EIO);
}

}  // namespace
}  // namespace playfs::fuse
