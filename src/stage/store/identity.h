// Identifies the stage in a directory, for callers that store data which belongs to that stage alone. Blocking;
// stateless.
#pragma once

#include <cstdint>
#include <string>

namespace playfs::stage {

/// The random number that was drawn when the stage in `directory` was begun; 0 if none was.
std::uint64_t identity_of_stage(const std::string& directory);

}  // namespace playfs::stage
