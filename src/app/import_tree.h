// Making a stage look like a plain directory: the first half of an import. Blocking.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "stage/stage.h"

namespace playfs::app {

/// What no project can hold: special files, names that are no text.
struct Skipped {
  std::string path;
  std::string reason;
};

/// Afterwards the stage's tree is that of `directory`: files, their bytes and x bits, symbolic links as they are.
/// What is there and the same already stays as it is; what `directory` does not have goes. Links are not followed.
/// Answers what it left out.
Result<std::vector<Skipped>> make_stage_look_like(stage::Stage& stage, const std::string& directory);

}  // namespace playfs::app
