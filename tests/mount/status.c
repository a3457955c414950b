/* Gets the status through the ioctl and prints it as JSON.
 *
 *   status FILE     anything inside work/
 */
#include <playfs/ioctl.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(int argc, char **argv) {
  struct playfs_status s = {.size = sizeof s, .version = PLAYFS_IOCTL_VERSION};
  if (argc != 2) return 2;
  int fd = open(argv[1], O_RDONLY);
  if (fd < 0 || ioctl(fd, PLAYFS_IOC_STATUS, &s)) {
    perror(argv[1]);
    return 1;
  }
  printf("{\"project\": \"%s\", \"base\": \"%s\", \"head\": \"%s\", \"staged\": %u, \"pending\": %u, \"conflicts\": %u, "
         "\"phase\": %u, \"chunks_done\": %u, \"chunks_total\": %u, \"retry_after_s\": %u, \"seconds_left\": %u, "
         "\"bytes_done\": %llu, \"bytes_total\": %llu, \"queued\": %u}\n",
         s.project, s.base, s.head, s.staged, s.pending, s.conflicts, s.phase, s.chunks_done, s.chunks_total,
         s.retry_after_s, s.seconds_left, (unsigned long long)s.bytes_done, (unsigned long long)s.bytes_total,
         s.queued);
  return 0;
}
