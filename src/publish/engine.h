// One publication from step to step: what a publisher's thread does. Blocking; knows no threads and no queue.
//
// run() may be called again after any error that time may heal, in this process or the next: each step looks at
// what the journal, the stage and the service say before it does anything. See README.md for the steps.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/random.h"
#include "content/event_log.h"
#include "publish/absences.h"
#include "publish/announce.h"
#include "publish/bodies.h"
#include "publish/convergence.h"
#include "publish/journal.h"
#include "publish/layers.h"
#include "publish/log_scan.h"
#include "publish/lost_base.h"
#include "publish/merging.h"
#include "publish/outcome.h"
#include "publish/stored_chunks.h"
#include "publish/upstream.h"

namespace playfs::publish {

/// What an ended publication came to.
Result<CommitResult> result_of(const Publication& publication);

class Engine {
 public:
  struct Parts {
    ProjectId project;
    Upstream& upstream;
    Absences& absences;
    Layers& layers;
    Journal& journal;
    content::EventLog& events;
    Random& random;
    const Clock& clock;
    CancelToken cancel;  ///< of everything that waits
    MergePolicy policy;
    std::function<void(const Progress&)> progress;  ///< phase, so_far and bytes are set
    Merging& merging;
    /// How long a request that got no answer may still be on its way to the service, and what it acknowledged may take
    /// to be seen. A commit that was refused after such a request is given back only when that time has passed and the
    /// log does not have it.
    std::chrono::nanoseconds late_arrival = std::chrono::minutes(2);
    LogScan::Limits limits = {};  ///< of reading the log
    bool merges_first = true;     ///< see PublisherOptions
  };
  explicit Engine(Parts parts);

  /// Brings stage and journal together after a start: a pending layer that no publication knows becomes one of which
  /// it is not known whether it was sent.
  Status recover();

  /// Goes on until the publication ended. An error is one that time may heal, or `interrupted` where `cancel` came:
  /// between two steps, in which everything stands as the journal says.
  Status run(Publication& publication, const CancelToken& cancel = {});

  /// Whether it can still be given back: nobody else can have seen a revision of it. Past that point a reply may be
  /// lost, or a request late, and only publishing it to the end makes sure of anything.
  [[nodiscard]] static bool can_be_cancelled(const Publication& publication);
  /// Whether it is given back to whoever asks for that: nothing of it was sent; or making sure of it has no end, since
  /// the service never shows what it acknowledges.
  [[nodiscard]] Result<bool> may_be_given_back(const Publication& publication) const;

  /// Looks after what others left behind: merges siblings, brings head back, announces branches whose author did not.
  /// `agent` says what has to be said. REQUIRES: no publication is half done.
  Result<Standing> visit(const std::string& agent);

  /// What a commit of the frozen layer would be: the plan alone, nothing is journalled or sent but reads.
  Result<Plan> plan_only(const stage::Frozen& frozen, const std::string& agent, const std::string& message);

 private:
  /// What is published: the frozen layer, or what it became when it was merged with a head that had moved on.
  struct Target {
    RevisionTreePtr on;  ///< the revision that it is a change of
    Manifest from;       ///< that revision's, with what was taken in of fields and entries that are not shown
    stage::Frozen layer;
    std::vector<PutFile> puts;  ///< layer.files with where their content is
    std::vector<RevisionId> parents;
    Json state;
    std::string conflicts;  ///< paths that did not merge with head, one a line: it will be a branch
  };
  /// What one publication has in memory. All of it can be had again. It grows with the manifest, not with content.
  struct Work {
    std::string tx;
    stage::Frozen frozen;
    std::vector<PutFile> puts;         ///< with where their content is
    std::optional<RevisionId> joined;  ///< the head that `target` takes into account
    Target target;
    bool trusts_head = true;    ///< where head is the base, the service has it; false once it lost a revision
    bool base_is_lost = false;  ///< the service went back to a state without it; as found for `joined`
    bool carries = false;       ///< `target` has what others had published, since no other revision has it any more
    bool is_refilled = false;   ///< `target` is head itself, which holds a revision of this publication
    ChunkIds gone;              ///< of a revision of this publication that others may have carried on
    std::vector<PutFile> lost;  ///< what was published in it, where head holds it
    RevisionTreePtr beside;     ///< that revision, where head does not hold it
    ChunkTexts fetched;         ///< chunks that others uploaded, compared by us
    Stored stored_by_others;
    bool is_first_post = false;  ///< the body was journalled by this very run, so it was never sent
    /// When the body may have been sent last with nobody knowing what became of it.
    std::optional<SteadyTime> in_doubt_since;
    Doubt missing;  ///< what was acknowledged is not to be seen, since when
    RevisionTreePtr ours;
  };

