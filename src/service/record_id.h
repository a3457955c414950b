// Record ids: 20 characters, the time followed by random digits. Pure.
//
// Short, because a manifest lists the ids of its chunks and has 16 KB for everything. The time in front keeps inserts
// at one end of the id index; the 55 random bits stop anyone from guessing, and so reserving, an id.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/random.h"

namespace playfs::service {

inline constexpr std::size_t kRecordIdLength = 20;

std::string make_record_id(WallTime created_at, Random& random);

}  // namespace playfs::service
