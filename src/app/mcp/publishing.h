// The tool `publish`, and what `list` says of changes. For one lane's thread.
#pragma once

#include <chrono>
#include <memory>

#include "app/mcp/lane.h"
#include "app/mcp/workplace.h"
#include "app/work_tree_access.h"
#include "mcp/feature_set.h"

namespace playfs::app {

class Publishing {
 public:
  Publishing(Lane& lane, Workplace& workplace) : lane_(lane), workplace_(workplace) {}

  mcp::Answer publish(const JsonObject& arguments, mcp::Call& call);
  mcp::Answer changes();

 private:
  struct Wanted;
  [[nodiscard]] Result<std::unique_ptr<WorkTreeAccess>> open();
  [[nodiscard]] Result<mcp::Answer> act(const Wanted& wanted, mcp::Call& call);
  [[nodiscard]] Result<mcp::Answer> commit(WorkTreeAccess& tree, const Wanted& wanted, mcp::Call& call);
  [[nodiscard]] Result<mcp::Answer> update(WorkTreeAccess& tree);
  [[nodiscard]] Result<mcp::Answer> discard(WorkTreeAccess& tree, const Wanted& wanted);
  [[nodiscard]] Result<mcp::Answer> wait(WorkTreeAccess& tree, mcp::Call& call);

  Lane& lane_;
  Workplace& workplace_;
};

}  // namespace playfs::app
