// Ids of records: 20 characters, time first, then chance. Pure.
//
// Short, since a manifest lists the ids of its chunks and has 16 KB for everything. The time in front keeps inserts
// at one end of the id index; 55 random bits behind it make ids unguessable enough that nobody can reserve one.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/random.h"

namespace playfs::service {

inline constexpr std::size_t kRecordIdLength = 20;

std::string make_record_id(WallTime created_at, Random& random);

}  // namespace playfs::service
