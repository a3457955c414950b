// Bringing head to where all that was published is: the log is read, siblings are merged, head is moved and read back,
// until nothing is left to do. Harmless to repeat, by any number of clients at any time.
//
// The log is the truth: `latest_revision` is only ever moved to a revision that is seen to hold all that the one it
// stands on holds. What cannot be merged, or must not be by policy, is left out and named. For one thread; waits.
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

/// Which siblings are merged without asking. Anyone may post some, as many as they like.
struct MergePolicy {
  enum class Whose { all, listed, none };
  Whose whose = Whose::all;
  std::vector<std::string> agents;   ///< for `listed`: whose revisions
  std::size_t most_at_once = 8;      ///< tips joined by one merge
  std::size_t most_in_an_hour = 20;  ///< merges posted by this work tree
};

/// A tip that head does not hold, and why.
struct LeftOut {
  RevisionId revision;
  std::string agent;
  bool is_ours = false;  ///< holds what a playfs client posted: it has to be announced
  std::vector<Conflict> conflicts;
};

/// Where the project stands after a convergence.
struct Standing {
  RevisionId head;  ///< verified; also the only tip but for those left out
  bool head_is_automatic = false;
  bool head_is_unread = false;  ///< nobody here can read it, so nothing is merged with it
  bool holds_ours = false;      ///< head holds the revision that was asked about
  bool ours_is_gone = false;    ///< the service does not show it, or no more. Nothing else is set then
  /// The service has it, and has lost chunks that it refers to: it went back right before it was posted. Nothing else
  /// is set then.
  bool ours_is_hollow = false;
  std::vector<LeftOut> left_out;
  std::uint32_t writes = 0;  ///< merges and their chunks, and PATCHes
  /// Head stands where it belongs, and was created then: what is older need not be known any more (LogScan::verified),
  /// once all was announced that head does not hold.
  std::optional<WallTime> verified;
  bool given_up = false;  ///< head was set back by others time and again, and was left there
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
    std::chrono::nanoseconds late_arrival;  ///< how long what the service acknowledged may take to be seen
  };
  explicit Convergence(Parts parts) : parts_(std::move(parts)) {}

  /// `ours`: a revision that is merged whatever the policy says, or, without `may_join`, never; nullptr for a mere
  /// visitor. `since`: a revision that was
  /// head once, from which on the log is read where nothing is verified yet. `before_write` is told of each write
  /// before it is sent; where it is empty nothing is written, and Standing::head is where head would be moved to. An
  /// error is one that time may heal, or says that the project cannot be read.
  Result<Standing> run(const RevisionTreePtr& ours, bool may_join, const RevisionTreePtr& since,
                       const std::function<Status()>& before_write);

 private:
  struct Log {
    SteadyTime began;  ///< head was not read before
    Project project;
    std::map<RevisionId, RevisionTreePtr> revisions;  ///< of the project, from the watermark on, with head and ours
    std::optional<Link> unread_head;  ///< head where nobody here can read its files: it may hold anything
    bool head_is_gone = false;        ///< head names what holds nothing any more, or never did
    bool ours_is_gone = false;
    bool ours_is_hollow = false;
  };
  Result<Log> read_log(const RevisionTreePtr& ours, const RevisionTreePtr& since);
  /// Whether the service shows it now, by a request of its own: for what is waited for elsewhere, or not at all.
  Result<bool> is_there(const RevisionId& id);
  /// nullptr where nobody can read it, so that nothing of it could be merged.
  Result<RevisionTreePtr> read(const RevisionId& id);
  Status add(const RevisionTreePtr& revision, Log& log);
  Status add_head(Log& log);
  /// Whether the service lost some of what it refers to before it was posted. Asks once for each revision.
  Result<bool> is_hollow(const RevisionTree& revision);
  Result<bool> are_still_there(const std::vector<RevisionId>& listed, SteadyTime since);
  Result<bool> may_merge(const RevisionTreePtr& revision) const;
  [[nodiscard]] bool may_merge_now();
  /// One more merge, posted, or nullopt where it does not fit into a record. `on_heads_line` is named first among its
  /// parents.
  Result<std::optional<RevisionTreePtr>> post_merge(const Merging::Joined& joined, const RevisionId& on_heads_line,
                                                    const std::function<Status()>& before_write);
  /// False: some chunks that it refers to are gone, and are forgotten for the next plan.
  Result<bool> has_all_chunks(const Plan& plan, const std::vector<ChunkId>& ids, const Merging::Joined& joined);
  Status upload(const Plan& plan, std::vector<ChunkId>& ids, const std::function<Status()>& before_write);

  /// Whether what was written then may yet be seen, where reads lag behind writes.
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
  std::optional<Move> moved_;                    ///< acknowledged, until head is seen anywhere else than where it was
  std::optional<Posted> posted_;                 ///< acknowledged, until a list brings it
  std::deque<SteadyTime> merges_;                ///< of the last hour
  std::map<RevisionId, std::size_t> moves_;      ///< how often head was moved away from there; again: it was set back
  RevisionId whole_;                             ///< seen to be there with all its chunks
  std::map<RevisionId, RevisionTreePtr> known_;  ///< what the log has, from the watermark on
};

}  // namespace playfs::publish
