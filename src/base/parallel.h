// Runs many asynchronous operations, a bounded number at a time, and waits for them. Only for threads that may block,
// as await.h.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/callback.h"
#include "base/mutex.h"
#include "base/result.h"

namespace playfs {

/// Collects responses that arrive on other threads. Thread-safe.
template <class T>
class Answers {
 public:
  struct Answer {
    std::size_t index = 0;
    Result<T> result;
  };

  void add(std::size_t index, Result<T> result) {
    MutexLock lock(mutex_);
    answers_.push_back({index, std::move(result)});
    arrived_.notify_one();
  }
  /// Waits for at least one.
  std::vector<Answer> take() {
    MutexLock lock(mutex_);
    while (answers_.empty()) arrived_.wait(mutex_);
    return std::exchange(answers_, {});
  }

 private:
  Mutex mutex_;
  Condition arrived_;
  std::vector<Answer> answers_ PLAYFS_GUARDED_BY(mutex_);
};

/// Runs `count` operations, `parallel` of them at a time, and passes their answers to `take` in batches. Starts no more
/// after an error of `take`; returns the first one, or a later one that time does not cure.
template <class T, class Start, class Take>
Status run_parallel(std::size_t count, std::size_t parallel, const Start& start, const Take& take) {
  auto answers = std::make_shared<Answers<T>>();  // a late answer may outlive this call's stack, but not its state
  std::size_t next = 0, outstanding = 0;
  std::optional<Error> failed;
  while (outstanding > 0 || (next < count && !failed)) {
    for (; next < count && outstanding < parallel && !failed; ++next, ++outstanding)
      start(next, Callback<T>([answers, index = next](Result<T> result) { answers->add(index, std::move(result)); }));
    auto batch = answers->take();
    outstanding -= batch.size();
    if (Status taken = take(std::move(batch)); !taken && (!failed || is_transient(failed->code)))
      failed = taken.error();
  }
  if (failed) return fail(*std::move(failed));
  return {};
}

}  // namespace playfs
