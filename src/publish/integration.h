// Merges what others published into a work tree with changes of its own: an update to head, or the merge of a branch.
//
// The three-way merge is computed without a lock, and remembers what each file was that it read. Then the stage applies
// the result in one step, with the list of conflicts and the base, if all these files are unchanged; otherwise the
// merge is repeated. A crash leaves the old state or the new one. Content is read in place: memory holds the one file
// that is being merged line by line, and the results of such merges. For one thread; blocking.
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
  std::size_t conflicts = 0;  ///< paths left in conflict
};

class Integration {
 public:
  Integration(Upstream& upstream, Merging& merging, Journal& journal, stage::Stage& stage, const Settled& settled)
      : upstream_(upstream), merging_(merging), journal_(journal), stage_(stage), settled_(settled) {}

  /// Makes `head` the base. If it does not hold the old base, that becomes a further parent of the next commit.
  /// `asked_on`: the base when the update was requested; if the tree has another base by now that holds `head`, nothing
  /// changes. Fails with `busy` while something is in conflict, with `refused_input` if the merge base is unknown.
  Result<Integrated> update(const RevisionTreePtr& head, const RevisionId& asked_on);
  /// Merges `revision` into the tree, and makes it a further parent of the next commit. If the merge base is unknown,
  /// every path that only one side has is left in conflict. Fails with `busy` while something is staged.
  Result<Integrated> merge(const RevisionTreePtr& revision);
  /// Stage::settle. If a file was written since the freeze and the new base changed it too, merges the two.
  Status settle(const std::string& tx, const RevisionTreePtr& base);

 private:
  /// One attempt.
  struct Step {
    RevisionTreePtr on;                ///< the tree's base when the attempt began
    std::vector<RevisionId> taken_in;  ///< the further parents then: what was merged into the tree
    std::vector<RevisionId> parents;   ///< the further parents afterwards
    bool is_done = false;              ///< the tree already holds all of it
    Snapshot base, ours, theirs;
    std::string unknown;   ///< why the merge base is unknown
    Snapshot below;        ///< paths that are unchanged against this follow `next`
    RevisionTreePtr next;  ///< the tree's base afterwards
    MergeLabels labels;
    std::string ending;                               ///< added to names for their version beside ours
    bool clears_the_way = false;                      ///< moves theirs aside, even for local-only files
    std::map<std::string, stage::FrozenFile> frozen;  ///< files of `base` that are read from the stage
    std::map<std::string, stage::Seen> seen;          ///< for every staged path
    std::map<std::string, Bytes> own;                 ///< staged files with bytes of their own; read in place
    std::set<std::string> kept;                       ///< paths at which a local-only file stays
    std::vector<std::string> unpublished;             ///< local-only files
    bool brings_rules = false;                        ///< the result's ignore rules differ from those here
    std::vector<stage::Conflicted> conflicted;        ///< as recorded when the merge began
    stage::Tracked tracked;                           ///< likewise
    std::optional<std::string> seen_state;
    std::function<Status(Step&)> complete;  ///< called after add_local(); may be empty
    std::unique_ptr<stage::Stage::Hold> hold;
  };
  /// Fills in everything but the local changes, which are added once writers are held, if they are.
  using BeginStep = std::function<Status(Step&)>;
  using Stand = std::function<Status(const stage::Merged&)>;
  /// Merges and applies the result, repeatedly if files change meanwhile.
  Status carry_out(const BeginStep& begin, const Stand& stand);
  Result<Integrated> integrated(const RevisionTreePtr& base) const;
  /// What the tree has to become on `step.next`.
  Result<stage::Merged> bring_in(Step& step);
  /// Gives `displaced` a name beside `top`, and notes that in the conflict.
  void set_beside(const Step& step, const std::string& top, std::string reason,
                  const std::map<std::string, MergedFile>& displaced, Merge& merge,
                  std::vector<stage::Conflicted>& list);
  Result<std::optional<std::string>> stands_in_the_way(const std::string& kept, bool is_directory,
                                                       const std::string& path) const;
  Status clear_the_way(Step& step, Merge& merge, std::vector<stage::Conflicted>& list);
  Status add_instructions_of_both(Step& step, const Merge& merge, std::vector<stage::Conflicted>& list);
  static bool brings_rules(const Step& step, const Merge& merge);
  Status forget_what_is_ignored();
  Status fetch_rules();
  Result<bool> has_rules_of_others(const RevisionTreePtr& published) const;
  void keep_tracked(const Step& step, const Merge& merge, stage::Merged& merged) const;
  Status decide(Step& step, const Merge& merge, const std::vector<stage::Conflicted>& list, stage::Merged& merged);
  Result<Bytes> read(Step& step, MergeSide side, const std::string& path, const FileEntry& entry);
  Result<std::optional<ContentHash>> hash_of_left(Step& step, const Merge& merge, const std::string& path);
  /// Adds the tree's present state. Does not read files that theirs did not change against the base.
  Status add_local(Step& step) const;
  Status add_frozen(Step& step) const;
  /// add_what_came_back(), once the local changes are known.
  Result<bool> add_what_is_back(Step& step) const;

  Upstream& upstream_;
  Merging& merging_;
  Journal& journal_;
  stage::Stage& stage_;
  const Settled& settled_;
  /// Content fetched for the current integration, so that another attempt does not wait for it.
  std::map<std::string, Bytes> fetched_;
};

}  // namespace playfs::publish