  /// Where the journal lost its last rows, or an older one was put in its place.
  Status catch_up();
  void say_forgotten(const std::string& tx);
  Status step(Publication& publication);
  Status freeze(Publication& publication);
  Status prepare(Publication& publication);
  Status post(Publication& publication);
  Status refused(Publication& publication, const Error& error);
  Status converge(Publication& publication);
  Status say(const Announcement& announcement);
  Status pass_by(const Standing& standing);
  Status say_what_came_late();
  Status settle(Publication& publication);
  Status thaw(Publication& publication);

  Status load(const stage::Frozen& frozen);
  /// Without `asks` head is taken to be where the layer was made.
  Status join_head(bool may_merge, bool asks);
  [[nodiscard]] std::vector<RevisionId> parents_of(const Target& target, const RevisionId& head) const;
  /// `common`: what the layer's base and `head` have in common.
  Status take_in_fields();
  Status merge_with(Snapshot common, const RevisionTreePtr& head);
  [[nodiscard]] bool comes_from_layer(const PutFile& put) const;
  /// Of a base that neither is head nor is held by it.
  Result<BaseFate> fate_of_base(const Project& project, const RevisionTreePtr& head);
  /// Head may name a revision that is gone: where it belongs then. Nothing is written.
  Result<RevisionId> head_that_exists(const RevisionId& head);
  /// What of this publication head holds already, without all its chunks; nullptr for nothing.
  Result<RevisionTreePtr> join_hollow(const RevisionId& head);
  [[nodiscard]] Result<bool> has_more_than_head(const RevisionTree& hollow, const RevisionId& head);
  /// `head` itself is published again, with the bytes that `hollow` lost.
  Status refill(const RevisionTreePtr& head, const RevisionTreePtr& hollow);
  Status branch_off_hollow();
  [[nodiscard]] std::vector<RevisionId> taken_in_by(const RevisionTree& hollow) const;
  /// Of a layer whose base is gone, made a change of what is left of the line.
  Status join_survivor(const RevisionTreePtr& survivor, const RevisionTreePtr& head);
  /// False: some chunks are gone. They are forgotten then, so that the next plan uploads their text again.
  Result<bool> has_all_chunks(const Publication& publication, const Plan& plan);
  Status bring_back(const Manifest& manifest, const ChunkIds& gone);
  void leave_out(const std::string& path, const Error& why);
  /// Whether the service has what the body to be posted refers to.
  Result<bool> can_stand(const Publication& publication);
  /// After a body was planned that is made on others, and not on the base.
  Result<bool> has_base_come_back(const std::vector<RevisionId>& made_on);
  /// The revision is not there, or would refer to what is not: it is looked for again for a while, then planned once
  /// more. `hollow`: it is there, or in this one, and chunks of it are not.
  Status plan_again(Publication& publication, const RevisionId& hollow = {});
  /// Where what the commit brought stands, and cannot be read: its revision, or a head that holds it; empty: nowhere.
  Result<RevisionId> find_hollow(const Standing& standing);
  Status give_back(Publication& publication, const Error& error, bool in_doubt = false);
  /// The service acknowledged its revision as often as it is published again, and never showed all of it.
  [[nodiscard]] Result<bool> is_never_shown(const Publication& publication) const;
  /// A revision of it is in the log, and chunks of that are lost: it is published again.
  [[nodiscard]] Result<bool> has_hollow(const Publication& publication) const;
  /// Whether the log has the revision under another id, which it is known by from then on.
  Result<bool> adopt_copy(Publication& publication);
  Status find_stored_by_others();
  [[nodiscard]] Result<bool> is_known_from_here(std::string_view text) const;
  Status find_near();
  Result<PlanInput> plan_input(const std::string& agent, const std::string& message, const KnownPieces& known) const;
  Status journal_uploads(Publication& publication, const Plan& plan);
  Status send(Publication& publication);
  Status check_names(const Publication& publication, const std::vector<Upload>& acknowledged);
  Status make_body(const Publication& publication, Upload& upload);
  Result<std::optional<ChunkText>> text_of(const ChunkId& chunk) const;
  Status journal_body(Publication& publication, const Plan& plan);
  Result<std::optional<Record>> find_posted(const Publication& publication);
  /// Its journal was lost: what it sent is not known.
  [[nodiscard]] static bool is_forgotten(const Publication& publication);
  Status look_for_forgotten(Publication& publication);
  Result<bool> is_revision_of(const Record& record, const Publication& publication);
  Status adopt(Publication& publication, Record record);
  Status bring_ours(const Publication& publication);

  void tell(const Publication& publication, Phase phase);
  void tell_reading(std::optional<LogReading> reading) const;
  void tell_uploading(const Publication& publication, const UploadTotals& totals) const;
  void log_event(const char* kind, const Publication& publication, JsonObject more = {}) const;
  [[nodiscard]] Result<bool> is_pending(const Publication& publication) const;

  Parts parts_;
  Merging& merging_;
  LogScan scan_;
  StoredChunks stored_;
  Convergence convergence_;
  Work work_;
  Progress told_;  ///< of the publication's steps; idle where none is under way
};

}  // namespace playfs::publish
