// One simulated client: a user at a work tree, a process that publishes it, and what is on disk, which outlives its
// being killed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "whole/faults.h"
#include "whole/ledger.h"
#include "whole/process.h"
#include "whole/user.h"

namespace playfs::sim {

/// What a run is about for one client, beside the seed.
struct Plan {
  ProjectId project;
  int number = 0;
  int commits = 2;
  int crashes = 6;  ///< at most: one that is killed over and over gets nowhere, and shows nothing more
  int edits = 60;   ///< of one process's user, beside those that come before a commit
  int edits_before = 5;
  double crash = 0;         ///< of each instant at which it makes a difference
  std::string killed_at;    ///< one time, at a write of the journal, by its name there: the power goes. "": at none
  bool dies = false;        ///< for good, at its first crash
  bool keeps_cache = true;  ///< of what it read, when it is killed
  bool writes_on = true;    ///< also while a commit or an update is under way
  bool is_eager = false;    ///< without stopping to think
  bool forgets = false;     ///< its power may be cut, and its disk forgets what was not synced
  double sync_errors = 0;   ///< of each sync of such a disk; its power is cut soon after the first one
  nanoseconds skew{};
};

/// What the user was told of a commit.
struct Told {
  std::string message;
  std::optional<publish::Outcome> outcome;  ///< nullopt: it failed
  RevisionId revision;
  nanoseconds at{};
};

/// Where head was seen since the log was looked at, and where it was then sent.
struct Move {
  std::set<std::string> seen;
  RevisionId to;
  nanoseconds at{};
  nanoseconds seen_at{};  ///< when the last of them was so
};

class Client {
 public:
  /// `home` is its own; what it writes there goes with it.
  Client(World& world, const service::Service& service, const Weather& weather, Watcher& watcher, Plan plan,
         std::string home, std::shared_ptr<Cache> cache);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Edits and commits until all is done; comes back after crashes, unless it dies.
  void start();
  /// No process of it is left after a while.
  void close() { is_closing_ = true; }
  [[nodiscard]] bool is_done() const { return (is_done_ && !is_ailing_) || has_died; }
  [[nodiscard]] bool is_closed() const { return processes_ == 0; }
  [[nodiscard]] std::string directory() const { return home_ + "/" + std::to_string(incarnation_); }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Said once at least that what is in conflict is right as it is.
  [[nodiscard]] bool has_resolved() const { return may_have_markers_; }
  [[nodiscard]] const std::string& agent() const { return agent_; }
  /// Of the process that runs, nullptr where none does. It may end while a fiber waits.
  [[nodiscard]] Process* process() const { return process_; }
  /// Calls `look` with the process that runs, if one does. It does not end meanwhile, though `look` may have to wait.
  void look_at_process(const std::function<void(Process&)>& look);

  Ledger ledger;
  std::vector<Told> told;
  std::vector<std::string> begun;      ///< messages of all commits
  std::set<std::string> unresolved;    ///< messages of commits in which nothing may be in conflict
  std::vector<std::string> undecided;  ///< paths that were in conflict, and published though nobody said what is right
  /// Files that nobody touches after they were made: path and content.
  std::map<std::string, std::string> brought;
  std::set<std::string> deleted;  ///< for good
  bool has_died = false;
  std::string cannot_open;  ///< why nothing of it runs any more though it was not killed
  int crashes = 0, power_cuts = 0;

 private:
  class Life;
  void begin();
  void live(const std::shared_ptr<Life>& life);
  void work(Process& process, const std::shared_ptr<Life>& life);
  void write(Process& process, const std::shared_ptr<Life>& life);
  void decide_later(User& user);
  bool take_in(Process& process, User& user, const std::shared_ptr<Life>& life);
  void commit(Process& process, User& user, const std::shared_ptr<Life>& life);
  void kill(Life& life, bool loses_power = false);

  World& world_;
  const service::Service& service_;
  const Weather& weather_;
  Watcher& watcher_;
  Plan plan_;
  const std::string agent_, home_;
  std::shared_ptr<Cache> cache_;
  Process* process_ = nullptr;
  std::shared_ptr<Life> life_;  ///< of that
  int processes_ = 0;
  int incarnation_ = 0;
  int committed_ = 0, messages_ = 0;
  bool is_ailing_ = false;  ///< its disk does not sync, and its power is soon cut
  bool is_done_ = false, is_closing_ = false, may_have_markers_ = false;
};

}  // namespace playfs::sim
