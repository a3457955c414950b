// Executes the steps of one publication, called by the publisher's thread. Blocking; has no threads and no queue.
//
// run() may be repeated after any error that time may cure, in this process or the next: each step first reads what the
// journal, the stage and the service say. README.md lists the steps.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/random.h"
#include "content/event_log.h"
#include "publish/absences.h"
#include "publish/announce.h"
#include "publish/convergence.h"
#include "publish/journal.h"
#include "publish/log_scan.h"
#include "publish/lost_base.h"
#include "publish/merging.h"
#include "publish/outcome.h"
#include "publish/request_bodies.h"
#include "publish/stored_chunks.h"
#include "publish/upstream.h"
#include "publish/work_tree_layers.h"

namespace playfs::publish {

/// The outcome of a publication that has ended.
Result<CommitResult> result_of(const Publication& publication);

class PublicationEngine {
 public:
  struct Parts {
    ProjectId project;
    Upstream& upstream;
    Absences& absences;
    WorkTreeLayers& layers;
    Journal& journal;
    content::EventLog& events;
    Random& random;
    const Clock& clock;
    CancelToken cancel;  ///< ends every wait
    MergePolicy policy;
    std::function<void(const Progress&)> progress;  ///< phase, so_far and bytes are set
    Merging& merging;
    /// How long an unanswered request may take to arrive at the service, and an acknowledged one may take to be shown.
    /// A commit that is refused after an unanswered request returns to the stage only once this time has passed and the
    /// log does not have it.
    std::chrono::nanoseconds late_arrival = std::chrono::minutes(2);
    LogScan::Limits limits = {};  ///< for reading the log
    bool merges_first = true;     ///< see PublisherOptions
  };
  explicit PublicationEngine(Parts parts);

  /// Reconciles stage and journal after a start: a pending layer that no publication knows gets one that may have been
  /// sent.
  Status recover();

  /// Runs until the publication has ended. Errors are those that time may cure, or `interrupted` if `cancel` came; that
  /// is only checked between two steps, when everything is as the journal says.
  Status run(Publication& publication, const CancelToken& cancel = {});

  /// Whether it can still be cancelled, because nobody else can have seen a revision of it. Later a response may be
  /// lost or a request late, and only publishing it to the end gives certainty.
  [[nodiscard]] static bool can_be_cancelled(const Publication& publication);
  /// Whether it returns to the stage on request: because nothing was sent, or because the service never shows what it
  /// acknowledges, so that certainty would take forever.
  [[nodiscard]] Result<bool> may_be_given_back(const Publication& publication) const;

  /// Reconciles the project: merges siblings, brings head forward again, announces branches whose author did not.
  /// `agent` is the author of announcements. REQUIRES: no publication is half done.
  Result<ConvergedState> reconcile(const std::string& agent);

  /// The plan of a commit of the frozen layer. Journals nothing and sends only reads.
  Result<Plan> plan_only(const stage::Frozen& frozen, const std::string& agent, const std::string& message);

 private:
  /// What is published: the frozen layer, or the result of merging it with a head that moved on.
  struct Target {
    RevisionTreePtr on;  ///< the revision that it changes
    Manifest from;       ///< its manifest, with the fields and hidden entries of merged branches
    stage::Frozen layer;
    std::vector<PutFile> puts;  ///< layer.files with the location of their content
    std::vector<RevisionId> parents;
    Json state;
    std::vector<std::string> conflicts;  ///< paths that did not merge with head; it will be a branch
  };
  /// The state of one publication in memory, all of which can be rebuilt. Grows with the manifest, not with the
  /// content.
  struct Work {
    std::string tx;
    stage::Frozen frozen;
    std::vector<PutFile> puts;  ///< with the location of their content
    /// The head that `target` takes into account, as the project names it: if the service has lost it, `target` is
    /// based on what the log names in its place.
    std::optional<RevisionId> joined;
    std::set<RevisionId> gone_parents;  ///< merged revisions that the service lost; determined for `joined`
    Target target;
    bool trusts_head = true;    ///< if head is the base, the service has it; false once it lost a revision
    bool base_is_lost = false;  ///< the service went back to a state without it; determined for `joined`
    bool carries = false;       ///< `target` carries files of others that no other revision has any more
    bool is_refilled = false;   ///< `target` is head itself, which holds a revision of this publication
    ChunkIds gone;              ///< lost chunks of the hollow revision; others may have carried them forward
    std::vector<PutFile> lost;  ///< what the hollow revision published, if `target` holds it already
    RevisionTreePtr beside;     ///< the hollow revision, if head does not hold it
    ChunkTexts fetched;         ///< others' chunks that were fetched and compared
    Stored stored_by_others;
    bool is_first_post = false;  ///< this run journalled the body, so it was never sent
    /// When the body may last have been sent without its outcome being known.
    std::optional<SteadyTime> in_doubt_since;
    Doubt missing;  ///< for what was acknowledged and is not shown
    RevisionTreePtr ours;
  };

