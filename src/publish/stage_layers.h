// Implements the engine's view of the work tree with a Stage.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "publish/work_tree_layers.h"

namespace playfs::publish {

class Integration;

/// Called after a change of base, so that the mount can invalidate what changed.
using Settled = stage::Told;

/// Fails with `busy`, naming the path, while there is a conflict that the commit `tx` does not accept as it is.
Status check_resolved(stage::Stage& stage, const std::string& tx = {});

/// References must outlive this object.
class StageLayers final : public WorkTreeLayers {
 public:
  /// `frozen`: see PublisherOptions.
  StageLayers(stage::Stage& stage, Integration& integration, std::function<void()> frozen = {})
      : stage_(stage), integration_(integration), frozen_(std::move(frozen)) {}

  [[nodiscard]] RevisionTreePtr base() const override { return stage_.base(); }
  [[nodiscard]] std::vector<FileRef> rules_needed() const override { return stage_.rules_needed(); }
  /// Fails with `busy` while something is in conflict.
  Result<std::optional<stage::Frozen>> freeze(const std::string& tx) override;
  Result<std::optional<stage::Frozen>> pending() const override { return stage_.pending(); }
  Result<std::string> read_frozen(const stage::FrozenFile& file, std::uint64_t offset,
                                  std::size_t size) const override {
    return stage_.read_frozen(file, offset, size);
  }
  Status settle(const std::string& tx, const RevisionTreePtr& base) override;
  Status thaw(const std::string& tx) override { return stage_.thaw(tx); }
  [[nodiscard]] Status check_disk() const override { return stage_.check_disk(); }

 private:
  stage::Stage& stage_;
  Integration& integration_;
  const std::function<void()> frozen_;
};

}  // namespace playfs::publish
