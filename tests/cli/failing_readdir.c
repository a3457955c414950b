/* Preloaded: makes reading the directory $FAILING_DIRECTORY fail with EIO after two files. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static int is_failing(DIR *stream) {
  const char *name = getenv("FAILING_DIRECTORY");
  struct stat failing, read;
  return name && stat(name, &failing) == 0 && fstat(dirfd(stream), &read) == 0 && failing.st_ino == read.st_ino &&
         failing.st_dev == read.st_dev;
}

static struct dirent *next(DIR *stream, const char *function) {
  static int entries; /* including . and .. */
  if (is_failing(stream) && entries++ >= 4) {
    errno = EIO;
    return NULL;
  }
  struct dirent *(*real)(DIR *) = dlsym(RTLD_NEXT, function);
  return real(stream);
}

struct dirent *readdir(DIR *stream) { return next(stream, "readdir"); }
struct dirent64 *readdir64(DIR *stream) { return (struct dirent64 *)next(stream, "readdir64"); }
