#include "publish/dry_run.h"

#include <map>
#include <utility>

#include "publish/publication_engine.h"

namespace playfs::publish {

Status end_dry_run(stage::Stage& stage) {
  PLAYFS_TRY(auto pending, stage.pending());
  return pending && pending->tx == kDryRunTx ? stage.thaw(kDryRunTx) : Status();
}

Result<PlannedCommit> dry_run(stage::Stage& stage, PublicationEngine& engine, const std::string& agent) {
  PlannedCommit planned;
  PLAYFS_CHECK(end_dry_run(stage));
  PLAYFS_TRY(auto pending, stage.pending());
  if (pending) return fail(ErrorCode::busy, "a publication is in progress", "playfs status");
  // Frozen for a moment, so that the plan is of one state of the tree.
  PLAYFS_TRY(auto frozen, stage.freeze(kDryRunTx));
  if (!frozen) return planned;
  auto plan = engine.plan_only(*frozen, agent, std::string());
  PLAYFS_CHECK(end_dry_run(stage));
  if (!plan) return fail(plan.error());
  planned.files_changed = static_cast<std::uint32_t>(frozen->files.size() + frozen->deletions.size());
  planned.revision_size = plan->revision_size;
  std::map<std::string, PlannedCommit::Path> paths;
  for (const auto& file : frozen->files) paths[file.path].size = file.size;
  for (const auto& path : frozen->deletions) paths[path].deleted = true;
  for (const auto& upload : plan->uploads) {
    PlannedCommit::Path& costs = paths[plan->texts[upload.text].path];
    ++costs.chunks;
    costs.sent += upload.size;
  }
  for (auto& [path, costs] : paths) {
    costs.path = path;
    planned.paths.push_back(std::move(costs));
  }
  return planned;
}

CommitResult result_of(const PlannedCommit& planned) {
  CommitResult result;
  result.tx = planned.id;
  result.outcome = planned.revision_size == 0 ? Outcome::nothing : Outcome::planned;
  result.files_changed = planned.files_changed;
  for (const auto& path : planned.paths) result.chunks_total += path.chunks;
  constexpr std::uint32_t kPostAndPatch = 2;
  if (result.outcome == Outcome::planned) result.writes_used = result.chunks_total + kPostAndPatch;
  return result;
}

}  // namespace playfs::publish
