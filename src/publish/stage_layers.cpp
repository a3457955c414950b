#include "publish/stage_layers.h"

#include "publish/conflicts.h"
#include "publish/dry_run.h"
#include "publish/integration.h"

namespace playfs::publish {

namespace {
/// Each time a discard has to come in between.
constexpr int kMostJudged = 12;
}  // namespace

Status check_resolved(stage::Stage& stage, const std::string& tx) {
  if (stage.is_accepted_by(tx)) return {};
  PLAYFS_TRY(auto conflicts, unresolved(stage));
  if (conflicts.empty()) return {};
  return fail(ErrorCode::conflict, shown_path(conflicts.front()) + " is in conflict: " + conflicts.front().reason,
              how_to_resolve(conflicts.front()) + ", then commit; or playfs commit --resolved, to publish it as it is");
}

Result<std::optional<stage::Frozen>> StageLayers::freeze(const std::string& tx) {
  PLAYFS_CHECK(end_dry_run(stage_));
  // A discard may add a conflict after those in the list were judged; then all are judged again.
  for (int round = 0;; ++round) {
    const auto judged = stage_.conflicted();
    PLAYFS_TRY(auto pending, stage_.pending());
    if (!pending) PLAYFS_CHECK(check_resolved(stage_, tx));
    auto frozen = stage_.freeze(tx, judged);
    if (frozen && !*frozen) {
      // No conflict is left, and no revision will be published that would clear the list.
      PLAYFS_CHECK(sync_resolved(stage_, {}));
      if (Status cleared = stage_.record_conflicted({}, judged); !cleared) frozen = fail(cleared.error());
    }
    if (frozen && *frozen && frozen_) frozen_();
    const bool has_other_conflicts = !frozen && frozen.error().code == ErrorCode::busy && judged != stage_.conflicted();
    if (!has_other_conflicts || round == kMostJudged) return frozen;
  }
}

Status StageLayers::settle(const std::string& tx, const RevisionTreePtr& base) { return integration_.settle(tx, base); }

}  // namespace playfs::publish
