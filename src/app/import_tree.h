// Makes a stage equal to a plain directory: the first half of an import. Blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "stage/stage.h"

namespace playfs::app {

/// What a project cannot hold: special files, and names that are not text.
struct Skipped {
  std::string path;
  std::string reason;
};

/// Makes the stage's tree that of `directory`: files, their bytes and x bits, and symbolic links, which are not
/// followed. What is already equal is left alone; what `directory` lacks is removed. Returns what was left out.
/// `has_read` is called with the size of each file that was read.
Result<std::vector<Skipped>> make_stage_look_like(stage::Stage& stage, const std::string& directory,
                                                  const std::function<void(std::uint64_t)>& has_read);

}  // namespace playfs::app
