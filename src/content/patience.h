// For how long somebody who knows a thing already waits for news of it: as long as the service is worth waiting for.
//
// A service that answers is waited for, so that the first look shows what is there now. What has left somebody waiting
// is not waited for again until the service has said anything at all. Once that are several things it is the service
// that is silent: one question is under way for all, what is known serves, and only now and then somebody who asks for
// what nobody waited for yet tries his luck. Thread-safe; questions may outlive it.
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

  /// Something that the service is being asked, until this goes.
  using Question = std::shared_ptr<const void>;
  [[nodiscard]] Question ask(std::string what);

  /// For how long to wait for news of `what`, zero being worth a question all the same; nullopt: take what is known, it
  /// is being asked for already, or something else is of a service that does not answer.
  [[nodiscard]] std::optional<std::chrono::milliseconds> left_for(const std::string& what) const;
  /// Somebody has waited for `what` as long as he was told to.
  void ran_out(const std::string& what);
  /// The service said something, whatever it was.
  void answered();

 private:
  struct Asked {
    int questions = 0;
    SteadyTime since;  ///< when the oldest of them was asked
  };
  struct State {
    explicit State(const Clock& machine) : clock(machine) {}
    const Clock& clock;
    mutable Mutex mutex;
    std::map<std::string, Asked> asked PLAYFS_GUARDED_BY(mutex);
    /// What somebody has waited for in vain since the service last said something; no more of it than says that it is
    /// silent.
    std::set<std::string> silent PLAYFS_GUARDED_BY(mutex);
    SteadyTime tried_at PLAYFS_GUARDED_BY(mutex);  ///< when somebody last tried his luck
  };
  std::shared_ptr<State> state_;
};

}  // namespace playfs::content
