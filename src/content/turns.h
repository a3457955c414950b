// Schedules requests for single records: revisions, threads, messages. A source of many requests, such as a history or
// thread, has an account, which may have half of what the others leave (share_of), so that hanging requests do not
// block others. Chunks, far more numerous and of differing urgency, have their own scheduler (`chunks.h`). Thread-safe;
// turns may outlive it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/callback.h"
#include "base/mutex.h"
#include "remote/client.h"

namespace playfs::content {

class Turns {
 public:
  explicit Turns(const remote::Client& client) : state_(std::make_shared<State>(client)) {}

  /// A request in flight while this lives.
  using Turn = std::shared_ptr<const void>;
  using Send = UniqueFunction<void(Turn)>;
  /// Calls `send` when it is its turn: immediately, or on a thread where another turn begins or ends. `account` names a
  /// project, or whatever else is likely to hang together.
  void take(const std::string& account, Send send);
  /// Drops requests that are waiting for their turn.
  void close();

 private:
  struct Account {
    std::deque<Send> waiting;
    std::size_t under_way = 0;
  };
  struct State {
    explicit State(const remote::Client& transport) : client(transport) {}
    const remote::Client& client;
    Mutex mutex;
    bool closed PLAYFS_GUARDED_BY(mutex) = false;
    bool going_on PLAYFS_GUARDED_BY(mutex) = false;  ///< a thread is starting turns one after another
    std::map<std::string, Account> accounts PLAYFS_GUARDED_BY(mutex);
    std::string last PLAYFS_GUARDED_BY(mutex);  ///< whose turn it was
    std::size_t under_way PLAYFS_GUARDED_BY(mutex) = 0;
  };
  struct Next {
    std::string account;
    Send send;
  };

  /// Clears `going_on` if there is none.
  static std::optional<Next> next(State& state);
  static void go_on(const std::shared_ptr<State>& state);
  static Turn turn_of(const std::shared_ptr<State>& state, std::string account);

  std::shared_ptr<State> state_;
};

}  // namespace playfs::content
