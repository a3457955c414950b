// The bytes of a file in the frozen layer, read in place.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "model/bytes.h"
#include "publish/work_tree_layers.h"

namespace playfs::publish {

/// A file of the frozen layer, which does not change until the publication has ended. A later process finds it by its
/// path.
class FrozenBytes final : public ByteSource {
 public:
  FrozenBytes(const WorkTreeLayers& layers, stage::FrozenFile file) : layers_(layers), file_(std::move(file)) {}
  [[nodiscard]] Result<std::string> read(std::uint64_t offset, std::size_t size) const override {
    return layers_.read_frozen(file_, offset, size);
  }
  [[nodiscard]] std::string lasting_name() const override { return file_.path; }

 private:
  const WorkTreeLayers& layers_;
  const stage::FrozenFile file_;
};

}  // namespace playfs::publish
