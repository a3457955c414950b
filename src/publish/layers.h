// The work tree as a publication sees it: what was frozen, and what becomes of it. The engine is given this rather than
// a Stage so that a simulator can stand in its place.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stage/stage.h"

namespace playfs::publish {

class Layers {
 public:
  virtual ~Layers() = default;
  [[nodiscard]] virtual RevisionTreePtr base() const = 0;
  [[nodiscard]] virtual std::vector<FileRef> rules_needed() const = 0;
  virtual Result<std::optional<stage::Frozen>> freeze(const std::string& tx) = 0;
  virtual Result<std::optional<stage::Frozen>> pending() const = 0;
  /// A part of the bytes of the pending layer's file; fewer only at the end.
  virtual Result<std::string> read_frozen(const stage::FrozenFile& file, std::uint64_t offset,
                                          std::size_t size) const = 0;
  /// The layer was published, and `base` holds it, perhaps merged with what others did.
  virtual Status settle(const std::string& tx, const RevisionTreePtr& base) = 0;
  virtual Status thaw(const std::string& tx) = 0;
  /// Fails where something of that was done and may not be on disk: it will not be before the tree is opened again.
  [[nodiscard]] virtual Status check_disk() const = 0;
};

}  // namespace playfs::publish
