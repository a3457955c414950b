// How long a caller that has known data waits for news of it.
//
// A responsive service is waited for, so that the first access shows the current state. An item that timed out is not
// waited for again until the service responds to something. Once several items timed out, the whole service counts as
// silent: one request in flight serves for all, known data is used, and only occasionally does a caller wait for an
// item that has not timed out. Thread-safe; questions may outlive it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace playfs::content {

class Patience {
 public:
  static constexpr std::chrono::milliseconds kLongest{1000};

  explicit Patience(const Clock& clock) : state_(std::make_shared<State>(clock)) {}

  /// A request for an item, in flight while this lives.
  using Question = std::shared_ptr<const void>;
  [[nodiscard]] Question ask(std::string what);

  /// How long to wait for news of `what`; zero means send a request but do not wait. nullopt: use what is known, since
  /// a request for it is in flight, or one for something else while the service is silent.
  [[nodiscard]] std::optional<std::chrono::milliseconds> left_for(const std::string& what) const;
  /// A caller waited for `what` as long as allowed, in vain.
  void ran_out(const std::string& what);
  /// The service responded to something.
  void answered();
  /// When it last did; the clock's epoch if never.
  [[nodiscard]] SteadyTime answered_at() const;

 private:
  struct Asked {
    int questions = 0;
    SteadyTime since;  ///< time of the oldest one
  };
  struct State {
    explicit State(const Clock& machine) : clock(machine) {}
    const Clock& clock;
    mutable Mutex mutex;
    std::map<std::string, Asked> asked PLAYFS_GUARDED_BY(mutex);
    /// Items waited for in vain since the service last responded; at most kMostSilent.
    std::set<std::string> silent PLAYFS_GUARDED_BY(mutex);
    SteadyTime tried_at PLAYFS_GUARDED_BY(mutex);  ///< when a caller last waited despite silence
    SteadyTime answered_at PLAYFS_GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_;
};

}  // namespace playfs::content
