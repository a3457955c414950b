// Bringing what others published into a work tree with changes of its own: an update to head, or taking in a branch.
//
// The three-way merge is worked out without any lock, from files of which it is remembered what they were; then the
// stage carries it out in one step, with the list of conflicts and the base, if they are so still. Where somebody was
// faster it is merged again. A crash leaves the old state or the new one. Content is read where it stands: in memory is
// one file that is merged line by line, and what comes out of such merges. For one thread; waits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "publish/journal.h"
#include "publish/merging.h"
#include "publish/stage_layers.h"
#include "stage/stage.h"

namespace playfs::publish {

struct Integrated {
  RevisionId base;
  std::size_t conflicts = 0;  ///< paths that were left in conflict
};

class Integration {
 public:
  Integration(Upstream& upstream, Merging& merging, Journal& journal, stage::Stage& stage, const Settled& settled)
      : upstream_(upstream), merging_(merging), journal_(journal), stage_(stage), settled_(settled) {}

  /// `head` becomes the base; where it does not hold the old one, that becomes a further parent of the next commit.
  /// It was asked for when the tree stood on `asked_on`: where it stands on another by now, which holds `head`, it
  /// stays there. Fails with `busy` where something is still in conflict, with `refused_input` where it cannot be told
  /// what the two have in common.
  Result<Integrated> update(const RevisionTreePtr& head, const RevisionId& asked_on);
  /// What `revision` has comes into the tree, and it becomes a further parent of the next commit. Where it cannot be
  /// told what the two have in common, every path that one side alone has is left in conflict. Fails with `busy` where
  /// something is staged.
  Result<Integrated> merge(const RevisionTreePtr& revision);
  /// Stage::settle, with what was written since the layer was frozen merged where the new base brings something too.
  Status settle(const std::string& tx, const RevisionTreePtr& base);

 private:
  /// One attempt.
  struct Step {
    RevisionTreePtr on;                ///< the tree's base as it was when this began
    std::vector<RevisionId> taken_in;  ///< what was taken in beside it, likewise
    std::vector<RevisionId> parents;   ///< what is taken in beside `next` afterwards
    bool is_done = false;              ///< the tree holds all of it already
    Snapshot base, ours, theirs;
    std::string unknown;   ///< why it cannot be told what `base` is
    Snapshot below;        ///< what is as it is there follows `next` by itself
    RevisionTreePtr next;  ///< what the tree stands on afterwards
    MergeLabels labels;
    std::string ending;                               ///< of names for what theirs has beside ours
    bool clears_the_way = false;                      ///< also for what is kept here only
    std::map<std::string, stage::FrozenFile> frozen;  ///< of `base`: what is read from the stage
    std::map<std::string, stage::Seen> seen;          ///< of every staged path
    std::map<std::string, Bytes> own;                 ///< of those with bytes of their own, which stay where they are
    std::set<std::string> kept;                       ///< where a file that is kept here only stays
    std::vector<std::string> unpublished;             ///< what is kept here only
    bool brings_rules = false;                        ///< for what is ignored: others than those that were here
    std::optional<std::string> seen_state;
    std::function<Status(Step&)> complete;  ///< what is left to do once what is local is there; may be empty
    std::unique_ptr<stage::Stage::Hold> hold;
  };
  /// All but what is local: that is added once writers are held, where they are.
  using BeginStep = std::function<Status(Step&)>;
  using Stand = std::function<Status(const stage::Merged&)>;
  /// Merges and has the stage stand on the outcome, again where somebody was faster.
  Status carry_out(const BeginStep& begin, const Stand& stand);
  Result<Integrated> integrated(const RevisionTreePtr& base) const;
  /// What the tree is to be on `step.next`.
  Result<stage::Merged> bring_in(Step& step);
  /// `displaced` gets a name beside `top`, and the conflict says so.
  void set_beside(const Step& step, const std::string& top, std::string reason,
                  const std::map<std::string, MergedFile>& displaced, Merge& merge,
                  std::vector<stage::Conflicted>& list);
  Result<std::optional<std::string>> stands_in_the_way(const std::string& kept, bool is_directory,
                                                       const std::string& path) const;
  Status clear_the_way(Step& step, Merge& merge, std::vector<stage::Conflicted>& list);
  static bool brings_rules(const Step& step, const Merge& merge);
  Status keep_what_was_ignored(const Step& step, std::vector<stage::Conflicted>& list) const;
  Status forget_what_is_ignored();
  Status fetch_rules();
  Result<bool> has_rules_of_others(const RevisionTreePtr& published) const;
  void keep_tracked(const Step& step, const Merge& merge, stage::Merged& merged) const;
  Status decide(Step& step, const Merge& merge, const std::vector<stage::Conflicted>& list, stage::Merged& merged);
  Result<Bytes> read(Step& step, MergeSide side, const std::string& path, const FileEntry& entry);
  Result<std::optional<ContentHash>> hash_of_left(Step& step, const Merge& merge, const std::string& path);
  /// The tree now; of files that theirs did not change against the base not even the bytes are read.
  Status add_local(Step& step) const;
  Status add_frozen(Step& step) const;
  /// add_what_came_back(), once it is known what is local.
  Result<bool> add_what_is_back(Step& step) const;

  Upstream& upstream_;
  Merging& merging_;
  Journal& journal_;
  stage::Stage& stage_;
  const Settled& settled_;
  /// Content that was fetched for the integration under way, so that a further attempt waits for nothing.
  std::map<std::string, Bytes> fetched_;
};

}  // namespace playfs::publish
