// Making a stage look like a plain directory: the first half of an import. Blocking.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "stage/stage.h"

namespace playfs::app {

struct Skipped {
  std::string path;
  std::string reason;
};

struct Imported {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Skipped> skipped;  ///< what no project can hold: special files, names that are no text
};

/// Afterwards the stage's tree is that of `directory`: files, their bytes and x bits, symbolic links as they are.
/// What is there and the same already stays as it is; what `directory` does not have goes. Links are not followed.
Result<Imported> make_stage_look_like(stage::Stage& stage, const std::string& directory);

}  // namespace playfs::app
