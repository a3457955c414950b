// Moves head to a revision that holds all that was published: reads the log, merges siblings, moves head and reads it
// back, until nothing is left to do. Idempotent; any number of clients may run it at any time.
//
// The log is the truth: `latest_revision` is only ever moved to a revision that is seen to hold all that the present
// head holds. Tips that cannot be merged, or must not be by policy, are left out and reported. For one thread;
// blocking.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "content/event_log.h"
#include "model/plan.h"
#include "publish/absences.h"
#include "publish/journal.h"
#include "publish/log_scan.h"
#include "publish/merging.h"
#include "publish/stored_chunks.h"
#include "publish/upstream.h"

namespace playfs::publish {

/// Which siblings are merged without asking. Anyone may post any number of them.
struct MergePolicy {
  enum class Whose { all, listed, none };
  Whose whose = Whose::all;
  std::vector<std::string> agents;   ///< for `listed`: authors whose revisions are merged
  std::size_t most_at_once = 8;      ///< tips joined by one merge
  std::size_t most_in_an_hour = 20;  ///< merges posted by this work tree
};

/// A tip that head does not hold, and why.
struct LeftOut {
  RevisionId revision;
  WallTime created_at;
  std::string agent;
  bool is_ours = false;  ///< holds what a playfs client posted, so it has to be announced
  std::vector<Conflict> conflicts;
};

/// The state of the project after a convergence.
struct ConvergedState {
  RevisionId head;  ///< verified; the only tip except for those left out
  bool head_is_automatic = false;
  bool head_is_unread = false;  ///< it cannot be read here, so nothing is merged with it
  bool holds_ours = false;      ///< head holds the revision that was passed as `ours`
  bool ours_is_gone = false;    ///< the service does not show it (any more); nothing else is set then
  /// The service has it but lost chunks that it refers to, because it went back right before the revision was posted.
  /// Nothing else is set then.
  bool ours_is_hollow = false;
  std::vector<LeftOut> left_out;
  std::uint32_t writes = 0;  ///< merges and their chunks, and PATCHes
  /// When head was created, if it is where it belongs. Older revisions need not be known any more (LogScan::verified),
  /// once everything that head does not hold is announced.
  std::optional<WallTime> verified;
  bool given_up = false;  ///< others set head back repeatedly, so it was left there
};

class Convergence {
 public:
  struct Parts {
    ProjectId project;
    Upstream& upstream;
    Merging& merging;
    Journal& journal;
    LogScan& scan;
    Absences& absences;
    content::EventLog& events;
    const Clock& clock;
    StoredChunks& stored;
    MergePolicy policy;
    std::chrono::nanoseconds late_arrival;  ///< how long something acknowledged may take to be shown
  };
  explicit Convergence(Parts parts) : parts_(std::move(parts)) {}

  /// `ours`: a revision that is merged whatever the policy says, or never if `may_join` is false; nullptr for a
  /// reconcile without a commit. `since`: a revision that was head once; the log is read from there if nothing is
  /// verified yet. `before_write` is called before each write is sent; if it is empty, nothing is written, and
  /// ConvergedState::head is where head would be moved to. Errors are those that time may cure, or say that the project
  /// cannot be read.
  Result<ConvergedState> run(const RevisionTreePtr& ours, bool may_join, const RevisionTreePtr& since,
                             const std::function<Status()>& before_write);

 private:
  struct Log {
    SteadyTime began;  ///< head was not read before this
    Project project;
    std::map<RevisionId, RevisionTreePtr> revisions;  ///< of the project, from the watermark on, with head and ours
    std::optional<Link> unread_head;                  ///< head, if its files cannot be read here: it may hold anything
    bool head_is_gone = false;  ///< head names something that holds nothing any more, or never did
    bool ours_is_gone = false;
    bool ours_is_hollow = false;
  };
  Result<Log> read_log(const RevisionTreePtr& ours, const RevisionTreePtr& since);
  /// Whether the service shows it now, by a request of its own. For revisions with their own wait, or with none.
  Result<bool> is_there(const RevisionId& id);
  /// nullptr if it cannot be read here, so that nothing of it could be merged.
  Result<RevisionTreePtr> read(const RevisionId& id);
  Status add(const RevisionTreePtr& revision, Log& log);
  Status add_head(Log& log);
  /// Whether the service lost some of what the revision refers to before it was posted. Checked once per revision.
  Result<bool> is_hollow(const RevisionTree& revision);
  Result<bool> are_still_there(const std::vector<RevisionId>& listed, SteadyTime since);
  Result<bool> may_merge(const RevisionTreePtr& revision) const;
  [[nodiscard]] bool may_merge_now();
  /// Posts one merge; nullopt if it does not fit into a record. `on_heads_line` becomes its first parent.
  Result<std::optional<RevisionTreePtr>> post_merge(const Merging::Joined& joined, const RevisionId& on_heads_line,
                                                    const std::function<Status()>& before_write);
  /// False if some chunks that the plan refers to are gone; they are forgotten, for the next plan.
  Result<bool> has_all_chunks(const Plan& plan, const std::vector<ChunkId>& ids, const Merging::Joined& joined);
  Status upload(const Plan& plan, std::vector<ChunkId>& ids, const std::function<Status()>& before_write);

  /// Whether something written at that time may not be shown yet because reads lag behind writes.
  [[nodiscard]] bool may_yet_be_seen(SteadyTime written) const;

  struct Move {
    RevisionId from;
    SteadyTime time;
  };
  struct Posted {
    RevisionTreePtr merge;
    SteadyTime time;
  };

  Parts parts_;
  std::optional<Move> moved_;                    ///< acknowledged, until head is seen anywhere but at `from`
  std::optional<Posted> posted_;                 ///< acknowledged, until a list shows it
  std::deque<SteadyTime> merges_;                ///< in the last hour
  std::map<RevisionId, std::size_t> moves_;      ///< how often head was moved off each; twice: it was set back
  RevisionId whole_;                             ///< seen there with all its chunks
  std::map<RevisionId, RevisionTreePtr> known_;  ///< the log's revisions, from the watermark on
};

}  // namespace playfs::publish
