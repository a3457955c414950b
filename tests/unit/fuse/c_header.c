/* The public header has to stand alone in C, and its structs must not change their size: programs were compiled
 * with it. */
#include <playfs/ioctl.h>

_Static_assert(sizeof(struct playfs_commit) == 6288, "struct playfs_commit is part of the ABI");
_Static_assert(sizeof(struct playfs_status) == 2272, "struct playfs_status is part of the ABI");
_Static_assert(sizeof(struct playfs_discard) == 5688, "struct playfs_discard is part of the ABI");
_Static_assert(sizeof(struct playfs_checkpoint) == 5704, "struct playfs_checkpoint is part of the ABI");
_Static_assert(sizeof(struct playfs_restore) == 10224, "struct playfs_restore is part of the ABI");
_Static_assert(sizeof(struct playfs_update) == 1800, "struct playfs_update is part of the ABI");

unsigned long playfs_test_commit_request(void) { return PLAYFS_IOC_COMMIT; }
