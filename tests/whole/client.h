// One simulated client: a user at a work tree, a process that publishes it, and the client's disk, which outlives the
// process.
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

/// What a run does with one client, besides the seed.
struct Plan {
  ProjectId project;
  int number = 0;
  int commits = 2;
  int crashes = 6;  ///< maximum: a client that is always killed makes no progress and shows nothing more
  int edits = 60;   ///< by the user of one process, besides those before a commit
  int edits_before = 5;
  double crash = 0;         ///< at each instant where it matters
  std::string killed_at;    ///< cut the power once, at the write of the journal that has this name; "": never
  bool dies = false;        ///< for good, at its first crash
  bool keeps_cache = true;  ///< after being killed
  bool writes_on = true;    ///< also during a commit or an update
  bool is_eager = false;    ///< without pausing to think
  bool forgets = false;     ///< power may be cut, and the disk loses what was not synced
  double sync_errors = 0;   ///< per sync of such a disk; its power is cut soon after the first one
  nanoseconds skew{};
};

/// What the user was told of a commit.
struct Told {
  std::string message;
  std::optional<publish::Outcome> outcome;  ///< nullopt: failed
  RevisionId revision;
  nanoseconds at{};
};

/// Where head was seen since the log was scanned, and where it was then sent.
struct Move {
  std::set<std::string> seen;
  RevisionId to;
  nanoseconds at{};
  nanoseconds seen_at{};  ///< when it was last seen so
};

class Client {
 public:
  /// `home` is the client's own; its contents are deleted with the client.
  Client(World& world, const service::Service& service, const Weather& weather, Watcher& watcher, Plan plan,
         std::string home, std::shared_ptr<Cache> cache);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Edits and commits until all is done. Restarts after crashes, unless it dies.
  void start();
  /// After a while none of its processes is left.
  void close() { is_closing_ = true; }
  [[nodiscard]] bool is_done() const { return (is_done_ && !is_ailing_) || has_died; }
  [[nodiscard]] bool is_closed() const { return processes_ == 0; }
  [[nodiscard]] std::string directory() const { return home_ + "/" + std::to_string(incarnation_); }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// The user has declared conflicts resolved at least once.
  [[nodiscard]] bool has_resolved() const { return may_have_markers_; }
  [[nodiscard]] const std::string& agent() const { return agent_; }
  /// The running process, or nullptr. It may end while a fiber waits.
  [[nodiscard]] Process* process() const { return process_; }
  /// Calls `look` with the running process, if any. The process does not end during the call, even if `look` has to
  /// wait.
  void look_at_process(const std::function<void(Process&)>& look);

  Ledger ledger;
  std::vector<Told> told;
  std::vector<std::string> begun;      ///< messages of all commits
  std::set<std::string> unresolved;    ///< messages of commits that must not contain conflicts
  std::vector<std::string> undecided;  ///< paths that were published while in conflict, without a decision of the user
  /// Files that are never touched after their creation: path and content.
  std::map<std::string, std::string> brought;
  std::set<std::string> deleted;  ///< for good
  bool has_died = false;
  std::string cannot_open;  ///< why nothing of it runs any more although it was not killed
  int crashes = 0, power_cuts = 0;
  int failed_disks = 0;  ///< power cuts after a failed sync

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
  std::shared_ptr<Life> life_;  ///< of the running process
  int processes_ = 0;
  int incarnation_ = 0;
  int committed_ = 0, messages_ = 0;
  bool is_ailing_ = false;  ///< its disk fails to sync, and its power is cut soon
  bool is_done_ = false, is_closing_ = false, may_have_markers_ = false;
};

}  // namespace playfs::sim
