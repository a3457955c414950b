// What can be read of a revision whose manifest cannot. A pure function.
#pragma once

#include "model/records.h"

namespace playfs::wire {

/// All of it but its manifest; parents that are no ids are left out.
Revision decode_revision_but_files(Record record);

}  // namespace playfs::wire
