// Makes a stage equal to a plain directory: the first half of an import. Blocking.
#pragma once

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
Result<std::vector<Skipped>> make_stage_look_like(stage::Stage& stage, const std::string& directory);

}  // namespace playfs::app
