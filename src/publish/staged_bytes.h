// Bytes of the work tree as it is now, read where they stand: they may change at any moment, and whoever reads them has
// to see afterwards whether they did (Stage::seen_at).
#pragma once

#include "model/bytes.h"
#include "stage/stage.h"

namespace playfs::publish {

/// Of a file or link with bytes of its own. Reading fails with `busy` where there are fewer by then. `stage` must
/// outlive them.
Result<Bytes> staged_bytes(stage::Stage& stage, const stage::InodePtr& inode);

}  // namespace playfs::publish
