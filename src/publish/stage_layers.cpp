#include "publish/stage_layers.h"

#include "publish/conflicts.h"
#include "publish/integration.h"

namespace playfs::publish {

Status check_resolved(stage::Stage& stage) {
  PLAYFS_TRY(auto conflicts, unresolved(stage));
  if (conflicts.empty()) return {};
  return fail(ErrorCode::busy, conflicts.front().path + " is in conflict: " + conflicts.front().reason,
              "edit it, then commit again; or playfs commit --resolved, if it is right as it is");
}

Result<std::optional<stage::Frozen>> StageLayers::freeze(const std::string& tx) {
  PLAYFS_TRY(auto pending, stage_.pending());
  if (!pending) PLAYFS_CHECK(check_resolved(stage_));
  PLAYFS_TRY(auto frozen, stage_.freeze(tx));
  PLAYFS_CHECK(stage_.record_conflicted({}));
  return frozen;
}

Status StageLayers::settle(const std::string& tx, const RevisionTreePtr& base) { return integration_.settle(tx, base); }

}  // namespace playfs::publish
