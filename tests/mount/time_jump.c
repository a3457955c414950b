// Preload: the process's clocks run ahead by the nanoseconds in the file named by TIME_JUMP, read each time.
//
// Timed waits are split into short pieces, so that a jump takes effect at once, as after the machine slept.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kSecond = 1000000000, kPiece = 50000000 };

static const volatile long long* ahead;

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("TIME_JUMP");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* page = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) ahead = page;
  if (fd >= 0) close(fd);
}

static long long in_ns(const struct timespec* time) { return time->tv_sec * (long long)kSecond + time->tv_nsec; }

static struct timespec from_ns(long long ns) { return (struct timespec){ns / kSecond, ns % kSecond}; }

static long long real_now(clockid_t clock) {
  struct timespec time = {0, 0};
  syscall(SYS_clock_gettime, clock, &time);
  return in_ns(&time);
}

static long long jumped(void) { return ahead ? *ahead : 0; }

int clock_gettime(clockid_t clock, struct timespec* time) {
  if (syscall(SYS_clock_gettime, clock, time)) return -1;
  if (clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID) *time = from_ns(in_ns(time) + jumped());
  return 0;
}

typedef int Wait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  static Wait* real;
  if (!real) real = (Wait*)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  const long long end = in_ns(until) - jumped(), piece = real_now(clock) + kPiece;
  const struct timespec sooner = from_ns(end < piece ? (end < 0 ? 0 : end) : piece);
  const int result = real(condition, mutex, clock, &sooner);
  // The end of a piece is a spurious wakeup, which every waiter expects.
  return result == ETIMEDOUT && real_now(clock) + jumped() < in_ns(until) ? 0 : result;
}
