/* Commits through the ioctl, and prints: OUTCOME REVISION FILES_CHANGED WRITES_USED
 *
 *   commit FILE MESSAGE [AGENT [nowait | no-merge]]     FILE: anything inside work/
 */
#include <playfs/ioctl.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int main(int argc, char **argv) {
  static const char *const outcomes[] = {"none", "published", "merged", "branched", "pending", "nothing"};
  struct playfs_commit commit = {.size = sizeof commit, .version = PLAYFS_IOCTL_VERSION};
  if (argc < 3 || strlen(argv[2]) >= sizeof commit.message) return 2;
  strcpy(commit.message, argv[2]);
  if (argc > 3) snprintf(commit.agent, sizeof commit.agent, "%s", argv[3]);
  if (argc > 4 && !strcmp(argv[4], "nowait")) commit.flags = PLAYFS_COMMIT_NOWAIT;
  else if (argc > 4 && !strcmp(argv[4], "no-merge")) commit.flags = PLAYFS_COMMIT_NO_MERGE;
  else if (argc > 4) return 2;
  int fd = open(argv[1], O_RDONLY);
  if (fd < 0 || ioctl(fd, PLAYFS_IOC_COMMIT, &commit)) {
    perror(argv[1]);
    return 1;
  }
  printf("%s %s %u %u\n", commit.outcome <= PLAYFS_NOTHING ? outcomes[commit.outcome] : "unknown",
         *commit.revision ? commit.revision : "-", commit.files_changed, commit.writes_used);
  return 0;
}
