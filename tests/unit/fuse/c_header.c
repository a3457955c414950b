/* The public header has to stand alone in C, and its structs must not change their size: programs were compiled
 * with it. */
#include <playfs/ioctl.h>

_Static_assert(sizeof(struct playfs_commit) == 4744, "struct playfs_commit is part of the ABI");
_Static_assert(sizeof(struct playfs_status) == 728, "struct playfs_status is part of the ABI");
_Static_assert(sizeof(struct playfs_discard) == 48, "struct playfs_discard is part of the ABI");
_Static_assert(sizeof(struct playfs_update) == 256, "struct playfs_update is part of the ABI");

unsigned long playfs_test_commit_request(void) { return PLAYFS_IOC_COMMIT; }
