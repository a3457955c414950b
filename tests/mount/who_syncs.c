/* Preload: logs to the file named by WHO_SYNCS which threads take kernel requests ("loop TID") and which wait for
 * the disk ("sync TID"). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void note(const char* what) {
  const char* name = getenv("WHO_SYNCS");
  if (!name) return;
  int log = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log >= 0) dprintf(log, "%s %d\n", what, gettid());
  if (log >= 0) close(log);
}

static void note_if_requests_come_from(int fd) {
  static __thread int is_noted;
  char link[64], path[64] = "";
  if (is_noted) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (readlink(link, path, sizeof path - 1) < 0 || strcmp(path, "/dev/fuse")) return;
  is_noted = 1;
  note("loop");
}

ssize_t read(int fd, void* data, size_t size) {
  static ssize_t (*found)(int, void*, size_t);
  if (!found) *(void**)&found = dlsym(RTLD_NEXT, "read");
  note_if_requests_come_from(fd);
  return found(fd, data, size);
}

ssize_t splice(int fd, off64_t* in, int to, off64_t* out, size_t size, unsigned flags) {
  static ssize_t (*found)(int, off64_t*, int, off64_t*, size_t, unsigned);
  if (!found) *(void**)&found = dlsym(RTLD_NEXT, "splice");
  note_if_requests_come_from(fd);
  return found(fd, in, to, out, size, flags);
}

static int (*next(const char* name))(int) {
  int (*found)(int) = 0;
  *(void**)&found = dlsym(RTLD_NEXT, name);
  return found;
}

int fsync(int fd) {
  note("sync");
  return next("fsync")(fd);
}

int fdatasync(int fd) {
  note("sync");
  return next("fdatasync")(fd);
}

int syncfs(int fd) {
  note("sync");
  return next("syncfs")(fd);
}
