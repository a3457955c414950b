// A mutex annotated for clang's thread-safety analysis.
//
// libstdc++'s std::mutex has no annotations, so -Wthread-safety cannot check it. With g++ the annotations expand to
// nothing. src/README.md defines the program's lock order.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define PLAYFS_TSA(x) __attribute__((x))
#else
#define PLAYFS_TSA(x)
#endif
#define PLAYFS_CAPABILITY(name) PLAYFS_TSA(capability(name))
#define PLAYFS_SCOPED_CAPABILITY PLAYFS_TSA(scoped_lockable)
#define PLAYFS_GUARDED_BY(m) PLAYFS_TSA(guarded_by(m))
#define PLAYFS_REQUIRES(...) PLAYFS_TSA(requires_capability(__VA_ARGS__))
#define PLAYFS_EXCLUDES(...) PLAYFS_TSA(locks_excluded(__VA_ARGS__))
#define PLAYFS_ACQUIRE(...) PLAYFS_TSA(acquire_capability(__VA_ARGS__))
#define PLAYFS_RELEASE(...) PLAYFS_TSA(release_capability(__VA_ARGS__))
#define PLAYFS_ASSERT_HELD(...) PLAYFS_TSA(assert_capability(__VA_ARGS__))

namespace playfs {

class PLAYFS_CAPABILITY("mutex") Mutex {
 public:
  void lock() PLAYFS_ACQUIRE() { mutex_.lock(); }
  void unlock() PLAYFS_RELEASE() { mutex_.unlock(); }
  /// Tells the analysis that the caller holds it, where it cannot see that: in a lambda, or through another object's
  /// reference. Checks nothing.
  void assert_held() const PLAYFS_ASSERT_HELD(this) {}

 private:
  std::mutex mutex_;
};

class PLAYFS_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) PLAYFS_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() PLAYFS_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex.
class Condition {
 public:
  void wait(Mutex& mutex) PLAYFS_REQUIRES(mutex) { condition_.wait(mutex); }
  template <class Duration>
  bool wait_for(Mutex& mutex, Duration limit) PLAYFS_REQUIRES(mutex) {
    return condition_.wait_for(mutex, limit) == std::cv_status::no_timeout;
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace playfs