  /// Handles rows that are behind what was sent: the journal lost its last rows or was replaced by an older one.
  Status catch_up();
  void say_forgotten(const std::string& tx);
  Status step(Publication& publication);
  Status freeze(Publication& publication);
  Status prepare(Publication& publication);
  Status post(Publication& publication);
  Status refused(Publication& publication, const Error& error);
  Status converge(Publication& publication);
  Status say(const Announcement& announcement);
  Status note_left_out(const ConvergedState& converged);
  Status drop_taken_in(const RevisionId& head);
  Status pass_by(const ConvergedState& converged);
  Status say_what_came_late();
  Status settle(Publication& publication);
  Status thaw(Publication& publication);

  Status load(const stage::Frozen& frozen);
  /// If `asks` is false, head is assumed to be the layer's base.
  Status join_head(bool may_merge, bool asks);
  [[nodiscard]] std::vector<RevisionId> parents_of(const Target& target, const RevisionId& head) const;
  Status take_in_fields();
  /// `common`: what the layer's base and `head` have in common.
  Status merge_with(Snapshot common, const RevisionTreePtr& head);
  [[nodiscard]] bool comes_from_layer(const PutFile& put) const;
  /// Which of the layer's merge parents the service has lost. They are no parents of the revision: nobody could read
  /// its history down to them. What the tree has of them is in the layer.
  Status look_for_merge_parents(std::optional<RevisionId>& in_doubt);
  /// The merge parents that a merge base with `head` depends on.
  Result<std::vector<RevisionId>> merged_into_layer(const RevisionId& head);
  /// For a base that is not head and that head does not hold.
  Result<BaseFate> fate_of_base(const Project& project, const RevisionTreePtr& head);
  /// Returns `head`, or where head belongs if that revision is gone. Writes nothing.
  Result<RevisionId> head_that_exists(const RevisionId& head);
  /// The hollow revision of this publication, if head already holds it; nullptr otherwise.
  Result<RevisionTreePtr> join_hollow(const RevisionId& head);
  [[nodiscard]] Result<bool> has_more_than_head(const RevisionTree& hollow, const RevisionId& head);
  /// Publishes `head` itself again, with the bytes that `hollow` lost.
  Status refill(const RevisionTreePtr& head, const RevisionTreePtr& hollow);
  Status branch_off_hollow();
  [[nodiscard]] std::vector<RevisionId> taken_in_by(const RevisionTree& hollow) const;
  /// Turns a layer whose base is gone into a change of what is left of the line.
  Status join_survivor(const RevisionTreePtr& survivor, const RevisionTreePtr& head);
  /// False if some chunks are gone; they are forgotten, so that the next plan uploads their text again.
  Result<bool> has_all_chunks(const Publication& publication, const Plan& plan);
  Status bring_back(const Manifest& manifest, const ChunkIds& gone);
  void leave_out(const std::string& path, const Error& why);
  /// Whether the service has everything that the body to be posted refers to.
  Result<bool> can_stand(const Publication& publication);
  /// Whether a body that was planned on others (`made_on`) instead of the base is outdated, because the base is there
  /// again.
  Result<bool> has_base_come_back(const std::vector<RevisionId>& made_on);
  /// The revision is not there, or would refer to something that is not: looks again for a while, then plans again.
  /// `hollow`: the revision that is there, its own or one that holds it, but lacks chunks.
  Status plan_again(Publication& publication, const RevisionId& hollow = {});
  /// The revision that holds what the commit brought but lacks chunks: its own, or a head that holds it. Empty if none.
  Result<RevisionId> find_hollow(const ConvergedState& converged);
  Status give_back(Publication& publication, const Error& error, bool in_doubt = false);
  /// The service acknowledged the revision as often as it may be published again, and never showed all of it.
  [[nodiscard]] Result<bool> is_never_shown(const Publication& publication) const;
  /// One of its revisions is in the log but lost chunks, so it is published again.
  [[nodiscard]] Result<bool> has_hollow(const Publication& publication) const;
  /// Whether the log has the revision under another id, which it has from then on.
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
  /// Its journal was lost, so what it sent is unknown.
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
  std::vector<RevisionId> compared_with_head_;  ///< head and what was noted as left out, when last compared
  Progress told_;                               ///< of the publication's steps; idle if none is in progress
};

}  // namespace playfs::publish
