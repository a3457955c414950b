// The work tree as the engine sees it: the frozen layer, and what becomes of it. An interface in front of Stage, so
// that a simulator can replace it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stage/stage.h"

namespace playfs::publish {

class WorkTreeLayers {
 public:
  virtual ~WorkTreeLayers() = default;
  [[nodiscard]] virtual RevisionTreePtr base() const = 0;
  [[nodiscard]] virtual std::vector<FileRef> rules_needed() const = 0;
  virtual Result<std::optional<stage::Frozen>> freeze(const std::string& tx) = 0;
  virtual Result<std::optional<stage::Frozen>> pending() const = 0;
  /// Reads part of a file of the pending layer; returns fewer bytes only at its end.
  virtual Result<std::string> read_frozen(const stage::FrozenFile& file, std::uint64_t offset,
                                          std::size_t size) const = 0;
  /// The layer is published, and `base` holds it, perhaps merged with others' changes.
  virtual Status settle(const std::string& tx, const RevisionTreePtr& base) = 0;
  virtual Status thaw(const std::string& tx) = 0;
  /// Fails if an earlier settle or thaw may not be on disk; it stays so until the tree is opened again.
  [[nodiscard]] virtual Status check_disk() const = 0;
};

}  // namespace playfs::publish
