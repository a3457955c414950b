// A record as a row in PostgreSQL. Pure.
#pragma once

#include "service/postgres_values.h"
#include "service/store.h"
#include "service/stored_time.h"

#define PLAYFS_POSTGRES_RECORD "position, id, created_at, updated_at, status, owner, fields"

namespace playfs::service {

/// The columns must be PLAYFS_POSTGRES_RECORD.
inline StoredRecord record_of_row(const PostgresRows& rows, int row) {
  return {rows.string(row, 1),
          from_column(rows.integer(row, 2)),
          from_column(rows.integer(row, 3)),
          rows.string(row, 4),
          rows.string(row, 5),
          rows.string(row, 6)};
}

}  // namespace playfs::service
