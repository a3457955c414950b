#include "publish/integration.h"

#include <algorithm>
#include <utility>

#include "base/shell.h"
#include "publish/conflicts.h"
#include "publish/dry_run.h"
#include "stage/ignore.h"

namespace playfs::publish {

namespace {

/// Somebody may be writing in the tree all the time: from some attempt on, writers are held during the merge, and
/// finally the caller has to try again later.
constexpr int kPatientRounds = 4;
constexpr int kMostRounds = 12;

bool is_busy(const Error& error) { return error.code == ErrorCode::busy; }

Error still_in_conflict(const stage::Conflicted& conflicted) {
  return Error{ErrorCode::conflict, shown_path(conflicted) + " is still in conflict: " + conflicted.reason,
               how_to_resolve(conflicted)};
}

Error cannot_be_brought_in(const std::string& unknown, const RevisionId& head) {
  return Error{ErrorCode::refused_input, "head cannot be merged into the work tree: " + unknown,
               "playfs commit, which publishes a branch; then playfs merge " + shell_operand(head.text()) +
                   ", which leaves every file that only one side has for you to decide"};
}

/// The revisions that the tree is made of: its base and what was merged into it.
std::vector<RevisionId> lines(const RevisionTreePtr& base, std::vector<RevisionId> taken_in) {
  taken_in.push_back(base->revision.id);
  return taken_in;
}

}  // namespace

/// Until the rules are here, ignored files count as staged.
Status Integration::fetch_rules() {
  for (const auto& rules : stage_.rules_needed()) {
    auto text = upstream_.content(rules.revision, rules.path, *rules.entry);
    if (!text) return fail(text.error().while_doing("read the ignore rules"));
  }
  return {};
}

/// Others' rules apply to new files. Files that were local-only before are not published because of them: stand_on()
/// puts them in conflict, until the user has a rule for them, moves them away, or commits with `--resolved`. This drops
/// the conflicts of those that the new rules still ignore.
Status Integration::forget_what_is_ignored() {
  PLAYFS_CHECK(fetch_rules());
  for (int round = 0;; ++round) {
    const auto seen = stage_.conflicted();
    PLAYFS_TRY(auto left, unresolved(stage_));
    auto list = seen;
    std::erase_if(list, [&](const stage::Conflicted& each) {
      return each.is_kept_here && std::find(left.begin(), left.end(), each) == left.end();
    });
    Status recorded = stage_.record_conflicted(std::move(list), seen);
    if (recorded || !is_busy(recorded.error()) || round == kMostRounds) return recorded;
  }
}

Status Integration::carry_out(const BeginStep& begin, const Stand& stand) {
  PLAYFS_CHECK(fetch_rules());
  for (int round = 0;; ++round) {
    Step step;
    step.on = stage_.base();
    step.taken_in = stage_.merge_parents();
    step.conflicted = stage_.conflicted();
    step.tracked = stage_.tracked();
    PLAYFS_CHECK(begin(step));
    if (step.is_done) return {};
    if (round >= kPatientRounds) step.hold = stage_.hold_writers();
    auto attempt = [&]() -> Status {
      PLAYFS_CHECK(add_local(step));
      if (step.complete) PLAYFS_CHECK(step.complete(step));
      PLAYFS_TRY(auto merged, bring_in(step));
      return stand(merged);
    };
    Status moved = attempt();
    if (moved && step.brings_rules) return forget_what_is_ignored();
    if (moved || !is_busy(moved.error()) || round + 1 == kMostRounds) return moved;
  }
}

Result<Integrated> Integration::update(const RevisionTreePtr& head, const RevisionId& asked_on) {
  fetched_.clear();
  PLAYFS_CHECK(end_dry_run(stage_));
  PLAYFS_TRY(auto open, unresolved(stage_));
  if (!open.empty()) return fail(still_in_conflict(open.front()));
  std::vector<RevisionId> parents;
  bool is_all_back = false;
  RevisionTreePtr stands_on = head;
  auto begin = [&](Step& step) -> Status {
    const RevisionTreePtr& base = step.on;
    parents.clear();
    is_all_back = false;
    if (base) {
      std::vector<RevisionId> stood_on = lines(base, step.taken_in), compared = stood_on;
      compared.push_back(head->revision.id);
      PLAYFS_TRY(auto holdings, Holdings::compare(compared, merging_.links()));
      // A commit ended meanwhile and is based on that head. Nobody asked to undo it.
      step.is_done = base->revision.id != asked_on && holdings.covers(base->revision.id, head->revision.id);
      stands_on = step.is_done ? base : head;
      if (step.is_done) return {};
      for (const auto& each : stood_on)
        if (!holdings.covers(head->revision.id, each)) parents.push_back(each);
    }
    step.parents = parents;
    step.theirs = snapshot_of(head);
    step.below = snapshot_of(base);
    step.next = head;
    step.labels = {kOurLabel, kHeadLabel + head->revision.id.text()};
    step.ending = ".head";
    if (base) {
      PLAYFS_TRY(CommonBase common, merging_.base_of(lines(base, step.taken_in), head->revision.id));
      if (!common.unknown.empty()) return fail(cannot_be_brought_in(common.unknown, head->revision.id));
      step.base = std::move(common.snapshot);
    }
    step.complete = [&](Step& seen) -> Status {
      PLAYFS_TRY(is_all_back, add_what_is_back(seen));
      return {};
    };
    return {};
  };
  PLAYFS_CHECK(carry_out(begin, [&](const auto& merged) { return stage_.integrate(head, merged, parents, settled_); }));
  if (is_all_back) PLAYFS_CHECK(journal_.record_no_lost_base());
  return integrated(stands_on);
}

Result<Integrated> Integration::merge(const RevisionTreePtr& revision) {
  fetched_.clear();
  PLAYFS_CHECK(end_dry_run(stage_));
  PLAYFS_TRY(auto open, unresolved(stage_));
  if (!open.empty()) return fail(still_in_conflict(open.front()));
  PLAYFS_TRY(auto changes, stage_.changes());
  if (!changes.empty() || stage_.staged_state())
    return fail(ErrorCode::conflict, "there are staged changes", "playfs commit -m MESSAGE, or playfs discard");
  RevisionTreePtr base;
  std::vector<RevisionId> parents;
  auto begin = [&](Step& step) -> Status {
    base = step.on;  // a clean tree may follow head meanwhile
    parents = step.taken_in;
    if (std::find(parents.begin(), parents.end(), revision->revision.id) == parents.end())
      parents.push_back(revision->revision.id);
    step.parents = parents;
    if (!base) return fail(ErrorCode::invalid_argument, "nothing has been published yet to merge with");
    PLAYFS_TRY(auto holdings, Holdings::compare({base->revision.id, revision->revision.id}, merging_.links()));
    step.is_done = holdings.covers(base->revision.id, revision->revision.id);
    if (step.is_done) return {};
    PLAYFS_TRY(CommonBase common, merging_.base_of(lines(base, step.taken_in), revision->revision.id));
    step.base = std::move(common.snapshot);
    step.unknown = std::move(common.unknown);
    step.theirs = snapshot_of(revision);
    step.below = snapshot_of(base);
    step.next = base;
    step.labels = {kOurLabel, kRevisionLabel + revision->revision.id.text()};
    step.ending = ".branch";
    return {};
  };
  PLAYFS_CHECK(carry_out(begin, [&](const auto& merged) { return stage_.integrate(base, merged, parents, settled_); }));
  return integrated(base);
}

Result<Integrated> Integration::integrated(const RevisionTreePtr& base) const {
  PLAYFS_TRY(auto left, unresolved(stage_));
  return Integrated{base->revision.id, left.size()};
}

/// Whether the published ignore rules differ from those that were frozen.
Result<bool> Integration::has_rules_of_others(const RevisionTreePtr& published) const {
  PLAYFS_TRY(auto layer, stage_.pending());
  const RevisionTreePtr on = stage_.base();
  if (!layer || !on || published->revision.parents == std::vector{on->revision.id}) return false;
  stage::RuleFiles frozen = stage::rules_of(on->tree.manifest());
  for (const auto& path : layer->deletions) frozen.erase(path);
  for (const auto& file : layer->files) {
    frozen.erase(file.path);
    if (stage::is_rules(file.path, file.mode))
      frozen.emplace(file.path, file.published ? content_key(*file.published) : file.hash.hex());
  }
  return stage::rules_of(published->tree.manifest()) != frozen;
}

Status Integration::settle(const std::string& tx, const RevisionTreePtr& base) {
  fetched_.clear();
  PLAYFS_TRY(bool has_their_rules, has_rules_of_others(base));
  if (!has_their_rules) {
    Status settled = stage_.settle(tx, base, {}, settled_);
    if (settled || !is_busy(settled.error())) return settled;
  }
  // Files written since the freeze have other changes in the published revision, or it brings other ignore rules.
  auto begin = [&](Step& step) -> Status {
    step.theirs = snapshot_of(base);
    step.next = base;
    step.labels = {kOurLabel, kRevisionLabel + base->revision.id.text()};
    step.ending = ".head";
    step.clears_the_way = true;
    PLAYFS_CHECK(add_frozen(step));
    step.below = step.base;
    return {};
  };
  return carry_out(begin, [&](const auto& merged) { return stage_.settle(tx, base, merged, settled_); });
}

}  // namespace playfs::publish
