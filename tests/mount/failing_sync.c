/* Preload: fdatasync of a work tree's operations log fails while the file named by FAILING_SYNC exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int fdatasync(int fd) {
  static int (*next)(int);
  if (!next) *(void**)&next = dlsym(RTLD_NEXT, "fdatasync");
  const char* name = getenv("FAILING_SYNC");
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (name && access(name, F_OK) == 0 && readlink(link, path, sizeof path - 1) > 0 && strstr(path, "/operations.")) {
    errno = EIO;
    return -1;
  }
  return next(fd);
}
