// What must hold for every stored record, whatever the store; used by `playfs serve check`. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace playfs::service {

/// A record as it is stored, with its times in microseconds.
struct RecordRow {
  std::string_view id;
  std::string_view collection;
  std::int64_t created_at = 0;
  std::int64_t updated_at = 0;
  std::string_view fields;
  std::string_view belongs_to;
};

/// `previous_time` is the creation time of the record before it. Errors: corrupt.
Status check_record(const RecordRow& row, std::int64_t previous_time);

}  // namespace playfs::service
