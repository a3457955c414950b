/* Preload: syncs of staged bytes block while the file named by STALLED_DISK exists, and create NAME.reached beside
 * it. If NAME.reads exists, reads of them block too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void stall(int fd) {
  const char* name = getenv("STALLED_DISK");
  char link[64], path[4096] = "", reached[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (!name || access(name, F_OK) != 0 || readlink(link, path, sizeof path - 1) < 0 || !strstr(path, "/spool")) return;
  snprintf(reached, sizeof reached, "%s.reached", name);
  close(open(reached, O_WRONLY | O_CREAT, 0600));
  while (access(name, F_OK) == 0) usleep(20000);
}

static void stall_read(int fd) {
  const char* name = getenv("STALLED_DISK");
  char reads[4096];
  snprintf(reads, sizeof reads, "%s.reads", name ? name : "");
  if (name && access(reads, F_OK) == 0) stall(fd);
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  static ssize_t (*found)(int, void*, size_t, off_t);
  if (!found) *(void**)&found = dlsym(RTLD_NEXT, "pread");
  stall_read(fd);
  return found(fd, data, size, offset);
}

ssize_t pread64(int fd, void* data, size_t size, off64_t offset) { return pread(fd, data, size, offset); }

static int (*next(const char* name))(int) {
  int (*found)(int) = 0;
  *(void**)&found = dlsym(RTLD_NEXT, name);
  return found;
}

int fsync(int fd) {
  stall(fd);
  return next("fsync")(fd);
}

int fdatasync(int fd) {
  stall(fd);
  return next("fdatasync")(fd);
}

int syncfs(int fd) {
  stall(fd);
  return next("syncfs")(fd);
}
