// A commit whose journal was lost: what was sent for it is not known, and has to be told from what is still here, which
// is the frozen layer.
//
// A plain function over what it is given; it waits for the service.
#pragma once

#include "base/result.h"
#include "publish/upstream.h"
#include "stage/stage.h"

namespace playfs::publish {

/// Whether `stored` was posted for this layer: it has the commit's id, is made on the layer's base or merged with what
/// it is made on, and holds all that is frozen. Another client may carry the id along when it edits our revision; what
/// it made of it is not ours.
Result<bool> is_revision_of_layer(Upstream& upstream, const RevisionTreePtr& stored, const stage::Frozen& layer,
                                  const RevisionTreePtr& base);

}  // namespace playfs::publish
