// Recognizes the revision of a commit whose journal was lost. What was sent for it is unknown, so the frozen layer that
// is still here has to tell.
//
// Stateless; waits for the service.
#pragma once

#include "base/result.h"
#include "publish/upstream.h"
#include "stage/stage.h"

namespace playfs::publish {

/// Whether `stored` was posted for this layer: it has the commit's id, is based on the layer's base or merged with what
/// it is based on, and holds everything frozen. Another client may carry the id along when it edits our revision; the
/// result is not ours.
Result<bool> is_revision_of_layer(Upstream& upstream, const RevisionTreePtr& stored, const stage::Frozen& layer,
                                  const RevisionTreePtr& base);

}  // namespace playfs::publish
