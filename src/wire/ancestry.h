// Decodes a revision whose manifest is unreadable. A pure function.
#pragma once

#include "model/records.h"

namespace playfs::wire {

/// Everything but the manifest; parents that are not ids are left out.
Revision decode_revision_but_files(Record record);

}  // namespace playfs::wire
