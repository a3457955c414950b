// The work tree's bytes, read in place. They may change at any moment, so the caller has to check afterwards whether
// they did (Stage::seen_at).
#pragma once

#include "model/bytes.h"
#include "stage/stage.h"

namespace playfs::publish {

/// For a file or link with bytes of its own. Reading fails with `busy` if the file has become shorter. `stage` must
/// outlive the result.
Result<Bytes> staged_bytes(stage::Stage& stage, const stage::InodePtr& inode);

}  // namespace playfs::publish
