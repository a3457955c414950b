// Whose turn it is to ask for single records: revisions, threads, messages. Whoever asks for many at once, a history or
// a thread, has an account, and may have half of what the others leave (share_of), so that what hangs lets others ask.
// Chunks, of which there are far more and which differ in urgency, have their own (`chunks.h`). Thread-safe; turns may
// outlive it.
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

  /// A request that is under way, until this goes.
  using Turn = std::shared_ptr<const void>;
  using Send = UniqueFunction<void(Turn)>;
  /// Calls `send` when it is its turn: at once, or on a thread on which another turn begins or ends. `account` names a
  /// project, or what else those that may hang together have in common.
  void take(const std::string& account, Send send);
  /// What waits for its turn is dropped.
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
    bool going_on PLAYFS_GUARDED_BY(mutex) = false;  ///< somebody calls those whose turn it is, one after the other
    std::map<std::string, Account> accounts PLAYFS_GUARDED_BY(mutex);
    std::string last PLAYFS_GUARDED_BY(mutex);  ///< whose turn it was
    std::size_t under_way PLAYFS_GUARDED_BY(mutex) = 0;
  };
  struct Next {
    std::string account;
    Send send;
  };

  /// Where there is none, it is no longer going on.
  static std::optional<Next> next(State& state);
  static void go_on(const std::shared_ptr<State>& state);
  static Turn turn_of(const std::shared_ptr<State>& state, std::string account);

  std::shared_ptr<State> state_;
};

}  // namespace playfs::content
