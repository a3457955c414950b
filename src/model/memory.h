// How much memory parsed records take, for caches that are bounded in bytes. Pure functions.
//
// Text of one byte may become a value of forty, so the size of a record's JSON says little. These are estimates on the
// high side: they count what the containers allocate, with the allocator's overhead.
#pragma once

#include <cstddef>

#include "model/json.h"
#include "model/records.h"
#include "model/tree.h"

namespace playfs {

[[nodiscard]] std::size_t memory_of(const Json& value);
[[nodiscard]] std::size_t memory_of(const JsonObject& object);
[[nodiscard]] std::size_t memory_of(const Record& record);
[[nodiscard]] std::size_t memory_of(const RevisionTree& tree);

}  // namespace playfs
