// Replaces libc's threads, mutexes, conditions, clocks and sleeps while a fiber of a simulated world runs; otherwise
// they work as usual. The executable has to export these, so that libraries find them too.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "whole/world.h"

using playfs::sim::Fiber;
using playfs::sim::World;
using std::chrono::nanoseconds;

extern "C" char __executable_start, etext;

namespace {

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

nanoseconds duration(const timespec& time) { return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec); }

/// Code of this program, as opposed to libraries, whose own mutexes must not cause a switch.
bool is_ours(const void* caller) { return caller >= &__executable_start && caller < &etext; }

int wait(World& world, pthread_cond_t* condition, pthread_mutex_t* mutex, std::optional<nanoseconds> until) {
  pthread_mutex_unlock(mutex);
  bool is_woken = world.wait_for(condition, until);
  World::Alone alone(world);
  pthread_mutex_lock(mutex);
  return is_woken ? 0 : ETIMEDOUT;
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static auto* lock = real<int(pthread_mutex_t*)>("pthread_mutex_lock");
  static auto* try_lock = real<int(pthread_mutex_t*)>("pthread_mutex_trylock");
  World* world = World::running();
  if (!world) return lock(mutex);
  if (is_ours(__builtin_return_address(0))) world->instant();
  int result = 0;
  while ((result = try_lock(mutex)) == EBUSY) world->wait_for(mutex);
  return result;
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  static auto* unlock = real<int(pthread_mutex_t*)>("pthread_mutex_unlock");
  int result = unlock(mutex);
  World* world = World::running();
  if (world && world->is_waited_for(mutex)) world->wake(mutex, false);
  return result;
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static auto* wait_really = real<int(pthread_cond_t*, pthread_mutex_t*)>("pthread_cond_wait");
  World* world = World::running();
  return world ? wait(*world, condition, mutex, std::nullopt) : wait_really(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static auto* wait_really = real<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  World* world = World::running();
  return world ? wait(*world, condition, mutex, duration(*until)) : wait_really(condition, mutex, until);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  static auto* wait_really =
      real<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>("pthread_cond_clockwait");
  World* world = World::running();
  return world ? wait(*world, condition, mutex, duration(*until)) : wait_really(condition, mutex, clock, until);
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  static auto* signal = real<int(pthread_cond_t*)>("pthread_cond_signal");
  World* world = World::running();
  if (!world) return signal(condition);
  world->wake(condition, false);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  static auto* broadcast = real<int(pthread_cond_t*)>("pthread_cond_broadcast");
  World* world = World::running();
  if (!world) return broadcast(condition);
  world->wake(condition, true);
  return 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  static auto* create = real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  World* world = World::running();
  if (!world) return create(thread, attributes, start, argument);
  *thread = reinterpret_cast<pthread_t>(world->start([=] { start(argument); }));
  return 0;
}

int pthread_join(pthread_t thread, void** result) {
  static auto* join = real<int(pthread_t, void**)>("pthread_join");
  World* world = World::running();
  if (!world) return join(thread, result);
  world->join(reinterpret_cast<Fiber*>(thread));
  return 0;
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  World* world = World::running();
  if (!world || (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  auto now = world->now().count();
  time->tv_sec = now / 1'000'000'000;
  time->tv_nsec = now % 1'000'000'000;
  return 0;
}

int nanosleep(const timespec* time, timespec* left) {
  World* world = World::running();
  if (!world) return static_cast<int>(syscall(SYS_nanosleep, time, left));
  world->sleep(duration(*time));
  return 0;
}

}  // extern "C"
